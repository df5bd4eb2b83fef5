"""The topic `programs`: compiled programs and cache hits, from the record of `%cache`."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events
from perspex.runtime.compiler import cache, disk
from perspex_magics.compiling.advice import advice
from perspex_magics.compiling.cache import CacheMagics
from perspex_magics.compiling.callables import Paths
from perspex_magics.compiling.compilations import Compilation, Recorder
from perspex_magics.panel.rows import Miss, ProgramRow, Roof
from perspex_magics.panel.texts import LINE, SENTENCE, cut
from perspex_magics.panel.topics.topic import Topic, magics
from perspex_magics.panel.uses import Uses, source_of
from perspex_magics.timing.profile import ProfileMagics, Total
from perspex_magics.timing.roofline import known_peak

# A program is on disk a moment after it was compiled: its size is looked up 20 times, each 0.5 s.
_SOON = 0.5
_LOOKS = 20
# The number of recent compilations about which more may become known a moment later.
_RECENT = 64


class ProgramsTopic(Topic):
    """A row for each time that a program was needed and not there yet."""

    name = "programs"
    # More than the record keeps, so that none goes here that is there.
    most = 10_000

    def begin(self) -> None:
        # The changing parts that rows were made from.
        self._states: dict[int, tuple[object, ...]] = {}
        # Whether to check all rows, or only those beyond the compilations `seen` so far.
        self._all, self._seen = True, 0
        self._looks = _LOOKS
        self._paths = Paths(self.shell.user_ns)
        self._recorder = recorder_of(self.shell)
        self._uses = Uses(self.shell, self.places, self._recorder.total)
        self._profile = magics(self.shell, ProfileMagics)
        self._stops = [
            events.subscribe(self._hear, ("compile", "recompile")),
            self._profile.follow(self._look),
        ]

    def end(self) -> None:
        for stop in self._stops:
            stop()
        self._states.clear()
        self._uses.clear()

    def _hear(self, event: events.Event) -> None:
        self._looks = _LOOKS
        self.changed()

    def cell_ended(self, count: int) -> None:
        self._uses.cell_ended(count, self._recorder.total)
        self._look()

    def _look(self) -> None:
        """Anything may have changed: a program was pinned, or went with its function."""
        self._all = True
        self.changed()

    def refresh(self) -> float | None:
        recorder, states = self._recorder, self._states
        done, total = list(recorder.done.copy()), recorder.total
        recent = max(0, len(done) - (total - self._seen) - _RECENT)
        looked_at = done if self._all else done[recent:]
        self._all, self._seen = False, total
        self._uses.look(done)
        self._paths = Paths(self.shell.user_ns)
        is_to_come = False
        for one in looked_at:
            is_to_come |= one.bytes is None and bool(one.key)
            measured = self._total(one)
            roof = _roof(measured)
            used = self._uses.last(one)
            state = (one.size, _is_pinned(one), one.can_be_traced, one.again, measured, roof, used)
            if states.get(one.number) != state:
                states[one.number] = state
                self.table.put(self._row(one, measured, roof))
        if len(self.table) != len(done):
            numbers = {one.number for one in done}
            self.table.keep(set(map(str, numbers)))
            for number in [n for n in states if n not in numbers]:
                del states[number]
        self.table.forgotten = total - len(done)
        if not is_to_come or not self._looks or disk.policy() is None:
            return None
        self._looks -= 1
        return _SOON

    def _total(self, one: Compilation) -> Total | None:
        """Its calls while device times were measured."""
        return self._profile.total(one.origin and one.origin.closed())

    def _row(self, one: Compilation, measured: Total | None, roof: Roof | None) -> ProgramRow:
        found: Any = one.found
        outputs = one.outputs
        at = source_of(one, self.places)
        number = self._uses.cell(one)
        return ProgramRow(
            id=str(one.number),
            order=one.number,
            name=cut(one.name),
            title=cut(", ".join(outputs or ()) or one.called(self._paths)),
            cell=f"In[{number}]" if number else "",
            library=one.is_library,
            used=self._uses.last(one),
            signature=cut(one.signature, LINE),
            at=self.places.of(at),
            found=found,
            trace=one.trace,
            lower=one.lower,
            compile=one.compile,
            by_xla=one.by_xla,
            size=one.bytes,
            equations=one.equations,
            pinned=_is_pinned(one),
            miss=_miss(one.again),
            calls=None if measured is None else measured.runs,
            device=None if measured is None else measured.seconds,
            roof=roof,
            can_show=one.can_be_traced,
        )


def recorder_of(shell: InteractiveShell) -> Recorder:
    """The record of the compilations of a notebook."""
    return magics(shell, CacheMagics).recorder


def compilation(shell: InteractiveShell, row: str) -> Compilation | None:
    """The compilation of a row, by its id."""
    done = recorder_of(shell).done.copy()
    return next((one for one in done if str(one.number) == row), None)


def _is_pinned(one: Compilation) -> bool:
    return bool(one.key) and cache.is_pinned(bytes.fromhex(one.key))


def _roof(measured: Total | None) -> Roof | None:
    """The place of a program in the roofline, if the peaks of this machine have been measured."""
    where = None if measured is None else measured.position
    top = None if where is None else known_peak(where.dtype)
    if where is None or top is None:
        return None
    bound: Any = where.bound(top)
    return Roof(where.achieved, where.intensity, where.part(top), bound)


def _miss(event: events.Event | None) -> Miss | None:
    """Why an earlier program of the function could not be used."""
    if event is None:
        return None
    data = event.data
    said = " ".join(advice([data["differences"]], data["closes_over"]))
    if data["combination"]:
        said = f"Each of these values was used before, but not in this combination. {said}".rstrip()
    return Miss(
        cause=cut(str(data["cause"]), SENTENCE),
        advice=cut(said, SENTENCE),
        seconds=event.seconds,
        compiles=data["compiles"],
        here=data["compiles_here"],
    )
