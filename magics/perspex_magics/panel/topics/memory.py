"""The topic `memory`: how many bytes of arrays are alive, looked at when a cell has ended."""

from __future__ import annotations

import itertools
import time

from perspex.runtime import client
from perspex_magics.panel.topics.topic import Topic
from perspex_magics.reach import Walk


class MemoryTopic(Topic):
    """A row for each cell after whose end there was time to look."""

    name = "memory"

    def begin(self) -> None:
        self._numbers = itertools.count(1)
        self._cell = max(self.places.cells, default=0)

    def cell_ended(self, count: int) -> None:
        self._cell = count or self._cell
        self.changed()

    def refresh(self) -> float | None:
        nbytes = Walk(check=self.check).buffers(client.live_arrays()).nbytes
        number = next(self._numbers)
        row = {
            "row": "memory",
            "id": str(number),
            "order": number,
            "time": time.time(),
            "bytes": nbytes,
            "count": self._cell,
        }
        self.table.put(row)
        return None
