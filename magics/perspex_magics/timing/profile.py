"""`%%profile`: what each line of a cell costs on the device; `%profile on` measures every cell.

How it is measured, and what that means, is told by `perspex.runtime.profile`.
"""

from __future__ import annotations

import argparse
import linecache
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)

from perspex.base import source
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.runtime.profile import BusyError, LineTime, Place, Profile, ProgramTime, Session
from perspex_magics.display import notices
from perspex_magics.display.markup import LINE, MONO, MUTED, escape, tag
from perspex_magics.notebook.cell import read_cell
from perspex_magics.notebook.options import MagicParser
from perspex_magics.notebook.running import Running
from perspex_magics.timing.measuring import duration
from perspex_magics.timing.roofline import Peak, Position, Work, peak, work

_ROWS = 40
# What takes less of the device's time is not a row of its own.
_LEAST_PART = 0.005
_BAR = 16  # characters
_CODE = 72  # characters of a line of code

cell_parser = MagicParser(
    "profile",
    """Run a cell, and show what each of its lines took on the device.

Programs run one after another, each alone, so the cell takes longer than without.""",
    """A kernel that does the work of several lines has its time shared out to them by a guess
of their work; such times are marked with ~. --roofline measures what this machine can
do at best, in about a second, and says how near to it each program comes.

    %%profile
    for _ in range(10):
        params = update(params, batch)""",
    usage="%%profile [--all] [--roofline] [--help]",
)
cell_parser.add_argument("--all", action="store_true", help="list all lines")
cell_parser.add_argument(
    "--roofline", action="store_true", help="compare programs with what this machine can do"
)


class _LineParser(MagicParser):
    sign = "%"


line_parser = _LineParser(
    "profile",
    """Measure what each line takes on the device, in every cell from now on, or no more.

`%%profile` on top of a cell does it for that cell, and shows a table.""",
    """The panel draws the times beside the lines. Without an argument it says whether they
are measured.""",
    usage="%profile [on | off] [--help]",
)
line_parser.add_argument("what", nargs="?", choices=["on", "off"], help="see above")


class Line(NamedTuple):
    """A line of the user's code, and its seconds of device time.

    `shared` is the part of them that was shared out by a guess; `runs` how many runs of programs
    had work of that line.
    """

    file: str
    line: int
    seconds: float
    shared: float
    runs: int


class Total(NamedTuple):
    """How often a program has run while it was measured, for how many seconds, and what it does.

    `work` is for one run, and `None` where nobody can say.
    """

    runs: int
    seconds: float
    work: Work | None

    @property
    def position(self) -> Position | None:
        """Where the program is in the roofline."""
        return None if self.work is None else self.work.taking(self.seconds / self.runs)


