"""`%%profile`: the device time of each line of a cell; `%profile on` measures every cell.

`perspex.runtime.profile` explains how it is measured.
"""

from __future__ import annotations

import argparse
import linecache
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError

from perspex.base import source
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.runtime.profile import BusyError, LineTime, Place, Profile, ProgramTime, Session
from perspex_magics.display import notices
from perspex_magics.display.markup import MONO, tag
from perspex_magics.display.table import Cell, Column, Report, Sentence, Table
from perspex_magics.display.units import count, duration, many, size
from perspex_magics.notebook.cell import read_cell
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import MagicParser, WordParser
from perspex_magics.notebook.running import Running
from perspex_magics.session import Session as NotebookSession
from perspex_magics.timing.roofline import Peak, Position, Work, peak, work

_ROWS = 40
# What takes less of the device's time is not a row of its own.
_LEAST_PART = 0.005
_BAR = 16  # characters
_CODE = 72  # characters of a line of code

cell_parser = MagicParser(
    "profile",
    """Run a cell and show the device time of each of its lines.

Programs run one at a time, so the cell takes longer than usual.""",
    """The time of a kernel that does the work of several lines is divided among them by an
estimate of their work; such times are marked with ~. --roofline measures this machine's
peak in about a second and shows how close each program comes to it.

    %%profile
    for _ in range(10):
        params = update(params, batch)""",
    usage="%%profile [--all] [--roofline] [--help]",
)
cell_parser.add_argument("--all", action="store_true", help="list all lines")
cell_parser.add_argument(
    "--roofline", action="store_true", help="compare programs with this machine's peak"
)


line_parser = WordParser(
    "profile",
    """Turn the measurement of device time by line on or off, from the next cell on.

`%%profile` on top of a cell measures that cell and shows a table.""",
    """The panel draws the times beside the lines. Without an argument, print the setting.""",
    usage="%profile [on | off] [--help]",
)
line_parser.add_argument("what", nargs="?", choices=["on", "off"], help="see above")


class Line(NamedTuple):
    """A line of the user's code, and its seconds of device time.

    `shared` is the estimated part of them; `runs` counts the runs of programs with work of that
    line.
    """

    file: str
    line: int
    seconds: float
    shared: float
    runs: int


class Total(NamedTuple):
    """How often a program has run while it was measured, for how many seconds, and what it does.

    `work` is for one run, and `None` where it is unknown.
    """

    runs: int
    seconds: float
    work: Work | None

    @property
    def position(self) -> Position | None:
        """Where the program is in the roofline."""
        return None if self.work is None else self.work.taking(self.seconds / self.runs)


