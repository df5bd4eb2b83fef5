"""The clock under each cell: where its time went, and how long the device worked after it.

Python dispatches a computation to the device and continues, so the time of a cell says little about
the time of its work. The core publishes tracing, lowering, compiling, transfers and waits; nested
phases count once, for the innermost. The rest of a cell is Python, which includes the dispatch of
compiled calls (in C++, where measuring it would slow each call), and time in which the thread did
not run. Where XLA's threads ran meanwhile, that was a wait for the device at a place that the core
does not see, as `numpy.asarray`; where other threads of the process did, it is Python; the rest is
idle. That is decided for each of many short pieces of the cell (see `timing.moments`), because
several threads work in less time than they count together. A thread watches the arrays that are not
computed when the cell ends, and never blocks anything.

Measuring and showing are separate: readings are made while the clock is on, or while an observer
(the panel) asks for them.
"""

from __future__ import annotations

import argparse
import contextvars
import re
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import environment, events
from perspex.runtime import client, memory, threads
from perspex_magics.display import notices
from perspex_magics.display.table import Report
from perspex_magics.display.units import duration, size
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.notebook.pulse import Pulse, cell_pulse
from perspex_magics.notebook.running import Running
from perspex_magics.notebook.user_names import user_names
from perspex_magics.session import Session
from perspex_magics.timing import load
from perspex_magics.timing.moments import Moment, Moments
from perspex_magics.timing.unfinished import (
    Pending,
    Watcher,
    all_there,
    arrays_in,
    is_compiled,
    is_there,
    may_hold_arrays,
)

# Kinds of events and what they are called in the line, in its order.
_PARTS = {
    "trace": "trace",
    "lower": "lower",
    "compile": "compile",
    "wait": "device",
    "transfer": "transfer",
}
_NO_SECONDS = dict.fromkeys(_PARTS, 0.0)
_KINDS = (*_PARTS, "failed")
_STATES = ("on", "off", "all")
# The part of a device's memory from which on a reserve is told.
_TOLD_PART = 0.1
# Seconds below which a wait or a cell is no reason to show a line.
_LONG_WAIT = 1e-3
_LONG_CELL = 0.1
# Smaller parts of a cell are left out of its line.
_LEAST_PART = 1e-3
# Less idle time than this, in seconds or as a part of the cell, counts as Python.
_LONG_IDLE = 5e-3
_PART_IDLE = 0.1
# The most events of one cell that are kept apart, to find nested phases.
_MOST_SPANS = 4096
# The readings that are kept for later, and the length of each cell's text that is kept with them.
_MOST_READINGS = 4_000
_MOST_HEAD = 200

_NAME = re.compile(r"[^\W\d]\w*")


parser = WordParser(
    "clock",
    """Show under a cell where its time went.

    on    under cells that trace, compile, wait for the device or leave it busy
    all   under every cell
    off   under none
    last  print the line of the last cell again""",
    """Without an argument, print the current setting. The environment variable
PERSPEX_CLOCK sets the initial one; by default the clock is on in the Perspex kernel and
off in any other IPython.""",
    usage="%clock [on | off | all | last] [--help]",
)
parser.add_argument("what", nargs="?", choices=[*_STATES, "last"], help="see above")


