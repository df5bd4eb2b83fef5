"""The topic `lines`: device time per source line, from the last measured cell that ran the line.

Each line stands by itself: when one function of a cell is measured, the others keep their times.
"""

from __future__ import annotations

import hashlib
import linecache

from perspex_magics.panel.rows import LineRow
from perspex_magics.panel.texts import cut
from perspex_magics.panel.topics.topic import Topic, magics
from perspex_magics.timing.profile import Line, ProfileMagics


class LinesTopic(Topic):
    """A row for each measured line, until the text of its cell changes."""

    name = "lines"

    def begin(self) -> None:
        self._stop = magics(self.shell, ProfileMagics).follow(self.changed)

    def end(self) -> None:
        self._stop()

    def cell_ended(self, count: int) -> None:
        # It may have another text now.
        if len(self.table):
            self.changed()

    def refresh(self) -> float | None:
        measured = magics(self.shell, ProfileMagics).lines()
        is_current = {file: self.places.is_current(file) for file in {one.file for one in measured}}
        rows = [
            self._row(order, line)
            for order, line in enumerate(sorted(measured))
            if is_current[line.file]
        ]
        self.table.keep({row.id for row in rows})
        for row in rows:
            self.table.put(row)
        return None

    def _row(self, order: int, line: Line) -> LineRow:
        file = line.file.encode("utf-8", "surrogatepass")
        return LineRow(
            id=f"{hashlib.blake2b(file, digest_size=8).hexdigest()}:{line.line}",
            order=order,
            at=self.places.of_line(line.file, line.line),
            code=cut(linecache.getline(line.file, line.line).strip()),
            seconds=line.seconds,
            shared=line.shared,
            runs=line.runs,
        )
