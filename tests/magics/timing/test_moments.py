"""What the clock makes of moments at which another thread has read the clocks of all threads."""

from __future__ import annotations

import threading
import time

import pytest

from perspex.base import events
from perspex.runtime import threads
from perspex_magics.timing import load, moments
from perspex_magics.timing.clock import Reading
from perspex_magics.timing.moments import Moment, Moments


def between(found: list[Moment], spans: list[tuple[float, float]], after: float = 0.0) -> list:
    made = Moments(())
    made.found = found
    return [piece.at for piece in made.between(spans, after)]


def at(*times: float) -> list[Moment]:
    return [Moment(t, 0.0, 0.0, 0.0) for t in times]


@pytest.mark.parametrize(
    ("spans", "after", "lengths"),
    [
        ([], 0.0, [1, 2, 3, 4]),
        ([(11.5, 0.1)], 0.0, [1, 3, 4]),
        ([(10.5, 1.0)], 0.0, [3, 4]),
        ([(0.0, 5.0), (13.0, 0.5), (13.9, 0.05), (17.0, 9.0)], 0.0, [1, 2]),
        ([], 11.0, [2, 3, 4]),
    ],
)
def test_pieces_that_touch_no_phase(
    spans: list[tuple[float, float]], after: float, lengths: list[int]
) -> None:
    assert between(at(10, 11, 13, 16, 20), spans, after) == lengths


def test_no_moment_no_piece() -> None:
    assert between([], []) == between(at(1.0), []) == []


def test_many_moments_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "_LONGEST", 0.0)
    made = Moments((threading.get_native_id(),))
    for _ in range(20_000):
        made.look()
    assert 2_000 <= len(made.found) <= 5_000
    assert made.found == sorted(made.found)


@pytest.mark.parametrize("worked", [100.0, 0.0])
def test_a_cell_that_computes_from_its_beginning_is_looked_at_less(worked: float) -> None:
    made = Moments((threading.get_native_id(),))
    # It began a while ago, and has computed meanwhile or slept.
    made.begun -= 0.02
    made.due = made._looked = made.begun
    made._ran -= worked
    assert (made.look() >= moments._WHERE_PYTHON_RUNS) == bool(worked)


def test_files_of_the_machine_are_read_in_long_cells_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(load, "sample", lambda: read.append("sample"))
    for ago, count in ((-60.0, 0), (0.2, 1)):
        reading = Reading("x")
        reading.start -= ago
        for _ in range(3):
            reading.look()
        assert len(read) == count


@pytest.mark.parametrize("order", ["device first", "idle first"])
def test_two_threads_of_xla_count_no_more_than_the_wait(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of XLA work for 0.3 s, and nothing works for another 0.3 s."""
    reading = Reading("x")
    begun, done = reading.start, reading.before
    reading.xla = {1: 0.0, 2: 0.0}
    worked = 0.0
    for i in range(61):
        reading.moments.found.append(Moment(begun + i / 100, 0.0, worked, worked))
        if (i < 30) == (order == "device first"):
            worked += 0.02
    monkeypatch.setattr(threads, "used", lambda thread: worked / 2)
    monkeypatch.setattr(events, "outside_of_phases", lambda: (done[0], done[1] + worked))
    reading.stop(begun + 0.6)
    assert reading.data()["device"] == pytest.approx(0.3)
    assert reading.idle == pytest.approx(0.3)
    assert reading.python == pytest.approx(0.0)


def test_what_nobody_looked_at_is_taken_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python works while the clocks are read; then the device works and nobody reads them."""
    reading = Reading("x")
    begun, done = reading.start, reading.before
    reading.xla = {1: 0.0}
    reading.moments.found = [Moment(begun, 0.0, 0.0, 0.0), Moment(begun + 1.0, 1.0, 1.0, 0.0)]
    monkeypatch.setattr(threads, "used", lambda thread: 1.0)
    monkeypatch.setattr(events, "outside_of_phases", lambda: (done[0] + 1.0, done[1] + 2.0))
    reading.stop(begun + 2.0)
    data = reading.data()
    assert (data["device"], data["python"], data["idle"]) == pytest.approx((1.0, 1.0, 0.0))


def test_a_thread_that_has_ended_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(clock: int) -> float:
        raise OSError

    made = Moments((1,))
    monkeypatch.setattr(time, "clock_gettime", gone)
    made.look()
    assert made.found == []
