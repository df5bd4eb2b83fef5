"""Waiting for C++ in a way that Ctrl-C and a notebook's stop button can end.

Python runs signal handlers between its own instructions, so a call into C++ that takes a minute
delays an interrupt by a minute. Here the call runs in another thread, and the main thread waits on
a lock, which a signal ends. If another process does the work, the interrupt ends that process
(`Stop`). All other work continues until it is done, and is listed in `left`, so that a notebook can
show it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from perspex.base import events

T = TypeVar("T")

# Shorter waits are not published: that would cost as much as the wait.
_WORTH_TELLING = 10e-6
# Seconds until a waiting thread looks for signals. One that arrives just before it begins to wait,
# or in another thread, does not end the wait by itself.
_LOOK = 0.05


def waited(start: float, before: tuple[float, float]) -> None:
    """Publish that Python has waited for the device since `start`.

    `before` is what `events.processor` said then.
    """
    long = time.perf_counter() - start > _WORTH_TELLING
    if long and events.audience("wait") and not events.is_inside("compile"):
        events.count_as_phase(before)
        events.publish("wait", "device", start)


class Left:
    """Work that goes on after an interrupt has ended the wait for it.

    `kind` is that of the phase that waited (see `perspex.events`), as `compile`, or empty for a
    program that runs; `name` is the function's. `begun`, `since` and `ended` are by
    `time.perf_counter`: when the work began, when nobody waited any more, and when it was done,
    which is `None` until then. `thread` is the thread that does it.
    """

    __slots__ = ("begun", "ended", "kind", "name", "since", "thread")

    def __init__(self, kind: str, name: str, begun: float, thread: threading.Thread) -> None:
        self.kind, self.name, self.thread = kind, name, thread
        self.begun, self.since = begun, time.perf_counter()
        self.ended: float | None = None
        left.append(self)

    def end(self) -> None:
        """Note that it is done; again is harmless."""
        if self.ended is None:
            self.ended = time.perf_counter()
            with contextlib.suppress(ValueError):  # two threads at once
                left.remove(self)


# Work that continues although nobody waits for it, oldest first.
left: list[Left] = []


class StoppedError(Exception):
    """An interrupt has ended the work; nobody waits for its result."""


class Stop:
    """Connects an interrupt with the work that the interrupted thread waits for.

    The work calls `enter` with what would end it. The waiting thread calls `end`.
    """

    __slots__ = ("_end", "_is_beyond", "_lock", "is_asked", "phase")

    def __init__(self, phase: events.Phase | None = None) -> None:
        self.phase = phase
        self.is_asked = self._is_beyond = False
        self._end: Callable[[], object] | None = None
        self._lock = threading.Lock()

    def enter(self, end: Callable[[], object] | None = None) -> None:
        """From here on `end()` ends the work at once; without it, nothing does.

        Raises `StoppedError` if the end has been asked for before. `end` may be called in any
        thread, at any time until `enter` is called again.
        """
        with self._lock:
            if self.is_asked:
                raise StoppedError
            self._end, self._is_beyond = end, end is None
        if self.phase is not None:
            self.phase.is_apart = end is not None

    def ask(self) -> bool:
        """Ask for the end; whether it will come at once."""
        with self._lock:
            self.is_asked = True
            if self._end is not None:
                self._end()
            return not self._is_beyond


class _Call:
    """One piece of work, its outcome, and whom to notify when nobody waits."""

    __slots__ = ("done", "left", "outcome", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work: Callable[[], Any] | None = work
        # Whether it returned, and the result or the exception.
        self.outcome: tuple[bool, Any] | None = None
        self.left: Left | None = None
        self.done = threading.Lock()
        self.done.acquire()


class _Worker:
    """A thread that waits for work, does it, and waits again.

    Threads are kept because starting one costs 40 to 400 us, and waking one 15.
    """

    def __init__(self) -> None:
        self.call: _Call | None = None
        self.begin = threading.Lock()
        self.begin.acquire()
        self.thread = threading.Thread(target=self._serve, name="perspex-waiting", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            self.begin.acquire()
            call, self.call = self.call, None
            assert call is not None and call.work is not None
            try:
                call.outcome = (True, call.work())
            except BaseException as error:  # handed over to the waiting thread
                call.outcome = (False, error)
            call.work = None
            # The waiter sets this before it reads the outcome: one of the two sees the other.
            if call.left is not None:
                call.left.end()
            done = call.done
            del call
            _idle.append(self)
            done.release()
            del done


_idle: list[_Worker] = []


def _after_fork() -> None:
    """In the child, into which the threads do not go along."""
    _idle.clear()
    left.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_after_fork)


def call(
    work: Callable[[], T], stop: Stop | None = None, look: Callable[[], object] | None = None
) -> T:
    """`work()`, with `KeyboardInterrupt` arriving at once in the main thread.

    `look` is called every now and then while it waits, in any thread, and ends the wait by raising
    an error.

    `work` must not share anything with the rest of the program that it changes: after an interrupt
    it runs on beside what the user does next, unless `stop`, which the work knows, ends it. Costs
    20 us.
    """
    if look is None and threading.current_thread() is not threading.main_thread():
        return work()  # signals arrive in the main thread only
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    this = worker.call = _Call(work)
    start, before = time.perf_counter(), events.processor()
    try:
        worker.begin.release()
        while not this.done.acquire(timeout=_LOOK):
            if look is not None:
                look()
    except BaseException:
        if stop is None or not stop.ask():
            _leave(this, start, worker.thread)
        raise
    finally:
        if events.listeners:
            waited(start, before)
    assert this.outcome is not None
    returned, value = this.outcome
    if not returned:
        raise value
    return value


def _leave(call: _Call, begun: float, thread: threading.Thread) -> None:
    """Remember what goes on, by the innermost phase that this thread is in."""
    me = threading.get_ident()
    phase = next((p for p in reversed(events.running) if p.thread == me), None)
    kind, name = ("", "") if phase is None else (phase.kind, phase.name)
    call.left = Left(kind, name, begun, thread)
    if call.outcome is not None:
        call.left.end()
