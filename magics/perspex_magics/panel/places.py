"""Places in the user's code as the panel names them, with the notebook's own id of the cell.

The id comes with each request to run a cell, and nothing else keeps it. This module notes it from
the moment that the extension is loaded, page or no page, one entry of a dict for each cell: a page
that opens later must be able to lead to cells that ran before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import IPython
from IPython.core.interactiveshell import InteractiveShell

from perspex.base import source
from perspex.base.recent import Recent
from perspex.base.source import Source
from perspex_magics.panel.rows import Place
from perspex_magics.panel.texts import LINE, cut

_MOST_CELLS = 10_000
_NUMBER = re.compile(r"In\s*\[(\d+)\]$")
_IPYTHON = os.path.dirname(IPython.__file__) + os.sep


# A cell by its id, and which of its runs.
Run = tuple[str, int]


class Places:
    """The cells of one notebook by execution count."""

    @classmethod
    def noting(cls, shell: InteractiveShell) -> tuple[Places, Callable[[], object]]:
        """Note the ids of cells from now on; also returns the function that ends that."""
        places = cls(shell)
        shell.events.register("pre_run_cell", places.begin)
        shell.events.register("post_run_cell", places.end)

        def undo() -> None:
            shell.events.unregister("pre_run_cell", places.begin)
            shell.events.unregister("post_run_cell", places.end)

        return places, undo

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.cells: dict[int, str] = {}
        # The last number of each cell.
        self._latest: dict[str, int] = {}
        self.running = ""
        # How often each cell has begun to run.
        self._runs: Recent[str, int] = Recent(_MOST_CELLS)

    def begin(self, info: Any) -> None:
        """A cell begins. IPython may have counted it already or not; the result has its number."""
        cell = self.running = info.cell_id or ""
        self._runs.put(cell, (self._runs.peek(cell) or 0) + 1)

    def end(self, result: Any) -> None:
        """A cell has ended: keep the notebook's id of it."""
        if result is not None and result.execution_count is not None:
            if len(self.cells) >= _MOST_CELLS:
                oldest = next(iter(self.cells))
                gone = self.cells.pop(oldest)
                if self._latest.get(gone) == oldest:
                    del self._latest[gone]
            cell = self.cells[result.execution_count] = cut(result.info.cell_id or "")
            if cell:
                self._latest[cell] = result.execution_count

    def of(self, at: Source | None) -> Place | None:
        """The place of a line, or `None` if it is not the user's."""
        if at is None or at.frame.file.startswith(_IPYTHON):
            return None
        return self.of_line(at.frame.file, at.frame.line)

    def of_line(self, file: str, line: int) -> Place:
        """The place of a line of a file or of a cell."""
        name = source.cell_name(file)
        return Place(
            text=cut(f"{name or os.path.basename(file)}:{line}"),
            cell=self.cell_of(file),
            file="" if name else cut(file, LINE),
            line=line,
        )

    def cell_of(self, file: str) -> str:
        """The notebook's id of the cell that a file name stands for, or the empty string."""
        number = _number_of(file)
        return "" if number is None else self.cells.get(number, cut(self.running))

    def number_of(self, at: Source | None) -> int:
        """The number of the cell that a line is in, or 0."""
        return (_number_of(at.frame.file) or 0) if at is not None else 0

    def is_current(self, file: str) -> bool:
        """Whether a file name does not stand for an earlier text of a cell."""
        number = _number_of(file)
        cell = None if number is None else self.cells.get(number)
        return not cell or self._latest.get(cell) == number

    def run(self) -> Run:
        """The run of a cell that goes on or was the last; `is_last` says whether it still is."""
        return self.running, self._runs.peek(self.running) or 0

    def is_last(self, run: Run) -> bool:
        """Whether the cell of a run has not run again. Cells without an id are one cell."""
        cell, number = run
        return self._runs.peek(cell) in (None, number)


def _number_of(file: str) -> int | None:
    """The number of the last run of the cell text that a file name stands for."""
    found = _NUMBER.search(source.cell_name(file) or "")
    return int(found[1]) if found else None
