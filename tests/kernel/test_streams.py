"""What cells print to: a flush sends all that was written, and wakes nobody for nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ipykernel.iostream import IOPubThread
from jupyter_client.session import Session

from perspex_kernel.streams import Stream

WAIT = 60


class Publisher(IOPubThread):
    """Stands for ipykernel's thread that sends messages: runs what it is given, in its order."""

    def __init__(self) -> None:
        self.io_loop = self
        self.given: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self.asked = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (work := self.given.get()) is not None:
            work()

    def schedule(self, f: Callable[[], object]) -> None:
        self.given.put(f)
        self.asked.set()

    def call_later(self, seconds: float, f: Callable[[], object]) -> None:
        self.given.put(f)


class Messages(Session):
    """Keeps the texts that it is to send, when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.began, self.may_send = threading.Event(), threading.Event()

    def send(self, stream: Any, msg: Any, **options: Any) -> None:  # type: ignore[override]
        self.began.set()
        assert self.may_send.wait(WAIT)
        self.sent.append(msg["content"]["text"])


@pytest.fixture
def stream() -> Iterator[Stream]:
    made = Stream(Messages(), Publisher(), "stdout", watchfd=False)
    yield made
    made.session.may_send.set()
    made.pub_thread.given.put(None)
    made.pub_thread.thread.join(WAIT)


def test_a_flush_of_nothing_asks_no_other_thread(stream: Stream) -> None:
    stream.flush()
    assert not stream.pub_thread.asked.is_set()


def test_a_flush_sends_what_was_written(stream: Stream) -> None:
    stream.session.may_send.set()
    for text in ("one", "two"):
        stream.write(text)
        stream.flush()
        assert stream.session.sent[-1] == text
        stream.pub_thread.asked.clear()
        stream.flush()
        assert not stream.pub_thread.asked.is_set()
    assert stream.session.sent == ["one", "two"]


def test_a_flush_waits_for_what_is_being_sent(stream: Stream) -> None:
    stream.write("long")
    assert stream.session.began.wait(WAIT)  # the thread sends by itself, too
    stream.pub_thread.asked.clear()
    flushing = threading.Thread(target=stream.flush)
    flushing.start()
    assert stream.pub_thread.asked.wait(WAIT)
    assert flushing.is_alive() and not stream.session.sent
    stream.session.may_send.set()
    flushing.join(WAIT)
    assert stream.session.sent == ["long"]
