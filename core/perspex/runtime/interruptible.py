"""Waiting for C++ in a way that Ctrl-C and a notebook's stop button can end.

Python runs signal handlers between its own instructions, so a call into C++ that takes a minute
holds an interrupt back for a minute. Run in another thread, the call lets the main one wait on a
lock, which a signal ends. The work itself goes on until it is done; its result is dropped.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Worker:
    """A thread that waits for work, does it, and waits again.

    Threads are kept because starting one costs 40 to 400 us, and waking one 15.
    """

    def __init__(self) -> None:
        self.work: Callable[[], Any] | None = None
        self.outcome: list[Any] = []
        self.begin = threading.Lock()
        self.done = threading.Lock()
        self.begin.acquire()
        self.done.acquire()
        threading.Thread(target=self._serve, name="perspex-waiting", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.begin.acquire()
            work, outcome, done = self.work, self.outcome, self.done
            assert work is not None
            try:
                outcome.append((True, work()))
            except BaseException as error:  # handed over to the waiting thread
                outcome.append((False, error))
            # Nothing of this call is kept, and after an interrupt nobody looks at these again.
            self.work, self.outcome, self.done = None, [], threading.Lock()
            self.done.acquire()
            del work, outcome
            _idle.append(self)
            done.release()
            del done


_idle: list[_Worker] = []
# The threads do not go along into a fork.
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_idle.clear)


def call(work: Callable[[], T]) -> T:
    """`work()`, with `KeyboardInterrupt` arriving at once in the main thread.

    `work` must not share anything with the rest of the program that it changes: after an interrupt
    it runs on beside what the user does next. Costs 20 us.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # signals arrive in the main thread only
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    outcome, done = worker.outcome, worker.done
    worker.work = work
    worker.begin.release()
    done.acquire()
    returned, value = outcome[0]
    if not returned:
        raise value
    return value
