"""The rows of one topic, and what has changed in them since somebody last looked.

Each change of a row gets a number. A client is a cursor: the number up to which it has been told.
So nothing is queued for anybody, however slow; what changes twice in between is told once; and a
client that has been away too long, or is new, gets the whole table.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")
Row = dict[str, Any]

# The cursor of somebody who knows nothing.
NOTHING = -1
# So many rows that are gone are remembered as such.
_MOST_GONE = 1_000


class Table:
    """Rows by id, those that changed last at the end; of more than `most` the first go."""

    def __init__(self, most: int) -> None:
        self.most = most
        # Rows that there was no room for any more, here or where the topic found them.
        self.forgotten = 0
        self.number = 0
        self._rows: OrderedDict[str, tuple[int, Row]] = OrderedDict()
        self._gone: OrderedDict[str, int] = OrderedDict()
        # Who has been told less than this is told everything.
        self._since = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row: str) -> bool:
        return row in self._rows

    def ids(self) -> list[str]:
        """The ids of all rows."""
        return list(self._rows)

    def put(self, row: Row) -> None:
        """Add a row or replace the one of this id; one that is the same is no change."""
        key = row["id"]
        known = self._rows.get(key)
        if known is not None and known[1] == row:
            return
        self.number += 1
        self._rows[key] = self.number, row
        self._rows.move_to_end(key)
        self._gone.pop(key, None)
        if len(self._rows) > self.most:
            self.forgotten += 1
            self.drop(next(iter(self._rows)))

    def drop(self, key: str) -> None:
        """Take a row out, if it is there."""
        if self._rows.pop(key, None) is None:
            return
        self.number += 1
        self._gone[key] = self.number
        self._gone.move_to_end(key)
        if len(self._gone) > _MOST_GONE:
            self._since = self._gone.popitem(last=False)[1]

    def keep(self, keys: set[str]) -> None:
        """Take out all rows but these."""
        for key in self.ids():
            if key not in keys:
                self.drop(key)

    def changes(self, cursor: int, most: int) -> tuple[Row | None, int]:
        """What has changed since `cursor`, in at most `most` rows, and the new cursor.

        Returns `None` where nothing has. If there is more, the new cursor is less than `number`.
        """
        if cursor == self.number:
            return None, cursor
        reset = cursor < self._since
        after = NOTHING if reset else cursor
        put = _newer(reversed(self._rows.values()), after)
        end = self.number if len(put) <= most else put[most - 1][0]
        gone = _newer(((n, key) for key, n in reversed(self._gone.items())), after)
        made = {
            "reset": reset,
            "put": [row for _, row in put[:most]],
            "drop": [] if reset else [key for number, key in gone if number <= end],
            "forgotten": self.forgotten,
        }
        return made, end


def _newer(latest_first: Iterable[tuple[int, T]], after: int) -> list[tuple[int, T]]:
    """What has a number above `after`, in order."""
    return list(itertools.takewhile(lambda entry: entry[0] > after, latest_first))[::-1]
