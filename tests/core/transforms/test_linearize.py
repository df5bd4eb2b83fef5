"""Partial evaluation: what is computed when, which residuals are kept, transposition."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import make_jaxpr
from perspex import numpy as pnp
from perspex.ir.jaxpr import ClosedJaxpr, check
from perspex.ops.structural import broadcast_in_dim
from perspex.tracing.primitive import Linear
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms.linearize import linearize, split_jaxpr
from perspex.transforms.transpose import backward_pass, transpose_jaxpr

X = np.float32(0.5)


def names(jaxpr: Any) -> list[str]:
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def test_primals_are_evaluated_and_tangents_written_down() -> None:
    seen = []

    def f(x: Any) -> list[Any]:
        y = pnp.sin(x)
        seen.append(float(y.primal))
        return [y * x if y > 0 else x]

    point = linearize(f, [X], [True])
    assert seen == [pytest.approx(np.sin(0.5))]
    assert names(point.jaxpr) == ["mul", "mul", "mul", "add_any"]
    assert float(point.outs[0]) == pytest.approx(0.5 * np.sin(0.5))


def test_residuals_of_dead_tangents_are_not_kept() -> None:
    def f(x: Any) -> list[Any]:
        pnp.cos(x) * 7.0
        return [x * 2.0]

    point = linearize(f, [X], [True])
    assert names(point.jaxpr) == ["mul"] and point.residuals == []


def test_results_that_do_not_depend_on_the_argument() -> None:
    point = linearize(lambda x, y: [y, x, 3.0], [X, X], [True, False])
    assert point.nonzero == [False, True, False]


def split_of(f: Any, unknown: tuple[bool, ...], *args: Any) -> Any:
    closed = ClosedJaxpr(make_jaxpr(f)(*args).jaxpr)
    return closed, split_jaxpr(closed, unknown, False)


def test_split_of_a_program() -> None:
    f = lambda x, y: (pnp.sin(x), pnp.sin(x) * y, y * 2.0)  # noqa: E731
    closed, halves = split_of(f, (False, True), X, X)
    assert halves.out_unknown == (False, True, True)
    assert names(halves.known.jaxpr) == ["sin", "sin"]
    assert names(halves.unknown.jaxpr) == ["mul", "mul"]
    for half in (halves.known, halves.unknown):
        check(half.jaxpr)
    known, *residuals = eval_jaxpr(halves.known.jaxpr, (), X)
    late = eval_jaxpr(halves.unknown.jaxpr, (), *residuals, X)
    want = eval_jaxpr(closed.jaxpr, (), X, X)
    np.testing.assert_allclose([known, *late], want, rtol=1e-7)


def test_split_keeps_calls_apart() -> None:
    inner = perspex.jit(lambda x, y: (pnp.sin(x), pnp.cos(x) * y))
    _, halves = split_of(lambda x, y: inner(x, y), (False, True), X, X)
    assert halves.out_unknown == (False, True)
    (known,), (late,) = halves.known.jaxpr.eqns, halves.unknown.jaxpr.eqns
    assert names(known.params["jaxpr"]) == ["sin", "cos"]
    assert names(late.params["jaxpr"]) == ["mul"]


def test_what_is_free_to_make_is_not_stored() -> None:
    def f(x: Any, y: Any) -> Any:
        wide = broadcast_in_dim(x, shape=(100, 3), broadcast_dimensions=(1,))
        return wide * y

    _, halves = split_of(f, (False, True), np.ones(3, np.float32), np.ones((100, 3), np.float32))
    # The residual is x itself, and not what it was spread to.
    assert [aval.shape for aval in halves.known.out_avals] == [(3,)]
    assert names(halves.unknown.jaxpr) == ["broadcast_in_dim", "mul"]


def test_a_residual_may_be_what_another_is_spread_from() -> None:
    def f(x: Any, y: Any, z: Any, w: Any) -> Any:
        wide = broadcast_in_dim(x, shape=(4, 3), broadcast_dimensions=(1,))
        wider = broadcast_in_dim(wide, shape=(5, 4, 3), broadcast_dimensions=(1, 2))
        return wider * pnp.sin(y), wide * z, x * w

    ones = np.ones((4, 3), np.float32)
    args = (np.arange(3.0, dtype=np.float32), np.ones((5, 4, 3), np.float32), ones, ones[0])
    closed, halves = split_of(f, (False, True, True, True), *args)
    assert [aval.shape for aval in halves.known.out_avals] == [(3,)]
    got = eval_jaxpr(halves.unknown.jaxpr, (), *args)
    for have, want in zip(got, eval_jaxpr(closed.jaxpr, (), *args), strict=True):
        np.testing.assert_array_equal(have, want)


def test_instantiate() -> None:
    closed = ClosedJaxpr(make_jaxpr(lambda x, y: (x * 2.0, y))(X, X).jaxpr)
    halves = split_jaxpr(closed, (False, True), (True, False))
    assert halves.out_unknown == (True, True) and len(halves.known.out_avals) == 1


def test_backward_pass_adds_cotangents_up() -> None:
    jaxpr = make_jaxpr(lambda x: (x * 2.0 + x, x))(X).jaxpr
    linear = [Linear(v.aval) for v in jaxpr.invars]
    (ct,) = backward_pass(jaxpr, (), linear, [np.float32(1), np.float32(10)])
    assert float(ct) == 13.0
    (ct,) = backward_pass(jaxpr, (), linear, [None, np.float32(10)])
    assert float(ct) == 10.0
    assert backward_pass(jaxpr, (), linear, [None, None]) == [None]


def test_backward_pass_evaluates_coefficients() -> None:
    jaxpr = make_jaxpr(lambda a, x: x * pnp.sin(a))(X, X).jaxpr
    _, ct = backward_pass(jaxpr, (), [X, Linear(jaxpr.invars[1].aval)], [np.float32(1)])
    assert float(ct) == pytest.approx(np.sin(0.5))


def test_transpose_of_a_program() -> None:
    closed = ClosedJaxpr(make_jaxpr(lambda a, x, y: (x * a, y * 2.0, x))(X, X, X).jaxpr)
    back, nonzero = transpose_jaxpr(closed, (False, True, True), (True, False, True), False)
    assert nonzero == (True, False)
    (ct,) = eval_jaxpr(back.jaxpr, (), np.float32(3), np.float32(1), np.float32(10))
    assert float(ct) == 13.0
    back, nonzero = transpose_jaxpr(closed, (False, True, True), (True, False, True), True)
    assert nonzero == (True, True) and len(back.out_avals) == 2


def test_gradient_of_a_call_is_two_calls() -> None:
    inner = perspex.jit(lambda x: pnp.sin(x) * x)
    jaxpr = make_jaxpr(checks.grad(inner))(X)
    assert names(jaxpr) == ["jit", "jit"]


def test_programs_are_made_once_and_go_with_what_they_were_made_of() -> None:
    closed = ClosedJaxpr(make_jaxpr(lambda x, y: (pnp.sin(x), x * y))(X, X).jaxpr)
    halves = split_jaxpr(closed, (False, True), False)
    assert split_jaxpr(closed, (False, True), False) is halves
    gone = [weakref.ref(closed), weakref.ref(halves.known)]
    del closed, halves
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@pytest.mark.usefixtures("x64")
def test_third_derivative_of_a_call() -> None:
    inner = perspex.jit(lambda x: pnp.sin(x) * x)
    third = checks.grad(checks.grad(checks.grad(inner)))
    x = 0.7
    want = -3 * np.sin(x) - x * np.cos(x)
    np.testing.assert_allclose(third(x), want, rtol=1e-13)
    np.testing.assert_allclose(perspex.jit(third)(x), want, rtol=1e-13)
