"""The thread that looks while cells run: when it does, and that it sleeps and ends."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook
from support.undisturbed import undisturbed

from perspex_magics.notebook.pulse import CellPulse, Pulse
from perspex_magics.session import find


class Seen:
    """Something to look at, which counts the looks."""

    def __init__(self, period: float = 1e-3) -> None:
        self.is_there, self.period = False, period
        self.looks = threading.Semaphore(0)

    def look(self) -> float | None:
        self.looks.release()
        return self.period if self.is_there else None

    def is_looked_at(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.looks.acquire(timeout=60)


def asleep(pulse: Pulse) -> None:
    """Wait until it sleeps."""
    assert pulse.thread is not None
    while not pulse.is_asleep:
        pulse.thread.join(0.001)


def test_it_looks_as_long_as_one_look_sees_something() -> None:
    one, other = Seen(), Seen()
    pulse = Pulse("test", one.look)
    pulse.add(other.look)
    for seen in (one, other):
        seen.is_there = True
        pulse.wake()
        one.is_looked_at(20)
        other.is_looked_at(20)
        assert not pulse.is_asleep
        seen.is_there = False
        asleep(pulse)
    pulse.close()


def test_the_look_that_is_due_first_counts() -> None:
    seldom, often = Seen(period=3_600.0), Seen()
    seldom.is_there = often.is_there = True
    pulse = Pulse("test", seldom.look, often.look)
    pulse.wake()
    often.is_looked_at(20)
    pulse.close()


def test_woken_again_and_again_it_misses_nothing() -> None:
    """Also when it is just falling asleep: what was there when it was woken has been looked at."""
    seen = Seen(period=0.0)
    pulse = Pulse("test", seen.look)
    for i in range(2_000):
        seen.is_there = True
        pulse.wake()
        while seen.looks.acquire(blocking=False):
            pass
        seen.is_looked_at()
        seen.is_there = False
        if i % 3:
            asleep(pulse)
    pulse.close()


def test_a_look_that_fails_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: told.append(raised.exc_value))

    def fail() -> float | None:
        raise ValueError("of a look")

    seen = Seen()
    seen.is_there = True
    pulse = Pulse("test", fail, seen.look)
    pulse.wake()
    seen.is_looked_at(3)
    pulse.close()
    assert pulse.thread is not None
    pulse.thread.join(60)  # before it is heard by others
    assert str(told[0]) == "of a look"


def test_the_first_look_waits() -> None:
    seen = Seen()
    pulse = Pulse("test", seen.look, first=0.2)
    begun = time.perf_counter()
    pulse.wake()
    seen.is_looked_at()
    assert time.perf_counter() - begun >= 0.2
    pulse.close()


@undisturbed
def test_cheap_to_wake() -> None:
    pulse, costs = CellPulse(), []
    for _ in range(200):
        start = time.perf_counter()
        pulse.wake()
        costs.append(time.perf_counter() - start)
    assert sorted(costs)[100] < 1e-4
    pulse.close()


@pytest.mark.parametrize("is_asleep", [False, True])
def test_its_thread_ends_when_it_is_closed(is_asleep: bool) -> None:
    seen = Seen()
    seen.is_there = not is_asleep
    pulse = Pulse("test", seen.look)
    pulse.wake()
    seen.is_looked_at()
    if is_asleep:
        asleep(pulse)
    assert pulse.thread is not None and pulse.thread.is_alive()
    pulse.close()
    pulse.thread.join(60)
    assert not pulse.thread.is_alive()


def test_one_pulse_sleeps_between_cells_and_ends_with_the_extension(
    shell: InteractiveShell,
) -> None:
    def beating() -> set[threading.Thread]:
        return {t for t in threading.enumerate() if t.name == "perspex-cells"}

    notebook, before = Notebook(shell), beating()
    notebook.ok("%load_ext perspex_magics")
    notebook.ok("x = 1")
    (thread,) = beating() - before
    pulse = find(shell, CellPulse)
    assert pulse is not None and pulse.thread is thread
    asleep(pulse)
    notebook.ok("%unload_ext perspex_magics")
    thread.join(60)
    assert not thread.is_alive()
