"""The recompile card: under a cell, which functions had to be compiled again, why, and the remedy.

A card tells of one function in one cell, however often it missed. There is none for a first call,
for Perspex's own functions, for programs that the user had forgotten (`clear_caches`), and for less
than 2 ms in all. `perspex.config.update("recompile_cards", False)` silences them.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import IPython
from IPython.core.interactiveshell import InteractiveShell

from perspex import config
from perspex.base import events, source
from perspex_magics.compiling.advice import advice
from perspex_magics.display.markup import LINE, MONO, MUTED, coded, escape, tag
from perspex_magics.display.notices import show
from perspex_magics.notebook.cell import is_timed

# What costs less in a cell is not worth a card.
LEAST_SECONDS = 0.002
_MOST_ROWS = 5
# A cell that compiles without end does not keep all of it.
_MOST_EVENTS = 10_000
_MAGIC = "this cell"
_TIMED = "this cell (timed)"
_IPYTHON = os.path.dirname(IPython.__file__) + os.sep
_CELL = "text-align:left;padding:1px 12px 1px 0;border:none;background:transparent"


def recompile_cards(shell: InteractiveShell) -> Callable[[], object]:
    """Show cards at the end of each cell; returns a function that ends that."""
    # What was compiled again, by the thread of the cell that it belongs to.
    cells: dict[int, list[events.Event]] = {}

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
            for card in cards(found, Lines.of(result)):
                show("recompile", card.data(), card.text(), card.html())

    stop = events.subscribe(note, ["recompile"])
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", finish)

    def undo() -> None:
        stop()
        shell.events.unregister("pre_run_cell", begin)
        shell.events.unregister("post_run_cell", finish)

    return undo


class Lines(NamedTuple):
    """The lines of the cell that has ended, to find one by the name in it."""

    cell: str
    lines: list[str]

    @classmethod
    def of(cls, result: Any) -> Lines:
        text = getattr(getattr(result, "info", None), "raw_cell", None) or ""
        return cls(f"Cell In[{getattr(result, 'execution_count', None)}]", text.split("\n"))

    def reading(self, variable: str) -> str:
        """The first line that names the variable of which `params['w']` is a part."""
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
    """What is told of one function: `rows`, those that cost most first, and the last event."""

    name: str
    rows: list[Row]
    last: events.Event

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
        if self.name != "<lambda>" or defined is None:
            return f"`{self.name}`"
        return f"`{self.name}` of {source.line_name(*defined)}"

    def headline(self) -> str:
        """What happened, and what it cost."""
        count = len(self.events)
        times = "again" if count == 1 else f"again {count} times"
        parts = [
            f"{stage} {milliseconds(sum(event.data[stage] for event in self.events))}"
            for stage in ("trace", "lower", "compile")
        ]
        total = f"{milliseconds(self.seconds)} ms ({', '.join(parts)})"
        return f"{self.title} was compiled {times}: {total}"

    def lines(self) -> list[tuple[str, str, str]]:
        """Where, why, and for how many milliseconds."""
        found = []
        for row in self.rows[:_MOST_ROWS]:
            count = len(row.events)
            where = row.at + (f", {count} times" if count > 1 else "")
            if any(event.data["cause"] != row.cause for event in row.events):
                where += ", the last time"
            found.append((where, row.cause, f"{milliseconds(row.seconds)} ms"))
        return found

    def more(self) -> str:
        """What is not among the rows, and how often this has happened so far."""
        left = self.rows[_MOST_ROWS:]
        rest = f"{len(left)} more causes, {milliseconds(sum(r.seconds for r in left))} ms. "
        data, at = self.last.data, place(self.last)
        total = f"{self.title} has been compiled {data['compiles']} times by now"
        here = f", {data['compiles_here']} of them from {at}" if at != _MAGIC else ""
        return (rest if left else "") + total + here + "."

    def advice(self) -> list[str]:
        """What to do about it."""
        misses = [event.data["differences"] for event in self.events]
        found = advice(misses, self.last.data["closes_over"])
        if any(event.data["combination"] for event in self.events):
            found.insert(0, "Each of these values was seen before, but never together.")
        return found

    def text(self) -> str:
        """For a terminal."""
        rows = [f"  {where}: {why} ({cost})" for where, why, cost in self.lines()]
        told = [f"  {sentence}" for sentence in [*self.advice(), self.more()]]
        return "\n".join([f"{self.headline()}.", *rows, *told])

    def html(self) -> str:
        """For a notebook: a table, without scripts."""
        rows = [
            tag(
                "tr",
                tag("td", escape(where), style=f"{_CELL};white-space:nowrap"),
                tag("td", coded(why), style=f"{_CELL};{MONO}"),
                tag("td", escape(cost), style=f"{_CELL};text-align:right;white-space:nowrap"),
            )
            for where, why, cost in self.lines()
        ]
        # Above the table and no caption of it: a caption is broken at the width of the table.
        head = tag("div", coded(self.headline()))
        look = "border-collapse:collapse;margin:2px 0;font-size:inherit"
        table = tag("table", *rows, style=look, **{"aria-label": self.headline()})
        told = [tag("div", coded(sentence)) for sentence in self.advice()]
        last = tag("div", coded(self.more()), style=MUTED)
        style = f"border-left:2px solid {LINE};padding:0 8px;margin:2px 0"
        return tag("div", head, table, *told, last, style=style)

    def data(self) -> dict[str, Any]:
        """As JSON, for the panel."""
        return {
            "function": self.name,
            "seconds": self.seconds,
            "count": len(self.events),
            "compiles": self.last.data["compiles"],
            "compiles_here": self.last.data["compiles_here"],
            "advice": self.advice(),
            "rows": [row_data(row) for row in self.rows[:_MOST_ROWS]],
        }


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


def cards(found: Sequence[events.Event], lines: Lines | None = None) -> list[Card]:
    """The cards for what was compiled again in one cell, of these lines."""
    functions: dict[Any, dict[Any, Row]] = {}
    last: dict[Any, events.Event] = {}
    for event in found:
        if all(d.kind == "cleared" for way in event.data["differences"] for d in way.latest[0]):
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
    return [card for card in made if card.seconds >= LEAST_SECONDS]


def place(event: events.Event) -> str:
    """The user's line: `Cell In[3]:2`."""
    frame = source.resolve(event.at)
    if frame is None:
        return "unknown location"
    if is_timed(frame.file):
        return _TIMED
    # The program of a cell under a magic is called by IPython, not from a line of the user's.
    return _MAGIC if _IPYTHON in frame.file else source.line_name(frame.file, frame.line)


def milliseconds(seconds: float) -> str:
    """Two or three digits: `0.42`, `31.5`, `1240`."""
    value = 1e3 * seconds
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 1 else f"{value:.2f}"