@magics_class
class ProfileMagics(Magics):
    """`%%profile` and `%profile` in one notebook, and what was measured last."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.is_on = False
        self._cells: Running[Session] = Running()
        self._shown: argparse.Namespace | None = None
        # Of each line what was measured last.
        self._lines: dict[tuple[str, int], Line] = {}
        self._totals: WeakKeyDictionary[ClosedJaxpr, Total] = WeakKeyDictionary()
        self._observers: tuple[Callable[[], None], ...] = ()

    # ---- for the panel --------------------------------------------------------------------------

    def lines(self) -> list[Line]:
        """Of each line what the last measurement found in which it had work."""
        return list(self._lines.values())

    def total(self, closed: ClosedJaxpr | None) -> Total | None:
        """What a program took in all that was measured; `None` if it never ran meanwhile."""
        return None if closed is None else self._totals.get(closed)

    def switch(self, on: bool) -> None:
        """Measure all cells from the next one on, or no more."""
        self.is_on = on

    def follow(self, observer: Callable[[], None]) -> Callable[[], None]:
        """Tell somebody when there is something new in `lines`; returns what ends that."""
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

    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def profile(self, line: str, cell: str | None = None) -> Any:
        """Show what each line of a cell took on the device; `%%profile --help` tells more."""
        if cell is None:
            self._set(line_parser.parse(line))
            return None
        options = cell_parser.parse(line)
        if options.help:
            print(cell_parser.format_help())
            return None
        read = read_cell(self.shell, "profile", line, cell)
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

    def _set(self, options: argparse.Namespace) -> None:
        if options.help:
            print(line_parser.format_help())
            return
        if options.what is not None:
            self.switch(options.what == "on")
        state = "measured in every cell" if self.is_on else "not measured; `%profile on` does it"
        print(f"Device times by line are {state}.")

    def _tell(self, found: Profile, options: argparse.Namespace) -> None:
        self._keep(found)
        top = peak() if options.roofline and found.programs else None
        shown = Table(found, options.all, top)
        notices.show("profile", shown.data(), shown.text(), shown.html())

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
        """Measure no more, from the middle of this cell on."""
        self.switch(False)
        session = self._cells.here()
        self._cells.clear()
        if session is not None:
            session.stop()


class Table:
    """What a profile says: one row for each line of code, and one for each program."""

    def __init__(self, found: Profile, everything: bool, top: Peak | None) -> None:
        self.found = found
        self.top = top
        places = sorted(found.lines)
        if not everything:
            least = _LEAST_PART * found.device
            longest = sorted(places, key=lambda p: -found.lines[p].seconds)[:_ROWS]
            places = sorted(p for p in longest if found.lines[p].seconds >= least)
        self.rows = [(place, found.lines[place]) for place in places]
        self.left = [spent for place, spent in found.lines.items() if place not in set(places)]
        self.programs = sorted(found.programs, key=lambda one: -one.seconds)[:_ROWS]
        self.positions = [_position(one) if top is not None else None for one in self.programs]

    def headline(self) -> str:
        found = self.found
        if not found.programs:
            return "Nothing ran on the device."
        return (
            f"device time by line: {duration(found.device)} "
            f"of the {duration(found.wall)} that the cell took"
        )

    def part(self, seconds: float) -> float:
        """Of all device time."""
        return seconds / self.found.device if self.found.device else 0.0

    def cells(self) -> list[tuple[str, str, str, str]]:
        """Where, milliseconds, percent, and the code."""
        return [
            (
                source.line_name(*place),
                ("~" if spent.shared else "") + _milliseconds(spent.seconds),
                f"{100 * self.part(spent.seconds):.0f}",
                _code(place),
            )
            for place, spent in self.rows
        ]

    def remarks(self) -> list[str]:
        """What has to be known of the figures."""
        found = self.found
        said = []
        if self.left:
            more, them = ("line", "it") if len(self.left) == 1 else ("lines", "them")
            seconds = duration(sum(spent.seconds for spent in self.left))
            said.append(f"{len(self.left)} more {more}: {seconds}; `%%profile --all` lists {them}.")
        if any(spent.shared for _, spent in self.rows):
            said.append(
                "~ one kernel did the work of several lines: "
                "its time is shared out by a guess of their work."
            )
        if found.unplaced > _LEAST_PART * found.device:
            said.append(f"{duration(found.unplaced)} belong to no line.")
        if found.missed:
            calls = "1 call was" if found.missed == 1 else f"{found.missed} calls were"
            said.append(f"{calls} too many to be measured.")
        return said

    def told(self) -> list[str]:
        """The programs, each in a sentence."""
        said = []
        for one, where in zip(self.programs, self.positions, strict=True):
            times = f"{one.runs} runs" if one.runs > 1 else "1 run"
            text = f"`{one.executable.name}`: {duration(one.seconds)} in {times}"
            if where is not None and self.top is not None:
                text += (
                    f"; {_rate(where.achieved)}FLOP/s at {where.intensity:.3g} FLOPs per byte, "
                    f"{100 * where.part(self.top):.0f} % of what {where.bound(self.top)} allows"
                )
            said.append(text)
        if self.top is not None:
            said.append(
                f"This machine, measured in float32: {_rate(self.top.flops)}FLOP/s, "
                f"{_rate(self.top.bytes)}B/s."
            )
        return said

    def text(self) -> str:
        """For a terminal."""
        cells = self.cells()
        if not cells:
            return self.headline()
        wide = [max(len(row[i]) for row in cells) for i in range(3)]
        rows = [
            f"  {where:<{wide[0]}}  {ms:>{wide[1]}}  {percent:>{wide[2]}} %  {bar:<{_BAR}}  {code}"
            for (where, ms, percent, code), bar in zip(cells, self._bars(), strict=True)
        ]
        return "\n".join([f"{self.headline()}.", *rows, *self.remarks(), *self.told()])

    def _bars(self) -> list[str]:
        most = max((spent.seconds for _, spent in self.rows), default=0.0)
        return ["█" * round(_BAR * spent.seconds / (most or 1.0)) for _, spent in self.rows]

    def html(self) -> str:
        """For a notebook: a table, without scripts."""
        cell = f"padding:1px 10px 1px 0;border-bottom:1px solid {LINE};vertical-align:baseline"
        right = f"{cell};text-align:right"
        rows = []
        most = max((spent.seconds for _, spent in self.rows), default=0.0) or 1.0
        for (where, ms, percent, code), (_, spent) in zip(self.cells(), self.rows, strict=True):
            bar = _bar(spent, most)
            rows.append(
                tag(
                    "tr",
                    tag("th", escape(where), style=f"{cell};font-weight:normal", scope="row"),
                    tag("td", escape(ms), style=right),
                    tag("td", escape(percent), style=right),
                    tag("td", bar, style=f"{cell};min-width:9em"),
                    tag("td", escape(code), style=f"{cell};{MONO};text-align:left;white-space:pre"),
                )
            )
        caption = tag("caption", escape(self.headline()), style="text-align:left;caption-side:top")
        titles = ["line", "ms", "%", "", "code"]
        head = [
            tag("th", escape(title), style=f"{MUTED};{right if title in ('ms', '%') else cell}")
            for title in titles
        ]
        style = "border-collapse:collapse;margin:2px 0;font-variant-numeric:tabular-nums"
        table = tag("table", caption, tag("tr", *head), *rows, style=style)
        said = [tag("div", escape(text), style=MUTED) for text in [*self.remarks(), *self.told()]]
        return tag("div", table if rows else escape(self.headline()), *said)

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
                }
                for one, where in zip(self.programs, self.positions, strict=True)
            ],
            "peak": None
            if self.top is None
            else {"flops": self.top.flops, "bytes": self.top.bytes},
        }


def _position(one: ProgramTime) -> Position | None:
    """Where a program is in the roofline, by the mean of its runs."""
    done = work(one.executable.closed, one.executable.xla)
    return None if done is None else done.taking(one.seconds / one.runs)


def _code(place: Place) -> str:
    text = linecache.getline(place.file, place.line).strip()
    return text if len(text) <= _CODE else f"{text[: _CODE - 1]}…"


def _milliseconds(seconds: float) -> str:
    """
    >>> _milliseconds(0.01234), _milliseconds(3.67e-5)
    ('12.3', '0.037')
    """
    return f"{1e3 * seconds:.{1 if seconds >= 1e-3 else 3}f}"


def _bar(spent: LineTime, most: float) -> str:
    """A bar as wide as the time, of which the part that is a guess is paler."""
    sure = 100 * (spent.seconds - spent.shared) / most
    guess = 100 * spent.shared / most
    base = "display:inline-block;height:0.7em;background:var(--jp-brand-color1,#1976d2)"
    return tag(
        "div",
        tag("span", style=f"{base};width:{sure:.1f}%"),
        tag("span", style=f"{base};opacity:0.45;width:{guess:.1f}%"),
        style="width:9em;white-space:nowrap;line-height:1",
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


def profile_cells(shell: InteractiveShell) -> Callable[[], object]:
    """Bring `%%profile` and `%profile` into a shell; returns the undo."""
    magics = ProfileMagics(shell)
    shell.register_magics(magics)
    shell.events.register("pre_run_cell", magics.begin)
    shell.events.register("post_run_cell", magics.end)

    def undo() -> None:
        magics.close()
        shell.events.unregister("pre_run_cell", magics.begin)
        shell.events.unregister("post_run_cell", magics.end)
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(cell_parser.magic, None)

    return undo
