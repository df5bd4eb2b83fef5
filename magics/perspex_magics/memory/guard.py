"""A cell that takes all memory gets an error before the machine kills the kernel.

Programs that need much are compared with what is left before they run (`perspex.runtime.memory`).
What grows in small steps, a list of arrays for one, is watched here: the notebook's pulse looks
while a cell runs, and `MemoryError` is raised in it when little is left and the cell has taken it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from perspex.base.asynchronous import raise_in, take_back
from perspex.runtime import memory
from perspex_magics.display import units
from perspex_magics.notebook.pulse import Pulse, cell_pulse
from perspex_magics.session import Session

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

# The cell ends when no more than this is left, and it has taken at least so much.
_RESERVE = 768 << 20
_GROWTH = 256 << 20
# Seconds between two looks: what is filled meanwhile must be less than the reserve.
_PERIOD = 0.05
# Faults that make no look worth its time: each is a page, of 2 MiB at most. After so many seconds
# there is a look all the same: others may fill the memory.
_FEW_FAULTS, _SELDOM = 16, 1.0
# Seconds for the cell to end before it is told again.
_PATIENCE = 2.0


class CellMemoryError(MemoryError):
    """The machine has hardly any memory left, and this cell has taken much of it."""

    said = ""

    def __str__(self) -> str:
        return self.said


def resident() -> int | None:
    """The bytes of memory that this process holds, or `None` where that cannot be known."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read(128).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def faults() -> int | None:
    """How many pages of memory this process has asked for so far; `None` if that is not counted."""
    if resource is None:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt + used.ru_majflt


class Guard:
    """Watches the memory while cells of one notebook run."""

    def __init__(
        self,
        pulse: Pulse,
        available: Callable[[], int | None] = memory.available,
        held: Callable[[], int | None] = resident,
        faults: Callable[[], int | None] = faults,
    ) -> None:
        self.available, self.held, self.faults, self.pulse = available, held, faults, pulse
        # The thread of the outermost cell, and what the process held when it began, once known.
        self.thread = 0
        self.start: int | None = None
        self.depth = 0
        # Whether this cell has been told, and when to look again.
        self.told = False
        self.due = 0.0
        # When the files were read last, how many faults there had been by then, and what was held.
        self.looked = 0.0
        self.seen: int | None = None
        self.last: int | None = None
        self._lock = threading.Lock()
        pulse.add(self._look)

    def begin(self, info: Any) -> None:
        """A cell begins."""
        self.depth += 1
        if self.depth == 1:
            self.start, self.due, self.told = None, 0.0, False
            self.thread = threading.get_ident()
            self.pulse.wake()

    def end(self, result: Any) -> None:
        """A cell has ended."""
        self.depth = max(0, self.depth - 1)
        if not self.depth and self.thread:
            self.leave()

    def leave(self) -> None:
        """Watch this cell no more."""
        with self._lock:
            was_told, self.told, self.thread = self.told, False, 0
        if was_told:
            take_back()

    def look(self) -> bool:
        """End the cell if memory runs out; returns whether it did."""
        held = self.last = self.held()
        if held is None:
            return False
        # From a moment after the beginning, so that short cells cost nothing; or from the least
        # since, as memory may have been freed between cells.
        self.start = held if self.start is None else min(self.start, held)
        grown = held - self.start
        if grown < _GROWTH:
            return False
        left = self.available()
        if left is None or left > _RESERVE:
            return False
        said = (
            f"{units.size(left)} of memory are left, and this cell has taken "
            f"{units.size(grown)}. Perspex ended it, or the machine would have killed the kernel. "
            "Free what you do not need, or work on smaller parts."
        )
        with self._lock:
            if not self.thread:
                return False
            self.told = True
            raise_in(self.thread, type("CellMemoryError", (CellMemoryError,), {"said": said}))
        return True

    def _look(self) -> float | None:
        if not self.thread:
            return None
        now = time.perf_counter()
        if now >= self.due:
            if not self._is_worth_it(now):
                self.start = self.last if self.start is None else self.start
            elif self.look():
                self.due = now + _PATIENCE
        return _PERIOD

    def _is_worth_it(self, now: float) -> bool:
        """Whether the process may have taken memory since the last look, or that was long ago.

        Files of `/proc` are read in several steps, and at each the thread of the cell waits.
        """
        found, seen = self.faults(), self.seen
        if (
            found is not None
            and seen is not None
            and found - seen < _FEW_FAULTS
            and now - self.looked < _SELDOM
        ):
            return False
        self.looked, self.seen = now, found
        return True


def guard_memory(session: Session) -> None:
    """End cells that take all memory."""
    guard = session.keep(Guard(cell_pulse(session)))
    session.on_cell(guard.begin, guard.end)
    session.on_unload(guard.leave)
