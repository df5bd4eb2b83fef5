"""The clock under each cell: where its time went, and what the device went on with.

A computation is handed to the device and Python goes on, so the time that a cell takes says little
about the time that its work takes. The core tells of tracing, lowering, compiling, moving numbers
and waiting; what lies inside of something else is counted once, for the innermost. The rest of the
cell is Python, and with it the handing over of compiled calls, which happens in C++ and cannot be
told apart without a cost for each call; and it is idle time, in which the thread did not run,
because it slept, or waited where the core does not look, as `numpy.asarray` does for an array.
Arrays of the notebook that are not there yet when the cell ends are watched by a thread, which
never holds anything up.

Measuring is one thing and showing another: readings are made while the clock is on, or while
somebody (the panel) asks for them.
"""

from __future__ import annotations

import contextvars
import os
import re
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class

from perspex.base import events
from perspex_magics.display import notices
from perspex_magics.display.markup import MUTED, escape, tag
from perspex_magics.notebook.options import MagicParser
from perspex_magics.notebook.running import Running
from perspex_magics.notebook.user_names import user_names
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
# What is shorter, in seconds, is no reason to show a line.
_LONG_WAIT = 1e-3
_LONG_CELL = 0.1
# What is less, in seconds or as a part of the cell, is not told apart from Python.
_LONG_IDLE = 5e-3
_PART_IDLE = 0.1
# So many events of one cell are kept apart, to tell what lies inside of what.
_MOST_SPANS = 4096
# Readings of so many cells are kept for who looks later, and so much of each cell's text.
_MOST_READINGS = 4_000
_MOST_HEAD = 200

_NAME = re.compile(r"[^\W\d]\w*")


class ClockParser(MagicParser):
    """The options of `%clock`, a line magic without an expression."""

    sign = "%"


parser = ClockParser(
    "clock",
    """Show under a cell where its time went.

    on    under cells that trace, compile, wait for the device or leave it work
    all   under every cell
    off   under none
    last  print the line of the last cell again""",
    """Without an argument it says which of them holds. The environment variable
PERSPEX_CLOCK has the same words, for the beginning; without it the clock is on in the
Perspex kernel, and off in another IPython.""",
    usage="%clock [on | off | all | last] [--help]",
)
parser.add_argument("what", nargs="?", choices=[*_STATES, "last"], help="see above")


class Reading:
    """The time of one cell, by what it went into, and which run of which cell it was.

    `status` is `running`, `ok` or `error`; `cell` the notebook's id of the cell, if it has one;
    `count` its number, once it is over.
    """

    __slots__ = (
        *("after", "bytes", "cell", "count", "idle", "is_working", "python", "ran"),
        *("seconds", "sources", "spans", "start", "status", "text_of_cell", "wall"),
    )

    def __init__(self, text_of_cell: str, cell: str = "") -> None:
        self.text_of_cell = text_of_cell
        self.cell, self.count, self.status = cell, 0, "running"
        self.seconds = _NO_SECONDS.copy()
        self.sources: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.wall = self.python = self.idle = 0.0
        # How long the device went on; `None` if it had nothing to do, or as long as it works.
        self.after: float | None = None
        self.is_working = False
        # Begin and length of phases, the outermost of those that ended.
        self.spans: list[tuple[float, float]] = []
        self.ran = _ran_outside_of_phases()
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
            spans[: len(half)] = [(half[0][0], sum(length for _, length in half))]

    def stop(self, now: float, status: str = "ok") -> None:
        """The cell has ended: what is left is Python, and time in which the thread did not run."""
        self.status, self.wall, left = status, now - self.start, now - self.start
        if self.spans:
            left = max(0.0, left - sum(self.seconds.values()))
            self.spans = []
        self.python = left
        least = max(_LONG_IDLE, _PART_IDLE * self.wall)
        if left > least:
            idle = left - (_ran_outside_of_phases() - self.ran)
            if idle > least:
                self.idle, self.python = idle, left - idle

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
        """`12.4 ms: trace 1.2, lower 0.8, compile 9.1 (disk), Python 1.3`."""
        scale, digits, unit = _unit(self.wall)
        parts = []
        for kind, name in _PARTS.items():
            number = f"{self.seconds[kind] * scale:.{digits}f}"
            if float(number):
                parts.append(f"{name} {number}{self._remark(kind)}")
        parts.append(f"Python {self.python * scale:.{digits}f}")
        if self.idle:
            parts.append(f"idle {self.idle * scale:.{digits}f}")
        line = f"{duration(self.wall)}: {', '.join(parts)}"
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
        text = self.text()
        html = tag("div", escape(text), style=f"{MUTED};font-size:85%")
        notices.show("clock", self.data(), text, html, display_id=display_id, update=update)


