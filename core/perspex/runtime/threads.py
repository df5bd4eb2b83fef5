"""For how long the processors have run threads that Python has not started, XLA's first of all.

XLA's are those that came with the first client or after it: BLAS has made its own by then. Only
Linux tells the threads of a process apart.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection

_TASKS = "/proc/self/task"
# Those that were there before the first client; `None` as long as there is none.
_older: set[int] | None = None
# XLA's threads, as far as they are known.
_known: tuple[int, ...] = ()


def native(also: Collection[threading.Thread] = ()) -> set[int]:
    """The ids of the threads that Python has not started, and of some others."""
    try:
        found = set(map(int, os.listdir(_TASKS)))
    except OSError:
        return set()
    # A thread of XLA's that has called Python is listed as well, as a dummy.
    return found - {
        thread.native_id
        for thread in threading.enumerate()
        if not isinstance(thread, threading._DummyThread) and thread not in also
    }


def used(thread: int) -> float:
    """For how many seconds the processors have run a thread; 0 if it has ended."""
    try:
        return time.clock_gettime((~thread << 3) | 6)  # Linux's number of the thread's clock
    except OSError:
        return 0.0


def expect_client() -> None:
    """A client is about to be made: the threads that are there now are not XLA's."""
    global _older
    if _older is None:
        _older = native()


def look() -> None:
    """Look for threads of XLA's that have come since the last look."""
    global _known
    if _older:
        _known = tuple(native() - _older)


def times() -> dict[int, float] | None:
    """How long the processors have run each of XLA's threads so far, of those that `look` has seen.

    `None` where the system does not tell.
    """
    if _older is None:
        return {}
    return {thread: used(thread) for thread in _known} if _older else None
