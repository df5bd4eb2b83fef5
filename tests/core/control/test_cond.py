"""`cond` as a primitive: values, all its rules, and what the branches agree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import lax, make_jaxpr
from perspex import numpy as pnp
from perspex.ir.jaxpr import check
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.vmap import batch

X = np.array([0.3, 0.4])
Y = np.array([0.5, -0.6])
BRANCHES = 3


def choice(i: Any, x: Any, y: Any) -> list[Any]:
    w = pnp.sin(y)
    return lax.switch(
        i,
        [
            lambda x, y: [pnp.sin(x) * w, y],
            lambda x, y: [x * y, pnp.sin(y) * pnp.sin(x) * y],
            lambda x, y: [y, pnp.exp(x) * w],
        ],
        x,
        y,
    )


def reference(i: int, x: Any, y: Any) -> list[Any]:
    w = np.sin(y)
    return [
        [np.sin(x) * w, y],
        [x * y, np.sin(y) * np.sin(x) * y],
        [y, np.exp(x) * w],
    ][min(max(i, 0), 2)]


def agree(got: Any, want: Any) -> None:
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-14)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("i", [-7, 0, 1, 2, 99])
def test_value(i: int) -> None:
    agree(choice(i, X, Y), reference(i, X, Y))
    agree(perspex.jit(choice)(i, X, Y), reference(i, X, Y))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("i", range(BRANCHES))
def test_derivatives(i: int) -> None:
    index = np.int32(i)
    checks.check_derivatives(lambda x, y: choice(index, x, y), [X, Y])
    checks.check_derivatives(lambda x: choice(index, x, Y), [X])


@pytest.mark.usefixtures("x64")
def test_derivatives_where_the_index_is_computed() -> None:
    def f(x: Any, y: Any) -> list[Any]:
        smaller = lax.cond(x < y, lambda: x * x, lambda: pnp.sin(x) * y)
        return [smaller, lax.cond(x < smaller, lambda a: a * y, lambda a: a, smaller)]

    for x, y in ((0.3, 0.5), (0.5, 0.3), (1.5, 1.7)):
        checks.check_derivatives(f, [np.float64(x), np.float64(y)])


@pytest.mark.usefixtures("x64")
def test_batches() -> None:
    for i in range(BRANCHES):
        checks.check_batches(lambda x, y, i=i: choice(np.int32(i), x, y), [X, Y])
    many = np.array([0, 2, 1, 2], np.int32)
    xs = np.stack([X * k for k in range(4)])
    for f in (choice, perspex.jit(choice)):
        got = checks.mapped(f, 4, [many, xs, Y], [0, 0, None])
        for k in range(4):
            agree([y[k] for y in got], reference(many[k], xs[k], Y))
        got = checks.mapped(f, 4, [many, X, Y], [0, None, None])
        for k in range(4):
            agree([y[k] for y in got], reference(many[k], X, Y))


@pytest.mark.usefixtures("x64")
def test_batch_of_gradients_and_gradient_of_batch() -> None:
    f = lambda x: lax.cond(x > 0, lambda a: pnp.sin(a) * a, lambda a: a * a * a, x)  # noqa: E731
    xs = np.array([-1.0, 0.5, 2.0, -0.25])
    want = np.where(xs > 0, np.cos(xs) * xs + np.sin(xs), 3 * xs**2)
    got = checks.mapped(lambda x: [checks.grad(f)(x)], 4, [xs], [0])[0]
    np.testing.assert_allclose(got, want, rtol=1e-13)

    def whole(xs: Any) -> list[Any]:
        return [batch(lambda x: [f(x)], 4, [xs], [0])[0][0]]

    checks.check_derivatives(whole, [xs])


@pytest.mark.usefixtures("x64")
def test_a_branch_that_was_not_chosen_does_not_spoil_the_gradient() -> None:
    # The square root has an infinite derivative at 0, where it is not chosen.
    f = lambda x: lax.cond(x > 0, pnp.sqrt, lambda x: 2 * x, x)  # noqa: E731
    total = lambda xs: perspex.ops.structural.reduce_sum(  # noqa: E731
        batch(lambda x: [f(x)], 3, [xs], [0])[0][0], axes=(0,)
    )
    xs = np.array([0.0, 4.0, 0.0])
    for g in (checks.grad(total), perspex.jit(checks.grad(total))):
        np.testing.assert_allclose(g(xs), [2.0, 0.25, 2.0])
    # The same where the operand is common to all examples, and no example chose the root.
    shared = lambda x, ps: perspex.ops.structural.reduce_sum(  # noqa: E731
        batch(lambda p: [lax.cond(p, pnp.sqrt, lambda x: 2 * x, x)], 3, [ps], [0])[0][0], axes=(0,)
    )
    assert float(checks.grad(shared)(0.0, np.array([False] * 3))) == 6.0


def test_batch_with_a_shared_index_runs_one_branch() -> None:
    x = np.ones((4, 2), np.float32)
    f = lambda i, x: batch(lambda x: choice(i, x, Y.astype(np.float32)), 4, [x], [0])[0]  # noqa: E731
    jaxpr = make_jaxpr(f)(np.int32(1), x)
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert "cond" in names and "select_n" not in names


def test_residuals_share_slots() -> None:
    def f(i: Any, x: Any) -> list[Any]:
        # One residual each, of one type: sin needs a cosine, exp itself, the product x.
        return [lax.switch(i, [pnp.sin, pnp.exp, lambda x: x * 3.0], x)]

    x = np.ones(2, np.float32)
    jaxpr = make_jaxpr(lambda i, x: checks.pullback(lambda x: f(i, x), [x])[1](x))(1, x)
    ahead, back = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "cond"]
    assert len(ahead.outvars) == 2  # the result, and the one slot that is not the result
    check(jaxpr.jaxpr)


def test_zero_cotangents_stay_symbolic() -> None:
    def f(i: Any, x: Any) -> list[Any]:
        return lax.cond(i, lambda x: [x * 2.0, pnp.sin(x)], lambda x: [x, x], x)

    x = np.float32(1)
    for which, ops in ((0, {"mul"}), (1, {"mul"})):
        cts = [x if k == which else None for k in range(2)]

        def cotangent(i: Any, x: Any, cts: Any = cts) -> Any:
            return checks.pullback(lambda x: f(i, x), [x])[1](*cts)

        jaxpr = make_jaxpr(lambda i, x, g=cotangent: g(i, x))(True, x)
        back = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "cond"][-1]
        found = {e.primitive.name for b in back.params["branches"] for e in b.eqns}
        assert found == ops
        assert len(back.outvars) == 1


def test_what_branches_close_over_is_an_operand_once() -> None:
    def f(p: Any, w: Any) -> Any:
        return lax.cond(p, lambda: w * 2.0, lambda: w * w)

    jaxpr = make_jaxpr(f)(True, np.ones(3, np.float32))
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "cond"]
    assert len(eqn.invars) == 2


def test_results_that_are_operands_do_not_go_through() -> None:
    f = lambda p, x: lax.cond(p, lambda x: (x, x * 2), lambda x: (x, x), x)  # noqa: E731
    jaxpr = make_jaxpr(f)(True, 1.0)
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "cond"]
    assert len(eqn.outvars) == 1 and jaxpr.jaxpr.outvars[0] is jaxpr.jaxpr.invars[1]


def test_dead_results() -> None:
    closed = make_jaxpr(lambda p, x, y: lax.cond(p, lambda: (x, y * 2), lambda: (y, x * y)))(
        True, 1.0, 2.0
    )
    smaller, needed = dce_jaxpr(closed.jaxpr, [True, False])
    (eqn,) = [eqn for eqn in smaller.eqns if eqn.primitive.name == "cond"]
    assert len(eqn.outvars) == 1 and needed == [True, True, True]
    assert not any(branch.eqns for branch in eqn.params["branches"])
    check(smaller)


def test_weak_types() -> None:
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type
    assert not lax.cond(True, lambda: 1.0, lambda: np.float32(2)).weak_type
    assert not perspex.jit(lambda p: lax.cond(p, lambda: 1.0, lambda: np.float32(2)))(1).weak_type


def test_typed_keys() -> None:
    random = perspex.random
    keys = random.split(random.key(0), 3)
    f = lambda p, k: [random.key_data(lax.cond(p, lambda k: random.fold_in(k, 1), lambda k: k, k))]  # noqa: E731
    p = np.array([True, False, True])
    got = checks.mapped(f, 3, [p, keys], [0, 0])[0]
    for i in range(3):
        want = random.fold_in(keys[i], 1) if p[i] else keys[i]
        assert np.array_equal(got[i], random.key_data(want))