class Reading:
    """The time of one cell by its parts, and which run of which cell it was.

    `status` is `running`, `ok` or `error`; `cell` the notebook's id of the cell, if it has one;
    `count` its number, once it is over.
    """

    __slots__ = (
        *("after", "bytes", "cell", "count", "idle", "is_working", "python", "reserved"),
        *("before", "seconds", "sources", "spans", "start", "status", "text_of_cell", "wall"),
        *("load", "machine", "merged_to", "moments", "xla", "_is_looked_at"),
    )

    def __init__(self, text_of_cell: str, cell: str = "") -> None:
        self.text_of_cell = text_of_cell
        self.cell, self.count, self.status = cell, 0, "running"
        self.seconds = _NO_SECONDS.copy()
        self.sources: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.wall = self.python = self.idle = 0.0
        # How long the device worked after the cell; `None` if it did not, or still does.
        self.after: float | None = None
        self.is_working = False
        # What the line says of memory that the device has reserved.
        self.reserved = ""
        # What other processes used of the machine meanwhile, if that was much.
        self.load: load.Load | None = None
        # Read by another thread, once the cell is no short one.
        self.machine: load.Sample | None = None
        self._is_looked_at = False
        # Begin and length of phases, the outermost of those that ended.
        self.spans: list[tuple[float, float]] = []
        # Until when they are kept as one.
        self.merged_to = 0.0
        self.before, self.xla = events.outside_of_phases(), threads.times()
        self.moments = Moments(tuple(self.xla or ()), self.spans)
        self.start = time.perf_counter()

    def add(self, event: events.Event) -> None:
        """Count an event; those inside of it have come before and are taken off."""
        kind = event.data["stage"] if event.kind == "failed" else event.kind
        spans, inside = self.spans, 0.0
        while spans and spans[-1][0] >= event.start:
            inside += spans.pop()[1]
        spans.append((event.start, event.seconds))
        self.seconds[kind] += max(0.0, event.seconds - inside)
        if event.kind == "compile":
            source = "own process" if event.data.get("apart") else event.data.get("source", "xla")
            self.sources[source] = self.sources.get(source, 0) + 1
        elif kind == "transfer":
            way = event.data["direction"]
            self.bytes[way] = self.bytes.get(way, 0) + event.data["bytes"]
        if len(spans) > _MOST_SPANS:
            half = spans[: _MOST_SPANS // 2]
            self.merged_to = sum(half[-1])
            spans[: len(half)] = [(half[0][0], sum(length for _, length in half))]

    def look(self) -> float:
        """Note what the machine and the threads have done so far; from any thread.

        Returns in how many seconds to look again.
        """
        if not self._is_looked_at and time.perf_counter() - self.start >= _LONG_CELL:
            self._is_looked_at, self.machine = True, load.sample()
        return self.moments.look()

    def stop(self, now: float, status: str = "ok") -> None:
        """The cell has ended: the rest of its time is Python and idle time."""
        self.status, self.wall, left = status, now - self.start, now - self.start
        if self.machine is not None and now - self.machine.at >= load.LEAST_SECONDS:
            # XLA in a process of its own works for this one.
            ours = self.seconds["compile"] if "own process" in self.sources else 0.0
            self.load = load.load(self.machine, load.sample(), ours)
        spans, self.spans, self.moments.spans = self.spans, [], ()
        if spans:
            left = max(0.0, left - sum(self.seconds.values()))
        self.python = left
        least = max(_LONG_IDLE, _PART_IDLE * self.wall)
        if left <= least:
            return
        thread, process = [
            now - then for now, then in zip(events.outside_of_phases(), self.before, strict=True)
        ]
        pieces = list(self.moments.between(spans, self.merged_to))
        lent = sum([piece.lent for piece in pieces])
        if left - thread + lent <= least:
            return
        whole = Moment(left, thread, process, self._by_xla(), lent)
        # The rest: there phases began or ended, or nobody looked.
        for piece in pieces:
            whole -= piece
        away = device = others = 0.0
        for piece in [*pieces, whole]:
            ran = piece.thread - piece.lent
            gone = max(0.0, piece.at - ran)
            # While this thread waited, or worked for XLA, other threads have worked so long, and
            # XLA's among them.
            worked = min(gone, max(0.0, piece.process - ran))
            of_xla = worked if self.xla is None else min(worked, max(0.0, piece.xla + piece.lent))
            away, device, others = away + gone, device + of_xla, others + worked - of_xla
        if device > _LONG_IDLE or device > away / 2:
            self.seconds["wait"] += device
        else:
            device = 0.0
        idle = away - device - (others if others > least else 0.0)
        self.idle = idle if idle > least else 0.0
        self.python = max(0.0, left - device - self.idle)

    def _by_xla(self) -> float:
        """For how long XLA's threads have worked."""
        if self.xla is None:
            return 0.0
        if not self.xla:  # the client came with this cell
            self.xla = dict.fromkeys(threads.times() or (), 0.0)
        by_xla = sum(threads.used(thread) - then for thread, then in self.xla.items())
        threads.look()
        return max(0.0, by_xla)

    @property
    def head(self) -> str:
        """The first line of the cell's text."""
        return self.text_of_cell.lstrip()[:_MOST_HEAD].partition("\n")[0].rstrip()

    @property
    def is_telling(self) -> bool:
        """Whether the core had something to do that takes time."""
        seconds = self.seconds
        staged = seconds["trace"] or seconds["lower"] or seconds["compile"]
        waited = seconds["wait"] + seconds["transfer"] > _LONG_WAIT
        return bool(staged) or waited or self.is_working

    def data(self) -> dict[str, Any]:
        """The reading as JSON, in seconds and bytes."""
        return {
            "wall": self.wall,
            **{name: self.seconds[kind] for kind, name in _PARTS.items()},
            "python": self.python,
            "idle": self.idle,
            "sources": dict(self.sources),
            "bytes": dict(self.bytes),
            "after": self.after,
            "working": self.is_working,
        }

    def text(self) -> str:
        """`12.4 ms: trace 1.20 ms, lower 800 us, compile 9.10 ms (disk), Python 1.30 ms`."""
        parts = [
            f"{name} {duration(self.seconds[kind])}{self._remark(kind)}"
            for kind, name in _PARTS.items()
            if self.seconds[kind] > _LEAST_PART * self.wall
        ]
        parts.append(f"Python {duration(self.python)}")
        if self.idle:
            parts.append(f"idle {duration(self.idle)}")
        line = f"{duration(self.wall)}: {', '.join(parts)}"
        line += self.reserved
        if self.load is not None:
            line += f"; {self.load.text()}"
        if self.is_working:
            return f"{line}; the device is still at work"
        if self.after is not None:
            return f"{line}; then {duration(self.after)} more on the device"
        return line

    def _remark(self, kind: str) -> str:
        if kind == "transfer":
            moved = [f"{size(self.bytes[way])} {way}" for way in ("in", "out") if way in self.bytes]
            return f" ({', '.join(moved)})" if moved else ""
        if kind != "compile" or set(self.sources) <= {"xla"}:
            return ""
        if len(self.sources) == 1:
            return f" ({next(iter(self.sources))})"
        known = {"xla": "XLA"}
        found = [f"{n} {known.get(source, source)}" for source, n in sorted(self.sources.items())]
        return f" ({', '.join(found)})"

    def show(self, display_id: str | None = None, update: bool = False) -> None:
        """Show the line under the cell, or in the place of an earlier one."""
        report = Report(self.text(), style="font-size:85%")
        # How many processors other processes used, where they made the times longer.
        data = self.data() | {"others": None if self.load is None else self.load.used}
        notices.tell("clock", data, report, display_id=display_id, update=update)


class Observer(Protocol):
    """A receiver of readings; called in a cell's thread or the watcher's."""

    def __call__(self, reading: Reading, /) -> None:
        """A reading began or ended, or its device time became known."""


class Clock:
    """The clock of one notebook, which listens to the core only while readings are wanted."""

    def __init__(self, shell: InteractiveShell, pulse: Pulse) -> None:
        self.shell, self.names, self.pulse = shell, user_names(shell), pulse
        self.state = "off"
        self.last: Reading | None = None
        self.readings: Running[Reading] = Running()
        # Of cells that are over.
        self.ended: deque[Reading] = deque(maxlen=_MOST_READINGS)
        self.total = 0
        self.watcher = Watcher()
        self._observers: tuple[Observer, ...] = ()
        self._stop: Callable[[], None] | None = None
        self._is_reserve_told = False
        pulse.add(self._look)

    def set(self, state: str) -> None:
        """Show readings under cells (`on`), under `all` cells, or under none (`off`)."""
        self.state = state
        self._listen()

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Pass all readings to an observer, shown or not; returns the function that ends that."""
        self._observers = (*self._observers, observer)
        self._listen()

        def stop() -> None:
            self._observers = tuple([other for other in self._observers if other is not observer])
            self._listen()

        return stop

    @property
    def is_measuring(self) -> bool:
        return self.state != "off" or bool(self._observers)

    def _listen(self) -> None:
        if self.is_measuring and self._stop is None:
            self._stop = events.subscribe(self._hear, _KINDS)
        elif not self.is_measuring and self._stop is not None:
            self.readings.clear()
            self._stop()
            self._stop = None

    def _tell(self, reading: Reading) -> None:
        for observer in self._observers:
            observer(reading)

    def _hear(self, event: events.Event) -> None:
        reading = self.readings.here()
        if reading is not None:
            reading.add(event)

    def begin(self, info: Any) -> None:
        """A cell begins."""
        if self.is_measuring and self.readings.begins():
            reading = Reading(info.raw_cell, getattr(info, "cell_id", None) or "")
            self.readings.begin(info, reading)
            self.pulse.wake()
            if self._observers:
                self._tell(reading)

    def _look(self) -> float | None:
        return min([reading.look() for reading in self.readings.values()], default=None)

    def end(self, result: Any) -> None:
        """A cell ends: show its line if it has something to say."""
        now = time.perf_counter()
        reading = self.readings.end(result)
        if reading is None:
            return
        reading.stop(now, "ok" if result is not None and result.success else "error")
        reading.count = getattr(result, "execution_count", None) or 0
        unready = self._unready(result)
        reading.is_working = bool(unready)
        self.ended.append(reading)
        self.total += 1
        text = reading.text_of_cell.lstrip()
        if not text.startswith("%clock"):
            self.last = reading
        if self.state == "all" or (
            self.state == "on" and (reading.is_telling or self._is_long(reading))
        ):
            self._show(reading, unready, now)
        elif unready:
            self.watcher.add(Pending(reading, unready, now, self._then(reading)))
        reading.text_of_cell = text[:_MOST_HEAD]
        if self._observers:
            self._tell(reading)

    def _then(
        self, reading: Reading, update: Callable[[], bool] | None = None
    ) -> Callable[[], bool]:
        """What happens once the device is done with a cell."""

        def told() -> bool:
            self._tell(reading)
            return update is None or update()

        return told

    def _unready(self, result: Any) -> list[Any]:
        """Arrays of this cell that are not computed yet and not watched for an earlier cell."""
        new = self.names.new_arrays(getattr(result, "info", None))
        others = self.names.of_kinds(may_hold_arrays)
        others.append(getattr(result, "result", None))
        arrays = arrays_in(others)
        arrays += [array for _, array in new]
        if not arrays or all_there(arrays):
            return []
        found = {id(x): x for x in arrays if not is_there(x)}
        if found:
            for known in self.watcher.ids():
                found.pop(known, None)
        return list(found.values())

    def _is_long(self, reading: Reading) -> bool:
        """Whether a cell that took long has to do with arrays, by the names in its text."""
        if reading.wall < _LONG_CELL:
            return False
        namespace = self.shell.user_ns
        values = [
            namespace[name]
            for name in set(_NAME.findall(reading.text_of_cell))
            if name in namespace
        ]
        return any(map(is_compiled, values)) or bool(arrays_in(values))

    def _reserve(self) -> str:
        """That the device's memory is taken beforehand, once: other programs see it as used."""
        if self._is_reserve_told or not client.is_made():
            return ""
        device = client.default_device()
        if device.platform == "cpu":
            return ""
        nbytes, limit = memory.reserved(device), memory.limit(device)
        if limit is None or nbytes < _TOLD_PART * limit:
            return ""
        self._is_reserve_told = True
        return (
            f"; XLA has reserved {size(nbytes)} of {device} beforehand "
            "(XLA_PYTHON_CLIENT_PREALLOCATE=false prevents that)"
        )

    def _show(self, reading: Reading, unready: list[Any], now: float) -> None:
        # A terminal cannot take back what it has printed.
        can_update = hasattr(self.shell, "kernel")
        display_id = f"perspex-clock-{uuid.uuid4().hex}" if unready and can_update else None
        reading.reserved = self._reserve()
        reading.show(display_id)
        if unready:
            publisher, context = self.shell.display_pub, contextvars.copy_context()

            def update() -> bool:
                # A later cell may be capturing its outputs; this line is none of them.
                if self.shell.display_pub is not publisher:
                    return False
                context.run(reading.show, display_id, True)
                return True

            told = self._then(reading, update if display_id else None)
            self.watcher.add(Pending(reading, unready, now, told))


class ClockMagics(Magic):
    """Show under a cell where its time went: `%clock on`, `off`, `all`, `last`.

    `%clock --help` lists the options.
    """

    line_parser = parser

    def __init__(self, session: Session, clock: Clock) -> None:
        super().__init__(session)
        self.of_notebook = clock

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        if options.what == "last":
            last = self.of_notebook.last
            print(
                last.text() if last else "No cell has been timed yet; `%clock on` starts the clock."
            )
        elif options.what is None:
            print(f"The clock is {_SAID[self.of_notebook.state]}.")
        else:
            self.of_notebook.set(options.what)


_SAID = {
    "on": "on, for cells that trace, compile, wait for the device or leave it busy",
    "all": "on, for all cells",
    "off": "off; `%clock on` turns it on",
}


def _state(text: str) -> str:
    state = text.strip().lower()
    if state not in _STATES:
        raise ValueError(f"expected one of {', '.join(_STATES)}")
    return state


def first_state(shell: InteractiveShell) -> str:
    """`on` in the Perspex kernel, `off` elsewhere, unless the environment says so."""
    asked: str = environment.value("CLOCK", "", _state)
    environment.settle()
    if asked:
        return asked
    kernel = getattr(shell, "kernel", None)
    return "on" if getattr(kernel, "implementation", "") == "perspex" else "off"


def time_cells(session: Session) -> None:
    """Bring the clock and `%clock` into a notebook."""
    clock = session.keep(Clock(session.shell, cell_pulse(session)))
    ClockMagics(session, clock).register()
    session.on_cell(clock.begin, clock.end)
    clock.set(first_state(session.shell))
    session.on_unload(lambda: clock.set("off"))
