"""Work that continues after an interrupt: a line under the cell, with the CPU time it takes.

An interrupt returns the notebook at once, and ends loops (`compiling.stopped`). Nothing else can
stop XLA while it compiles or computes: the work continues and slows down later cells. A line under
the interrupted cell says so and is kept up to date; cells that run meanwhile get one as well. An
interrupt does stop a compilation in a separate process, which is why notebooks compile large
programs there.
"""

from __future__ import annotations

import contextvars
import threading
import time
import uuid
from collections.abc import Collection
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex import config
from perspex.api.waiting import live_arrays
from perspex.runtime import interruptible, threads
from perspex_magics.compiling.stopped import INTERRUPTED, Stopping, names_of
from perspex_magics.display import notices
from perspex_magics.display.markup import listed
from perspex_magics.display.table import Report
from perspex_magics.display.units import duration
from perspex_magics.notebook.pulse import Pulse
from perspex_magics.restart.magic import Restart
from perspex_magics.session import Session, find, part
from perspex_magics.timing.unfinished import is_there

# Seconds between two looks, between two updates of a line, and after which a program is worth one
# that an interrupt may stop after all.
_LOOK, _UPDATE, _GRACE = 0.1, 1.0, 1.0


class Compiling:
    """The compilation of a function, or a program that ends at its next callback."""

    is_queue = False

    def __init__(self, left: interruptible.Left) -> None:
        self.left = left
        self.is_certain = left.kind == "compile"
        self.doing = f"compiling `{left.name}`" if self.is_certain else "running a program"
        self.threads = [left.thread]

    def is_over(self) -> bool:
        return self.left.ended is not None


class Computing:
    """The computation of arrays that are not there yet."""

    is_certain = True
    threads: tuple[threading.Thread, ...] = ()

    def __init__(self, arrays: list[Any], names: list[str], is_queue: bool = False) -> None:
        self.arrays = arrays
        # Short programs, one after another, which are left to end by themselves.
        self.is_queue = is_queue
        self.doing = f"computing {listed(names) or 'unnamed arrays'}"

    def is_over(self) -> bool:
        self.arrays = [x for x in self.arrays if not is_there(x)]
        return not self.arrays


Work = Compiling | Computing


class Meter:
    """The CPU time of threads that Python has not started, XLA's first of all, and of some others.

    Only Linux tells what threads have used; elsewhere `read` returns `None`.
    """

    def __init__(self, also: Collection[threading.Thread]) -> None:
        self.also = also
        self.last = self._threads()
        self.seconds = 0.0

    def read(self) -> float | None:
        """Seconds since the beginning."""
        now = self._threads()
        for thread, used in now.items():
            self.seconds += max(0.0, used - self.last.get(thread, 0.0))
        self.last = now
        return self.seconds if now else None

    def _threads(self) -> dict[int, float]:
        return {thread: threads.used(thread) for thread in threads.native(self.also)}


class Line:
    """The line under one cell; `of` names the interrupted cell where that is another one."""

    def __init__(self, shell: InteractiveShell, of: str = "") -> None:
        self.of = of
        self.id = f"perspex-behind-{uuid.uuid4().hex}"
        self.context = contextvars.copy_context()
        self.shell, self.publisher = shell, shell.display_pub
        self.is_shown = False

    def show(self, data: dict[str, Any], text: str) -> bool:
        """Show or replace the line; returns whether that could be done."""
        # A later cell may be capturing its outputs; this line is none of them.
        if self.shell.display_pub is not self.publisher:
            return False
        report = Report(text, style="font-size:85%")
        self.context.copy().run(
            notices.tell, "behind", data, report, display_id=self.id, update=self.is_shown
        )
        self.is_shown = True
        return True


