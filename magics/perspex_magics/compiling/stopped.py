"""Interrupts that stop programs: what is done when one ends a cell, and the notice that says so.

Notebooks compile programs with long loops so that these can be ended (`perspex.runtime.stopping`).
An interrupt that ends a cell ends its loops as well. The arrays that were not computed have no
value then, and `_stopped` has what the loop had: the result of the program, made of the values
after the last turn that was finished.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex import config
from perspex.base import imports
from perspex.runtime import stopping, watching
from perspex.runtime.resumable import Moment, Run
from perspex_magics.display import notices
from perspex_magics.display.markup import listed
from perspex_magics.display.table import Report
from perspex_magics.display.units import count
from perspex_magics.session import Session
from perspex_magics.timing.unfinished import arrays_in

# How a cell ends that has been interrupted.
INTERRUPTED = (KeyboardInterrupt, CancelledError)
# The name in the notebook for what a stopped loop had computed.
NAME = "_stopped"
# Seconds that programs have to end by themselves, if the interrupt came some time ago.
_LEAST_GRACE = 0.02


def names_of(shell: InteractiveShell, arrays: list[Any]) -> list[str]:
    """The variables of the notebook that hold one of these arrays."""
    wanted = {id(x) for x in arrays}
    return [
        name
        for name, value in list(shell.user_ns.items())
        if name[0] != "_"
        and name not in ("In", "Out")
        and any(id(x) in wanted for x in arrays_in([value]))
    ]


class Stopping:
    """Stops the programs of interrupted cells of one notebook."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        # What the last interrupt has done.
        self.outcome = stopping.Outcome()
        # When an interrupt arrived, by `time.monotonic`, and what it did before Python saw it.
        self.pressed = 0.0
        self.early: stopping.Outcome | None = None

    def press(self) -> None:
        """An interrupt has arrived."""
        self.pressed = time.monotonic()

    def settle(self) -> None:
        """Python has seen an interrupt: what was halted meanwhile has no value."""
        self.early = stopping.settle(self._cell(self.shell.execution_count)) or self.early

    def _cell(self, number: int | None) -> str:
        return "an earlier cell" if number is None else f"Cell In[{number}]"

    def end(self, result: Any) -> None:
        """A cell has ended: if that was by an interrupt, end its programs."""
        try:
            self._end(result)
        finally:
            stopping.release()

    def _end(self, result: Any) -> None:
        stopping.drop()
        self.settle()
        found, self.early = self.early, None
        self.outcome = found or stopping.Outcome()
        runs, watching.stopped[:] = watching.stopped[:], []
        if not isinstance(getattr(result, "error_in_exec", None), INTERRUPTED):
            return
        imports.free_lock()
        if found is None:
            since = time.monotonic() - self.pressed
            grace = max(_LEAST_GRACE, stopping.GRACE - since) if self.pressed else stopping.GRACE
            found = stopping.stop(grace, self._cell(getattr(result, "execution_count", None)))
            self.outcome = found
        if found.is_stopped or runs:
            self._tell(found, runs)

    def _tell(self, found: stopping.Outcome, runs: list[Run]) -> None:
        """Say what was stopped; `runs` are calls that `watch_loops` has made in turns."""
        values = {run.cut.name: run.result() for run in runs}
        for program in found.programs:
            values.setdefault(program.name, program.value)
        programs = list(values)
        lost = names_of(self.shell, list(found.given_up))
        text = f"Stopped {listed(programs) or 'the loops that were running'}."
        if lost:
            text += f" {listed(lost)} {'has' if len(lost) == 1 else 'have'} no value."
        if programs:
            self.shell.user_ns[NAME] = values[programs[0]]
            text += f" `{NAME}` is what `{programs[0]}` had computed by then."
        if programs and not runs and found.programs[0].is_mixed:
            text += (
                f" `{programs[0]}` has several loops, and more than one may have been cut short. "
                "In `perspex.watch_loops()` a call ends between two turns."
            )
        if runs:
            moment = Moment(runs[0])
            of = "" if moment.turns is None else f" of {count(moment.turns)}"
            text += f" It is at turn {count(moment.turn)}{of}; `resume()` of `watch_loops` goes on."
        data = {"programs": programs, "lost": lost, "name": NAME if programs else ""}
        notices.tell("stopped", data, Report(text, style="font-size:85%"))


def stop_loops(session: Session) -> None:
    """Have interrupts end loops, unless the user has decided."""
    flag = config.stoppable_loops
    if flag.value is None:
        flag.set(True)
        session.on_unload(lambda: flag.set(None))
    stopping.enable()
    session.on_cell(end=session.keep(Stopping(session.shell)).end)
