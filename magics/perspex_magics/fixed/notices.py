"""The line under a cell that says what ran once, while a function was traced there."""

from __future__ import annotations

from typing import Any

from perspex import errors
from perspex.base import events
from perspex_magics.display import markup, notices, units
from perspex_magics.fixed import record as records
from perspex_magics.fixed import sources
from perspex_magics.fixed.held import Held, held_in
from perspex_magics.fixed.record import Reading, Record
from perspex_magics.session import Session

# These are sound as configuration: they are listed and not told.
_LISTED = {sources.ENVIRONMENT, sources.FILE}

_REMEDIES = {
    sources.RANDOM: "Draw with `perspex.random` and a key that is an argument.",
    sources.CLOCK: "Read the clock outside of the function.",
    sources.ITEM: "Take the item outside of the function, and pass it as an argument.",
    sources.INPUT: "Ask outside of the function, and pass the answer as an argument.",
    sources.ENVIRONMENT: "Pass the value as an argument if it is to change.",
    sources.FILE: "Read the file outside of the function, and pass the value as an argument.",
}


def remedy(reading: Reading) -> str:
    """What to do instead, in one sentence."""
    if reading.kind not in (sources.PRINT, sources.TEXT):
        return _REMEDIES[reading.kind]
    values = reading.arguments or ["x"]
    call = f'perspex.debug.print("{" ".join(["{}"] * len(values))}", {", ".join(values)})'
    what = "It showed the tracer's description and no numbers"
    if reading.kind == sources.TEXT:
        said = f", `{_short(reading.value)}`," if "Tracer" in reading.value else ""
        what = f"The text holds the tracer's description{said} and no numbers"
    return f"{what}; `{call}` prints them at each call."


def sentence(reading: Reading) -> str:
    """What is told of a reading, in one line."""
    many = f"{units.count(reading.times)} times" if reading.times > 1 else "once"
    ran = f"`{_short(reading.text)}` at {reading.place} ran {many}, while `{reading.function}` "
    if reading.kind in (sources.PRINT, sources.TEXT):
        return f"{ran}was traced. {remedy(reading)}"
    last = " (the last one)" if reading.times > 1 else ""
    value = f"; every call reuses {reading.value}{last}" if reading.value else ""
    return f"{ran}was traced{value}. {remedy(reading)}"


def sentence_of_held(held: Held) -> str:
    """What is told of traced values that a variable holds, in one line."""
    more = f" and {units.count(held.number - 1)} more" if held.number > 1 else ""
    return (
        f"`{held.name}`{more} holds a traced value of `{held.function}`, which has no number. "
        f"{held.stored + ' ' if held.stored else ''}That runs once, while `{held.function}` is "
        "traced. Return the value instead."
    )


def _short(text: str) -> str:
    return markup.shortened(text, 60)


class Told:
    """Looks at the end of each cell at what was traced in it."""

    def __init__(self, record: Record, namespace: dict[str, Any]) -> None:
        self.record, self.namespace = record, namespace
        self.is_quiet = False
        self._told: set[tuple[str, ...]] = set()
        self._has_traced = False
        self._looked: list[Reading] = []

    def hear(self, event: events.Event) -> None:
        """Note that the cell has traced something."""
        self._has_traced = True

    def look(self) -> None:
        """Look at what has been noted since the last time."""
        self._looked += self.record.take()

    def end_cell(self, result: Any) -> None:
        """Tell of a cell that has ended."""
        has_traced, self._has_traced = self._has_traced, False
        if not (has_traced or self.record.new or self._looked):
            return
        told = []
        self.look()
        readings, self._looked = self._looked, []
        shown = set()
        for reading in readings:
            is_due = reading.entered and not reading.is_look and reading.kind not in _LISTED
            if not is_due:
                continue
            if reading.kind in (sources.PRINT, sources.TEXT):
                # Once for each line, however many values it shows.
                line = reading.at.frame.file, reading.at.frame.line
                if line in shown:
                    continue
                shown.add(line)
            if self._is_new((reading.kind, reading.text, records.function_text(reading))):
                told.append(sentence(reading))
        error = getattr(result, "error_in_exec", None)
        # The error about such a value says all of this, and no later cell has to.
        is_said = isinstance(error, errors.UnexpectedTracerError)
        for held in held_in(self.namespace):
            is_new = self._is_new((sources.HELD, held.root, held.stored.partition("` at ")[0]))
            if is_new and not is_said:
                told.append(sentence_of_held(held))
        if told and not self.is_quiet:
            notices.warn("fixed", told, "Fixed at trace time", "%fixed")

    def _is_new(self, what: tuple[str, ...]) -> bool:
        if what in self._told:
            return False
        self._told.add(what)
        return True


def tell_what_is_fixed(session: Session, record: Record) -> Told:
    """Tell under each cell what ran there once, while a function was traced."""
    told = session.keep(Told(record, session.shell.user_ns))
    session.on_unload(events.subscribe(told.hear, ["trace"]))
    session.on_cell(end=told.end_cell)
    return told