class Left:
    """The work that one cell left behind, and the lines that report it."""

    def __init__(self, works: list[Work], cell: str, can_restart: bool) -> None:
        self.works = works
        self.cell = cell
        self.can_restart = can_restart
        self.meter = Meter([thread for work in works for thread in work.threads])
        self.since = time.perf_counter()
        self.ended: float | None = None
        self.cpu: float | None = 0.0
        self.lines: list[Line] = []
        self.updated = self.since

    @property
    def is_certain(self) -> bool:
        """Whether it will go on for longer than a moment."""
        return any(work.is_certain for work in self.works)

    def look(self) -> bool:
        """Whether all work has ended."""
        if self.ended is None:
            going = [work for work in self.works if not work.is_over()]
            self.cpu = self.meter.read()
            if going:
                self.works = going
            else:
                self.ended = time.perf_counter()
        return self.ended is not None

    def data(self) -> dict[str, Any]:
        """The report as JSON, in seconds; `cpu` is null where the system does not tell."""
        return {
            "cell": self.cell,
            "doing": [work.doing for work in self.works],
            "seconds": (self.ended or time.perf_counter()) - self.since,
            "cpu": self.cpu,
            "ended": self.ended is not None,
        }

    def text(self, of: str = "") -> str:
        """The report as a line."""
        doing = " and ".join(dict.fromkeys([work.doing for work in self.works]))
        seconds = (self.ended or time.perf_counter()) - self.since
        after = f"{duration(seconds)} after the interrupt{of and f' of {of}'}"
        cpu = "" if self.cpu is None else f": {duration(self.cpu)} of CPU time outside Python"
        if self.ended is not None:
            return f"Finished {doing}, {after}{cpu}."
        if seconds < _UPDATE and not of:
            if all(work.is_queue for work in self.works):
                return f"XLA is still {doing}: the programs in its queue end soon."
            remedy = " `%restart` ends it and keeps the variables." if self.can_restart else ""
            return f"XLA is still {doing}: an interrupt cannot stop it.{remedy}"
        return f"Still {doing}, {after}{cpu}{cpu and ' so far'}."

    def show(self, lines: Collection[Line]) -> bool:
        """Bring the lines up to date; returns whether that could be done."""
        self.updated = time.perf_counter()
        return all([line.show(self.data(), self.text(line.of)) for line in lines])


class Behind:
    """Reports the work that continues after interrupts in one notebook."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.reports: list[Left] = []
        self.known: set[int] = set()
        self._pulse = Pulse("perspex-behind", self._look, first=_LOOK)

    def end(self, result: Any) -> None:
        """A cell has ended: report what it left behind, and what earlier cells did."""
        for report in self.reports.copy():
            if not report.look() and report.lines:
                self._add_line(report, of=report.cell)
        lefts = [left for left in interruptible.left.copy() if left.ended is None]
        works: list[Work] = [Compiling(left) for left in lefts if id(left) not in self.known]
        self.known = {id(left) for left in lefts}
        if isinstance(getattr(result, "error_in_exec", None), INTERRUPTED):
            works += self._computing()
        if works:
            restart = find(self.shell, Restart)
            can_restart = restart is not None and not restart.obstacle
            self._begin(Left(works, self._cell(result), can_restart))

    def stop(self) -> None:
        """Report nothing from now on."""
        self.reports.clear()

    def _begin(self, report: Left) -> None:
        line = Line(self.shell)
        report.lines.append(line)
        if report.is_certain:
            report.show([line])
        self.reports.append(report)
        self._pulse.wake()

    def _add_line(self, report: Left, of: str) -> None:
        line = Line(self.shell, of)
        if report.lines[0].is_shown and line.show(report.data(), report.text(of)):
            # Under the interrupted cell the line is kept, and under the newest of the others.
            report.lines[1:] = [line]

    def _computing(self) -> list[Work]:
        """The arrays that are not there yet and that no report tells of."""
        told = [work for report in self.reports for work in report.works]
        known = {id(x) for work in told if isinstance(work, Computing) for x in work.arrays}
        arrays = [x for x in live_arrays() if not is_there(x) and id(x) not in known]
        if not arrays:
            return []
        # Twins of arrays that were given up, which are what the notebook's names mean.
        outcome = part(self.shell, Stopping).outcome
        pairs = zip(outcome.twins, outcome.given_up, strict=True)
        given_up = [x for twin, x in pairs if not is_there(twin)]
        names = names_of(self.shell, [*arrays, *given_up])
        return [Computing(arrays, names, outcome.is_draining)]

    def _cell(self, result: Any) -> str:
        number = getattr(result, "execution_count", None)
        return "an earlier cell" if number is None else f"Cell In[{number}]"

    def _look(self) -> float | None:
        can_update = hasattr(self.shell, "kernel")  # a terminal cannot take back what it printed
        for report in self.reports.copy():
            if self._is_told(report, can_update) and report in self.reports:
                self.reports.remove(report)
        return _LOOK if self.reports else None

    def _is_told(self, report: Left, can_update: bool) -> bool:
        """Update a report; returns whether it is complete."""
        is_over = report.look()
        if not can_update:
            return is_over
        shown = [line for line in report.lines if line.is_shown]
        if is_over:
            return report.show(shown)
        now = time.perf_counter()
        if not shown and now - report.since > _GRACE:
            shown = report.lines
        if shown and now - report.updated > _UPDATE:
            report.show(shown)
        return False


def compile_apart(session: Session) -> None:
    """Compile large programs where an interrupt can stop it, unless the user has decided."""
    flag = config.compiler_process
    if flag.value is None:
        flag.set(True)
        session.on_unload(lambda: flag.set(None))


def tell_what_goes_on(session: Session) -> None:
    """Report the work that interrupts leave behind."""
    behind = session.keep(Behind(session.shell))
    session.on_unload(behind.stop)
    session.on_cell(end=behind.end)
