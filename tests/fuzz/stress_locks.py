"""The order in which threads take the locks of Perspex: a circle in it is a deadlock to come.

`watch` has to be called before Perspex is imported. Locks are told apart by the line that makes
them: all locks of one line count as one, except when a thread holds two of them.
"""

from __future__ import annotations

import itertools
import sys
import threading
import traceback
from collections import defaultdict
from types import FrameType
from typing import Any

_OWN = "perspex"
# A lock of every table; what counts is who made the table.
_TABLES = "perspex.base.recent"


class Order:
    """What has been seen: for each lock, those that were waited for while it was held."""

    def __init__(self) -> None:
        self.after: defaultdict[str, set[str]] = defaultdict(set)
        self.seen: dict[tuple[str, str], str] = {}
        # Two locks of one line, by their numbers, in the order in which they were taken.
        self.pairs: dict[tuple[int, int], str] = {}
        # Locks that another thread releases: they say that something has happened.
        self.signals: set[str] = set()
        self.sites: set[str] = set()
        self.held: defaultdict[int, list[Watched]] = defaultdict(list)

    def waits(self, lock: Watched) -> None:
        """Note that this thread waits for a lock."""
        held = self.held[threading.get_ident()]
        if lock in held:  # taken again, which waits for nobody
            return
        for other in held:
            if other.site == lock.site:
                self.pairs.setdefault((other.number, lock.number), lock.site)
            elif (other.site, lock.site) not in self.seen:
                self.seen[other.site, lock.site] = "".join(traceback.format_stack(limit=12)[:-2])
                self.after[other.site].add(lock.site)

    def circles(self) -> list[list[str]]:
        """The shortest circle through each lock that is on one."""
        found = []
        for start in sorted(self.after.keys() - self.signals):
            paths, known = [[start]], {start}
            while paths:
                path = paths.pop(0)
                if start in self.after[path[-1]]:
                    found.append([*path, start])
                    break
                for site in sorted(self.after[path[-1]] - known - self.signals):
                    known.add(site)
                    paths.append([*path, site])
        both = {site for (a, b), site in list(self.pairs.items()) if (b, a) in self.pairs}
        return found + [[site, site] for site in sorted(both - self.signals)]

    def report(self) -> str:
        """The circles, with the stacks that made them."""
        lines = []
        for circle in self.circles():
            lines.append("a circle: " + " -> ".join(circle))
            for pair in itertools.pairwise(circle):
                lines.append(
                    f"{pair[0]} was held here, and {pair[1]} taken:\n{self.seen.get(pair)}"
                )
        return "\n".join(lines)


class Watched:
    """A lock that notes who waits for it."""

    numbers = itertools.count()

    def __init__(self, real: Any, site: str, order: Order) -> None:
        self.real, self.site, self.order = real, site, order
        self.number = next(self.numbers)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            self.order.waits(self)
        got: bool = self.real.acquire(blocking, timeout)
        if got:
            self.order.held[threading.get_ident()].append(self)
        return got

    def release(self) -> None:
        held = self.order.held[threading.get_ident()]
        if self in held:
            held.reverse()
            held.remove(self)
            held.reverse()
        else:
            self.order.signals.add(self.site)
            for others in list(self.order.held.values()):
                if self in others:
                    others.remove(self)
                    break
        self.real.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def watch() -> Order:
    """Watch every lock that Perspex makes from now on."""
    assert _OWN not in sys.modules, "locks of modules that are imported cannot be watched"
    order = Order()

    def watched(real: Any) -> Any:
        def make() -> Any:
            frame: FrameType | None = sys._getframe(1)
            if not _module(frame).startswith(_OWN):
                return real()
            while frame is not None and (
                _module(frame) == _TABLES or not _module(frame).startswith(_OWN)
            ):
                frame = frame.f_back
            assert frame is not None
            site = f"{_module(frame)}:{frame.f_lineno}"
            order.sites.add(site)
            return Watched(real(), site, order)

        return make

    for name in ("Lock", "RLock"):
        setattr(threading, name, watched(getattr(threading, name)))
    return order


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