class ProfileMagics(Magic):
    """Show the device time of each line of a cell; `%%profile --help` lists the options."""

    line_parser = line_parser
    cell_parser = cell_parser
    is_silenced = True

    def __init__(self, session: NotebookSession) -> None:
        super().__init__(session)
        self.is_on = False
        self._cells: Running[Session] = Running()
        self._shown: argparse.Namespace | None = None
        # Of each line what was measured last.
        self._lines: dict[tuple[str, int], Line] = {}
        self._totals: WeakKeyDictionary[ClosedJaxpr, Total] = WeakKeyDictionary()
        self._observers: tuple[Callable[[], None], ...] = ()

    # ---- for the panel --------------------------------------------------------------------------

    def lines(self) -> list[Line]:
        """Each line's time in the last measurement in which it did work."""
        return list(self._lines.values())

    def total(self, closed: ClosedJaxpr | None) -> Total | None:
        """What a program took in all that was measured; `None` if it never ran meanwhile."""
        return None if closed is None else self._totals.get(closed)

    def switch(self, on: bool) -> None:
        """Turn the measurement of all cells on or off, from the next one on."""
        self.is_on = on

    def follow(self, observer: Callable[[], None]) -> Callable[[], None]:
        """Call `observer` when `lines` has changed; returns the function that ends that."""
        self._observers = (*self._observers, observer)

        def stop() -> None:
            self._observers = tuple([one for one in self._observers if one is not observer])

        return stop

    def _keep(self, found: Profile) -> None:
        for place, spent in found.lines.items():
            line = Line(place.file, place.line, spent.seconds, spent.shared, spent.runs)
            self._lines[place.file, place.line] = line
        for one in found.programs:
            closed = one.executable.closed
            known = self._totals.get(closed) or Total(0, 0.0, work(closed, one.executable.xla))
            self._totals[closed] = Total(
                known.runs + one.runs, known.seconds + one.seconds, known.work
            )
        for observer in self._observers:
            observer()

    # ---- the magics -----------------------------------------------------------------------------

    def on_cell(self, options: argparse.Namespace, line: str, body: str) -> Any:
        read = read_cell(self.shell, "profile", line, body)
        statements, expression = read.compile(self.shell)
        namespace, globals_ = self.shell.user_ns, self.shell.user_global_ns

        def run() -> Any:
            exec(statements, globals_, namespace)
            return None if expression is None else eval(expression, globals_, namespace)

        if self._cells.here() is not None:
            self._shown = options  # measured already; shown when the cell ends
            return run()
        try:
            with Session() as session:
                result = run()
        except BusyError as error:
            raise UsageError(f"%%profile: {error}") from None
        self._tell(session.profile(), options)
        return result

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        if options.what is not None:
            self.switch(options.what == "on")
        state = (
            "measured in every cell" if self.is_on else "not measured; `%profile on` turns this on"
        )
        print(f"Device times by line are {state}.")

    def _tell(self, found: Profile, options: argparse.Namespace) -> None:
        self._keep(found)
        shown = Profiled(found, options.all, options.roofline)
        notices.tell("profile", shown.data(), shown.report())

    # ---- every cell -----------------------------------------------------------------------------

    def begin(self, info: Any) -> None:
        """A cell begins."""
        if self.is_on and self._cells.begins():
            session = Session()
            try:
                session.start()
            except BusyError:
                return  # a cell in another thread is being measured
            self._cells.begin(info, session)

    def end(self, result: Any) -> None:
        """A cell ends."""
        session = self._cells.end(result)
        if session is None:
            return
        session.stop()
        found, options = session.profile(), self._shown
        self._shown = None
        if options is not None:
            self._tell(found, options)
        elif found.programs:
            self._keep(found)

    def close(self) -> None:
        """Stop measuring at once, even within a cell."""
        self.switch(False)
        session = self._cells.here()
        self._cells.clear()
        if session is not None:
            session.stop()


