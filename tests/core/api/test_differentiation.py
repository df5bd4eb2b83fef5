"""`grad`, `jvp`, `vjp`, `linearize`, Jacobians and Hessians over pytrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.api.differentiation import grad, jvp, linearize, value_and_grad, vjp
from perspex.api.jacobians import hessian, jacfwd, jacrev
from perspex.dtypes import float0
from perspex.ops.structural import reduce_sum

F = np.array([1.0, 2.0, 3.0], np.float32)


def total(x: Any) -> Any:
    return reduce_sum(x, axes=tuple(range(x.ndim)))


def kind(x: Any) -> tuple[str, bool]:
    return x.dtype.name, x.weak_type


# ---- Gradients ----------------------------------------------------------------------------------


def test_gradients_have_the_type_of_the_argument() -> None:
    assert kind(grad(lambda x: pnp.sin(x) * 2.0)(1.0)) == ("float32", True)
    assert kind(grad(lambda x: pnp.sin(x) * 2.0)(np.float32(1))) == ("float32", False)
    assert kind(grad(lambda x: 1.0)(2.0)) == ("float32", True)
    zero = grad(lambda x: 1.0)(F)
    assert kind(zero) == ("float32", False) and zero.shape == (3,) and not np.any(zero)
    assert kind(grad(lambda x: total(x * x))(F.astype(np.float16))) == ("float16", False)


def test_trees_and_arguments() -> None:
    def loss(p: Any, x: Any, *, scale: Any = 1.0) -> Any:
        return total(p["w"] * x) * p["b"][0] * scale

    p = {"w": F, "b": [2.0, 3.0]}
    found = grad(loss)(p, F, scale=2.0)
    np.testing.assert_allclose(found["w"], 4 * F)
    assert [float(b) for b in found["b"]] == [28.0, 0.0]
    np.testing.assert_allclose(grad(loss, argnums=1)(p, F), 2 * F)
    np.testing.assert_allclose(grad(loss, argnums=-1)(p, F), 2 * F)
    first, second = grad(loss, argnums=(1, 0))(p, F)
    np.testing.assert_allclose(first, 2 * F)
    assert set(second) == {"w", "b"}
    (only,) = grad(loss, argnums=(1,))(p, F)
    np.testing.assert_allclose(only, 2 * F)


def test_value_and_auxiliary_output() -> None:
    def loss(x: Any) -> Any:
        return x * x, {"x": x, "label": "a", "twice": x * 2}

    value, found = value_and_grad(lambda x: x * x)(3.0)
    assert (float(value), float(found)) == (9.0, 6.0)
    (value, aux), found = value_and_grad(loss, has_aux=True)(3.0)
    assert (float(value), float(found), float(aux["twice"])) == (9.0, 6.0, 6.0)
    assert aux["label"] == "a" and aux["x"] == 3.0
    found, aux = grad(loss, has_aux=True)(np.float32(3))
    assert float(found) == 6.0 and float(aux["twice"]) == 6.0


def test_complex() -> None:
    z = np.complex64(1 + 2j)
    np.testing.assert_allclose(grad(lambda z: z * z, holomorphic=True)(z), 2 * z)
    # Of a real function of a complex argument: the conjugate of the direction of ascent.
    np.testing.assert_allclose(grad(abs)(np.complex64(3 + 4j)), 0.6 - 0.8j, rtol=1e-6)


def test_integers_if_they_are_allowed() -> None:
    found = grad(lambda x, n: total(x * x) * n, argnums=(0, 1), allow_int=True)(F, 2)
    np.testing.assert_allclose(found[0], 4 * F)
    assert found[1].dtype == float0 and found[1].shape == ()


@pytest.mark.usefixtures("x64")
def test_through_jit_loops_and_branches() -> None:
    @perspex.jit
    def f(x: Any) -> Any:
        last, ys = lax.scan(lambda c, k: (pnp.sin(c) * x + k, c), x, np.arange(4.0))
        return lax.cond(last > 0, lambda: last * total(ys), lambda: last)

    x, h = 0.7, 1e-6
    want = (float(f(x + h)) - float(f(x - h))) / (2 * h)
    np.testing.assert_allclose(grad(f)(x), want, rtol=1e-8)
    np.testing.assert_allclose(perspex.jit(grad(f))(x), want, rtol=1e-8)
    second = (float(grad(f)(x + h)) - float(grad(f)(x - h))) / (2 * h)
    np.testing.assert_allclose(grad(grad(f))(x), second, rtol=1e-6)
    np.testing.assert_allclose(hessian(f)(x), second, rtol=1e-6)


def test_control_flow_of_python() -> None:
    f = lambda x: x * x if x > 0 else -x  # noqa: E731
    assert [float(grad(f)(v)) for v in (3.0, -3.0)] == [6.0, -1.0]


def test_names_and_documentation() -> None:
    def loss(x: Any) -> Any:
        """The loss."""
        return x

    assert grad(loss).__name__ == "loss"
    assert grad(loss).__doc__ == (
        "Gradient of loss with respect to positional argument(s) 0. Takes the same arguments as "
        "loss but returns the gradient, which has the same shape as the arguments at positions 0."
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: grad(lambda x: x)(F), TypeError, r"scalar-output.*shape: \(3,\).*output.sum\(\)"),
        (lambda: grad(lambda x: (x, x))(1.0), TypeError, "scalar-output functions. Output was"),
        (lambda: grad(lambda x: None)(1.0), TypeError, "Output was None"),
        (lambda: grad(lambda x: 1)(1.0), TypeError, "real-valued outputs.*int32.*use vjp"),
        (lambda: grad(lambda x: x * 1j)(1.0), TypeError, "holomorphic=True"),
        (lambda: grad(lambda x: "s")(1.0), TypeError, "returned a value of type <class 'str'>"),
        (lambda: grad(lambda x: x)(1), TypeError, "real- or complex-valued inputs.*allow_int"),
        (lambda: grad(lambda x: x, holomorphic=True)(1.0), TypeError, "inputs with complex dtype"),
        (lambda: grad(lambda p: 1.0)({"w": "s"}), TypeError, r"argument p\['w'\] is of type"),
        (lambda: grad(lambda x, y: x, 1)(1.0), TypeError, "requires at least 2 positional"),
        (lambda: grad(lambda x: x, -2)(1.0), TypeError, "requires at least 2 positional"),
        (lambda: grad(lambda x: x, ())(1.0), ValueError, "argnums is empty"),
        (lambda: grad(lambda x: x, 1.0), TypeError, "argnums must be an integer"),
        (lambda: grad(lambda x: x, (0, 0))(1.0), ValueError, "names an argument twice"),
        (lambda: grad(3), TypeError, "Expected a callable value, got 3"),
        (lambda: grad(lambda x: x, has_aux=True)(1.0), TypeError, "two-element tuple"),
        (lambda: grad(lambda x: (x,), has_aux=True)(1.0), TypeError, "tuple'> of length 1"),
        (lambda: jacfwd(lambda x: x)(1), TypeError, "jacfwd requires real-valued inputs"),
        (lambda: jacfwd(lambda x: x > 1)(1.0), TypeError, "outputs.*bool"),
        (lambda: jacrev(lambda x: x)(1), TypeError, "allow_int"),
        (lambda: jacrev(lambda x: x > 1)(1.0), TypeError, "real-valued outputs.*bool"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# ---- jvp, vjp, linearize ------------------------------------------------------------------------


def test_jvp() -> None:
    def f(p: Any, n: Any) -> Any:
        return {"a": p["x"] * n, "b": p["x"] > 1, "c": 3.0}

    zero = np.zeros((), float0)
    out, tangent = jvp(f, ({"x": 2.0}, 3), ({"x": 5.0}, zero))
    assert float(out["a"]) == 6.0 and float(tangent["a"]) == 15.0
    assert tangent["b"].dtype == float0
    assert kind(tangent["c"]) == ("float32", True) and float(tangent["c"]) == 0.0
    out, tangent, aux = jvp(lambda x: (x * x, x * 3), (2.0,), (1.0,), has_aux=True)
    assert (float(out), float(tangent), float(aux)) == (4.0, 4.0, 6.0)


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "words"),
    [
        ((1.0,), (1,), TypeError, "expected tangent dtype float32, but got tangent dtype int32"),
        ((1,), (1.0,), TypeError, "expected tangent dtype float0"),
        ((1.0,), (F,), ValueError, r"primal shape \(\) and tangent shape as \(3,\).*argument x"),
        ((1.0,), (1.0, 2.0), TypeError, "same tree structure"),
        (1.0, 1.0, TypeError, "must be tuples or lists"),
        ((1.0,), ("s",), TypeError, "the tangent of argument x is of type"),
    ],
)
def test_jvp_errors(primals: Any, tangents: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        jvp(lambda x: x, primals, tangents)


def test_vjp() -> None:
    out, pull = vjp(lambda x, n: {"a": x * n, "b": x > 1}, F, 2)
    np.testing.assert_allclose(out["a"], 2 * F)
    x, n = pull({"a": F, "b": np.zeros(3, float0)})
    np.testing.assert_allclose(x, 2 * F)
    assert n.dtype == float0
    _, pull, aux = vjp(lambda x: (x * x, "aux"), 3.0, has_aux=True)
    assert aux == "aux" and float(pull(2.0)[0]) == 12.0


def test_pullbacks_are_trees_and_cross_jit() -> None:
    _, pull = perspex.jit(lambda x: vjp(lambda x: pnp.sin(x) * x, x))(F)
    want = np.cos(F) * F + np.sin(F)
    np.testing.assert_allclose(pull(np.ones(3, np.float32))[0], want, rtol=1e-6)
    again = perspex.jit(lambda pull, ct: pull(ct)[0])(pull, np.ones(3, np.float32))
    np.testing.assert_allclose(again, want, rtol=1e-6)


def test_linearize() -> None:
    out, push = linearize(lambda x, y: (x * y, y), 2.0, 3.0)
    assert [float(y) for y in out] == [6.0, 3.0]
    assert [float(t) for t in push(1.0, 10.0)] == [23.0, 10.0]
    assert [float(t) for t in perspex.jit(push)(1.0, 0.0)] == [3.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vjp(lambda x: x * 2, 1.0)[1]((1.0,)), ValueError, "unexpected tree structure"),
        (lambda: vjp(lambda x: x * 2, 1.0)[1](F), ValueError, r"got float32\[3\], but expected"),
        (lambda: vjp(lambda x: x * 2, 1.0)[1](1), ValueError, r"got int32\[\]"),
        (lambda: vjp(lambda x: x * 2, 1.0)[1](1.0, 2.0), TypeError, "with 2 arguments"),
        (lambda: linearize(lambda x: x * 2, 1.0)[1](F), ValueError, "inconsistent"),
        (lambda: linearize(lambda x: x * 2, 1.0)[1](1.0, 2.0), TypeError, "of the structure"),
    ],
)
def test_cotangent_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# ---- Jacobians ----------------------------------------------------------------------------------


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
def test_jacobians(jacobian: Any) -> None:
    def f(p: Any, y: Any) -> Any:
        return {"square": p["x"] * p["x"], "outer": p["x"][:2] * y}

    p, y = {"x": F}, np.float32(5)
    for run in (jacobian(f), perspex.jit(jacobian(f))):
        found = run(p, y)
        np.testing.assert_allclose(found["square"]["x"], np.diag(2 * F))
        np.testing.assert_allclose(found["outer"]["x"], 5 * np.eye(2, 3))
    by_x, by_y = jacobian(f, argnums=(0, 1))(p, y)["outer"]
    assert by_x["x"].shape == (2, 3)
    np.testing.assert_allclose(by_y, F[:2])
    found, aux = jacobian(lambda x: (x * x, {"x": x + 1}), has_aux=True)(F)
    np.testing.assert_allclose(found, np.diag(2 * F))
    np.testing.assert_allclose(aux["x"], F + 1)


def test_jacobians_of_results_that_do_not_depend_on_an_argument() -> None:
    for jacobian in (jacfwd, jacrev):
        by_x, by_y = jacobian(lambda x, y: x * 2.0, argnums=(0, 1))(F, F[:2])
        np.testing.assert_allclose(by_x, 2 * np.eye(3))
        assert by_y.shape == (3, 2) and not np.any(by_y)


def test_hessian() -> None:
    def f(p: Any) -> Any:
        return total(p["a"] * p["a"] * p["a"] * p["b"])

    p = {"a": F, "b": F[::-1].copy()}
    found = hessian(f)(p)
    np.testing.assert_allclose(found["a"]["a"], np.diag(6 * F * F[::-1]))
    np.testing.assert_allclose(found["a"]["b"], np.diag(3 * F * F))
    np.testing.assert_allclose(found["b"]["a"], np.diag(3 * F * F))
    assert not np.any(found["b"]["b"])


def _integer_and_float(w: Any, i: Any) -> Any:
    return (w * i).sum()


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x, i: perspex.jit(f)(x, i),
        lambda f, x, i: perspex.checkpoint(f)(x, i),
        lambda f, x, i: lax.cond(pnp.sum(x) > 0, f, f, x, i),
        lambda f, x, i: perspex.jit(lambda x, i: lax.cond(x[0] < 0, f, f, x, i))(x, i),
    ],
    ids=["jit", "checkpoint", "cond", "cond in jit"],
)
def test_the_gradient_of_integers_leaves_programs(call: Any) -> None:
    gradient = grad(_integer_and_float, argnums=(0, 1), allow_int=True)
    for _ in range(2):
        dw, di = call(gradient, pnp.ones(3), pnp.arange(3))
        np.testing.assert_array_equal(dw, [0.0, 1.0, 2.0])
        assert di.dtype == float0
        assert di.shape == (3,)


def test_the_gradient_of_integers_in_batches_and_loops() -> None:
    gradient = grad(_integer_and_float, argnums=(0, 1), allow_int=True)
    x, i = pnp.ones((2, 3)), pnp.arange(6).reshape(2, 3)
    in_turn = lax.scan(lambda c, row: (c, gradient(*row)), 0.0, (x, i))[1]
    at_once = perspex.vmap(gradient)(x, i)
    for dw, di in (in_turn, at_once, perspex.vmap(perspex.jit(gradient))(x, i)):
        np.testing.assert_array_equal(dw, np.arange(6.0).reshape(2, 3))
        assert (di.dtype, di.shape) == (float0, (2, 3))


def test_tangents_of_integers_enter_programs() -> None:
    def push(x: Any, i: Any, di: Any) -> Any:
        return jvp(lambda x, i: (x * i, i + 1), (x, i), (x, di))

    x, i, nothing = pnp.ones(3), pnp.arange(3), np.zeros(3, float0)
    for mapped in (perspex.jit(push), perspex.vmap(push), perspex.jit(perspex.vmap(push))):
        (_, after), (dx, di) = mapped(x, i, nothing)
        np.testing.assert_array_equal(after, [1, 2, 3])
        np.testing.assert_array_equal(dx, [0.0, 1.0, 2.0])
        assert (di.dtype, di.shape) == (float0, (3,))


def test_tangents_of_integers_stay_what_they_are() -> None:
    nothing = np.zeros((2, 3), float0)
    jitted = perspex.jit(pnp.zeros_like)
    for same in (pnp.asarray, pnp.zeros_like, perspex.device_put, jitted, perspex.jit(lambda x: x)):
        found = same(nothing)
        assert (found.dtype, found.shape) == (float0, (2, 3))
    assert perspex.make_jaxpr(lambda x: x)(nothing).in_avals[0].str_short() == "float0[2,3]"


def test_jacobians_of_integer_cotangents() -> None:
    def f(x: Any) -> Any:
        return x * x, grad(lambda n: x * n, allow_int=True)(3)

    x = pnp.float32(0.5)
    for jacobian in (jacfwd(f), perspex.jit(jacfwd(f)), jacfwd(jacfwd(f))):
        slope, nothing = jacobian(x)
        assert (nothing.dtype, nothing.shape) == (float0, ())
    assert slope == 2.0 and jacfwd(f)(x)[0] == 1.0


def test_nothing_computes_with_tangents_of_integers() -> None:
    nothing = np.zeros((2, 3), float0)
    for f in (
        lambda x: pnp.add(x, 1),
        lambda x: pnp.ones(3) * x,
        lambda x: lax.add(x, x),
        pnp.negative,
        pnp.sin,
        pnp.isnan,
        pnp.linalg.norm,
    ):
        for called in (f, perspex.jit(f)):
            with pytest.raises(TypeError, match="with a float0 array"):
                called(nothing)


def test_tangents_of_integers_change_their_shape() -> None:
    nothing = np.zeros((2, 3), float0)
    for f, shape in (
        (lambda x: pnp.reshape(x, (3, 2)), (3, 2)),
        (pnp.ravel, (6,)),
        (lambda x: pnp.broadcast_to(x, (4, 2, 3)), (4, 2, 3)),
        (lambda x: lax.full_like(x[0, 0], 0), ()),
    ):
        for called in (f, perspex.jit(f)):
            found = called(nothing)
            assert (found.dtype, found.shape) == (float0, shape)
    zeros = pnp.astype(nothing, "float32")
    np.testing.assert_array_equal(zeros, np.zeros((2, 3), np.float32))
    assert repr(perspex.typeof(nothing)) == "ShapedArray(float0[2,3])"
