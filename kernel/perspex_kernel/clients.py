"""Counts the clients of the kernel's sockets, so that a restart can wait for all of them."""

from __future__ import annotations

import threading
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message


class Peers:
    """Counts who is connected to a socket."""

    # Seconds to wait for those that were connected.
    patience = 10.0

    def __init__(self, socket: zmq.Socket[Any]) -> None:
        self.socket = socket
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        self.monitor: zmq.Socket[Any] | None = socket.get_monitor_socket(events)
        self.number = 0
        self._lock = threading.Lock()

    def count(self) -> int:
        """How many are connected now."""
        with self._lock:
            while self.monitor is not None and self.monitor.poll(0):
                event = recv_monitor_message(self.monitor)["event"]
                self.number += 1 if event == zmq.EVENT_HANDSHAKE_SUCCEEDED else -1
        return self.number

    def close(self) -> None:
        """Count no more."""
        self.count()
        with self._lock:
            self.monitor = None
            self.socket.disable_monitor()


class Subscriptions:
    """Counts the subscriptions to what the kernel publishes.

    A client gets nothing before its subscription has come, which is a while after its handshake.
    One that waits for a reply, and listens to nothing else meanwhile, subscribes after the wait.
    """

    patience = 5.0

    def __init__(self, socket: zmq.Socket[Any]) -> None:
        # Also those to a topic that somebody else has, and their ends.
        socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self.number = 0

    def listen(self, thread: Any) -> None:
        """Count what comes to an `IOPubThread` that has not started."""

        def came(frames: list[bytes]) -> None:
            # The first byte is 1 for a subscription and 0 for its end.
            self.number += sum(1 if frame[0] else -1 for frame in frames)
            thread._handle_subscription(frames)

        thread._xpub_stream.on_recv(came)

    def count(self) -> int:
        """How many there are now."""
        return self.number
