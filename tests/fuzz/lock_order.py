"""Locks that note in which order threads take them: a cycle is a deadlock that waits to happen.

`watch()` must run before Perspex is imported. From then on each lock that Perspex makes is one of
these. When a thread takes a lock while it holds others, the order is noted; an order that is also
taken the other way round, perhaps through several locks, is a cycle.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from types import TracebackType
from typing import Any

_plain_lock, _plain_rlock = threading.Lock, threading.RLock


class Order:
    """The locks held by each thread, and which was taken after which."""

    def __init__(self) -> None:
        self.after: defaultdict[Watched, set[Watched]] = defaultdict(set)
        self.local = threading.local()
        self.guard = _plain_lock()
        self.taken = 0

    def held(self) -> list[Watched]:
        """The locks that this thread holds, the last one at the end."""
        if not hasattr(self.local, "held"):
            self.local.held = []
        return self.local.held

    def took(self, lock: Watched) -> None:
        held = self.held()
        self.taken += 1
        if lock not in held:
            with self.guard:
                for before in held:
                    self.after[before].add(lock)
        held.append(lock)

    def gave(self, lock: Watched) -> None:
        held = self.held()
        if lock in held:
            del held[len(held) - 1 - held[::-1].index(lock)]
        else:  # released by another thread: it is a signal, and keeps nobody out
            lock.is_signal = True

    def cycles(self) -> list[list[str]]:
        """The places where the locks of each cycle were made."""
        found = []
        done: set[Watched] = set()

        def visit(lock: Watched, path: list[Watched]) -> None:
            if lock in path:
                found.append([x.place for x in path[path.index(lock) :]])
                return
            if lock in done or lock.is_signal:
                return
            for later in list(self.after.get(lock, ())):
                visit(later, [*path, lock])
            done.add(lock)

        for lock in list(self.after):
            visit(lock, [])
        return found


class Watched:
    """A lock that says when it is taken and given back."""

    def __init__(self, order: Order, plain: Any, place: str) -> None:
        self.order, self.plain, self.place, self.is_signal = order, plain, place, False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        got = self.plain.acquire(blocking, timeout)
        if got:
            self.order.took(self)
        return got

    def release(self) -> None:
        self.order.gave(self)
        self.plain.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def watch() -> Order:
    """Have every lock that Perspex makes from now on note its order."""
    assert "perspex" not in sys.modules, "the locks of modules are made when these are imported"
    order = Order()

    def factory(plain: Any) -> Any:
        def make() -> Any:
            frame = sys._getframe(1)
            if frame.f_globals.get("__name__", "").startswith("perspex"):
                place = f"{frame.f_globals['__name__']}:{frame.f_lineno}"
                return Watched(order, plain(), place)
            return plain()

        return make

    threading.Lock = factory(_plain_lock)  # type: ignore[misc]
    threading.RLock = factory(_plain_rlock)  # type: ignore[assignment]
    return order
