"""The pages that show a panel: one client each, known by an id that a page keeps over reloads.

A page that is closed or reloaded does not say so. A client therefore gives way to the next one of
the same id. The kernel lets go of a client that was silent for an hour, and of the oldest of too
many. It then closes the comm: a page that is still there opens another one, under a new id, because
two pages may have the same one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from perspex.base.recent import Recent
from perspex_magics.panel.contract import Message, Topic
from perspex_magics.panel.tables import NOTHING

MOST_CLIENTS = 8
EXPIRES = 3_600.0

Send = Callable[[dict[str, Any]], None]


class Client:
    """One page: how to reach it, what it shows, and what it knows."""

    def __init__(self, send: Send, close: Callable[[], None]) -> None:
        self._send, self.close = send, close
        self._lock = threading.Lock()
        self._number = 0
        # For each topic that is shown, the changes that the page knows.
        self.cursors: dict[Topic, int] = {}
        self.heard = time.monotonic()

    def send(self, message: Message) -> None:
        """Send a message with the next number, from any thread."""
        data = msgspec.to_builtins(message)
        with self._lock:
            self._send({**data, "number": self._number})
            self._number += 1

    def watch(self, topics: Iterable[Topic]) -> None:
        """Show these topics; the page knows nothing of those that are new."""
        cursors = self.cursors
        self.cursors = {topic: cursors.get(topic, NOTHING) for topic in topics}

    def resync(self) -> None:
        """The page knows nothing any more."""
        self.cursors = dict.fromkeys(self.cursors, NOTHING)


class Clients:
    """All clients by their ids; those that were heard last come last."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._clients: Recent[str, Client] = Recent(MOST_CLIENTS)

    def all(self) -> list[Client]:
        """All clients."""
        with self._lock:
            return list(self._clients.values())

    def watched(self) -> set[Topic]:
        """The topics that any page shows."""
        return {topic for client in self.all() for topic in client.cursors}

    def add(self, name: str, client: Client) -> None:
        """A page has opened a comm."""
        with self._lock:
            client.heard = self._now()
            gone = [self._clients.pop(name), self._clients.put(name, client)]
        _close(filter(None, gone))

    def heard(self, client: Client) -> bool:
        """A client has said something; returns whether it is still one of ours."""
        with self._lock:
            name = next((n for n, c in self._clients.items() if c is client), None)
            if name is None:
                return False
            client.heard = self._now()
            return self._clients.get(name) is client

    def remove(self, client: Client) -> None:
        """A page has closed its comm."""
        with self._lock:
            for name in [n for n, c in self._clients.items() if c is client]:
                del self._clients[name]

    def expire(self) -> None:
        """Let go of the clients that were silent for long."""
        gone = []
        with self._lock:
            for name, client in list(self._clients.items()):
                if self._now() - client.heard > EXPIRES:
                    gone.append(self._clients.pop(name))
        _close(gone)

    def clear(self) -> None:
        """Let go of all clients."""
        with self._lock:
            gone = list(self._clients.values())
            self._clients.clear()
        _close(gone)


def _close(clients: Iterable[Client]) -> None:
    for client in clients:
        client.close()
