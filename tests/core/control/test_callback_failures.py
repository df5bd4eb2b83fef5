"""Callbacks that fail, and programs with callbacks that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.callbacks import F32, after, note
from support.callbacks import nothing_left as nothing_left
from support.callbacks import seen as seen

import perspex
from perspex import debug, jit, lax, pure_callback
from perspex import numpy as pnp
from perspex.errors import JaxRuntimeError
from perspex.experimental import io_callback
from perspex.runtime import callbacks
from perspex.runtime.callbacks import cancel_effects


def boom(*args: Any) -> Any:
    raise ValueError("on purpose")


FAILING: dict[str, Callable[[Any], Any]] = {
    "pure": lambda x: pure_callback(boom, F32, x),
    "io": lambda x: io_callback(boom, None, x),
    "ordered": lambda x: io_callback(boom, None, x, ordered=True),
    "debug": lambda x: debug.callback(boom, x),
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: (debug.callback(boom, i), c)[1], x),
}


@pytest.mark.parametrize("f", FAILING.values(), ids=FAILING)
def test_an_exception_names_the_callback_and_the_line(f: Any, seen: list[Any]) -> None:
    with pytest.raises(
        JaxRuntimeError, match="callback `boom` of .*test_callback_fail.*"
    ) as caught:
        perspex.block_until_ready(jit(f)(1.0))
        perspex.effects_barrier()
    assert isinstance(caught.value.__cause__, ValueError)
    frames = caught.value.__cause__.__traceback__
    assert frames is not None and frames.tb_frame.f_code.co_name == "boom"
    cancel_effects()
    # Life goes on, in order too.
    assert after(seen, lambda: [jit(lambda x: note(seen, x, ordered=True))(i) for i in (1, 2)]) == [
        1,
        2,
    ]


@pytest.mark.parametrize("f", list(FAILING.values())[:4], ids=list(FAILING)[:4])
def test_an_exception_outside_every_program_is_itself(f: Any) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        f(1.0)


def test_an_exception_that_comes_later_has_its_cause_too() -> None:
    @jit
    def slow(a: Any) -> Any:
        for _ in range(100):
            a = a @ a / 400
        return a[0, 0]

    big = pnp.ones((400, 400))
    slow(big).block_until_ready()
    f = jit(lambda x: (debug.callback(boom, x), x * 2)[1])
    # The operand takes its time, so the call mostly returns before the callback is called.
    for wait in (float, perspex.block_until_ready, lambda _: perspex.effects_barrier()):
        with pytest.raises(JaxRuntimeError, match="callback `boom`") as caught:
            wait(f(slow(big)))
        assert isinstance(caught.value.__cause__, ValueError)
        perspex.effects_barrier()  # says nothing twice


def test_more_programs_under_way_than_are_kept(seen: list[Any]) -> None:
    f = jit(lambda x: note(seen, x))
    assert sorted(after(seen, lambda: [f(i) for i in range(300)])) == list(range(300))
    assert not callbacks._pending


def test_a_barrier_inside_a_callback_is_refused() -> None:
    with pytest.raises(JaxRuntimeError, match="effects_barrier was called in a callback"):
        jit(lambda: debug.callback(perspex.effects_barrier))()
        perspex.effects_barrier()


@pytest.mark.parametrize(
    ("host", "match"),
    [
        (lambda x: np.zeros(3, np.float32), r"float32\[3\].*says float32\[\]"),
        (lambda x: np.int32(3), r"int32\[\].*says float32\[\]"),
        (lambda x: (x, x), "returned 2 arrays"),
        (lambda x: None, "returned 0 arrays"),
    ],
)
def test_results_must_be_as_promised(host: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        pure_callback(host, F32, 1.0)
    with pytest.raises(JaxRuntimeError, match=match):
        perspex.block_until_ready(jit(lambda x: pure_callback(host, F32, x))(1.0))


def test_no_derivative() -> None:
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        perspex.grad(lambda x: pure_callback(np.sin, F32, x))(1.0)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        perspex.grad(lambda x: io_callback(np.sin, F32, x))(1.0)
    # Where no derivative reaches them there is nothing to differentiate.
    f = lambda x, y: x * pure_callback(np.sin, F32, y)  # noqa: E731
    np.testing.assert_allclose(perspex.grad(f)(2.0, 0.5), np.sin(0.5), rtol=1e-6)
