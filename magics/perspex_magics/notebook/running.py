"""The cells that run: begun and ended by IPython's events, one per thread.

A front end may run cells in several threads. A cell inside of a cell, as under `%%capture`, is
part of the outer one.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any, Generic, TypeVar

from IPython.core.interactiveshell import InteractiveShell

T = TypeVar("T")


class Running(Generic[T]):
    """What is kept for each cell that runs."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[Any, T]] = {}

    def begins(self) -> bool:
        """Whether the cell that begins in this thread is an outermost one."""
        return threading.get_ident() not in self._cells or not _is_nested()

    def begin(self, info: Any, value: T) -> None:
        """Keep `value` for the cell with this `ExecutionInfo`."""
        self._cells[threading.get_ident()] = info, value

    def here(self) -> T | None:
        """What is kept for the cell of this thread."""
        found = self._cells.get(threading.get_ident())
        return None if found is None else found[1]

    def values(self) -> list[T]:
        """What is kept for all cells."""
        return [value for _, value in list(self._cells.values())]

    def end(self, result: Any) -> T | None:
        """What was kept for the cell that has ended with `result`; `None` if it is no outermost."""
        found = self._cells.get(threading.get_ident())
        # A cell that was cancelled has no result.
        if found is None or (result is not None and result.info is not found[0]):
            return None
        del self._cells[threading.get_ident()]
        return found[1]

    def clear(self) -> None:
        """Forget the cells that run."""
        self._cells.clear()


def is_cell_on_a_stack() -> bool:
    """Whether any thread is inside of a cell just now. One that awaits is on no stack."""
    cell = InteractiveShell.run_cell_async.__code__
    for frame in list(sys._current_frames().values()):
        at: FrameType | None = frame
        while at is not None:
            if at.f_code is cell:
                return True
            at = at.f_back
    return False


def _is_nested() -> bool:
    """Whether this thread runs a cell inside of a cell."""
    cell = InteractiveShell.run_cell_async.__code__
    depth, frame = 0, sys._getframe(1)
    while frame.f_back is not None:
        depth += frame.f_code is cell
        frame = frame.f_back
    return depth > 1
