"""The recompile card: under a cell, which functions were recompiled, why, and the remedy.

One card covers one function in one cell, however often it missed. There is none for a first call,
for Perspex's own functions, for programs that the user evicted (`clear_caches`, `retrace`), for
less than 50 ms in total, and for what sound code does, too (`Told`).
`perspex.config.update("recompile_cards", False)` turns cards off.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import IPython

from perspex import config
from perspex.base import events, source
from perspex.base.recent import Recent
from perspex_magics.compiling.advice import advice
from perspex_magics.compiling.callables import Paths
from perspex_magics.display.markup import LINE, MONO, coded
from perspex_magics.display.notices import tell
from perspex_magics.display.table import Cell, Column, Report, Sentence, Table
from perspex_magics.display.units import count, duration, many
from perspex_magics.notebook.cell import is_timed
from perspex_magics.session import Session

# Recompilations that cost less in a cell get no card.
LEAST_SECONDS = 0.05
# Sound code has some programs of a function that differ in these, as for training and test data.
_SOUND = {"shape", "static", "number", "argument"}
# So many new ones in a cell, or so many in all, are told.
_MANY_IN_CELL, _MANY = 2, 4
_MOST_TOLD = 1_000
_MOST_ROWS = 5
# A cell that compiles without end does not keep all of it.
_MOST_EVENTS = 10_000
_MAGIC = "this cell"
_TIMED = "this cell (timed)"
_IPYTHON = os.path.dirname(IPython.__file__) + os.sep
_COLUMNS = (
    Column("at", style="white-space:nowrap"),
    Column("cause", write=lambda cause: Cell(cause, coded(cause)), style=MONO),
    Column("cost", is_number=True, style="white-space:nowrap"),
)


def recompile_cards(session: Session) -> None:
    """Show cards at the end of each cell."""
    # The recompilations, by the thread of the cell that they belong to.
    cells: dict[int, list[events.Event]] = {}
    told = Told()

    def note(event: events.Event) -> None:
        if not cells:
            return
        found = cells.get(threading.get_ident())
        if found is None:  # in a thread that some cell has started: probably the latest
            found = next(reversed(cells.values()))
        if len(found) < _MOST_EVENTS:
            found.append(event)

    def begin(info: Any) -> None:
        cells.setdefault(threading.get_ident(), [])

    def finish(result: Any) -> None:
        found = cells.pop(threading.get_ident(), [])
        if found and config.recompile_cards.value:
            paths = Paths(session.shell.user_ns)
            for card in filter(told.is_due, cards(found, Lines.of(result), paths)):
                tell("recompile", card.data(), card.report())

    session.on_unload(events.subscribe(note, ["recompile"]))
    session.on_cell(begin, finish)


class Lines(NamedTuple):
    """The lines of the cell that has ended, to find one by the name in it."""

    cell: str
    lines: list[str]

    @classmethod
    def of(cls, result: Any) -> Lines:
        text = getattr(getattr(result, "info", None), "raw_cell", None) or ""
        return cls(f"Cell In[{getattr(result, 'execution_count', None)}]", text.split("\n"))

    def reading(self, variable: str) -> str:
        """The first line that names the variable that `params['w']` is a part of."""
        name = re.compile(rf"\b{re.escape(re.split(r'[.[]', variable)[0])}\b")
        for number, line in enumerate(self.lines, 1):
            code = line.partition("#")[0]
            if not code.startswith("%%") and name.search(code):
                return f"{self.cell}:{number}"
        return _MAGIC


class Row(NamedTuple):
    """Misses from one line that differed in the same things."""

    at: str
    events: list[events.Event]

    @property
    def seconds(self) -> float:
        return sum(event.seconds for event in self.events)

    @property
    def cause(self) -> str:
        """Of the last of them, since it was compared with the others."""
        return str(self.events[-1].data["cause"])


class Card(NamedTuple):
    """The recompilations of one function: `rows`, the most expensive first, and the last event.

    `path` is what the notebook calls a method or an object, if all of them are of the same.
    """

    name: str
    rows: list[Row]
    last: events.Event
    path: str | None = None

    @property
    def called(self) -> str:
        return self.path or self.name

    @property
    def events(self) -> list[events.Event]:
        return [event for row in self.rows for event in row.events]

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    @property
    def title(self) -> str:
        """The function's name; for a lambda with the line where it is defined."""
        defined = self.last.data["defined"]
        if self.called != "<lambda>" or defined is None:
            return f"`{self.called}`"
        return f"`{self.name}` of {source.line_name(*defined)}"

    def headline(self) -> str:
        """What happened and what it cost."""
        n = len(self.events)
        times = "" if n == 1 else f" {count(n)} times"
        parts = [
            f"{stage} {duration(sum(event.data[stage] for event in self.events))}"
            for stage in ("trace", "lower", "compile")
        ]
        total = f"{duration(self.seconds)} ({', '.join(parts)})"
        return f"{self.title} was recompiled{times}: {total}"

    def lines(self) -> list[tuple[str, str, str]]:
        """Where, why, and what it cost."""
        found = []
        for row in self.rows[:_MOST_ROWS]:
            n = len(row.events)
            where = row.at + (f", {count(n)} times" if n > 1 else "")
            if any(event.data["cause"] != row.cause for event in row.events):
                where += ", the last time"
            found.append((where, row.cause, duration(row.seconds)))
        return found

    def more(self) -> str:
        """What the rows leave out, and how often this has happened so far."""
        left = self.rows[_MOST_ROWS:]
        rest = f"{many(len(left), 'more cause')}, {duration(sum(r.seconds for r in left))}. "
        data, at = self.last.data, place(self.last)
        total = f"{self.title} has been compiled {data['compiles']} times so far"
        here = f", {data['compiles_here']} of them from {at}" if at != _MAGIC else ""
        return (rest if left else "") + total + here + "."

    def advice(self) -> list[str]:
        """What to do about it."""
        misses = [event.data["differences"] for event in self.events]
        found = advice(misses, self.last.data["closes_over"])
        if any(event.data["combination"] for event in self.events):
            found.insert(0, "Each of these values was used before, but not in this combination.")
        return found

    def report(self) -> Report:
        """All of it."""
        # The headline is no caption of the table, which would break it at the table's width.
        return Report(
            Sentence(f"{self.headline()}."),
            Table(_COLUMNS, self.lines(), label=self.headline(), indent="  ", is_ruled=False),
            *[Sentence(f"  {sentence}") for sentence in self.advice()],
            f"  {self.more()}",
            style=f"border-left:2px solid {LINE};padding:0 8px;margin:2px 0",
        )

    def data(self) -> dict[str, Any]:
        """As JSON, for the panel."""
        return {
            "function": self.called,
            "seconds": self.seconds,
            "count": len(self.events),
            "compiles": self.last.data["compiles"],
            "compiles_here": self.last.data["compiles_here"],
            "advice": self.advice(),
            "rows": [row_data(row) for row in self.rows[:_MOST_ROWS]],
        }


