"""The load of other processes, from counters that are given."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest
from IPython.utils.capture import capture_output
from support.shells import Notebook

from perspex_magics.timing import load
from perspex_magics.timing.clock import Reading
from perspex_magics.timing.load import Load, Sample


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What stands for `/proc/stat`."""
    file = tmp_path / "stat"
    monkeypatch.setattr(load, "_FILE", str(file))
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    return file


def line(**ticks: int) -> str:
    names = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest"]
    assert ticks.keys() <= set(names)
    return f"cpu  {' '.join(str(ticks.get(name, 0)) for name in names)}\ncpu0 1 2 3\n"


def test_the_counters_are_read_in_seconds(machine: Path) -> None:
    # Times of guests are part of `user`; who waits for a disk works on nothing.
    machine.write_text(line(user=700, system=50, idle=900, iowait=100, steal=250, guest=300))
    assert load.counters() == (10.0, 20.0)


@pytest.mark.parametrize("text", [None, "", "cpu\n", "cpu 0 0 0 0 0 0 0 0\n", "cpu a b c\n"])
def test_without_counters_nothing_is_said(machine: Path, text: str | None) -> None:
    if text is not None:
        machine.write_text(text)
    assert load.counters() is None and load.sample() is None
    reading = Reading("x = 1")
    reading.look()
    reading.stop(reading.start + 3.0)
    assert reading.load is None
    assert "processes" not in reading.text()


@pytest.mark.parametrize(
    ("busy", "own", "ours", "found"),
    [
        (4.0, 2.0, 0.0, Load(1.0, 2)),
        (4.0, 0.0, 0.0, Load(2.0, 2)),
        (4.0, 2.0, 1.5, None),  # XLA compiled in another process
        (2.9, 2.0, 0.0, None),  # less than a quarter of the machine
        (3.0, 2.0, 0.0, Load(0.5, 2)),
        (0.0, 2.0, 0.0, None),  # counters in steps
    ],
)
def test_what_others_used(busy: float, own: float, ours: float, found: Load | None) -> None:
    before = Sample(100.0, 1_000.0, 5_000.0, 20.0)
    now = Sample(102.0, 1_000.0 + busy, 5_004.0, 20.0 + own)
    assert load.load(before, now, ours) == found


def test_short_times_say_nothing() -> None:
    assert load.load(Sample(1.0, 0.0, 0.0, 0.0), Sample(1.15, 0.3, 0.3, 0.0)) is None


def test_many_processors() -> None:
    found = load.load(Sample(0.0, 0.0, 0.0, 0.0), Sample(10.0, 330.0, 640.0, 10.0))
    assert found is not None
    assert found.text() == "other processes used 32 of 64 processors"
    alone = load.load(Sample(0.0, 0.0, 0.0, 0.0), Sample(1.0, 0.75, 1.0, 0.0))
    assert alone is not None and alone.text() == "other processes used 0.75 of 1 processor"


def test_the_line_marks_a_busy_machine(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([Sample(0.0, 10.0, 100.0, 1.0), Sample(2.0, 13.5, 104.0, 1.5)])
    monkeypatch.setattr(load, "sample", lambda: next(told))
    reading = Reading("x = 1")
    reading.start = 0.0
    reading.look()
    reading.look()  # only the first time asks the machine
    reading.stop(2.0)
    assert re.fullmatch(
        r"2\.00 s: .*; other processes used 1\.5 of 2 processors", reading.text()
    ), reading.text()
    with capture_output() as captured:
        reading.show()
    (output,) = captured.outputs
    assert output.data["application/vnd.perspex.clock+json"]["others"] == 1.5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/stat")
def test_a_machine_counts_what_this_process_does() -> None:
    before = load.sample()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    now = load.sample()
    assert before is not None and now is not None
    assert now.own - before.own >= 0.3
    assert now.total > before.total and now.busy - before.busy >= 0.2
