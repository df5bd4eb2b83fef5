"""The topic `cells`: each run of a cell, and where its time went, by the clock."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from perspex.base.recent import Recent
from perspex_magics.panel.rows import CellRow
from perspex_magics.panel.texts import cut
from perspex_magics.panel.topics.topic import Topic, magics
from perspex_magics.timing.clock import ClockMagics, Reading


class CellsTopic(Topic):
    """A row for each reading of the clock; if the clock was on, also for earlier ones."""

    name = "cells"

    def begin(self) -> None:
        clock = magics(self.shell, ClockMagics).of_notebook
        self._news: deque[Reading] = deque([*clock.ended, *clock.readings.values()])
        self._numbers: Recent[int, tuple[int, Reading]] = Recent(self.most)
        self._count = itertools.count(1)
        self.table.forgotten = clock.total - len(clock.ended)
        self._stop: Callable[[], None] = clock.observe(self._hear)

    def end(self) -> None:
        self._stop()
        self._numbers.clear()

    def _hear(self, reading: Reading) -> None:
        self._news.append(reading)
        self.changed()

    def refresh(self) -> float | None:
        news = self._news
        while news:
            reading = news.popleft()
            self.table.put(self._row(reading, self._number(reading)))
        return None

    def _number(self, reading: Reading) -> int:
        """The order of a reading; the reading is kept, so that no other gets its identity."""
        return self._numbers.recall(id(reading), lambda: (next(self._count), reading))[0]

    def _row(self, reading: Reading, number: int) -> CellRow:
        # The clock's own data: the parts of the time, `sources` and `bytes`.
        data: Any = reading.data()
        status: Any = reading.status
        return CellRow(
            id=str(number),
            order=number,
            cell=cut(reading.cell),
            count=reading.count,
            status=status,
            head=cut(reading.head),
            **data,
        )
