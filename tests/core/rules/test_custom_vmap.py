"""`custom_vmap` and `sequential_vmap`: the rule is used wherever a batch is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.custom_batching import custom_vmap, sequential_vmap
from perspex.ir.jaxpr import check

X = np.float32(0.7)
V = np.array([0.5, -1.0, 2.0], np.float32)
M = V[:, None] * V[:2]


def marked() -> tuple[Any, list[Any]]:
    """`x * y`, ten times that in batches, and the flags that the rule was given."""
    seen: list[Any] = []
    f = custom_vmap(lambda x, y: {"z": x * y})

    @f.def_vmap
    def rule(axis_size: int, in_batched: list[Any], x: Any, y: Any) -> Any:
        seen.append((axis_size, in_batched))
        return {"z": 10 * x * y}, {"z": any(in_batched)}

    return f, seen


def test_rule_is_used_in_batches_only() -> None:
    f, seen = marked()
    assert f(2.0, 3.0) == {"z": 6.0}
    assert perspex.jit(f)(2.0, y=3.0) == {"z": 6.0}
    assert not seen
    np.testing.assert_allclose(perspex.vmap(f)(V, V)["z"], 10 * V**2)
    np.testing.assert_allclose(perspex.vmap(f, (None, 0))(X, V)["z"], 10 * X * V)
    np.testing.assert_allclose(perspex.vmap(f, (1, None))(M, V)["z"], 10 * M.T * V)
    assert seen == [(3, [True, True]), (3, [False, True]), (2, [True, False])]


def test_in_programs_and_nested() -> None:
    f, seen = marked()
    g = lambda x, y: f(x, y)["z"]  # noqa: E731
    np.testing.assert_allclose(perspex.jit(perspex.vmap(g, (0, None)))(V, X), 10 * X * V)
    np.testing.assert_allclose(perspex.vmap(perspex.jit(g), (0, None))(V, X), 10 * X * V)
    outer = perspex.vmap(perspex.vmap(g, (0, None)), (None, 0))
    np.testing.assert_allclose(outer(V[:2], V), 10 * M, rtol=1e-6)
    loop = lambda x: lax.scan(lambda c, _: (g(c, x), None), x, None, length=2)[0]  # noqa: E731
    np.testing.assert_allclose(perspex.vmap(loop)(V), 100 * V**3, rtol=1e-6)
    jaxpr = perspex.make_jaxpr(g)(X, X)
    check(jaxpr.jaxpr)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["custom_vmap_call"]


def test_derivatives() -> None:
    f, _ = marked()
    g = lambda x, y: f(x, y)["z"]  # noqa: E731
    x = pnp.float32(2)
    assert perspex.jvp(g, (x, x), (x, x)) == (4.0, 8.0)
    # The rule is differentiated where batches come first, the function where derivatives do.
    for wrap in (lambda f: f, perspex.jit):
        mapped = lambda v, wrap=wrap: perspex.vmap(wrap(g))(v, v).sum()  # noqa: E731
        np.testing.assert_allclose(perspex.grad(mapped)(V), 20 * V)
        both = lambda v, wrap=wrap: perspex.jvp(wrap(g), (v, X), (X, v))  # noqa: E731
        y, t = perspex.vmap(both)(V)
        np.testing.assert_allclose(y, 10 * V * X, rtol=1e-6)
        np.testing.assert_allclose(t, 10 * (X * X + V * V), rtol=1e-6)
        gradient = perspex.grad(wrap(g), (0, 1))
        assert gradient(x, x + 1) == (3.0, 2.0)
        np.testing.assert_allclose(perspex.vmap(gradient, (0, None))(V, X)[1], V)


def test_several_results_of_which_one_is_an_integer() -> None:
    f = custom_vmap(lambda x: (x, 3, 2 * x))
    f.def_vmap(lambda n, b, x: ((x, 3, 20 * x), (True, False, True)))
    run = perspex.vmap(lambda x: perspex.jvp(lambda x: f(x)[::2], (x,), (x,)))
    (a, b), (da, db) = run(V)
    np.testing.assert_allclose([a, b, da, db], [V, 20 * V, V, 20 * V])
    loop = lambda x: lax.scan(lambda c, _: (f(c)[2], None), x, None, length=2)[0]  # noqa: E731
    assert perspex.make_jaxpr(perspex.grad(loop))(X)
    np.testing.assert_allclose(perspex.vmap(loop)(V), 400 * V)
    np.testing.assert_allclose(perspex.grad(loop)(X), 4.0)


def test_a_value_that_is_closed_over_is_differentiated() -> None:
    def scaled(c: Any) -> Any:
        f = custom_vmap(lambda x: x * c)
        f.def_vmap(lambda n, b, x: (5 * x, True))
        return f(3.0), f(c), perspex.vmap(f)(V), f(x=c**2)

    for run in (scaled, perspex.jit(scaled)):
        outs, tangents = perspex.jvp(run, (2.0,), (1.0,))
        for got, want in zip(outs, (6.0, 4.0, 5 * V, 8.0), strict=True):
            np.testing.assert_allclose(got, want)
        for got, want in zip(tangents, (3.0, 4.0, 0 * V, 12.0), strict=True):
            np.testing.assert_allclose(got, want)
        gradient = perspex.grad(lambda c, run=run: run(c)[1])(2.0)
        assert gradient == 4.0
    first = lambda c: perspex.jvp(scaled, (c,), (1.0,))[1][1]  # noqa: E731
    assert perspex.jvp(first, (2.0,), (1.0,)) == (4.0, 2.0)


def test_what_is_closed_over() -> None:
    def times(c: Any, x: Any) -> Any:
        f = custom_vmap(lambda x: c * x)
        f.def_vmap(lambda n, b, x: (10 * c * x, True))
        return f(x)

    np.testing.assert_allclose(perspex.vmap(times, (None, 0))(X, V), 10 * X * V)
    # A batch of what is closed over is none of arguments: the function itself is batched.
    np.testing.assert_allclose(perspex.vmap(times, (0, None))(V, X), X * V)
    np.testing.assert_allclose(perspex.vmap(perspex.jit(times), (0, None))(V, X), X * V)
    np.testing.assert_allclose(perspex.grad(perspex.jit(times))(X, X), X)
    # A call that has nothing to do with one batch keeps its rule for the next.
    f, _ = marked()
    inner = lambda y: perspex.vmap(lambda x: x + f(y, y)["z"])(V)  # noqa: E731
    for g in (inner, perspex.jit(inner)):
        np.testing.assert_allclose(perspex.vmap(g)(V), V + 10 * V[:, None] ** 2)
    # Two batches: the rule is for that of the argument, and closes over one of the other.
    both = lambda y: perspex.vmap(times, (0, None))(V, y)  # noqa: E731
    np.testing.assert_allclose(perspex.vmap(both)(M), 10 * M[:, None, :] * V[:, None])
    np.testing.assert_allclose(perspex.vmap(both, 1)(M), 10 * M.T[:, None, :] * V[:, None])
    other = lambda y: perspex.vmap(times, (0, None), 1)(V, y)  # noqa: E731
    np.testing.assert_allclose(perspex.vmap(other)(M), 10 * M[:, :, None] * V)
    mapped = perspex.jit(perspex.vmap(times, (0, None)))
    expected = V * V[:, None]
    np.testing.assert_allclose(perspex.vmap(mapped, (None, 0))(V, V), expected)
    np.testing.assert_allclose(perspex.jvp(mapped, (V, X), (V, X))[1], 2 * V * X)


@pytest.mark.parametrize("wrap", [perspex.jit, perspex.checkpoint], ids=["jit", "checkpoint"])
def test_a_rule_closes_over_what_its_function_does(wrap: Any) -> None:
    """In a program, what the function closes over is an argument, and the rule gets it."""

    def mapped(c: Any, x: Any) -> Any:
        f = custom_vmap(lambda x: x + c)
        f.def_vmap(lambda n, b, x: (10 * (x + c), True))
        return perspex.vmap(wrap(f))(x)

    want = 10 * (V + X)
    np.testing.assert_allclose(perspex.jit(mapped)(X, V), want, rtol=1e-6)
    np.testing.assert_allclose(perspex.vmap(mapped, (0, None))(V, V), 10 * (V + V[:, None]))
    out, tangent = perspex.jvp(perspex.jit(mapped), (X, V), (np.float32(1), 2 * V))
    np.testing.assert_allclose(out, want, rtol=1e-6)
    np.testing.assert_allclose(tangent, 10 * (1 + 2 * V), rtol=1e-6)
    gradient = perspex.grad(lambda c: mapped(c, V).sum())(X)
    np.testing.assert_allclose(gradient, 30)
    twice = perspex.vmap(lambda x: mapped(X, x))(M)
    np.testing.assert_allclose(twice, 10 * (M + X), rtol=1e-6)


def test_sequential() -> None:
    calls = []

    def f(x: Any, y: Any) -> Any:
        calls.append(x.shape)
        return {"z": x @ y}

    g = sequential_vmap(f)
    np.testing.assert_allclose(perspex.vmap(g, (0, None))(M, V[:2])["z"], M @ V[:2], rtol=1e-6)
    jaxpr = perspex.make_jaxpr(perspex.vmap(g))(M, M)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["scan"]
    assert set(calls) == {(2,)}
    total = lambda m: perspex.vmap(g)(m, m)["z"].sum()  # noqa: E731
    np.testing.assert_allclose(perspex.grad(total)(M), 2 * M, rtol=1e-6)


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "no pair": (
        lambda n, b, x: x,
        TypeError,
        "vmap rule `<lambda>` at .*function `same` must produce",
    ),
    "flags": (
        lambda n, b, x: (x, (True,)),
        ValueError,
        "(?s)output batching specification.*do not match",
    ),
    "tree": (lambda n, b, x: ((x,), (True,)), ValueError, "`same` returns PyTreeDef"),
    "no axis": (lambda n, b, x: (x[0], True), ValueError, r"result is batched, but its shape \(\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name: str) -> None:
    rule, kind, message = WRONG[name]

    @custom_vmap
    def same(x: Any) -> Any:
        return x

    same.def_vmap(rule)
    with pytest.raises(kind, match=message):
        perspex.jit(perspex.vmap(perspex.jit(same)))(V)


def test_no_rule() -> None:
    with pytest.raises(
        AttributeError, match="No batching rule defined for custom_vmap function <lambda>"
    ):
        custom_vmap(lambda x: x)(X)