class Told:
    """Which cards are due: one for a problem, and the next when it has become twice as large."""

    def __init__(self) -> None:
        # How many programs a function had when it was told that they differ in certain things.
        self.counts = Recent[Any, int](_MOST_TOLD)

    def is_due(self, card: Card) -> bool:
        """Whether to show a card; if so, it counts as told."""
        ways = [way for event in card.events for way in event.data["differences"]]
        things = frozenset([(d.kind, d.name) for way in ways for d in way.latest[0]])
        problem = (card.name, card.last.data["defined"], things)
        count = card.last.data["compiles"]
        is_sound = all(kind in _SOUND for kind, _ in things)
        is_small = len(card.events) < _MANY_IN_CELL and count < _MANY
        if self.counts.get(problem) is None and is_sound and is_small:
            return False
        return self.has_doubled(problem, count)

    def has_doubled(self, problem: Any, count: int) -> bool:
        """Whether a problem is new, or twice as large as when told; if so, it is told now."""
        if count < 2 * (self.counts.get(problem) or 0):
            return False
        self.counts[problem] = count
        return True


def row_data(row: Row) -> dict[str, Any]:
    """A row as JSON, with the differences of its last event."""
    data = row.events[-1].data
    return {
        "at": row.at,
        "count": len(row.events),
        "seconds": row.seconds,
        "cause": row.cause,
        "combination": data["combination"],
        "differences": [
            [
                {"kind": d.kind, "name": d.name, "old": d.texts[0], "new": d.texts[1]}
                for d in way.latest[0]
            ]
            for way in data["differences"]
        ],
    }


def cards(
    found: Sequence[events.Event], lines: Lines | None = None, paths: Paths | None = None
) -> list[Card]:
    """The cards for the recompilations of one cell, which has these lines and the notebook's names.

    Methods of several objects have one card, as they have one text.
    """
    functions: dict[Any, dict[Any, Row]] = {}
    last: dict[Any, events.Event] = {}
    for event in found:
        if any(d.kind == "cleared" for way in event.data["differences"] for d in way.latest[0]):
            continue
        places = tuple(
            [[(d.kind, d.name) for d in way.latest[0]] for way in event.data["differences"]]
        )
        at = place(event)
        if at == _MAGIC and lines is not None and places and places[0]:
            at = lines.reading(places[0][0][1])
        which = (event.name, event.data["defined"])
        row = functions.setdefault(which, {}).setdefault((at, str(places)), Row(at, []))
        row.events.append(event)
        last[which] = event
    made = [
        Card(which[0], sorted(rows.values(), key=lambda row: -row.seconds), last[which])
        for which, rows in functions.items()
    ]
    # Only now, because the paths cost a walk over the notebook.
    return [
        card._replace(path=None if paths is None else _path(card, paths))
        for card in made
        if card.seconds >= LEAST_SECONDS
    ]


def _path(card: Card, paths: Paths) -> str | None:
    """The path of all that a card is about, if it is one."""
    found = {paths.of(event.data["owner"]()) for event in card.events}
    return found.pop() if len(found) == 1 else None


def place(event: events.Event) -> str:
    """The user's line: `Cell In[3]:2`."""
    frame = source.resolve(event.at)
    if frame is None:
        return "unknown location"
    if is_timed(frame.file):
        return _TIMED
    # The program of a cell under a magic is called by IPython, not from a line of the user's.
    return _MAGIC if _IPYTHON in frame.file else source.line_name(frame.file, frame.line)
