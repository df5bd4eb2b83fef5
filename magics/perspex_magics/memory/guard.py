"""A cell that takes all memory gets an error before the machine kills the kernel.

Programs that need much are compared with what is left before they run (`perspex.runtime.memory`).
What grows in small steps, a list of arrays for one, is watched here: a thread looks while a cell
runs, and raises `MemoryError` in it when little is left and the cell has taken it.
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
from perspex_magics.session import Session

# The cell ends when no more than this is left, and it has taken at least so much.
_RESERVE = 768 << 20
_GROWTH = 256 << 20
# Seconds between two looks: what is filled meanwhile must be less than the reserve.
_PERIOD = 0.02
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
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


class Guard:
    """Watches the memory while cells of one notebook run."""

    def __init__(
        self,
        available: Callable[[], int | None] = memory.available,
        held: Callable[[], int | None] = resident,
    ) -> None:
        self.available, self.held = available, held
        # The thread of the outermost cell, and what the process held when it began.
        self.thread = 0
        self.start = 0
        self.depth = 0
        # Whether this cell has been told.
        self.told = False
        self._lock = threading.Lock()
        # Held while the watcher sleeps.
        self._sleep = threading.Lock()
        self._sleep.acquire()
        self._watcher: threading.Thread | None = None
        self._is_closed = False

    def begin(self, info: Any) -> None:
        """A cell begins."""
        self.depth += 1
        if self.depth > 1:
            return
        held = self.held()
        if held is None:
            return
        self.thread, self.start, self.told = threading.get_ident(), held, False
        if self._watcher is None or not self._watcher.is_alive():
            self._watcher = threading.Thread(target=self._run, name="perspex-memory", daemon=True)
            self._watcher.start()
        if self._sleep.locked():
            self._sleep.release()

    def end(self, result: Any) -> None:
        """A cell has ended."""
        self.depth = max(0, self.depth - 1)
        if not self.depth and self.thread:
            self._leave()

    def close(self) -> None:
        """Watch no more. The cell that says so has not ended, and nobody will tell when it does."""
        self._is_closed = True
        self._leave()
        if self._sleep.locked():
            self._sleep.release()

    def _leave(self) -> None:
        with self._lock:
            was_told, self.told, self.thread = self.told, False, 0
        if was_told:
            take_back()

    def look(self) -> bool:
        """End the cell if memory runs out; returns whether it did."""
        left = self.available()
        if left is None or left > _RESERVE:
            return False
        grown = (self.held() or 0) - self.start
        if grown < _GROWTH:
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

    def _run(self) -> None:
        while not self._is_closed:
            self._sleep.acquire()
            while self.thread:
                time.sleep(_PATIENCE if self.look() else _PERIOD)


def guard_memory(session: Session) -> None:
    """End cells that take all memory."""
    guard = session.keep(Guard())
    session.on_cell(guard.begin, guard.end)
    session.on_unload(guard.close)
