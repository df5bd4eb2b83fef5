"""Programs that do the same have one identity, and are compiled once."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import lax, make_jaxpr
from perspex import numpy as pnp
from perspex.base import events
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.runtime.dispatch import EVAL
from perspex.transforms.identity import identity, tokens


def program(f: Any, *args: Any) -> ClosedJaxpr:
    return ClosedJaxpr(make_jaxpr(f)(*args).jaxpr)


SAME = [
    lambda: program(lambda x: pnp.sin(x) * 2.0, 1.0),
    lambda: program(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x), 1.0),
    lambda: program(lambda x: perspex.jit(lambda y: y + 1)(x), 1.0),
    lambda: program(lambda p, x: lax.cond(p, lambda: x, lambda: -x), True, 1.0),
]


@pytest.mark.parametrize("make", SAME)
def test_the_same_text_is_the_same_program(make: Any) -> None:
    first, second = make(), make()
    assert first is not second and identity(first) is identity(second)


DIFFERENT = [
    (lambda x: x * 2.0, lambda x: x * 3.0),
    (lambda x: x * 0.0, lambda x: x * -0.0),
    (lambda x: (x * 2.0) + x, lambda x: x + (x * 2.0)),
    (lambda x: (x, x * x), lambda x: (x * x, x)),
    (lambda x: pnp.sin(x), lambda x: pnp.cos(x)),
    (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 3.0, x),
    ),
    (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x),
        lambda x: lax.fori_loop(0, 4, lambda i, c: c * 2.0, x),
    ),
]


@pytest.mark.parametrize("pair", DIFFERENT)
def test_other_text_is_another_program(pair: Any) -> None:
    first, second = [identity(program(f, 1.0)) for f in pair]
    assert first is not second


def test_types_count() -> None:
    f = lambda x: x * x  # noqa: E731
    tokens = [identity(program(f, x)) for x in (1.0, np.float32(1), np.ones(2, np.float32), 1)]
    assert len(set(tokens)) == 4


def compiles(f: Any) -> int:
    seen: list[str] = []
    stop = events.subscribe(lambda event: seen.append(event.kind))
    try:
        f()
    finally:
        stop()
    return seen.count("compile")


def test_a_fresh_lambda_is_not_compiled_again() -> None:
    xs = np.ones(3, np.float32)

    def run() -> Any:
        return lax.scan(lambda c, x: (c * 1.25 + x, c), 0.5, xs)

    assert compiles(run) == 1
    assert compiles(run) == 0


def test_what_a_lambda_closes_over_is_an_operand() -> None:
    def run(w: Any) -> Any:
        return float(lax.scan(lambda c, _: (c + w, None), 0.0, None, length=3)[0])

    first = perspex.device_put(np.float32(2))
    assert run(first) == 6.0
    assert compiles(lambda: run(perspex.device_put(np.float32(5)))) == 0
    assert run(perspex.device_put(np.float32(5))) == 15.0


def test_nothing_is_left_of_a_lambda() -> None:
    class Held:
        pass

    def run() -> weakref.ref[Held]:
        held = Held()
        held.array = perspex.device_put(np.ones(3, np.float32))  # type: ignore[attr-defined]
        body = lambda c, x: (c * x + held.array, None)  # type: ignore[attr-defined] # noqa: E731
        lax.scan(body, held.array, np.ones((2, 3), np.float32))  # type: ignore[attr-defined]
        return weakref.ref(held)

    ref = run()
    gc.collect()
    assert ref() is None


def test_the_table_of_programs_does_not_grow() -> None:
    def run(n: int) -> None:
        for _ in range(n):
            lax.fori_loop(0, 3, lambda i, c: c * 1.5, 1.0)

    run(2)
    before = len(EVAL.programs)
    run(20)
    assert len(EVAL.programs) == before


def test_gradients_of_fresh_lambdas_are_not_compiled_again() -> None:
    def run() -> float:
        f = lambda x: lax.scan(lambda c, _: (pnp.sin(c) * x, None), x, None, length=4)[0]  # noqa: E731
        return float(checks.grad(f)(np.float32(0.5)))

    first = run()
    assert compiles(run) == 0
    assert run() == first


def test_what_was_compiled_for_an_eager_call_waits_for_no_garbage_collector() -> None:
    EVAL.programs.clear()
    gc.collect()
    gc.disable()
    try:
        before = len(tokens())
        for i in range(3):
            lax.fori_loop(0, 2, lambda _, x, i=i: x * (i + 0.25), 1.0)
        EVAL.programs.clear()
        # What other tests hold is there before, and stays.
        assert len(tokens()) == before
    finally:
        gc.enable()
