"""`custom_vjp`: reverse mode by a rule; forward mode refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.custom_derivatives import CustomVJPPrimal, SymbolicZero, zero_from_primal
from perspex.ir.jaxpr import check, count_eqns, sub_jaxprs
from perspex.tracing.staging import eval_jaxpr
from perspex.transforms.dce import dce_jaxpr

X = np.float32(0.7)
V = np.array([0.5, -1.0, 2.0], np.float32)


def powered(times: float = 5.0, optimize_remat: bool = False) -> Any:
    """`x**3` whose gradient is `times * x**2`."""

    @perspex.custom_vjp
    def cube(x: Any) -> Any:
        return x * x * x

    def cube_fwd(x: Any) -> Any:
        return x * x * x, {"square": x * x}

    def cube_bwd(res: Any, ct: Any) -> Any:
        return (times * ct * res["square"],)

    cube.defvjp(cube_fwd, cube_bwd, optimize_remat=optimize_remat)
    return cube


both = pytest.mark.parametrize("optimize_remat", [False, True], ids=["plain", "optimized"])


@both
def test_values(optimize_remat: bool) -> None:
    f = powered(optimize_remat=optimize_remat)
    x = pnp.float32(2)
    assert f(x) == 8.0
    for g in (f, perspex.jit(f), perspex.checkpoint(f), lambda x: lax.cond(x > 0, f, f, x)):
        assert perspex.value_and_grad(g)(x) == (8.0, 20.0)
        assert perspex.jit(perspex.grad(g))(x) == 20.0
        # The rule itself is differentiated for higher orders: d/dx 5 x**2.
        assert perspex.grad(perspex.grad(g))(x) == 20.0
        np.testing.assert_allclose(perspex.vmap(perspex.grad(g))(V), 5 * V**2)
        total = lambda v, g=g: perspex.vmap(g)(v).sum()  # noqa: E731
        np.testing.assert_allclose(perspex.grad(total)(V), 5 * V**2)
        np.testing.assert_allclose(perspex.jit(perspex.grad(total))(V), 5 * V**2)
    np.testing.assert_allclose(perspex.jacrev(perspex.vmap(f))(V), np.diag(5 * V**2))


@both
def test_right_rules_agree_with_finite_differences(optimize_remat: bool) -> None:
    with perspex.enable_x64(True):
        f = powered(3.0, optimize_remat)
        point, step = 0.7, 1e-5

        def loop(x: Any) -> Any:
            return lax.scan(lambda c, w: (pnp.sin(f(c)) * w, c), x, np.array([0.5, 2.0]))[0]

        expected = (loop(point + step) - loop(point - step)) / (2 * step)
        np.testing.assert_allclose(perspex.grad(loop)(point), expected, rtol=1e-8)
        second = (perspex.grad(loop)(point + step) - perspex.grad(loop)(point - step)) / (2 * step)
        np.testing.assert_allclose(perspex.grad(perspex.grad(loop))(point), second, rtol=1e-7)
        # Forward mode of what the rule computed is possible: only of the function it is not.
        np.testing.assert_allclose(perspex.hessian(loop)(point), second, rtol=1e-7)


def test_residuals_are_stacked_and_the_forward_pass_stays_clean() -> None:
    f = powered()
    loop = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]  # noqa: E731
    jaxpr = perspex.make_jaxpr(perspex.grad(loop))(X)
    check(jaxpr.jaxpr)
    forward, backward = jaxpr.eqns
    # The cube, and the square that is kept.
    assert count_eqns(forward.params["jaxpr"].jaxpr) == 3
    assert [v.aval.shape for v in forward.outvars] == [(), (2,)]
    assert [e.primitive.name for e in backward.params["jaxpr"].eqns] == ["mul", "mul"]
    np.testing.assert_allclose(perspex.grad(loop)(X), 25 * X**8, rtol=1e-5)


def test_one_equation_that_is_inlined() -> None:
    f = powered()
    jaxpr = perspex.make_jaxpr(f)(X)
    check(jaxpr.jaxpr)
    (eqn,) = jaxpr.eqns
    assert eqn.primitive.name == "custom_vjp_call"
    assert "bwd=cube_bwd" in str(jaxpr) and "fwd=cube_fwd" in str(jaxpr)
    assert "call" not in perspex.jit(f).lower(X).as_text()


def test_cotangents_that_are_left_out() -> None:
    f = perspex.custom_vjp(lambda p, n, x: p["w"] * x + p["b"])
    f.defvjp(
        lambda p, n, x: (f(p, n, x), None), lambda _, ct: ({"w": ct * 7, "b": None}, n_is(3), None)
    )
    params = {"w": np.float32(2), "b": np.float32(1)}
    got = perspex.grad(f)(params, 3, X)
    assert got == {"w": 7.0, "b": 0.0}
    assert perspex.grad(f, 2)(params, 3, X) == 0.0
    g = perspex.custom_vjp(lambda p, x: p["w"] * x)
    g.defvjp(lambda p, x: (g(p, x), None), lambda _, ct: [None, SymbolicZero.from_primal_value(ct)])
    assert perspex.grad(g, (0, 1))(params, X) == ({"w": 0.0, "b": 0.0}, 0.0)


def n_is(n: int) -> Any:
    # The cotangent of an integer is ignored, whatever it is.
    return float(n)


def test_symbolic_zeros() -> None:
    perturbed: list[Any] = []
    zero: list[Any] = []
    f = perspex.custom_vjp(lambda x, y: (x * y, y, 3))

    def fwd(x: Any, y: Any) -> Any:
        assert isinstance(x, CustomVJPPrimal)
        perturbed.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), y.value

    def bwd(y: Any, cts: Any) -> Any:
        zero.append([ct.__class__ is SymbolicZero for ct in cts])
        return cts[0] * y, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    g = lambda x: f(x, np.float32(4.0))[0]  # noqa: E731
    for h in (g, perspex.jit(g), lambda x: perspex.vmap(g)(x[None])[0]):
        assert perspex.grad(h)(pnp.float32(2)) == 4.0
    assert perturbed == [(True, False)] * 3
    assert zero == [[False, True, True]] * 3


def test_zeros_of_integers_and_unused_results_are_arrays() -> None:
    seen: list[Any] = []
    f = perspex.custom_vjp(lambda x: (x, 2 * x, 3))

    def bwd(_: Any, cts: Any) -> Any:
        seen.append([(ct.shape, ct.dtype) for ct in cts])
        return (cts[0] + cts[1].sum(),)

    f.defvjp(lambda x: (f(x), None), bwd)
    perspex.grad(lambda v: f(v)[0].sum())(V)
    assert seen == [[((3,), np.float32), ((3,), np.float32), ((), perspex.float0)]]
    zeros = zero_from_primal({"a": V, "n": 3})
    assert (zeros["a"].shape, zeros["n"].dtype) == ((3,), perspex.float0)


def test_arguments_that_are_no_arrays() -> None:
    @partial(perspex.custom_vjp, nondiff_argnums=(0, 2))
    def apply(f: Any, x: Any, mode: str = "a") -> Any:
        return f(x)

    apply.defvjp(
        lambda f, x, mode: (apply(f, x, mode), x),
        lambda f, mode, x, ct: (ct * f(x) * {"a": 2, "b": 3}[mode],),
    )
    assert perspex.grad(lambda x: apply(pnp.square, x))(3.0) == 18.0
    assert perspex.grad(lambda x: apply(pnp.square, x, mode="b"))(3.0) == 27.0
    with pytest.raises(
        perspex.errors.UnexpectedTracerError, match="argument 0 of the custom_vjp function `apply`"
    ):
        perspex.jit(lambda x: apply(x, x))(X)


def test_python_may_depend_on_values() -> None:
    f = perspex.custom_vjp(lambda x: x if x > 0 else -x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct if x > 0 else -ct,))
    assert (f(-2.0), perspex.grad(f)(-2.0), perspex.grad(perspex.grad(f))(-2.0)) == (2.0, -1.0, 0.0)


def test_cotangents_have_the_precision_of_the_argument() -> None:
    f = perspex.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct.astype("float32") * 3,))
    got = perspex.grad(lambda x: f(x).astype("float32"))(pnp.bfloat16(2))
    assert (got, got.dtype) == (3.0, pnp.bfloat16)


def test_named_axes_inside() -> None:
    f = perspex.custom_vjp(lambda x: x - lax.pmean(x, "i"))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x + lax.psum(ct, "i"),))
    expected = V**2 + V.sum()
    for g in (
        perspex.vmap(f, axis_name="i"),
        perspex.jit(perspex.vmap(f, axis_name="i")),
        perspex.vmap(perspex.jit(f), axis_name="i"),
    ):
        np.testing.assert_allclose(g(V), V - V.mean(), rtol=1e-6)
        got = perspex.grad(lambda v, g=g: (g(v) * V).sum())(V)
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@both
def test_what_is_closed_over(optimize_remat: bool) -> None:
    def times(c: Any, x: Any) -> Any:
        f = perspex.custom_vjp(lambda x: c * x)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * c * ct,), optimize_remat=optimize_remat)
        return f(x)

    assert perspex.grad(times, 1)(2.0, 5.0) == 6.0
    assert perspex.jit(perspex.grad(times, 1))(2.0, 5.0) == 6.0
    np.testing.assert_array_equal(perspex.vmap(perspex.grad(times, 1), (0, None))(V, X), 3 * V)
    assert perspex.grad(perspex.jit(times), 1)(2.0, 5.0) == 6.0
    scanned = lambda c, x: lax.scan(lambda y, _: (times(c, y), None), x, None, length=2)[0]  # noqa: E731
    d = perspex.grad(scanned, 1)
    for g in (d, perspex.jit(d), perspex.grad(perspex.jit(scanned), 1)):
        assert g(2.0, 5.0) == 36.0
        np.testing.assert_allclose(perspex.vmap(g, (0, None))(V, X), 9 * V**2)
    for g in (times, perspex.jit(times)):
        with pytest.raises(perspex.errors.UnexpectedTracerError, match="Pass that value"):
            perspex.grad(g)(2.0, 5.0)

    def late(c: Any, x: Any) -> Any:
        f = perspex.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, x), lambda x, ct: (3 * c * ct,))
        return f(x)

    with pytest.raises(perspex.errors.UnexpectedTracerError, match="was traced has returned"):
        perspex.grad(perspex.jit(late), 1)(2.0, 5.0)


# ---- The function in place of the first half ----------------------------------------------------


def by_quotient(optimize_remat: bool) -> Any:
    """A tangent by `tan`, whose rule goes by sine and cosine, and whose gradient is `exp`."""
    f = perspex.custom_vjp(lambda x: pnp.tan(x))
    f.defvjp(
        lambda x: (pnp.sin(x) / pnp.cos(x), pnp.exp(x)),
        lambda exp, ct: (ct * exp,),
        optimize_remat=optimize_remat,
    )
    return f


WATCHED = {"sin", "cos", "div", "tan", "exp"}


def operations(jaxpr: Any) -> set[str]:
    """Which of the operations that are watched a program does, in what it calls too."""
    inner = [operations(sub.jaxpr) for eqn in jaxpr.eqns for sub in sub_jaxprs(eqn.params)]
    return {eqn.primitive.name for eqn in jaxpr.eqns}.union(*inner) & WATCHED


@pytest.mark.parametrize(
    ("optimize_remat", "first"), [(False, {"sin", "cos", "div"}), (True, {"tan"})]
)
def test_the_function_runs_where_nobody_reads_the_residuals(
    optimize_remat: bool, first: set[str]
) -> None:
    # What `jax.make_jaxpr` of jax 0.12 shows for these functions.
    f = by_quotient(optimize_remat)
    wave = lambda x: pnp.tanh(f(x))  # noqa: E731
    for g, again in ((f, {"exp"}), (wave, {"sin", "cos", "div", "exp"})):
        d = perspex.grad(perspex.checkpoint(g))
        for program, x in ((d, X), (perspex.vmap(d), V)):
            jaxpr = perspex.make_jaxpr(program)(x).jaxpr
            check(jaxpr)
            early, late = [e for e in jaxpr.eqns if e.primitive.name == "remat2"]
            assert operations(early.params["jaxpr"].jaxpr) == first
            assert operations(late.params["jaxpr"].jaxpr) == again
            assert operations(dce_jaxpr(jaxpr, [True])[0]) == again
    both_wanted = perspex.make_jaxpr(perspex.value_and_grad(f))(X).jaxpr
    assert operations(both_wanted) == {"sin", "cos", "div", "exp"}
    forward = perspex.make_jaxpr(lambda x: perspex.jvp(perspex.grad(f), (x,), (x,))[1])(X).jaxpr
    assert operations(dce_jaxpr(forward, [True])[0]) == {"exp"}


def test_the_function_and_its_derivative_take_the_place_of_the_rule() -> None:
    f = by_quotient(True)

    def primal(x: Any) -> Any:
        return perspex.vjp(f, x)[0]

    def tangent(x: Any) -> Any:
        return perspex.jvp(primal, (x,), (np.float32(1),))

    for program, expected in ((primal, np.tan(V)), (tangent, (np.tan(V), 1 / np.cos(V) ** 2))):
        jaxpr = perspex.make_jaxpr(perspex.vmap(program))(V).jaxpr
        smaller, _ = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
        check(smaller)
        assert operations(jaxpr) >= {"sin", "exp"}
        assert "tan" in operations(smaller) and "exp" not in operations(smaller)
        got = np.squeeze(eval_jaxpr(smaller, (), V))
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    # The second derivative reads the residuals alone.
    rule = perspex.make_jaxpr(perspex.grad(perspex.grad(f)))(X).jaxpr
    assert operations(dce_jaxpr(rule, [True])[0]) == {"exp"}
    np.testing.assert_allclose(perspex.jit(perspex.grad(perspex.grad(f)))(X), np.exp(X), rtol=1e-6)


@both
def test_forward_mode_passes_by_what_nobody_reads(optimize_remat: bool) -> None:
    f = perspex.custom_vjp(pnp.sin)
    # The rule calls the function, whose tangents are not known; but of that only `cos` is read.
    f.defvjp(
        lambda x: (f(x), pnp.cos(x)),
        lambda cos, ct: (3 * cos * ct,),
        optimize_remat=optimize_remat,
    )
    d = perspex.grad(f)
    for g in (
        perspex.jit(d),
        lambda x: lax.cond(x > 0, d, pnp.sin, x),
        lambda x: lax.scan(lambda c, x: (c, d(x)), 0, x[None])[1][0],
        perspex.jit(perspex.checkpoint(d)),
    ):
        got = perspex.jvp(g, (X,), (np.float32(1),))
        np.testing.assert_allclose(got, (3 * np.cos(X), -3 * np.sin(X)), rtol=1e-6)


def test_a_rule_that_disagrees_is_found_before_it_takes_turns() -> None:
    f = perspex.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x * V, None), lambda _, ct: (ct,), optimize_remat=True)
    with pytest.raises(TypeError, match=r"result is float32\[3\], and `<lambda>` returns float32"):
        perspex.make_jaxpr(lambda x: perspex.vjp(f, x)[0])(X)


# ---- Errors -------------------------------------------------------------------------------------


def test_forward_mode_is_refused() -> None:
    f = powered()
    message = r"can't apply forward-mode.*`cube` has a rule for cotangents only \(`cube_bwd`\)"
    for attempt in (
        lambda: perspex.jvp(f, (X,), (X,)),
        lambda: perspex.jvp(perspex.jit(f), (X,), (X,)),
        lambda: perspex.jit(lambda x: perspex.jvp(f, (x,), (x,)))(X),
        lambda: perspex.jacfwd(f)(X),
        lambda: perspex.linearize(f, X)[1](X),
        lambda: perspex.vmap(lambda x: perspex.jvp(f, (x,), (x,)))(V),
        lambda: perspex.grad(lambda x: perspex.jvp(f, (x,), (x,))[1])(X),
    ):
        with pytest.raises(TypeError, match=message):
            attempt()


def ruled(fwd: Any = None, bwd: Any = None) -> Any:
    @perspex.custom_vjp
    def scale(params: Any, x: Any) -> Any:
        return {"y": params["w"] * x}

    scale.defvjp(
        fwd or (lambda params, x: (scale(params, x), None)),
        bwd or (lambda _, ct: ({"w": ct["y"]}, ct["y"])),
    )
    return lambda params, x: scale(params, x)["y"]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "fwd no pair": (
        {"fwd": lambda p, x: {"y": x}},
        TypeError,
        "fwd rule `<lambda>` at .*function `scale` must produce a pair.*residuals",
    ),
    "residual": (
        {"fwd": lambda p, x: ({"y": x}, {"name": "no"})},
        TypeError,
        r"<class 'str'> among the residuals, residuals\['name'\].*nondiff_argnums",
    ),
    "bwd no tuple": (
        {"bwd": lambda _, ct: ct["y"]},
        TypeError,
        r"bwd rule `<lambda>` at .*`scale` must produce.*each of its 2 arguments",
    ),
    "bwd count": ({"bwd": lambda _, ct: (None,)}, TypeError, "each of its 2 arguments"),
    "bwd tree": ({"bwd": lambda _, ct: ({"v": ct["y"]}, None)}, TypeError, "same structure"),
    "bwd shape": (
        {"bwd": lambda _, ct: ({"w": ct["y"] * V}, None)},
        ValueError,
        r"output\[0\]\['w'\].*shape \(3,\), and not \(\).*argument params\['w'\] of type float32",
    ),
    "bwd dtype": (
        {"bwd": lambda _, ct: ({"w": np.int32(1)}, None)},
        TypeError,
        r"output\[0\]\['w'\].*dtype int32, and not float32",
    ),
    "bwd no array": ({"bwd": lambda _, ct: ({"w": "no"}, None)}, TypeError, "<class 'str'>"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name: str) -> None:
    halves, kind, message = WRONG[name]
    params = {"w": np.float32(2)}
    for wrap in (lambda f: f, perspex.jit):
        with pytest.raises(kind, match=message):
            perspex.grad(wrap(ruled(**halves)))(params, X)


def test_a_rule_that_disagrees_with_the_function() -> None:
    params = {"w": np.float32(2)}
    for fwd, message in (
        (lambda p, x: (x, None), r"structure PyTreeDef\(\*\), and `scale` returns"),
        (lambda p, x: ({"y": x * V}, None), r"result\['y'\] is float32\[3\], and `scale` returns"),
    ):
        with pytest.raises(TypeError, match=message):
            perspex.grad(perspex.jit(ruled(fwd)))(params, X)
    with pytest.raises(
        AttributeError, match="No VJP defined for custom_vjp function f using defvjp"
    ):
        perspex.custom_vjp(f)(X)


def f(x: Any) -> Any:
    return x


def test_a_tangent_that_nothing_reads_is_not_asked_for() -> None:
    """A rule by `jvp` leaves the tangents of arguments whose derivative nobody wants."""
    sine = perspex.custom_vjp(lambda x: pnp.sin(x))
    sine.defvjp(lambda x: (pnp.sin(x), x), lambda x, ct: (ct * pnp.cos(x),))

    def f(a: Any, x: Any) -> Any:
        return sine(a) + pnp.sum(x * x)

    ruled = perspex.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: perspex.jvp(f, primals, tangents))
    slope = perspex.grad(ruled, 1)
    other = perspex.custom_vjp(slope)
    other.defvjp(lambda a, x: (slope(a, x), None), lambda _, ct: (None, 2 * ct))
    mapped = perspex.custom_batching.custom_vmap(slope)
    mapped.def_vmap(lambda size, batched, a, x: (2 * x, True))
    for g in (slope, other, mapped, perspex.checkpoint(other)):
        np.testing.assert_array_equal(perspex.jit(g)(0.5, V), 2 * V)
        scanned = lax.scan(lambda a, x, g=g: (a, g(a, x)), 0.5, V[None])[1]
        np.testing.assert_array_equal(scanned[0], 2 * V)
