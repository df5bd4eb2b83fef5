"""`custom_jvp`: the rule is used wherever a derivative is taken, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.base import events
from perspex.custom_derivatives import SymbolicZero
from perspex.ir.jaxpr import check, count_eqns

X = np.float32(0.7)
V = np.array([0.5, -1.0, 2.0], np.float32)


def softplus() -> Any:
    """`log(1 + exp(x))` with a derivative that does not overflow: a rule that is right."""

    @perspex.custom_jvp
    def f(x: Any) -> Any:
        return pnp.log(1 + pnp.exp(x))

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), t / (1 + pnp.exp(-x))

    return f


def marked() -> Any:
    """The identity with the derivative 3: a rule that shows where it was used."""
    f = perspex.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    return f


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.float64(x)))


# ---- Values -------------------------------------------------------------------------------------


def test_derivatives_of_any_order() -> None:
    f = softplus()
    assert perspex.grad(f)(100.0) == 1.0
    s = sigmoid(X)
    for order, expected in enumerate([s, s * (1 - s), s * (1 - s) * (1 - 2 * s)]):
        g = f
        for _ in range(order + 1):
            g = perspex.grad(g)
        np.testing.assert_allclose(g(X), expected, rtol=1e-5)
        np.testing.assert_allclose(perspex.jit(g)(X), expected, rtol=1e-5)
    np.testing.assert_allclose(perspex.hessian(f)(X), s * (1 - s), rtol=1e-5)
    primal, tangent = perspex.jvp(f, (X,), (np.float32(2),))
    np.testing.assert_allclose([primal, tangent], [np.log1p(np.exp(X)), 2 * s], rtol=1e-5)


WRAPPERS: dict[str, tuple[Callable[..., Any], float]] = {
    "plain": (lambda f: f, 3.0),
    "jit": (perspex.jit, 3.0),
    "nested jit": (lambda f: perspex.jit(lambda x: perspex.jit(f)(x)), 3.0),
    "vmap": (lambda f: lambda x: perspex.vmap(f)(x[None])[0], 3.0),
    "scan": (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0], 9.0),
    "fori": (lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x), 9.0),
    "cond": (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 3.0),
    "checkpoint": (lambda f: perspex.checkpoint(f), 3.0),
    "inside another": (lambda f: within(f), 3.0),
}


def within(f: Any) -> Any:
    """A function whose rule differentiates `f`."""
    g = perspex.custom_jvp(lambda x: f(x))
    g.defjvp(lambda primals, tangents: perspex.jvp(f, primals, tangents))
    return g


@pytest.mark.parametrize("name", WRAPPERS)
def test_rule_is_used_through(name: str) -> None:
    wrap, slope = WRAPPERS[name]
    g = wrap(marked())
    x = pnp.float32(2.0)
    assert g(x) == 2.0
    assert perspex.jvp(g, (x,), (x,)) == (2.0, 2 * slope)
    assert perspex.grad(g)(x) == slope
    assert perspex.jit(perspex.grad(g))(x) == slope
    np.testing.assert_array_equal(perspex.vmap(perspex.grad(g))(V[[0, 2]]), [slope, slope])
    assert perspex.grad(lambda x: perspex.grad(lambda x: g(x) ** 2)(x))(x) == 2 * slope**2


def test_pytrees_integers_and_keyword_arguments() -> None:
    @perspex.custom_jvp
    def f(params: Any, n: Any, scale: Any = 2.0) -> Any:
        return {"y": params["w"] * n * scale, "n": n + 1}

    seen = []

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        params, n, scale = primals
        dp, dn, ds = tangents
        seen.append(dn.dtype)
        return f(*primals), {"y": dp["w"] * n * scale + 10 * ds, "n": dn}

    loss = lambda p, n, s: f(scale=s, n=n, params=p)["y"]  # noqa: E731
    assert perspex.grad(loss)({"w": 3.0}, 2, 5.0) == {"w": 10.0}
    assert perspex.grad(loss, 2)({"w": 3.0}, 2, 5.0) == 10.0
    assert perspex.grad(lambda p: f(p, 2)["y"])({"w": 3.0}) == {"w": 4.0}
    assert seen == [perspex.float0] * 3


def test_what_is_not_differentiated() -> None:
    @partial(perspex.custom_jvp, nondiff_argnums=(0,), nondiff_argnames=("n",))
    def apply(f: Any, x: Any, n: int) -> Any:
        return f(x) * n

    @apply.defjvp
    def rule(f: Any, n: Any, primals: Any, tangents: Any) -> Any:
        return apply(f, *primals, n), perspex.jvp(f, primals, tangents)[1] * n * 10

    np.testing.assert_allclose(
        perspex.grad(lambda x: apply(pnp.sin, x, n=3))(X), 30 * np.cos(X), rtol=1e-6
    )
    assert apply.nondiff_argnums == (0, 2)
    np.testing.assert_allclose(
        perspex.grad(lambda x, n: apply(pnp.sin, x, n), (0, 1))(X, X)[1], 0.0
    )
    with pytest.raises(
        ValueError, match="nondiff_argnames names 'm', but `f` has the parameters x"
    ):
        perspex.custom_jvp(_named_f, nondiff_argnames=("m",))
    with pytest.raises(ValueError, match="nondiff_argnums has 1, but `f` has 1 arguments"):
        perspex.custom_jvp(_named_f, nondiff_argnums=(1,))


def f(x: Any) -> Any:
    return x


_named_f = f


def test_rules_for_each_argument_see_no_zeros() -> None:
    called = []

    def of_x(t: Any, out: Any, x: Any, y: Any) -> Any:
        called.append("x")
        return {"a": t * y}

    def of_y(t: Any, out: Any, x: Any, y: Any) -> Any:
        called.append("y")
        return {"a": x * t + 0 * out["a"]}

    g = perspex.custom_jvp(lambda x, y: {"a": x * y})
    g.defjvps(of_x, of_y)
    assert perspex.grad(lambda x: g(x, 5.0)["a"])(2.0) == 5.0
    assert called == ["x"]
    assert perspex.grad(lambda x: g(x, x)["a"])(2.0) == 4.0
    g.defjvps(None, None)
    assert perspex.grad(lambda x: g(x, x)["a"])(2.0) == 0.0
    with pytest.raises(TypeError, match="a rule or None for each of the 2 arguments"):
        g.defjvps(of_x)


def test_symbolic_zeros() -> None:
    seen: list[Any] = []
    g = perspex.custom_jvp(lambda x, y, n: (x * y, y))

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append([t.__class__ is SymbolicZero for t in tangents])
        x, y, n = primals
        return g(*primals), (tangents[0] * y, SymbolicZero.from_primal_value(y))

    g.defjvp(rule, symbolic_zeros=True)
    one = lambda x: g(x, 3.0, 1)[0]  # noqa: E731
    for f in (one, perspex.jit(one), lambda x: perspex.vmap(one)(x[None])[0]):
        assert perspex.grad(f)(pnp.float32(2)) == 3.0
    assert seen == [[False, True, True]] * 3
    assert perspex.jvp(lambda x: g(x, 3.0, 1)[1], (1.0,), (1.0,)) == (3.0, 0.0)


def test_python_may_depend_on_values() -> None:
    @perspex.custom_jvp
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return f(*primals), tangents[0] if primals[0] > 0 else -tangents[0]

    assert f(-2.0) == 2.0
    assert perspex.grad(f)(-2.0) == -1.0
    assert perspex.grad(perspex.grad(f))(-2.0) == 0.0
    assert perspex.vmap(lambda x: x * f(-3.0))(V).shape == (3,)
    with pytest.raises(perspex.errors.TracerBoolConversionError):
        perspex.jit(f)(-2.0)


def test_what_a_function_closes_over() -> None:
    def times(c: Any, x: Any) -> Any:
        f = perspex.custom_jvp(lambda x: c * x)
        f.defjvp(lambda primals, tangents: (f(*primals), 3 * c * tangents[0]))
        return f(x)

    assert perspex.grad(times, 1)(2.0, 5.0) == 6.0
    assert perspex.jit(perspex.grad(times, 1))(2.0, 5.0) == 6.0
    np.testing.assert_array_equal(perspex.vmap(perspex.grad(times, 1), (0, None))(V, X), 3 * V)
    np.testing.assert_array_equal(perspex.vmap(times, (0, None))(V, X), V * X)
    total = lambda x: perspex.vmap(times, (0, None))(V, x).sum()  # noqa: E731
    np.testing.assert_allclose(perspex.grad(total)(X), 3 * V.sum())
    table = np.arange(3, dtype=np.float32)
    loop = lambda x: lax.scan(lambda c, _: (times(table, c), None), x, None, length=2)[0]  # noqa: E731
    np.testing.assert_allclose(perspex.grad(lambda x: loop(x).sum())(V), 9 * table**2)
    for g in (times, perspex.jit(times), lambda c, x: lax.cond(x > 0, times, times, c, x)):
        with pytest.raises(
            perspex.errors.UnexpectedTracerError,
            match=r"`<lambda>` has a rule of its own.*argument",
        ):
            perspex.grad(g)(2.0, 5.0)


def test_what_a_function_in_a_program_closes_over() -> None:
    """The program is differentiated when the values that were closed over are known no more."""

    def times(c: Any, x: Any) -> Any:
        f = perspex.custom_jvp(lambda x: c * pnp.sin(x))
        f.defjvp(lambda primals, tangents: (f(*primals), 3 * c * tangents[0] * primals[0]))
        return f(x)

    def twice(c: Any, x: Any) -> Any:
        return times(c, times(c, x))

    def scanned(c: Any, x: Any) -> Any:
        return lax.scan(lambda y, _: (times(c, y), None), x, None, length=2)[0]

    c = pnp.float32(2)
    expected = 3 * c * X * 3 * c * (c * np.sin(X))
    np.testing.assert_allclose(perspex.grad(twice, 1)(c, X), expected, rtol=1e-6)
    d = perspex.grad(scanned, 1)
    for g in (
        d,
        perspex.jit(d),
        perspex.grad(perspex.jit(scanned), 1),
        perspex.grad(perspex.jit(twice), 1),
    ):
        np.testing.assert_allclose(g(c, X), expected, rtol=1e-6)
    each = [d(pnp.float32(c), X) for c in V]
    for g in (d, perspex.jit(d), perspex.grad(perspex.jit(scanned), 1)):
        np.testing.assert_allclose(perspex.vmap(g, (0, None))(V, X), each, rtol=1e-6)
    total = lambda x: perspex.vmap(scanned, (0, None))(V, x).sum()  # noqa: E731
    np.testing.assert_allclose(perspex.jit(perspex.grad(total))(X), sum(each), rtol=1e-6)
    kept = lambda x: perspex.checkpoint(lambda x: scanned(c, x))(x)  # noqa: E731
    np.testing.assert_allclose(perspex.jit(perspex.grad(kept))(X), expected, rtol=1e-6)

    def late(c: Any, x: Any) -> Any:
        f = perspex.custom_jvp(lambda x: x)
        f.defjvp(lambda primals, tangents: (primals[0], 3 * c * tangents[0]))
        return f(x)

    # What only the rule closes over is not known to the program.
    with pytest.raises(perspex.errors.UnexpectedTracerError, match="was traced has returned"):
        perspex.grad(perspex.jit(late), 1)(2.0, 5.0)
    in_scan = lambda c, x: lax.scan(lambda y, _: (late(c, y), None), x, None, length=2)[0]  # noqa: E731
    with pytest.raises(perspex.errors.UnexpectedTracerError, match="in `<lambda>` closes over"):
        perspex.jit(perspex.grad(in_scan, 1))(2.0, 5.0)


# ---- Programs -----------------------------------------------------------------------------------


def test_one_equation_that_is_inlined() -> None:
    g = softplus()
    jaxpr = perspex.make_jaxpr(lambda x: g(x) * 2)(X)
    check(jaxpr.jaxpr)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["custom_jvp_call", "mul"]
    text = perspex.jit(g).lower(X).as_text()
    assert "call" not in text.replace("custom_jvp_call", "") and "log" in text
    batched = perspex.make_jaxpr(perspex.vmap(g))(V)
    check(batched.jaxpr)
    assert [eqn.primitive.name for eqn in batched.eqns] == ["custom_jvp_call"]


def test_gradient_has_no_more_than_the_rule_says() -> None:
    jaxpr = perspex.make_jaxpr(lambda x: perspex.grad(softplus())(x))(pnp.float32(1))
    check(jaxpr.jaxpr)
    # The value, which nobody reads, and: neg exp add div.
    assert [e.primitive.name for e in jaxpr.eqns[1:]] == ["neg", "exp", "add", "div"]

    f = perspex.custom_jvp(lambda x: (pnp.sin(x), pnp.cos(x), pnp.exp(x)))
    f.defjvp(lambda p, t: (f(*p), (2 * t[0], 3 * t[0], 5 * t[0])))
    loop = lambda x: lax.scan(lambda c, _: (f(c)[1], None), x, None, length=3)[0]  # noqa: E731
    jaxpr = perspex.make_jaxpr(perspex.grad(loop))(X)
    check(jaxpr.jaxpr)
    forward, backward = jaxpr.eqns
    # What nobody reads is gone from the body, and the rule's tangents with it.
    assert count_eqns(forward.params["jaxpr"].jaxpr) == 2
    assert count_eqns(backward.params["jaxpr"].jaxpr) == 1
    assert perspex.grad(loop)(X) == 27.0


def test_residuals_of_rules_go_through_scan() -> None:
    f = perspex.custom_jvp(lambda x, w: pnp.sin(x) * w)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, w), (dx, dw) = primals, tangents
        return f(x, w), 2 * pnp.cos(x) * w * dx + 3 * pnp.sin(x) * dw

    def loop(x: Any, ws: Any) -> Any:
        return lax.scan(lambda c, w: (f(c, w), c), x, ws)[0]

    def expected(x: Any, ws: Any) -> tuple[Any, Any]:
        xs = [np.float64(x)]
        for w in ws:
            xs.append(np.sin(xs[-1]) * w)
        ct, cts = 1.0, []
        for x, w in zip(xs[-2::-1], ws[::-1], strict=True):
            cts.append(3 * np.sin(x) * ct)
            ct *= 2 * np.cos(x) * w
        return ct, cts[::-1]

    for g in (
        perspex.grad(loop, (0, 1)),
        perspex.jit(perspex.grad(perspex.checkpoint(loop), (0, 1))),
    ):
        dx, dws = g(X, V)
        want = expected(X, V)
        np.testing.assert_allclose(dx, want[0], rtol=1e-5)
        np.testing.assert_allclose(dws, want[1], rtol=1e-5)


def test_rules_are_no_part_of_what_is_compiled() -> None:
    def run() -> Any:
        f = marked()
        return lax.scan(lambda c, x: (f(c) + x, None), X, V)[0]

    kinds: list[str] = []
    unsubscribe = events.subscribe(lambda event: kinds.append(event.kind))
    try:
        run()
        assert kinds.count("compile") == 1
        run()
        assert kinds.count("compile") == 1
    finally:
        unsubscribe()


def test_narrow_types_beside_python_numbers() -> None:
    f = perspex.custom_jvp(lambda x, s: x * s)
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1] + p[0] * t[1]))
    x = pnp.bfloat16(3)
    got = perspex.grad(lambda x: f(x, 2.0).astype(pnp.float32))(x)
    assert (got, got.dtype) == (2.0, pnp.bfloat16)
    assert perspex.grad(lambda s: f(x, s).astype(pnp.float32))(2.0) == 3.0


# ---- Errors -------------------------------------------------------------------------------------


def ruled(rule: Any) -> Any:
    @perspex.custom_jvp
    def double(x: Any) -> Any:
        return {"y": 2 * x}

    double.defjvp(rule)
    return double


WRONG: dict[str, tuple[Any, str]] = {
    "no pair": (
        lambda p, t: {"y": p[0]},
        r"rule `<lambda>` at .*function `double` must produce a pair",
    ),
    "tree": (
        lambda p, t: ({"y": p[0]}, t[0]),
        r"`double`.*same structure, but they are PyTreeDef\(\{'y': \*\}\) and PyTreeDef\(\*\)",
    ),
    "none": (lambda p, t: ({"y": p[0]}, {"y": None}), "`double`.*array of zeros"),
    "shape": (
        lambda p, t: ({"y": p[0]}, {"y": V}),
        r"float32\[\] for result\['y'\], got shape \(3,\)",
    ),
    "dtype": (
        lambda p, t: ({"y": p[0]}, {"y": t[0].astype("float16")}),
        r"result\['y'\], got dtype float16, and not float32.*astype",
    ),
    "no array": (lambda p, t: ({"y": p[0]}, {"y": "no"}), "a value of type <class 'str'>"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name: str) -> None:
    rule, message = WRONG[name]
    for wrap in (lambda f: f, perspex.jit):
        g = wrap(ruled(rule))
        with pytest.raises(TypeError, match=message):
            perspex.jvp(g, (X,), (X,))


def test_a_rule_that_disagrees_with_the_function() -> None:
    with pytest.raises(TypeError, match=r"structure PyTreeDef\(\*\), and `double` returns"):
        perspex.jvp(perspex.jit(ruled(lambda p, t: (p[0], t[0]))), (X,), (X,))
    wrong = ruled(lambda p, t: ({"y": p[0] * V}, {"y": t[0] * V}))
    with pytest.raises(TypeError, match=r"result\['y'\] is float32\[3\], and `double` returns"):
        perspex.jvp(perspex.jit(wrong), (X,), (X,))
    counting = perspex.custom_jvp(lambda n: n)
    counting.defjvp(lambda p, t: (p[0], p[0]))
    both = perspex.custom_jvp(lambda x: (x, 1))
    both.defjvp(lambda p, t: ((p[0], 1), (t[0], 1)))
    with pytest.raises(TypeError, match="expected the tangent type of int32.*perspex.float0"):
        perspex.grad(lambda x: both(x)[0])(X)


def test_wrong_calls() -> None:
    with pytest.raises(
        AttributeError, match=r"No JVP defined for custom_jvp function f using defjvp"
    ):
        perspex.custom_jvp(f)(X)
    g = marked()
    with pytest.raises(TypeError, match="could not be resolved to positional arguments.*'y'"):
        perspex.jit(lambda x: g(x, y=1))(X)
    with pytest.raises(TypeError, match="argument x of `<lambda>` is of type <class 'str'>"):
        perspex.jit(lambda x: g("no"))(X)
    with pytest.raises(TypeError, match="custom_jvp takes a function, got 3"):
        perspex.custom_jvp(3)
    text = perspex.custom_jvp(lambda x: "no")
    text.defjvp(lambda p, t: (p, t))
    with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
        perspex.jit(text)(X)


def test_what_is_closed_over_may_decide_where_it_has_no_slope() -> None:
    """The slope of a comparison is zero: the rule misses nothing."""

    def f(x: Any) -> Any:
        g = perspex.custom_jvp(lambda y: pnp.where(x > 0, 2 * y, y))
        g.defjvp(lambda primals, tangents: (g(*primals), 10 * tangents[0]))
        return perspex.jit(g)(x)

    assert perspex.grad(f)(3.0) == 10