class Profiled:
    """What a profile says: one row for each line of code, and one for each program."""

    def __init__(self, found: Profile, everything: bool, with_peaks: bool) -> None:
        self.found = found
        places = sorted(found.lines)
        if not everything:
            least = _LEAST_PART * found.device
            longest = sorted(places, key=lambda p: -found.lines[p].seconds)[:_ROWS]
            places = sorted(p for p in longest if found.lines[p].seconds >= least)
        self.rows = [(place, found.lines[place]) for place in places]
        self.left = [spent for place, spent in found.lines.items() if place not in set(places)]
        self.programs = sorted(found.programs, key=lambda one: -one.seconds)[:_ROWS]
        self.positions = [_position(one) if with_peaks else None for one in self.programs]
        # Of the dtypes in which the programs compute.
        used = [where.dtype for where in self.positions if where is not None]
        if with_peaks and self.programs:
            used.append("float32")
        self.peaks: dict[str, Peak] = {dtype: peak(dtype) for dtype in dict.fromkeys(used)}

    def headline(self) -> str:
        found = self.found
        if not found.programs:
            return "Nothing ran on the device."
        return f"Device time by line: {duration(found.device)} of the cell's {duration(found.wall)}"

    def part(self, seconds: float) -> float:
        """Of all device time."""
        return seconds / self.found.device if self.found.device else 0.0

    def table(self) -> Table:
        """Where, the time, its part of all, and the code."""
        most = max((spent.seconds for _, spent in self.rows), default=0.0) or 1.0
        rows = [
            (
                source.line_name(*place),
                ("~" if spent.shared else "") + duration(spent.seconds),
                f"{100 * self.part(spent.seconds):.0f} %",
                _bar(spent, most),
                _code(place),
            )
            for place, spent in self.rows
        ]
        return Table(_COLUMNS, rows, label=self.headline(), indent="  ", style=_DIGITS)

    def remarks(self) -> list[str]:
        """What a reader must know about the figures."""
        found = self.found
        said = []
        if self.left:
            them = "it" if len(self.left) == 1 else "them"
            seconds = duration(sum(spent.seconds for spent in self.left))
            lines = many(len(self.left), "more line")
            said.append(f"{lines}: {seconds}; `%%profile --all` lists {them}.")
        if any(spent.shared for _, spent in self.rows):
            said.append("~ estimated, because one kernel did the work of several lines.")
        if found.unplaced > _LEAST_PART * found.device:
            said.append(f"{duration(found.unplaced)} could not be attributed to a line.")
        if found.missed:
            calls = "1 call was" if found.missed == 1 else f"{count(found.missed)} calls were"
            said.append(f"{calls} not measured: the limit was reached.")
        return said

    def told(self) -> list[str]:
        """The programs, each in a sentence."""
        said = []
        for one, where in zip(self.programs, self.positions, strict=True):
            text = f"`{one.executable.name}`: {duration(one.seconds)} in {many(one.runs, 'run')}"
            if where is not None:
                top = self.peaks[where.dtype]
                text += (
                    f"; {_rate(where.achieved)}FLOP/s in {where.dtype} at {where.intensity:.3g} "
                    "FLOPs per byte, "
                    f"{100 * where.part(top):.0f} % of what {where.bound(top)} allows"
                )
            said.append(text)
        if self.peaks:
            rates = [f"{_rate(top.flops)}FLOP/s in {name}" for name, top in self.peaks.items()]
            moved = size(self.peaks["float32"].bytes)
            said.append(f"This machine, as measured: {', '.join(rates)}, {moved}/s.")
        return said

    def report(self) -> Report:
        """All of it."""
        table = self.table()
        if not table.rows:
            return Report(Sentence(self.headline()))
        return Report(Sentence(f"{self.headline()}."), table, *self.remarks(), *self.told())

    def data(self) -> dict[str, Any]:
        """As JSON, in seconds."""
        found = self.found
        return {
            "device": found.device,
            "wall": found.wall,
            "unplaced": found.unplaced,
            "lines": [
                {
                    "at": source.line_name(*place),
                    "line": place.line,
                    "seconds": spent.seconds,
                    "shared": spent.shared,
                    "runs": spent.runs,
                }
                for place, spent in self.rows
            ],
            "programs": [
                {
                    "name": one.executable.name,
                    "runs": one.runs,
                    "seconds": one.seconds,
                    "flops": None if where is None else where.flops,
                    "bytes": None if where is None else where.bytes,
                    "dtype": None if where is None else where.dtype,
                }
                for one, where in zip(self.programs, self.positions, strict=True)
            ],
            "peaks": {
                dtype: {"flops": top.flops, "bytes": top.bytes} for dtype, top in self.peaks.items()
            },
        }


def _position(one: ProgramTime) -> Position | None:
    """Where a program is in the roofline, by the mean of its runs."""
    done = work(one.executable.closed, one.executable.xla)
    return None if done is None else done.taking(one.seconds / one.runs)


def _code(place: Place) -> str:
    text = linecache.getline(place.file, place.line).strip()
    return text if len(text) <= _CODE else f"{text[: _CODE - 1]}…"


def _bar(spent: LineTime, most: float) -> Cell:
    """A bar as wide as the time; the estimated part is paler."""
    sure = 100 * (spent.seconds - spent.shared) / most
    guess = 100 * spent.shared / most
    base = "display:inline-block;height:0.7em;background:var(--jp-brand-color1,#1976d2)"
    drawn = tag(
        "div",
        tag("span", style=f"{base};width:{sure:.1f}%"),
        tag("span", style=f"{base};opacity:0.45;width:{guess:.1f}%"),
        style="width:9em;white-space:nowrap;line-height:1",
    )
    return Cell("█" * round(_BAR * spent.seconds / most), drawn)


_DIGITS = "font-variant-numeric:tabular-nums"
_COLUMNS = (
    Column("at", "line"),
    Column("time", "time", is_number=True),
    Column("part", "part", is_number=True),
    Column("bar", write=lambda bar: bar),
    Column("code", "code", style=f"{MONO};white-space:pre"),
)


def _rate(number: float) -> str:
    """
    >>> _rate(1.135e11), _rate(47.7e9), _rate(950.0)
    ('114 G', '47.7 G', '950 ')
    """
    for unit in ("", "k", "M", "G", "T"):
        if number < 999.5 or unit == "T":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def profile_cells(session: NotebookSession) -> None:
    """Bring `%%profile` and `%profile` into a notebook."""
    magics = ProfileMagics(session)
    magics.register()
    session.on_cell(magics.begin, magics.end)
    session.on_unload(magics.close)
