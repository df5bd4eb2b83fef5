"""`while` as a primitive: values, forward mode, batches of loops that end at different turns."""

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
from perspex.transforms.linearize import linearize
from perspex.transforms.vmap import batch


def loop(a: Any, n: Any) -> list[Any]:
    def body(carry: Any) -> Any:
        i, c, s = carry
        return i + 1, pnp.sin(c) * a + s, s * 0.5

    return list(lax.while_loop(lambda carry: carry[0] < n, body, (0, a * 2, 1.0)))


def reference(a: Any, n: Any) -> list[Any]:
    i, c, s = 0, a * 2, 1.0
    while i < n:
        i, c, s = i + 1, np.sin(c) * a + s, s * 0.5
    return [i, c, s]


def agree(got: Any, want: Any) -> None:
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-14)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("n", [-1, 0, 1, 5])
def test_value(n: int) -> None:
    agree(loop(0.7, n), reference(0.7, n))
    agree(perspex.jit(loop)(0.7, n), reference(0.7, n))


@pytest.mark.usefixtures("x64")
def test_forward() -> None:
    for n in (0, 4):
        checks.check_forward(lambda a, n=n: loop(a, n)[1:], [np.float64(0.7)])
        # Forward over forward.
        tangent = lambda a, n=n: checks.forward(lambda b: loop(b, n)[1:2], [a], [a * 0 + 1])  # noqa: E731
        checks.check_forward(tangent, [np.float64(0.7)])


@pytest.mark.usefixtures("x64")
def test_tangent_of_the_condition_is_not_needed() -> None:
    f = lambda x: [lax.while_loop(lambda c: c < 10.0 * x, lambda c: c * 2.0 * x, x)]  # noqa: E731
    checks.check_forward(f, [np.float64(1.1)])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("which", ["a", "n", "both"])
def test_batches(which: str) -> None:
    a = np.array([0.1, 0.5, 0.9, 1.3]) if which != "n" else np.float64(0.7)
    n = np.array([0, 3, 1, 5]) if which != "a" else np.int64(4)
    axes = [0 if which != "n" else None, 0 if which != "a" else None]
    for f in (loop, perspex.jit(loop)):
        got = checks.mapped(f, 4, [a, n], axes)
        for i in range(4):
            agree(
                [y[i] for y in got],
                reference(a[i] if axes[0] == 0 else a, n[i] if axes[1] == 0 else n),
            )


@pytest.mark.usefixtures("x64")
def test_batches_of_batches_and_of_tangents() -> None:
    a, n = np.array([0.1, 0.5]), np.array([[0, 3, 1], [5, 2, 2]])

    def inner(a: Any, ns: Any) -> list[Any]:
        return batch(loop, 3, [a, ns], [None, 0])[0]

    got = perspex.jit(lambda a, n: batch(inner, 2, [a, n], [0, 0])[0])(a, n)
    for i in range(2):
        for j in range(3):
            agree([y[i, j] for y in map(np.asarray, got)], reference(a[i], n[i, j]))

    def tangent(a: Any, n: Any) -> list[Any]:
        return checks.forward(lambda a: loop(a, n)[1:2], [a], [1.0])

    got = checks.mapped(tangent, 2, [a, n[0, :2]], [0, 0])[0]
    for i in range(2):
        np.testing.assert_allclose(got[i], tangent(a[i], n[0, i])[0], rtol=1e-12)


def test_batch_whose_condition_is_shared_stays_a_scalar_condition() -> None:
    jaxpr = make_jaxpr(lambda a: batch(lambda a: loop(a, 3), 4, [a], [0])[0])(np.ones(4))
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "while"]
    cond = eqn.params["cond_jaxpr"].jaxpr
    assert [e.primitive.name for e in cond.eqns] == ["lt"]
    # The counter and s are the same for all.
    assert [v.aval.shape for v in eqn.outvars] == [(), (4,), ()]


def test_finished_loops_do_not_run_on() -> None:
    # Past its end each loop would overflow, and go on to NaN.
    n = np.array([2, 40], np.int32)
    f = lambda n: [  # noqa: E731
        lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * c[1] - c[1]), (0, 3.0))[1]
    ]
    got = checks.mapped(f, 2, [n], [0])[0]
    assert got[0] == np.float32(30.0) and not np.isfinite(got[1])


def test_typed_keys_are_carried_by_batches_of_loops() -> None:
    random = perspex.random
    keys = random.split(random.key(3), 3)
    n = np.array([1, 3, 0], np.int32)

    def f(key: Any, n: Any) -> list[Any]:
        body = lambda c: (c[0] + 1, random.fold_in(c[1], 7))  # noqa: E731
        return [random.key_data(lax.while_loop(lambda c: c[0] < n, body, (0, key))[1])]

    got = checks.mapped(f, 3, [keys, n], [0, 0])[0]
    for i in range(3):
        key = keys[i]
        for _ in range(n[i]):
            key = random.fold_in(key, 7)
        assert np.array_equal(got[i], random.key_data(key))


def test_reverse_mode_says_what_to_do_instead() -> None:
    with pytest.raises(ValueError, match=r"Reverse-mode.*lax\.while_loop.*Use lax\.scan"):
        checks.grad(lambda a: loop(a, 3)[1])(np.float32(1))
    with pytest.raises(ValueError, match="fori_loop with bounds that are Python integers"):
        f = lambda n, x: lax.fori_loop(0, n, lambda i, c: c * 2, x)  # noqa: E731
        perspex.jit(lambda n, x: checks.grad(f, 1)(n, x))(3, 1.0)


def test_reverse_mode_goes_round_loops_without_tangents() -> None:
    f = lambda x: x * x * lax.while_loop(lambda c: c < 9.0, lambda c: c * 2, 3.0)  # noqa: E731
    assert float(checks.grad(f)(2.0)) == 48.0


def test_what_is_known_is_computed_once_and_handed_on() -> None:
    def f(x: Any) -> list[Any]:
        body = lambda c: (c[0] + 1, c[1] * 1.5, c[2] * x)  # noqa: E731
        return list(lax.while_loop(lambda c: c[0] < 3, body, (0, 1.0, x)))

    point = linearize(f, [np.float32(2)], [True])
    agree(point.outs, [3, 1.5**3, 16.0])
    assert point.nonzero == [False, False, True]
    # The unknown part does not carry what neither the tangent nor the condition reads.
    (loop_eqn,) = [e for e in point.jaxpr.eqns if e.primitive.name == "while"]
    assert len(loop_eqn.outvars) == 3
    (tangent,) = checks.forward(lambda x: f(x)[2:], [np.float32(2)], [np.float32(1)])
    assert float(tangent) == 4 * 2.0**3


def test_dead_carry() -> None:
    def f(n: Any) -> Any:
        body = lambda c: (c[0] + 1, c[1] * 2.0, c[2] + c[1])  # noqa: E731
        return lax.while_loop(lambda c: c[0] < n, body, (0, 1.0, 0.0))

    closed = make_jaxpr(f)(3)
    for used, carries in (((1, 0, 0), 1), ((0, 1, 0), 2), ((0, 0, 1), 3)):
        smaller, _ = dce_jaxpr(closed.jaxpr, used)
        (eqn,) = smaller.eqns
        assert len(eqn.outvars) == carries
        check(smaller)
