"""`debug.log`: records of `logging` from compiled programs."""

from __future__ import annotations

from typing import Any

import pytest

import perspex
from perspex import debug, jit, lax


@pytest.mark.parametrize(
    "wrap", [lambda f: f, jit, lambda f: jit(lambda x: lax.cond(x > 0, f, f, x))]
)
def test_log_is_print_by_way_of_logging(
    wrap: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def f(x: Any) -> Any:
        debug.log("{} of {n}", x, n=3, ordered=True)
        debug.log(ordered=True)("then {}", x + 1)
        return x

    g = wrap(f)
    for level, count in (("INFO", 4), ("WARNING", 4), ("INFO", 8)):
        with caplog.at_level(level, "perspex.debug"):
            g(1.5)
            g(2.5)
            perspex.effects_barrier()
        assert len(caplog.records) == count
    assert caplog.messages[:4] == ["1.5 of 3", "then 2.5", "2.5 of 3", "then 3.5"]
    first = caplog.records[0]
    assert (first.name, first.levelname, first.filename) == (
        "perspex.debug",
        "INFO",
        "test_debug.py",
    )
    assert first.lineno == f.__code__.co_firstlineno + 1
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="debug.log: expected a format string"):
        debug.log(3)
