"""The topic `buffers`: the owners of live buffers, as `%buffers` lists them."""

from __future__ import annotations

import hashlib
from typing import Literal

from perspex_magics.memory.buffers import BufferMagics, rows
from perspex_magics.memory.buffers import Row as Listed
from perspex_magics.memory.owners import report
from perspex_magics.memory.reach import Owner
from perspex_magics.panel.rows import BufferRow
from perspex_magics.panel.texts import LINE, NAME, cut
from perspex_magics.panel.topics.topic import Topic, magics

_KINDS: dict[str, Literal["variable", "output", "traceback", "executable"]] = {
    "variable": "variable",
    "module": "variable",
    "output": "output",
    "error": "traceback",
    "running": "traceback",
    "compiled": "executable",
    "program": "executable",
}


class BuffersTopic(Topic):
    """A row for each owner, the largest first; of very many owners, the largest."""

    name = "buffers"
    most = 1_000

    def begin(self) -> None:
        # The variables that can be freed, by row.
        self.variables: dict[str, str] = {}

    def end(self) -> None:
        self.variables = {}

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        setters = magics(self.shell, BufferMagics).setters
        found = rows(report(self.shell, check=self.check), setters, check=self.check)
        self.table.forgotten = max(0, len(found) - self.most)
        made = [_row(order, listed) for order, listed in enumerate(found[: self.most])]
        self.variables = {
            row.id: listed.holder.name
            for row, listed in zip(made, found, strict=False)
            if row.can_free and listed.holder is not None
        }
        self.table.keep({row.id for row in made})
        for row in made:
            self.table.put(row)
        return None


def _row(order: int, listed: Listed) -> BufferRow:
    holder = listed.holder
    return BufferRow(
        id=_id(holder),
        order=order,
        owner=cut(listed.owner),
        kind="unowned" if holder is None else _KINDS[holder.kind],
        what=cut(listed.what),
        bytes=listed.nbytes,
        device=cut(listed.device),
        cell=listed.cell,
        also=cut(listed.also, LINE),
        can_free=holder is not None and holder.kind == "variable",
    )


def _id(holder: Owner | None) -> str:
    """The same id for the same owner, from one report to the next."""
    if holder is None:
        return "unowned"
    text = ":".join(holder)
    if len(text) <= NAME and text.isascii():
        return text
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
