"""The topic `keys`: the tree of PRNG keys and the keys that were reused, as in `%keys`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from perspex.base import events
from perspex.base.source import Source
from perspex.ir.jaxpr import Var
from perspex.random.lineage import Call
from perspex.runtime.array import ArrayImpl
from perspex_magics.keys.lineage import Lineage, Site, expression_at, names_at
from perspex_magics.keys.magic import KeysMagics
from perspex_magics.keys.names import Names, numbers_of_keys
from perspex_magics.keys.record import Record
from perspex_magics.panel.rows import KeyRow, Reuse, Use
from perspex_magics.panel.texts import LINE, cut
from perspex_magics.panel.topics.topic import Topic, magics
from perspex_magics.timing.unfinished import all_there

# Seconds until keys are looked at again that are still being computed.
_AGAIN = 0.1
_MOST_TEXTS = 10_000
# The most reused keys that a row lists for one line, uses of each, and names.
_MOST_REUSED = 20
_MOST_USES = 20
_MOST_NAMES = 50

# How many keys were reused, and the first of them.
Reused = tuple[int, list[Reuse]]


class KeysTopic(Topic):
    """A row for each line that made keys or drew with them."""

    name = "keys"

    def begin(self) -> None:
        # The text of calls in the source, which takes a while to find.
        self._texts: dict[Source | None, tuple[str, list[str]]] = {}
        self._orders: dict[str, int] = {}
        self._state: Any = None
        self._cells: set[Any] = set()

    def end(self) -> None:
        self._texts.clear()

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        record = magics(self.shell, KeysMagics).record
        recorder = record.recorder
        if recorder is None:
            self.table.keep(set())
            self._state = None
            return None
        # The calls of a cell no longer count when the cell has run again.
        has_run_again = recorder.run is not None and recorder.run[0] in self._cells
        state = (recorder, recorder.total)
        if state == self._state and not has_run_again:
            return None
        calls = recorder.calls
        if not all_there(_arrays(calls)):
            return _AGAIN
        self.table.forgotten = recorder.forgotten
        # Reading the numbers of a key is a transfer that is not the user's.
        with events.unheard():
            lineage = Lineage(self._checked(calls), record.is_current)
            rows = list(self._rows(lineage, record))
        self._state = state
        self._cells = {call.run[0] for call in calls if call.run is not None}
        self.table.keep({row.id for row in rows})
        for row in rows:
            self.table.put(row)
        return None

    def _checked(self, calls: list[Call]) -> Iterator[Call]:
        for call in calls:
            self.check()
            yield call

    def _rows(self, lineage: Lineage, record: Record) -> Iterator[KeyRow]:
        reused = self._reused(lineage, record)
        none: Reused = (0, [])
        stack = [("", place, site) for place, site in reversed(lineage.roots.items())]
        while stack:
            parent, place, site = stack.pop()
            if not site.is_shown:
                continue
            key = hashlib.blake2b(f"{parent}{place}".encode(), digest_size=10).hexdigest()
            yield self._row(key, parent, site, reused.get(id(site), none))
            stack += [(key, where, below) for where, below in reversed(site.below.items())]

    def _row(self, key: str, parent: str, site: Site, reused: Reused) -> KeyRow:
        call = site.call
        expression, names = self._text(call)
        return KeyRow(
            id=key,
            order=self._orders.setdefault(key, len(self._orders)),
            parent=parent or None,
            function=cut(call.function if call else site.function),
            expression=expression,
            names=names if site.keys else [],
            at=self.places.of(call.at) if call else None,
            calls=len(site.calls),
            keys=len(site.keys),
            makes=bool(site.keys),
            traced=any(key.traced for key in site.keys)
            or (call is not None and isinstance(call.given, Var)),
            reused_keys=reused[0],
            reused=reused[1],
        )

    def _text(self, call: Call | None) -> tuple[str, list[str]]:
        """The text of a call, and the names that its result gets."""
        at = call and call.at
        found = self._texts.get(at)
        if found is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            names = [cut(name) for name in names_at(at)[:_MOST_NAMES]]
            found = self._texts[at] = cut(expression_at(at), LINE), names
        return found

    def _reused(self, lineage: Lineage, record: Record) -> dict[int, Reused]:
        """The keys that were used more than once, by the site that made them."""
        found: dict[int, Reused] = {}
        namespace = dict(self.shell.user_ns)
        held = {name: numbers_of_keys(value) for name, value in namespace.items()}
        ready = {n: namespace[n] for n, x in held.items() if x is not None and all_there([x])}
        names = None
        for key, calls in lineage.used_twice():
            names = names or Names(lineage, ready)
            site = id(lineage.site_of(key))
            number, told = found.get(site, (0, []))
            found[site] = number + 1, told
            if len(told) < _MOST_REUSED:
                uses = [
                    Use(cut(call.function), self.places.of(call.at)) for call in calls[:_MOST_USES]
                ]
                told.append(Reuse(cut(names.of(key)), uses))
        return found


def _arrays(calls: list[Call]) -> Iterator[Any]:
    """The arrays of keys in calls."""
    for call in calls:
        for array in (call.given, call.made):
            if type(array) is ArrayImpl:
                yield array
