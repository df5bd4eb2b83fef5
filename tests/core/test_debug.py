"""`debug.log`, `debug.breakpoint` and `debug.inspect_array_sharding`.

How values lie on eight devices is compared with JAX in `as_jax/test_doors.py`.
"""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import debug, grad, jit, lax, make_jaxpr, vmap
from perspex.base import effects


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


# ---- A prompt -----------------------------------------------------------------------------------

LIMIT = 40


def stops(f: Any, *commands: str, **options: Any) -> tuple[list[str], Any]:
    """What the prompt shows in `f(stop)`, and what `f` returns."""
    shown = io.StringIO()
    asked = io.StringIO("\n".join([*commands, ""]))
    out = f(lambda **more: debug.breakpoint(stdin=asked, stdout=shown, **options, **more))
    perspex.effects_barrier()
    return shown.getvalue().replace("(jdb) ", "").splitlines(), out


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_the_prompt_knows_variables_of_all_functions(wrap: Any) -> None:
    def inner(y: Any, stop: Any) -> Any:
        parts = {"one": y, "two": (y + 1,)}
        name = "some text"
        stop()
        return parts["two"][0] if name else y

    def f(stop: Any) -> Any:
        return wrap(lambda x: inner(x * 2, stop) * 3)(perspex.numpy.arange(2.0))

    asked = ("name", "p y + 1", "pp parts['two'][0].sum()", "missing", "1 +", "", "LIMIT + 2")
    shown, out = stops(f, "u", *asked, "c")
    assert out.tolist() == [3, 9]
    values = [line for line in shown if not line.startswith(("  ", ">", "->"))]
    values = [line.removesuffix(" (<string>, line 1)") for line in values]
    assert values == [
        "Entering jdb:",
        "'some text'",
        "Array([1., 3.], dtype=float32)",
        "Array(4., dtype=float32)",
        "*** NameError: name 'missing' is not defined",
        "*** SyntaxError: invalid syntax",
        "42",
    ]


def test_the_prompt_goes_up_and_down() -> None:
    def outer(stop: Any) -> None:
        mark = np.float32(7)
        jit(lambda x: stop())(mark)

    shown, _ = stops(
        outer, "where", "u", "up", "u", "mark", "down", "d", "d", "l", "c", num_frames=3
    )
    text = "\n".join(shown)
    assert shown[1] == "Traceback:" and text.count('  File "') == 3
    said = [line for line in shown if line.startswith("At ") or "7.0" in line]
    assert said == ["At topmost frame.", repr(np.float32(7)), "At bottommost frame."]
    assert text.count("->  ") == 7 and ", in outer" in text


def test_the_prompt_comes_once_for_each_example_and_turn() -> None:
    def f(stop: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            stop(ordered=True)
            return c + x, c

        return jit(lambda xs: lax.scan(step, np.float32(0), xs)[0])(np.arange(3, dtype=np.float32))

    shown, out = stops(f, *["u", "float(c)", "c"] * 3)
    assert out == 3 and [line for line in shown if line[0].isdigit()] == ["0.0", "0.0", "1.0"]

    def g(stop: Any) -> Any:
        return vmap(grad(lambda x: (stop(), x**2)[1]))(np.arange(2, dtype=np.float32))

    shown, out = stops(g, *["c"] * 4)
    assert shown.count("Entering jdb:") == 2 and out.tolist() == [0, 2]


def test_the_prompt_with_a_token() -> None:
    def f(stop: Any) -> Any:
        return jit(lambda x: stop(token={"y": x * 2})["y"] + 1)(np.float32(3))

    shown, out = stops(f, "1 + 1", "c")
    assert out == 7 and shown[:2] == ["Entering jdb:", "2"]

    def unused(stop: Any) -> Any:
        return jit(lambda x: (stop(token=x), x)[1])(np.float32(3))

    assert stops(unused)[0] == []
    for options in ({"token": 1.0, "ordered": True}, {"backend": "web"}):
        with pytest.raises(ValueError, match="mutually exclusive|has the backend 'cli'"):
            debug.breakpoint(**options)


@pytest.mark.parametrize(
    ("given", "match"),
    [("", "debug.breakpoint reads commands from the standard input, but it is empty"),
     ("quit\n", "SystemExit")],
)  # fmt: skip
def test_nobody_answers_or_quits(given: str, match: str) -> None:
    child = (
        "import perspex\n"
        "def f(x):\n"
        "    perspex.debug.breakpoint()\n"
        "    return x\n"
        "perspex.jit(f)(1.0); perspex.effects_barrier()\n"
    )
    out = subprocess.run([sys.executable, "-c", child], input=given, capture_output=True, text=True)
    assert out.returncode == 1 and match in out.stderr, out.stderr


def test_effects_of_debugging_have_classes() -> None:
    def kinds(ordered: bool) -> list[type]:
        jaxpr = make_jaxpr(lambda x: debug.callback(print, x, ordered=ordered))(1.0)
        return [type(effect) for effect in jaxpr.effects]

    assert kinds(False) == [debug.DebugEffect] and kinds(True) == [debug.OrderedDebugEffect]
    assert debug.OrderedDebugEffect().ordered and str(effects.debug) == "Debug"


# ---- How values lie -----------------------------------------------------------------------------


def test_how_a_value_lies_on_one_device() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        debug.inspect_array_sharding({"a": x, "b": x + 1}, callback=seen.append)
        return x * 2

    f(np.float32(1) + perspex.numpy.zeros(2))
    assert len(seen) == 2
    g = jit(vmap(grad(lambda x: f(x))))
    g(np.ones(3, np.float32))
    g(np.ones(3, np.float32))
    assert len(seen) == 4 and all(s.num_devices == 1 for s in seen)
    assert "inspect_sharding" in str(make_jaxpr(f)(1.0))
