"""How what several engines give is put together."""

from __future__ import annotations

from typing import Any

import pytest

from perspex_magics.cluster.engines import Failure, Told
from perspex_magics.cluster.outputs import First, failure, folded, numbers


def names(processes: list[int]) -> str:
    return ", ".join(f"process {i} (pid {100 + i})" for i in processes)


def printed(process: int, text: str) -> Told:
    return Told(process, [{"output_type": "stream", "name": "stdout", "text": text}])


@pytest.mark.parametrize(
    ("processes", "text"),
    [([1], "process 1"), ([0, 1, 2, 5], "processes 0-2, 5"), ([3, 1], "processes 1, 3")],
)
def test_numbers(processes: list[int], text: str) -> None:
    assert numbers(processes) == text


def test_outputs_that_are_the_same_are_folded_together() -> None:
    found = folded([printed(1, "a\n<b>\n"), printed(2, "a\n<b>\n"), Told(3), printed(4, "c")])
    assert repr(found) == "[processes 1-2: 2 lines]\n[process 4: 1 line]"
    assert found is not None and "&lt;b&gt;" in found.data
    assert folded([Told(1), Told(2)]) is None


def test_process_0_is_shown_as_it_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("perspex_magics.cluster.outputs.publish_display_data", shown.append)
    first, told = First(), printed(0, "one\n")
    first.show(told)
    first.show(told)
    told.outputs[0]["text"] += "two\n"
    told.outputs.append({"output_type": "display_data", "data": {"text/plain": "3"}})
    first.show(told)
    first.show(told)
    assert capsys.readouterr().out == "one\ntwo\n"
    assert shown == [{"text/plain": "3"}]


def test_an_error_is_raised_once_with_the_processes_that_had_it() -> None:
    found = [Told(i, error=Failure("ValueError", f"no {i}", f"line\x1b[31m {i}")) for i in (0, 2)]
    error, tracebacks = failure([*found, Told(1)], names)
    assert str(error) == "ValueError on processes 0, 2: no 0"
    assert repr(tracebacks) == "[traceback of process 0]"
    assert tracebacks is not None and "line 0" in tracebacks.data


def test_an_engine_that_died_comes_first() -> None:
    ended = Failure("ProcessEndedError", "process 1 has ended", "")
    dead = Told(1, error=Failure("EngineError", "gone", ""), is_dead=True)
    error, _ = failure([Told(0, error=ended), dead, Told(2, is_unfinished=True)], names)
    assert str(error).splitlines() == [
        "process 1 (pid 101) died while it ran the cell; run %cluster restart",
        "process 2 (pid 102) still runs the cell; run %cluster restart",
        "ProcessEndedError on process 0: process 1 has ended",
    ]


def test_an_interrupt_stays_an_interrupt() -> None:
    interrupted = [Told(i, error=Failure("KeyboardInterrupt", "", "")) for i in range(2)]
    assert isinstance(failure(interrupted, names)[0], KeyboardInterrupt)
    assert failure([Told(0), Told(1)], names) == (None, None)
