"""A cell that takes all memory ends with an error, and others go on."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from support.shells import Notebook

from perspex.runtime import memory
from perspex_magics.memory import guard
from perspex_magics.memory.guard import CellMemoryError, Guard
from perspex_magics.notebook.pulse import CellPulse
from perspex_magics.session import find

GIB = 1 << 30


class Machine:
    """A machine with so much memory left, and a process that holds so much."""

    def __init__(self, left: int | None, held: int = GIB) -> None:
        self.left, self.held = left, held
        # Of pages: so many that each look is worth its time.
        self.faults = itertools.count(step=1_000)
        self.looks = threading.Semaphore(0)

    def guard(self) -> Guard:
        return Guard(CellPulse(), lambda: self.left, self.look, lambda: next(self.faults))

    def look(self) -> int:
        self.looks.release()
        return self.held

    def is_looked_at(self) -> None:
        """Wait until the thread has looked twice: it has done all that follows from the first."""
        for _ in range(2):
            assert self.looks.acquire(timeout=60)


def test_a_cell_that_fills_the_memory_ends() -> None:
    machine = Machine(10 * GIB)
    watching = machine.guard()
    watching.begin(None)
    machine.is_looked_at()
    with pytest.raises(
        CellMemoryError, match=r"512 MiB of memory are left.*taken 2\.00 GiB"
    ) as found:
        machine.held, machine.left = 3 * GIB, GIB // 2
        while True:
            pass
    assert memory.is_exhausted(found.value)
    watching.end(None)


@pytest.mark.parametrize(
    ("left", "grown"),
    [(GIB // 2, GIB // 8), (2 * GIB, 20 * GIB), (None, 20 * GIB)],
    ids=["others took it", "enough is left", "nobody knows"],
)
def test_a_cell_that_does_not_goes_on(left: int | None, grown: int) -> None:
    machine = Machine(10 * GIB)
    watching = machine.guard()
    watching.begin(None)
    machine.held, machine.left = GIB + grown, left
    machine.is_looked_at()
    machine.is_looked_at()
    watching.end(None)


def test_the_next_cell_can_free_it() -> None:
    """What an earlier cell has filled does not end the one that is to free it."""
    machine = Machine(GIB // 2, 20 * GIB)
    watching = machine.guard()
    for _ in range(2):
        watching.begin(None)
        machine.is_looked_at()
        watching.end(None)


def test_nothing_is_raised_after_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cell was too short to get is taken back."""
    raised: list[type[BaseException] | None] = []
    monkeypatch.setattr(guard, "raise_in", lambda thread, error: raised.append(error))
    monkeypatch.setattr(guard, "take_back", lambda: raised.append(None))
    machine = Machine(10 * GIB)
    watching = machine.guard()
    watching.begin(None)
    machine.is_looked_at()
    machine.held, machine.left = 3 * GIB, GIB // 2
    assert watching.look()
    watching.end(None)
    assert raised[-1] is None
    assert not watching.look()


def test_cells_inside_cells() -> None:
    """A cell that runs another one is watched to its end."""
    machine = Machine(10 * GIB)
    watching = machine.guard()
    watching.begin(None)
    watching.begin(None)
    watching.end(None)
    assert watching.thread == threading.get_ident()
    watching.end(None)
    assert not watching.thread


def test_files_are_read_only_where_memory_may_have_been_taken() -> None:
    faults = [1_000]
    watching = Guard(CellPulse(), lambda: GIB, lambda: GIB, lambda: faults[0])
    looks = watching._is_worth_it
    assert looks(10.0) and not looks(10.1)
    faults[0] += 15  # of 2 MiB each at most
    assert not looks(10.2) and not looks(10.3)
    faults[0] += 1
    assert looks(10.4) and not looks(10.5) and not looks(11.3)
    assert looks(11.4) and not looks(12.3)  # a second later
    watching.faults = lambda: None
    assert looks(12.31) and looks(12.32)


def test_a_cell_that_took_nothing_starts_from_the_last_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([5 * GIB, 2 * GIB])
    watching = Guard(CellPulse(), lambda: GIB // 2, lambda: next(readings), lambda: 1_000)
    monkeypatch.setattr(guard.time, "perf_counter", lambda: 10.0)
    for _ in range(2):  # the second cell reads nothing
        watching.thread, watching.start = threading.get_ident(), None
        watching._look()
        assert watching.start == 5 * GIB
    # What was freed between the cells does not hide what this one takes.
    assert not watching.look()
    assert watching.start == 2 * GIB
    watching.thread = 0


def test_this_process() -> None:
    held = guard.resident()
    assert held is None or held > 1 << 20
    before = guard.faults()
    if before is not None:
        pages = np.ones(1 << 23)  # too many for memory that is free already
        assert guard.faults() >= before + pages.nbytes // (2 << 20)


def test_unloaded_in_a_cell_it_watches_no_more(notebook: Notebook) -> None:
    """`%unload_ext` ends with the cell, whose end nobody tells then."""
    notebook.ok("x = 1")
    watching = find(notebook.shell, Guard)
    assert watching is not None
    notebook.ok("%unload_ext perspex_magics")
    assert not watching.thread
