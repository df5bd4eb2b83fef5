"""The heartbeat: a live line under a cell that traces, lowers or compiles for long.

It shows the function, the time, the number of equations so far, and the line that makes most of
them. While a cell runs, the notebook's pulse looks twice a second at the core's lists of what is
going on (`events.running`, `staging.writing`).
"""

from __future__ import annotations

import contextvars
import itertools
import linecache
import threading
import time
import uuid
from collections import Counter
from operator import attrgetter
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events, source
from perspex.base.recent import Recent
from perspex.tracing import staging
from perspex_magics.compiling.waits import MOST_TIMES, Times, Wait
from perspex_magics.display import notices
from perspex_magics.display.markup import MONO
from perspex_magics.display.table import Report, Sentence
from perspex_magics.display.units import count, duration, many
from perspex_magics.notebook.pulse import Pulse, cell_pulse
from perspex_magics.notebook.running import Running
from perspex_magics.session import Session

# Seconds until a stage is shown, between two looks, and between two updates.
_LONG = 2.0
_PERIOD = 0.5
_REFRESH = 0.95
# A line that makes more equations than this counts as an unrolled loop.
_UNROLLED = 1_000
# So many equations are read without letting other threads run: half a millisecond.
_CHUNK = 10_000
# Sizes of programs that are remembered by name.
_MOST_SIZES = 256
# Of one cell so many long stages are shown, the last ones, and so much of a line.
_MOST_ROWS = 8
_WIDTH = 60

_DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}
_REMEDY = "lax.scan, lax.fori_loop or vmap traces its body once"
_source_of = attrgetter("source")


class Tally:
    """The equations of the programs being written, by the user's line.

    Reads from another thread: a trace only ever appends to its list, or puts a new list in its
    place, and what has been appended does not change.
    """

    def __init__(self) -> None:
        self._read: dict[int, tuple[staging.JaxprTrace, int]] = {}
        self._counts: Counter[source.Source | None] = Counter()

    def read(self, traces: list[staging.JaxprTrace]) -> None:
        """Count what is new in these programs and in earlier ones."""
        for trace in traces:
            self._read.setdefault(id(trace), (trace, 0))
        for key, (trace, done) in self._read.items():
            eqns = trace.eqns
            end = len(eqns)
            for start in range(done, end, _CHUNK):
                self._counts.update(map(_source_of, eqns[start : min(start + _CHUNK, end)]))
            self._read[key] = trace, max(done, end)

    @property
    def total(self) -> int:
        return sum(self._counts.values())

    def most(self) -> tuple[source.Frame, int] | None:
        """The line with most equations, and their number."""
        lines: Counter[tuple[str, int]] = Counter()
        frames: dict[tuple[str, int], source.Frame] = {}
        for at, number in self._counts.items():
            if at is not None:
                key = at.frame.file, at.frame.line
                lines[key] += number
                frames[key] = at.frame
        if not lines:
            return None
        key, number = lines.most_common(1)[0]
        return frames[key], number


class Row:
    """One long stage of a cell."""

    def __init__(self, what: object, kind: str, name: str, start: float) -> None:
        # The phase, or a program that is written outside of any.
        self.what: object = what
        self.kind, self.name, self.start = kind, name, start
        self.end: float | None = None
        self.tally = Tally() if kind == "trace" else None
        self.equations = 0
        self._said: dict[str, Any] | None = None

    def look(self, now: float) -> None:
        """Bring the row up to date; it is closed when its stage is over."""
        if self.tally is not None:
            self.tally.read(self._traces())
            self.equations = self.tally.total
        if isinstance(self.what, events.Phase):
            self.end = self.what.end
        elif self.what not in staging.writing:
            self.end = now
        if self.end is not None:
            self.close(self.end)

    def close(self, end: float) -> None:
        """The stage is over: keep its summary and release its programs."""
        if self.tally is not None:
            self.tally.read([])
            self.equations = self.tally.total
        self.end = end
        self._said = self.data(end)
        self.tally = self.what = None

    def _traces(self) -> list[staging.JaxprTrace]:
        """What is being written for this stage: its own program, and those inside of it."""
        writing = staging.writing.copy()
        return list(itertools.dropwhile(lambda trace: trace.name != self.name, writing))

    def data(self, now: float) -> dict[str, Any]:
        """The row as JSON, in seconds; `line` is where most equations come from."""
        if self._said is not None:
            return self._said
        most = self.tally.most() if self.tally is not None else None
        line = None
        if most is not None:
            frame, number = most
            text = linecache.getline(frame.file, frame.line).strip()
            line = {
                "at": source.line_name(frame.file, frame.line),
                "text": text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "...",
                "equations": number,
            }
        return {
            "phase": self.kind,
            "name": self.name,
            "seconds": (self.end or now) - self.start,
            "running": self.end is None,
            "apart": getattr(self.what, "is_apart", False),
            "equations": self.equations,
            "line": line,
        }


def sentences(row: dict[str, Any]) -> list[str]:
    """The sentences about one stage: its progress, the line with most equations, and a hint."""
    doing, running, line = _DOING[row["phase"]], row["running"], row["line"]
    what = f"{doing} `{row['name']}`{': ' if running else ' took '}{duration(row['seconds'])}"
    if row["equations"]:
        what += f", {many(row['equations'], 'equation')}"
        what += " so far" if running and row["phase"] == "trace" else ""
    if running and row["phase"] == "compile":
        apart = row["apart"]
        what += f"; an interrupt {'stops it' if apart else 'returns control'}"
    found = [what]
    if line is not None:
        found.append(f"{count(line['equations'])} of them from {line['at']}: {line['text']}")
        if line["equations"] > _UNROLLED:
            found.append(f"{line['at']} looks like an unrolled Python loop; {_REMEDY}")
    elif row["phase"] == "compile" and row["equations"] > _UNROLLED:
        found.append(f"If this is an unrolled Python loop, {_REMEDY}.")
    return found


