"""The topic `exchanges`: what devices send each other, by program, line and collective."""

from __future__ import annotations

from perspex import tree
from perspex.api.stages import Traced
from perspex.runtime.measuring import Exchange
from perspex_magics.compiling.compilations import Compilation
from perspex_magics.panel.rows import ExchangeRow
from perspex_magics.panel.texts import cut
from perspex_magics.panel.topics.programs import recorder_of
from perspex_magics.panel.topics.topic import Topic
from perspex_magics.timing import links


class ExchangesTopic(Topic):
    """Rows for each program over several devices, as long as it can be looked at."""

    name = "exchanges"

    def begin(self) -> None:
        # The ids of the rows of each program, by the number of its compilation, and the keys of
        # their executables: a program that was only looked at sends nothing of its own.
        self._rows: dict[int, list[str]] = {}
        self._keys: dict[int, str] = {}
        self._rates: links.Rates | None = None

    def end(self) -> None:
        self._rows, self._keys = {}, {}

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        done = {one.number: one for one in recorder_of(self.shell).done.copy()}
        rates = links.known_rates()
        if rates != self._rates:
            # Predictions change with them.
            self._rates, self._rows, self._keys = rates, {}, {}
        for number in [n for n in self._rows if n not in done or not done[n].can_be_traced]:
            self._keys.pop(number, None)
            for row_id in self._rows.pop(number):
                self.table.drop(row_id)
        for number, one in done.items():
            if number in self._rows or not one.can_be_traced or one.key in self._keys.values():
                continue
            self.check()
            traced = one.traced()
            found, parts = ([], None) if traced is None else _sent(traced)
            rows = [
                self._row(one, i, exchange, exchange.share if parts is None else parts[i])
                for i, exchange in enumerate(found)
            ]
            self._rows[number] = [row.id for row in rows]
            if one.key:
                self._keys[number] = one.key
            for row in rows:
                self.table.put(row)
        return None

    def _row(self, one: Compilation, i: int, exchange: Exchange, share: float) -> ExchangeRow:
        at = exchange.place
        return ExchangeRow(
            id=f"{one.number}:{i}",
            order=1_000 * one.number + i,
            program=str(one.number),
            name=cut(one.name),
            at=self.places.of_line(at.file, at.line) if at else self.places.of(one.at),
            collective=exchange.collective,
            sent=exchange.sent,
            times=exchange.times,
            group=exchange.group,
            share=share,
        )


def _sent(traced: Traced) -> tuple[list[Exchange], list[float] | None]:
    """The exchanges of a program, and the predicted part of the time of each."""
    compiled = traced.compiled()
    found = compiled.communication()
    devices = max([s.num_devices for s in tree.leaves(compiled.output_shardings)], default=1)
    return found, links.predicted(traced, found, devices) if found else None
