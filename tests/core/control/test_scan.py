"""`scan` as a primitive: values, all its rules, and what they keep out of the loop."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import lax, make_jaxpr
from perspex import numpy as pnp
from perspex.control.scan import scan_p
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, check

rng = np.random.default_rng(0)
W = rng.normal(size=3)
C = rng.normal(size=3)
XS = rng.normal(size=(5, 3))


def step(w: Any, c: Any, x: Any) -> tuple[Any, Any]:
    new = pnp.tanh(pnp.sin(w) * c + x)
    return new, new * c


def reference(w: Any, c: Any, xs: Any, reverse: bool = False) -> list[Any]:
    ys = np.zeros_like(xs)
    for i in range(len(xs))[::-1] if reverse else range(len(xs)):
        new = np.tanh(np.sin(w) * c + xs[i])
        ys[i] = new * c
        c = new
    return [c, ys]


def loop(w: Any, c: Any, xs: Any, **options: Any) -> list[Any]:
    return list(lax.scan(lambda carry, x: step(w, carry, x), c, xs, **options))


OPTIONS = [
    {"reverse": reverse, "unroll": unroll}
    for reverse, unroll in itertools.product([False, True], [1, 2, 4, True])
]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("length", [0, 1, 4, 6])
def test_value(options: dict[str, Any], length: int) -> None:
    xs = np.resize(XS, (length, 3))
    want = reference(W, C, xs, options["reverse"])
    for have, expected in zip(loop(W, C, xs, **options), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.usefixtures("x64")
def test_value_compiled_with_more_steps_a_turn_than_there_are() -> None:
    for unroll in (0, 5, 7):
        got = perspex.jit(lambda *a, n=unroll: loop(*a, unroll=n))(W, C, XS)
        for have, expected in zip(got, reference(W, C, XS), strict=True):
            np.testing.assert_allclose(have, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[5], OPTIONS[3]], ids=str)
def test_derivatives(options: dict[str, Any]) -> None:
    checks.check_derivatives(lambda *a: loop(*a, **options), [W, C, XS])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[5]], ids=str)
def test_batches(options: dict[str, Any]) -> None:
    checks.check_batches(lambda *a: loop(*a, **options), [W, C, XS])


def test_float32_derivatives_are_float32() -> None:
    args = [x.astype(np.float32) for x in (W, C, XS)]
    outs, back = checks.pullback(loop, args)
    cts = [np.ones_like(y) for y in outs]
    found = back(*cts)
    assert [ct.dtype.name for ct in found] == ["float32"] * 3
    with perspex.enable_x64(True):
        wide = checks.pullback(loop, [W, C, XS])[1](*[np.ones(y.shape) for y in outs])
    for have, want in zip(found, wide, strict=True):
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5)


@pytest.mark.usefixtures("x64")
def test_carry_that_gets_its_tangent_late() -> None:
    # The tangent of b comes from a, that of a from x: two steps until all are known.
    def f(x: Any) -> list[Any]:
        def body(carry: Any, _: None) -> tuple[Any, None]:
            a, b, n = carry
            return (a * x, b + a, n + 1), None

        (a, b, n), _ = lax.scan(body, (1.0, 0.0, 0), None, length=4)
        return [a, b, n]

    primals, tangents = perspex.transforms.jvp.jvp(f, [0.5], [1.0])
    np.testing.assert_allclose(primals[1], sum(0.5**k for k in range(4)))
    np.testing.assert_allclose(tangents[0], 4 * 0.5**3)
    np.testing.assert_allclose(tangents[1], 1 + 2 * 0.5 + 3 * 0.25)
    assert tangents[2] is None


@pytest.mark.usefixtures("x64")
def test_carry_that_forgets_its_tangent() -> None:
    f = lambda x: [lax.scan(lambda c, y: (y, c * y), x, np.array([2.0, 3.0]))[1]]  # noqa: E731
    checks.check_derivatives(f, [1.5])
    g = lambda x: [lax.scan(lambda c, y: (y, c), x, np.array([2.0, 3.0]))[0]]  # noqa: E731
    assert float(checks.forward(g, [1.5], [1.0])[0]) == 0.0


@pytest.mark.usefixtures("x64")
def test_results_that_nobody_reads() -> None:
    f = lambda w, c, xs: loop(w, c, xs)[:1]  # noqa: E731
    g = lambda w, c, xs: loop(w, c, xs)[1:]  # noqa: E731
    for h in (f, g):
        checks.check_derivatives(h, [W, C, XS])


@pytest.mark.usefixtures("x64")
def test_nested_scans() -> None:
    def f(w: Any, c: Any, xs: Any) -> list[Any]:
        def outer(c: Any, x: Any) -> tuple[Any, Any]:
            inner, ys = lax.scan(lambda a, b: step(w * b, a, x), c, np.array([0.5, -0.25, 1.0]))
            return inner, ys * c

        return list(lax.scan(outer, c, xs))

    checks.check_derivatives(f, [W, C, XS])
    checks.check_batches(f, [W, C, XS])


def eqns(jaxpr: Jaxpr, name: str) -> list[Any]:
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == name]


def test_what_depends_on_consts_is_not_stacked() -> None:
    def f(w: Any, c: Any) -> Any:
        # sin(w) is the same in every step; its cosine is needed on the way back.
        return lax.scan(lambda a, _: (a * pnp.sin(w), None), c, None, length=7)[0]

    w = np.ones(3, np.float32)
    jaxpr = make_jaxpr(lambda w, c: checks.pullback(lambda w, c: [f(w, c)], [w, c])[1](c))(w, w)
    ahead, back = eqns(jaxpr.jaxpr, "scan")
    # Stacked are only the carries a_0 ... a_6, which the gradient by w reads.
    assert [v.aval.shape for v in ahead.outvars] == [(3,), (7, 3)]
    inside = ahead.params["jaxpr"].jaxpr
    assert [eqn.primitive.name for eqn in inside.eqns] == ["mul"]
    names = [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns]
    assert names.count("sin") == names.count("cos") == 1
    assert not eqns(back.params["jaxpr"].jaxpr, "cos")


def test_xs_are_residuals_as_they_are() -> None:
    def f(c: Any, xs: Any) -> list[Any]:
        return [lax.scan(lambda a, x: (a * x, None), c, xs)[0]]

    xs = np.ones((6, 2), np.float32)
    jaxpr = make_jaxpr(lambda c, xs: checks.pullback(f, [c, xs])[1](c))(xs[0], xs)
    ahead, back = eqns(jaxpr.jaxpr, "scan")
    assert [v.aval.shape for v in ahead.outvars] == [(2,), (6, 2)]
    assert jaxpr.jaxpr.invars[1] in back.invars


def test_ys_are_residuals_as_they_are() -> None:
    def f(c: Any, xs: Any) -> list[Any]:
        def body(a: Any, x: Any) -> tuple[Any, Any]:
            e = pnp.exp(a * x)
            return e, e

        return list(lax.scan(body, c, xs))

    xs = np.ones((6, 2), np.float32)
    jaxpr = make_jaxpr(lambda c, xs: checks.pullback(f, [c, xs])[1](c, xs))(xs[0], xs)
    (ahead, _) = eqns(jaxpr.jaxpr, "scan")
    # carry, ys = exp(a x), and the carries a; exp(a x) is not stacked a second time.
    assert [v.aval.shape for v in ahead.outvars] == [(2,), (6, 2), (6, 2)]


def test_zero_tangents_and_cotangents_stay_symbolic() -> None:
    def f(c: Any, d: Any, xs: Any) -> Any:
        return lax.scan(lambda cd, x: ((cd[0] * x, cd[1] + 1.0), cd[1]), (c, d), xs)

    xs = np.ones(4, np.float32)

    def tangent(c: Any, d: Any, xs: Any) -> Any:
        flat = lambda c: [f(c, d, xs)[0][0]]  # noqa: E731
        return checks.forward(flat, [c], [c])

    (scan,) = eqns(make_jaxpr(tangent)(xs[0], xs[0], xs).jaxpr, "scan")
    # c and its tangent, and d, without one.
    assert scan.params["num_carry"] == 3
    assert sum(eqn.primitive.name == "mul" for eqn in scan.params["jaxpr"].jaxpr.eqns) == 2


def test_unused_carry_is_dead_code() -> None:
    def f(x: Any) -> Any:
        body = lambda c, _: ((c[0] * 2.0, c[1] * c[0], c[2] + 1.0), None)  # noqa: E731
        return lax.scan(body, (x, x, x), None, length=3)[0][0]

    closed = make_jaxpr(f)(1.0)
    smaller, _ = perspex.transforms.dce.dce_jaxpr(closed.jaxpr, [True])
    (scan,) = eqns(smaller, "scan")
    assert scan.params["num_carry"] == 1
    assert len(scan.params["jaxpr"].jaxpr.eqns) == 1
    check(smaller)


def test_carry_that_another_carry_reads_is_not_dead() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: ((c[0] + c[1], c[1] * 2.0), None), (x, x), None, length=3)

    closed = make_jaxpr(lambda x: f(x)[0][0])(1.0)
    smaller, needed = perspex.transforms.dce.dce_jaxpr(closed.jaxpr, [True])
    (scan,) = eqns(smaller, "scan")
    assert scan.params["num_carry"] == 2 and needed == [True]


def test_typed_keys_in_carry_xs_and_ys() -> None:
    random = perspex.random
    keys = random.split(random.key(0), 4)

    def body(key: Any, x: Any) -> tuple[Any, Any]:
        new = random.fold_in(key, 1)
        return new, (x, random.bits(x), key)

    for f in (
        lambda k: lax.scan(body, random.key(1), k),
        perspex.jit(lambda k: lax.scan(body, random.key(1), k)),
    ):
        last, (xs, bits, carried) = f(keys)
        key = random.key(1)
        for i in range(4):
            assert np.array_equal(bits[i], random.bits(keys[i]))
            assert np.array_equal(random.key_data(carried)[i], random.key_data(key))
            key = random.fold_in(key, 1)
        assert np.array_equal(random.key_data(last), random.key_data(key))
        assert np.array_equal(random.key_data(xs), random.key_data(keys))


def test_operands_that_do_not_fit() -> None:
    closed = make_jaxpr(lambda c, x: (c, x))(1.0, 2.0)
    params: dict[str, Any] = {
        "jaxpr": ClosedJaxpr(closed.jaxpr),
        "length": 3,
        "reverse": False,
        "unroll": 1,
        "num_consts": 0,
        "num_carry": 1,
    }
    with pytest.raises(TypeError, match=r"scan: operand 1 has type float32\[4\].*float32\[3\]"):
        make_jaxpr(lambda c, xs: scan_p(c, xs, **params))(1.0, np.ones(4, np.float32))
    with pytest.raises(TypeError, match="scan takes 2 operands, got 1"):
        make_jaxpr(lambda c: scan_p(c, **params))(1.0)


def test_weakly_typed_results() -> None:
    _, ys = lax.scan(lambda c, x: (c, c + 1.0), 0.0, None, length=2)
    assert ys.weak_type
    _, ys = lax.scan(lambda c, x: (c, x), 0.0, np.ones(2, np.float32))
    assert not ys.weak_type


def test_lines_survive_the_transforms() -> None:
    def f(c: Any) -> list[Any]:
        return [lax.scan(lambda a, _: (pnp.sin(a), None), c, None, length=2)[0]]

    jaxpr = make_jaxpr(lambda c: checks.pullback(f, [c])[1](c))(np.float32(1)).jaxpr
    line = f.__code__.co_firstlineno + 1
    for scan in eqns(jaxpr, "scan"):
        assert scan.source.frame.line == line
        for eqn in scan.params["jaxpr"].jaxpr.eqns:
            assert eqn.source.frame.line == line
