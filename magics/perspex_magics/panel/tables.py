"""The rows of one topic, and what has changed in them since somebody last looked.

Each change of a row gets a number. A client is a cursor: the number of the last change that it
knows. So there is no queue for anybody, however slow. A row that changes twice in between is sent
once, and a client that is new, or was away for too long, gets the whole table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from perspex.base.recent import Recent
from perspex_magics.panel.rows import AnyRow

T = TypeVar("T")

# The cursor of a client that knows nothing.
NOTHING = -1
# The number of rows that are remembered as gone.
_MOST_GONE = 1_000


class Delta(NamedTuple):
    """With `reset`, `put` is all there is; otherwise what to add or replace, and what to drop."""

    reset: bool
    put: list[AnyRow]
    drop: list[str]
    forgotten: int


class Table:
    """Rows by id, those that changed last at the end; beyond `most` rows, the first ones go."""

    def __init__(self, most: int) -> None:
        self.most = most
        # The number of rows that there was no room for, here or where the topic found them.
        self.forgotten = 0
        self.number = 0
        self._rows: Recent[str, tuple[int, AnyRow]] = Recent(most)
        self._gone: Recent[str, int] = Recent(_MOST_GONE)
        # A client with a smaller cursor gets the whole table.
        self._since = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row: str) -> bool:
        return row in self._rows

    def ids(self) -> list[str]:
        """The ids of all rows."""
        return list(self._rows)

    def put(self, row: AnyRow) -> None:
        """Add a row or replace the one with its id; an equal row is no change."""
        known = self._rows.peek(row.id)
        if known is not None and known[1] == row:
            return
        self.number += 1
        out = self._rows.put(row.id, (self.number, row))
        self._gone.pop(row.id)
        if out is not None:
            self.forgotten += 1
            self._went(out[1].id)

    def drop(self, key: str) -> None:
        """Remove a row, if it is there."""
        if self._rows.pop(key) is not None:
            self._went(key)

    def _went(self, key: str) -> None:
        self.number += 1
        self._since = self._gone.put(key, self.number) or self._since

    def keep(self, keys: set[str]) -> None:
        """Remove all rows but these."""
        for key in self.ids():
            if key not in keys:
                self.drop(key)

    def changes(self, cursor: int, most: int) -> tuple[Delta | None, int]:
        """The changes since `cursor`, in at most `most` rows, and the new cursor.

        Returns `None` if there are none. If there are more, the new cursor is less than `number`.
        """
        if cursor == self.number:
            return None, cursor
        reset = cursor < self._since
        after = NOTHING if reset else cursor
        put = _newer(reversed(self._rows.values()), after)
        end = self.number if len(put) <= most else put[most - 1][0]
        gone = _newer(((n, key) for key, n in reversed(self._gone.items())), after)
        drop = [] if reset else [key for number, key in gone if number <= end]
        return Delta(reset, [row for _, row in put[:most]], drop, self.forgotten), end


def _newer(latest_first: Iterable[tuple[int, T]], after: int) -> list[tuple[int, T]]:
    """The entries with a number above `after`, in order."""
    return list(itertools.takewhile(lambda entry: entry[0] > after, latest_first))[::-1]