def _ran_outside_of_phases() -> float:
    return time.thread_time() - events.seconds_in_phases()


def _unit(seconds: float) -> tuple[float, int, str]:
    """By what to multiply seconds, how many digits to show, and what that is called."""
    if seconds < 1e-3:
        return 1e3, 3, "ms"
    if seconds < 1.0:
        return 1e3, 1, "ms"
    return 1.0, 2, "s"


def duration(seconds: float) -> str:
    """A time with its unit.

    >>> duration(0.0124), duration(0.00012), duration(3.14159)
    ('12.4 ms', '0.120 ms', '3.14 s')
    """
    scale, digits, unit = _unit(seconds)
    return f"{seconds * scale:.{digits}f} {unit}"


def size(count: int) -> str:
    """A number of bytes.

    >>> size(12), size(4096), size(3_500_000)
    ('12 B', '4.1 kB', '3.5 MB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


class Observer(Protocol):
    """Whoever asks a clock for its readings; called by a cell's thread, or the watcher's."""

    def __call__(self, reading: Reading, /) -> None:
        """A reading was begun, ended, or got the time for which the device went on."""


class Clock:
    """The clock of one notebook. It listens to the core only while somebody wants readings."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell, self.names = shell, user_names(shell)
        self.state = "off"
        self.last: Reading | None = None
        self.readings: Running[Reading] = Running()
        # Of cells that are over.
        self.ended: deque[Reading] = deque(maxlen=_MOST_READINGS)
        self.total = 0
        self.watcher = Watcher()
        self._observers: tuple[Observer, ...] = ()
        self._stop: Callable[[], None] | None = None

    def set(self, state: str) -> None:
        """Show readings under cells (`on`), under `all` cells, or under none (`off`)."""
        self.state = state
        self._listen()

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Tell somebody of all readings, shown or not; returns what ends that."""
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
            if self._observers:
                self._tell(reading)

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
        """Arrays of this cell that are not there yet; those of earlier cells are being watched."""
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

    def _show(self, reading: Reading, unready: list[Any], now: float) -> None:
        # A terminal cannot take back what it has printed.
        can_update = hasattr(self.shell, "kernel")
        display_id = f"perspex-clock-{uuid.uuid4().hex}" if unready and can_update else None
        reading.show(display_id)
        if unready:
            publisher, context = self.shell.display_pub, contextvars.copy_context()

            def update() -> bool:
                # A later cell may be collecting outputs for itself; ours is none of them.
                if self.shell.display_pub is not publisher:
                    return False
                context.run(reading.show, display_id, True)
                return True

            told = self._then(reading, update if display_id else None)
            self.watcher.add(Pending(reading, unready, now, told))


@magics_class
class ClockMagics(Magics):
    """`%clock` in one notebook."""

    def __init__(self, shell: InteractiveShell, clock: Clock) -> None:
        super().__init__(shell)
        self.of_notebook = clock

    @line_magic
    def clock(self, line: str) -> None:
        """Show under a cell where its time went: `%clock on`, `off`, `all`, `last`.

        `%clock --help` says more.
        """
        options = parser.parse(line)
        if options.help:
            print(parser.format_help())
        elif options.what == "last":
            last = self.of_notebook.last
            print(last.text() if last else "No cell has been timed yet; `%clock on` begins.")
        elif options.what is None:
            print(f"The clock is {_SAID[self.of_notebook.state]}.")
        else:
            self.of_notebook.set(options.what)


_SAID = {
    "on": "on, for cells that trace, compile, wait for the device or leave it work",
    "all": "on, for all cells",
    "off": "off; `%clock on` turns it on",
}


def first_state(shell: InteractiveShell) -> str:
    """`on` in the Perspex kernel, `off` elsewhere, unless the environment says so."""
    asked = os.environ.get("PERSPEX_CLOCK", "").strip().lower()
    if asked in _STATES:
        return asked
    kernel = getattr(shell, "kernel", None)
    return "on" if getattr(kernel, "implementation", "") == "perspex" else "off"


def time_cells(shell: InteractiveShell) -> Callable[[], object]:
    """Bring the clock and `%clock` into a shell; returns a function that takes them out."""
    clock = Clock(shell)
    shell.register_magics(ClockMagics(shell, clock))
    shell.events.register("pre_run_cell", clock.begin)
    shell.events.register("post_run_cell", clock.end)
    clock.set(first_state(shell))

    def undo() -> None:
        clock.set("off")
        shell.events.unregister("pre_run_cell", clock.begin)
        shell.events.unregister("post_run_cell", clock.end)
        shell.magics_manager.magics["line"].pop("clock", None)

    return undo
