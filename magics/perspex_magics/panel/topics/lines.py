"""The topic `lines`: device time by source line, as the last cell found that was measured.

Of each line by itself: a cell with two functions keeps the times of one when the other is measured.
"""

from __future__ import annotations

import hashlib

from perspex_magics.panel.tables import Row
from perspex_magics.panel.topics.topic import Topic, magics
from perspex_magics.timing.profile import Line, ProfileMagics


class LinesTopic(Topic):
    """A row for each line that was measured, of cells as long as their text is what it was."""

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
        self.table.keep({row["id"] for row in rows})
        for row in rows:
            self.table.put(row)
        return None

    def _row(self, order: int, line: Line) -> Row:
        file = line.file.encode("utf-8", "surrogatepass")
        return {
            "row": "line",
            "id": f"{hashlib.blake2b(file, digest_size=8).hexdigest()}:{line.line}",
            "order": order,
            "at": self.places.of_line(line.file, line.line),
            "seconds": line.seconds,
            "shared": line.shared,
            "runs": line.runs,
        }
