"""The benchmark of the device, with sizes for a processor, and the report that it writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpu
import pytest


@pytest.fixture(scope="module")
def ours() -> Iterator[gpu.Library]:
    library = gpu.Library(sys.executable, "perspex", small=True)
    yield library
    library.close()


def test_every_program_runs(ours: gpu.Library, device: Any) -> None:
    assert ours.about["platform"] == device.client.platform and len(ours.about["programs"]) >= 15
    for name in ours.about["programs"]:
        told = ours.ask(name)
        assert isinstance(told, float) and told > 0, (name, told)
    assert "KeyError" in ours.ask("no such program")


class Scripted:
    """A library that answers what a test says."""

    def __init__(self, **seconds: float | str) -> None:
        self.seconds = seconds
        self.about = {"programs": {name: (1e9, "bytes") for name in seconds}}

    def ask(self, name: str) -> float | str:
        return self.seconds[name]


def test_the_report() -> None:
    mine, other = Scripted(a=2e-3, b=1e-3, c="MemoryError: x"), Scripted(a=1e-3, b=4e-3, c=1.0)
    found = gpu.compare(mine, other, rounds=3, until=math.inf)
    assert found["a"] == [[2e-3] * 3, [1e-3] * 3]
    about = {"device": "H", "platform": "cuda", "jaxlib": "0", "version": "1", **mine.about}
    text = gpu.written(found, about, about, "")
    assert "| a | 2 ms | 1 ms | 2.00 | 50 % of bytes |" in text
    assert "| b | 1 ms | 4 ms | 0.25 | 100 % of bytes |" in text
    assert "| c | MemoryError: x |" in text
    assert "* bytes: 1,000 GB/s" in text and "Above 1.0: a." in text


def test_it_ends_in_time() -> None:
    """The first round is whole; later ones end when the time is over."""
    one = Scripted(a=1.0, b=1.0)
    assert gpu.compare(one, one, rounds=9, until=-math.inf) == {"a": [[1.0], [1.0]]} | {
        "b": [[1.0], [1.0]]
    }


def test_without_jax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """It says what is missing, and measures nothing."""
    report = tmp_path / "gpu.md"
    monkeypatch.setattr(gpu, "lacking", lambda python, modules: [m for m in modules if m == "jax"])
    monkeypatch.setattr(gpu, "Library", lambda *arguments: pytest.fail("was started"))
    assert gpu.main(["--small", "--report", str(report)]) == 2
    assert "missing: jax." in capsys.readouterr().err and not report.exists()


def test_what_a_python_lacks() -> None:
    assert gpu.lacking(sys.executable, ["numpy", "no_such_module"]) == ["no_such_module"]
