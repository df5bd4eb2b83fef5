"""`closure_convert`, `custom_gradient`, `linear_transpose`, `linear_call`, `stop_gradient`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.custom_derivatives import linear_call
from perspex.ir.jaxpr import check

X = np.float32(0.7)
V = np.array([0.5, -1.0, 2.0], np.float32)
A = np.arange(6, dtype=np.float32).reshape(2, 3)


# ---- closure_convert, custom_gradient -----------------------------------------------------------


def test_closures_become_arguments() -> None:
    counts = []

    def f(c: Any, n: Any, x: Any) -> Any:
        converted, consts = perspex.closure_convert(lambda x: {"y": c * n * pnp.sin(x) * V}, x)
        counts.append(len(consts))
        return converted(x, *consts)["y"].sum()

    expected = 3 * np.sin(X) * V.sum()
    np.testing.assert_allclose(f(2.0, 3, X), 2 * expected, rtol=1e-6)
    np.testing.assert_allclose(perspex.grad(f)(2.0, 3, X), expected, rtol=1e-6)
    np.testing.assert_allclose(perspex.jit(perspex.grad(f))(2.0, 3, X), expected, rtol=1e-6)
    # What is not traced, and integers, stay in the function.
    assert counts == [0, 1, 1]


def test_closures_in_a_function_with_a_rule() -> None:
    """The use that `closure_convert` is for: Newton's method with an implicit derivative."""

    def solve(f: Any, x: Any) -> Any:
        converted, consts = perspex.closure_convert(f, x)
        return root(converted, x, consts)

    def root(f: Any, x: Any, consts: Any) -> Any:
        @perspex.custom_vjp
        def run(x: Any, consts: Any) -> Any:
            step = lambda i, x: x - f(x, *consts) / perspex.grad(f)(x, *consts)  # noqa: E731
            return lax.fori_loop(0, 10, step, x)

        def fwd(x: Any, consts: Any) -> Any:
            y = run(x, consts)
            return y, (y, consts)

        def bwd(res: Any, ct: Any) -> Any:
            y, consts = res
            by_consts = perspex.grad(lambda consts: f(y, *consts))(consts)
            slope = -ct / perspex.grad(f)(y, *consts)
            return None, perspex.tree.map(lambda g: slope * g, by_consts)

        run.defvjp(fwd, bwd)
        return run(x, consts)

    def cube_root(a: Any) -> Any:
        return solve(lambda x: x**3 - a, pnp.float32(1))

    np.testing.assert_allclose(cube_root(8.0), 2.0, rtol=1e-6)
    for f in (perspex.grad(cube_root), perspex.jit(perspex.grad(cube_root))):
        np.testing.assert_allclose(f(8.0), 1 / 12, rtol=1e-5)


def test_custom_gradient() -> None:
    @perspex.custom_gradient
    def f(x: Any, y: Any) -> Any:
        s = pnp.sin(x)
        return {"a": s * y, "n": 3}, lambda ct: (3 * ct["a"] * s, x * ct["a"])

    assert f(X, y=X)["n"] == 3
    loss = lambda x, y: f(x, y)["a"]  # noqa: E731
    for g in (loss, perspex.jit(loss)):
        dx, dy = perspex.grad(g, (0, 1))(X, V[0])
        np.testing.assert_allclose([dx, dy], [3 * np.sin(X), X], rtol=1e-6)
    np.testing.assert_allclose(
        perspex.grad(lambda x: perspex.grad(lambda x: loss(x, X))(x))(X), 3 * np.cos(X), rtol=1e-6
    )
    np.testing.assert_allclose(perspex.vmap(perspex.grad(loss))(V, V), 3 * np.sin(V), rtol=1e-6)
    single = perspex.custom_gradient(lambda x: (x * 2, lambda ct: ct * 7))
    assert perspex.grad(single)(2.0) == 7.0


def test_wrong_custom_gradients() -> None:
    with pytest.raises(TypeError, match="`<lambda>` at .*must return a pair"):
        perspex.custom_gradient(lambda x: x)(X)
    wrong = perspex.custom_gradient(lambda x, y: (x * y, lambda ct: ct))
    with pytest.raises(TypeError, match="must give a tuple of 2 cotangents, one for each argument"):
        perspex.grad(wrong)(X, X)


# ---- linear_transpose, linear_call --------------------------------------------------------------


def test_transposes() -> None:
    matvec = lambda x: A @ x  # noqa: E731
    ct = np.array([1.0, -2.0], np.float32)
    for f in (matvec, perspex.jit(matvec)):
        (got,) = perspex.linear_transpose(f, V)(ct)
        np.testing.assert_allclose(got, A.T @ ct)
        (got,) = perspex.jit(lambda ct, f=f: perspex.linear_transpose(f, V)(ct))(ct)
        np.testing.assert_allclose(got, A.T @ ct)
        np.testing.assert_allclose(
            perspex.vmap(perspex.linear_transpose(f, V))(np.stack([ct, 2 * ct]))[0],
            [A.T @ ct, 2 * A.T @ ct],
        )
    shape = perspex.ShapeDtypeStruct((3,), np.float32)
    args = {"u": shape, "v": pnp.zeros(2)}, X
    g = perspex.linear_transpose(lambda p, y: {"a": p["u"][1:] - p["v"], "b": 2 * y}, *args)
    back, y = g({"a": ct, "b": X})
    np.testing.assert_allclose(back["u"], [0, 1, -2])
    np.testing.assert_allclose(back["v"], -ct)
    np.testing.assert_allclose(y, 2 * X)


