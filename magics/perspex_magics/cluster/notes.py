"""What an engine notes of a cell, to be held against what the others note."""

from __future__ import annotations

from typing import NamedTuple

from perspex.base import events
from perspex_magics.compiling.recompiles import place

RECOMPILE, STALE = "recompile", "stale"
# A cell that compiles without end is not noted to its end.
_MOST = 1_000


class Note(NamedTuple):
    """What one engine noted: that it compiled a function again, or that a capture has changed.

    `variable` is the argument that differed, or the captured variable; `new` and `old` are short
    texts of it, such as `f32[8]`, and `at` is the user's line.
    """

    kind: str
    function: str
    variable: str
    at: str
    new: str
    old: str


class Noted:
    """The events of the cell that runs, or that has run last."""

    def __init__(self) -> None:
        self.events: list[events.Event] = []

    def listen(self) -> None:
        """Note from now on."""
        events.subscribe(self.note, [RECOMPILE, STALE])

    def note(self, event: events.Event) -> None:
        """Keep an event."""
        if len(self.events) < _MOST:
            self.events.append(event)

    def clear(self) -> None:
        """Forget the last cell."""
        self.events.clear()

    def notes(self) -> list[Note]:
        """What was noted; changes that were taken back are left out."""
        found: list[Note] = []
        changed: dict[tuple[str, str], Note] = {}
        for event in self.events:
            data = event.data
            if event.kind == RECOMPILE:
                for way in data["differences"]:
                    found += [
                        Note(RECOMPILE, event.name, d.name, place(event), d.texts[1], d.texts[0])
                        for d in way.latest[0]
                        if d.kind != "cleared"
                    ]
                continue
            which = event.name, data["variable"]
            if data["state"] == "gone":
                changed.pop(which, None)
            elif data["state"] == "found":  # and not what an older cell has changed
                changed[which] = Note(STALE, *which, data["changed"], data["new"], data["old"])
        return [*found, *changed.values()]
