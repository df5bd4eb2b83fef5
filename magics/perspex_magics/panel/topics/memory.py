"""The topic `memory`: the live bytes of arrays, counted when a cell has ended."""

from __future__ import annotations

import itertools
import time

from IPython.core.interactiveshell import InteractiveShell

from perspex.runtime import client
from perspex_magics.memory.reach import Walk
from perspex_magics.panel.places import Places
from perspex_magics.panel.rows import MemoryRow
from perspex_magics.panel.topics.topic import Topic


class MemoryTopic(Topic):
    """A row for each cell that left time to count at its end, and for some times in between.

    While no page shows the topic, no rows are added; earlier ones stay.
    """

    name = "memory"
    keeps = True

    def __init__(self, shell: InteractiveShell, places: Places) -> None:
        super().__init__(shell, places)
        self._numbers = itertools.count(1)
        self._last: int | None = None

    def begin(self) -> None:
        # The number of the cell that has just ended, if one has.
        self._cell: int | None = None

    def cell_began(self) -> None:
        super().cell_began()
        self._cell = None

    def cell_ended(self, count: int) -> None:
        self._cell = count or None
        self.changed()

    def refresh(self) -> float | None:
        cell = self._cell
        nbytes = Walk(check=self.check).buffers(client.live_arrays()).nbytes
        if cell is None and nbytes == self._last:
            return None
        self._last = nbytes
        number = next(self._numbers)
        self.table.put(
            MemoryRow(id=str(number), order=number, time=time.time(), bytes=nbytes, count=cell)
        )
        return None