def test_transpose_of_loops_and_of_integers() -> None:
    def loop(x: Any) -> Any:
        return lax.scan(lambda c, w: (2 * c + x * w, c), x, V)[0]

    # 2**3 x + (4 * 0.5 - 2 * 1 + 2) x
    assert perspex.linear_transpose(loop, X)(np.float32(1))[0] == 10.0
    (got,) = perspex.linear_transpose(lambda n: n[:2] * 3, np.arange(3))(np.array([1, 2]))
    np.testing.assert_array_equal(got, [3, 6, 0])
    assert got.dtype == np.int32


def test_what_is_not_linear() -> None:
    for f, message in (
        (pnp.sin, "is not linear in its arguments: the primitive `sin`"),
        (
            lambda x: x * x,
            r"`<lambda>` at .*is not linear in its arguments: .* must be linear, but `mul` at "
            r"test_closures.py:\d+ \(<lambda>\) takes two values that depend on",
        ),
        (perspex.jit(lambda x: x * x), "must be linear, but `mul` at test_closures.py"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            perspex.linear_transpose(f, X)(X)
    with pytest.raises(TypeError, match="only supports .* got .*'int32'"):
        perspex.linear_transpose(lambda x, n: x * n, X, 3)
    identity = perspex.linear_transpose(lambda x: x, V)
    with pytest.raises(TypeError, match="cotangent tree does not match"):
        identity((V,))
    with pytest.raises(TypeError, match=r"expected float32\[3\], got float32\[\]"):
        identity(X)


def divided(r: Any, x: Any) -> Any:
    """`x / r`, with a transpose that is wrong by a factor, so that it shows where it was used."""
    return linear_call(lambda r, x: {"y": x / r}, lambda r, ct: 3 * ct["y"] / r, r, x)["y"]


def test_linear_call() -> None:
    r, x = np.float32(2), np.float32(5)
    for f in (divided, perspex.jit(divided), lambda r, x: lax.cond(r > 0, divided, divided, r, x)):
        assert f(r, x) == 2.5
        assert perspex.jvp(lambda x, f=f: f(r, x), (x,), (x,)) == (2.5, 2.5)
        assert perspex.grad(f, 1)(r, x) == 1.5
        np.testing.assert_allclose(perspex.vmap(f, (0, None))(V, x), x / V)
        np.testing.assert_allclose(perspex.vmap(perspex.grad(f, 1), (0, None))(V, x), 3 / V)
        total = lambda x, f=f: perspex.vmap(f, (0, None))(V, x).sum()  # noqa: E731
        np.testing.assert_allclose(perspex.grad(total)(x), (3 / V).sum())
        # The transpose of the transpose is the function again.
        back = perspex.linear_transpose(lambda x, f=f: f(r, x), x)
        assert back(x)[0] == 7.5
        assert perspex.linear_transpose(lambda ct, back=back: back(ct)[0], x)(x)[0] == 2.5
    check(perspex.make_jaxpr(perspex.grad(divided, 1))(r, x).jaxpr)
    with pytest.raises(TypeError, match="cannot differentiate with respect to residual_args"):
        perspex.grad(divided)(r, x)


def test_wrong_linear_calls() -> None:
    for transpose, message in (
        (lambda r, ct: (ct, ct), r"`<lambda>` at .*returned PyTreeDef\(\(\*, \*\)\)"),
        (lambda r, ct: ct * V, r"returned float32\[3\] for float32\[\]"),
    ):
        with pytest.raises(TypeError, match=message):
            perspex.grad(lambda x, t=transpose: linear_call(lambda r, x: x, t, (), x))(X)


# ---- stop_gradient ------------------------------------------------------------------------------


def test_stop_gradient_of_trees() -> None:
    key = perspex.random.key(0)
    stopped = lax.stop_gradient({"x": V, "n": np.arange(3), "k": key, "b": True, "none": None})
    np.testing.assert_array_equal(stopped["x"], V)
    np.testing.assert_array_equal(stopped["n"], np.arange(3))
    assert stopped["k"].dtype == key.dtype and stopped["b"] == 1 and stopped["none"] is None
    f = lambda x: (lax.stop_gradient({"x": x, "n": 2})["x"] * x).sum()  # noqa: E731
    for g in (f, perspex.jit(f), lambda x: perspex.vmap(f)(x)):
        np.testing.assert_allclose(perspex.grad(lambda x, g=g: g(x).sum())(V), V)
    assert perspex.jvp(lax.stop_gradient, (X,), (X,))[1] == 0
    second = perspex.grad(lambda x: perspex.grad(f)(x))
    assert second(X) == 0.0
    with pytest.raises(TypeError, match="not a valid array"):
        lax.stop_gradient("no")