class Beat:
    """One cell, and the notice under it."""

    __slots__ = (
        *("context", "display_id", "loose", "others", "publisher", "rows", "shell", "shown"),
        *("start", "thread", "wait"),
    )

    def __init__(self, shell: InteractiveShell, times: Times) -> None:
        self.shell = shell
        self.thread = threading.get_ident()
        self.wait = Wait(shell, self.thread, times)
        self.start = time.perf_counter()
        self.context = contextvars.copy_context()
        self.publisher = shell.display_pub
        # Of other threads, or of a function that an interrupt ended at its very beginning.
        self.others = staging.writing.copy()
        self.rows: list[Row] = []
        self.shown = 0.0
        self.display_id = ""
        # Programs that are written outside of any phase, as the body of a loop is: since when.
        self.loose: tuple[Any, float] = (None, 0.0)

    def look(self, sizes: Recent[str, int]) -> None:
        """Find what takes long, and show it if there is news."""
        now = time.perf_counter()
        self.wait.look(now)
        known = [row.what for row in self.rows]
        for what, kind, name, start in self._going_on(now):
            if now - start >= _LONG and what not in known:
                row = Row(what, kind, name, start)
                row.equations = sizes.get(name) or 0
                self.rows.append(row)
        changed = len(self.rows) > len(known)
        for row in self.rows:
            if row.end is None:
                row.look(now)
                changed |= row.end is not None
        live = any(row.end is None for row in self.rows)
        if changed or (live and now - self.shown >= _REFRESH):
            self.show(now)

    def _going_on(self, now: float) -> list[tuple[object, str, str, float]]:
        """The stages of this cell that matter: the outermost, and the innermost of another kind."""
        phases = [
            phase
            for phase in events.running.copy()
            if phase.thread == self.thread and phase.start >= self.start
        ]
        inner = [phase for phase in phases[-1:] if phase.kind != phases[0].kind]
        found: list[tuple[object, str, str, float]] = [
            (phase, phase.kind, phase.name, phase.start) for phase in [*phases[:1], *inner]
        ]
        writing = [trace for trace in staging.writing.copy() if trace not in self.others]
        if phases or not writing:
            self.loose = None, 0.0
        else:
            outermost = writing[0]
            if self.loose[0] is not outermost:
                self.loose = outermost, now
            found.append((outermost, "trace", outermost.name, self.loose[1]))
        return found

    def show(self, now: float) -> None:
        """Show the notice or update it."""
        if self.shell.display_pub is not self.publisher:
            return  # the cell is collecting outputs for itself
        update = bool(self.display_id)
        self.shown = now
        if not update:
            self.display_id = f"perspex-heartbeat-{uuid.uuid4().hex}"
        elif not hasattr(self.shell, "kernel") and any(row.end is None for row in self.rows):
            return  # a terminal gets the beginning and the end
        rows = [row.data(now) for row in self.rows[-_MOST_ROWS:]]
        lines: list[str | Sentence] = []
        for what, *more in map(sentences, rows):
            lines += [Sentence(what), *[f"  {sentence}" for sentence in more]]
        self.context.copy().run(
            notices.tell,
            "heartbeat",
            {"stages": rows},
            Report(*lines, style=f"{MONO};font-size:85%"),
            display_id=self.display_id,
            update=update,
        )

    def finish(self) -> None:
        """The cell has ended: what is left of its stages is a summary."""
        self.loose = None, 0.0
        now = time.perf_counter()
        self.wait.end(now)
        if not any(row.end is None for row in self.rows):
            return
        for row in self.rows:
            if row.end is None:
                row.look(now)
            if row.end is None:
                row.close(now)
        self.show(now)


class Heartbeat:
    """Watches the cells of one notebook."""

    def __init__(self, shell: InteractiveShell, pulse: Pulse) -> None:
        self.shell, self.pulse = shell, pulse
        self.cells: Running[Beat] = Running()
        self.sizes: Recent[str, int] = Recent(_MOST_SIZES)
        self.times: Times = Recent(MOST_TIMES)
        self._lock = threading.Lock()
        self._looked = 0.0
        pulse.add(self._look)

    def hear(self, event: events.Event) -> None:
        """Remember how large a program is, for when it is compiled."""
        self.sizes.put(event.name, event.data["eqns"])

    def begin(self, info: Any) -> None:
        """A cell begins."""
        if not self.cells.begins():
            return
        if events.running:
            events.forget_phases()
        self.cells.begin(info, Beat(self.shell, self.times))
        self.pulse.wake()

    def end(self, result: Any) -> None:
        """A cell has ended."""
        beat = self.cells.end(result)
        if beat is not None and (beat.rows or beat.wait.what):
            with self._lock:
                beat.finish()

    def _look(self) -> float | None:
        beats, now = self.cells.values(), time.perf_counter()
        if beats and now - self._looked >= _PERIOD:
            self._looked = now
            with self._lock:
                for beat in beats:
                    beat.look(self.sizes)
        return _PERIOD if beats else None


def show_heartbeat(session: Session) -> None:
    """Bring the heartbeat into a notebook."""
    heartbeat = Heartbeat(session.shell, cell_pulse(session))
    session.on_unload(heartbeat.cells.clear)
    session.on_unload(events.subscribe(heartbeat.hear, ("trace",)))
    session.on_cell(heartbeat.begin, heartbeat.end)
