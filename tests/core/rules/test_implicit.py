"""`custom_linear_solve` and `custom_root`: derivatives that follow from the equation."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from support import checks

import perspex
from perspex import checkpoint, grad, hessian, jacfwd, jacrev, jit, jvp, lax, make_jaxpr, vmap
from perspex import numpy as pnp
from perspex.ir.jaxpr import check

pytestmark = pytest.mark.usefixtures("x64")

A = np.array([[2.0, 0.5], [-0.3, 1.5]])
B = np.array([0.7, -1.2])


@pytest.fixture
def x64() -> Any:
    with perspex.enable_x64(True):
        yield


def inverse(a: Any) -> Any:
    flipped = pnp.stack([pnp.stack([a[1, 1], -a[0, 1]]), pnp.stack([-a[1, 0], a[0, 0]])])
    return flipped / (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])


def solve(a: Any, b: Any) -> Any:
    """Of two equations, by a `while` loop: no reverse mode of its own."""

    def richardson(matvec: Any, b: Any) -> Any:
        step = lambda s: (s[0] + 1, s[1] - 0.4 * (matvec(s[1]) - b))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < 120, step, (0, b))[1]

    return lax.custom_linear_solve(lambda x: a @ x, b, richardson, richardson)


# ---- custom_linear_solve ------------------------------------------------------------------------


def test_solution_and_derivatives() -> None:
    np.testing.assert_allclose(solve(A, B), np.linalg.solve(A, B), rtol=1e-13)
    checks.check_derivatives(lambda a, b: [solve(a, b)], [A, B])


def test_batches() -> None:
    checks.check_batches(lambda a, b: [solve(a, b), b], [A, B])
    loss = lambda a, b: (solve(a, b) ** 2).sum()  # noqa: E731
    checks.check_batches(lambda a, b: list(grad(loss, (0, 1))(a, b)), [A, B], tol=1e-10)
    # The gradient of a batch is the batch of the gradients.
    many = np.stack([A, A.T, 2 * A])
    found = grad(lambda m: vmap(loss, (0, None))(m, B).sum())(many)
    np.testing.assert_allclose(found, [grad(loss)(a, B) for a in many], rtol=1e-11)


def test_in_loops_branches_calls_and_checkpoints() -> None:
    def f(a: Any, b: Any) -> list[Any]:
        def step(c: Any, k: Any) -> Any:
            y = lax.cond(k > 1.5, lambda: solve(a, c), lambda: c * k)
            return y, checkpoint(solve)(a + k * np.eye(2), y)

        last, ys = lax.scan(step, b, np.arange(1.0, 3.0))
        return [jit(solve)(a, last), ys]

    checks.check_reverse(f, [A, B], tol=1e-11)
    checks.check_forward(f, [A, B])


def test_trees_and_auxiliary_output() -> None:
    scale = {"u": np.array(2.0), "v": np.array([4.0, 5.0])}

    def by(s: Any, b: Any) -> Any:
        matvec = lambda x: {"u": s["u"] * x["u"], "v": s["v"] * x["v"] + x["u"]}  # noqa: E731

        def forward(matvec: Any, b: Any) -> Any:
            u = b["u"] / s["u"]
            return {"u": u, "v": (b["v"] - u) / s["v"]}, {"steps": 3, "norm": b["u"] * 2}

        def backward(vecmat: Any, b: Any) -> Any:
            v = b["v"] / s["v"]
            return {"u": (b["u"] - v.sum()) / s["u"], "v": v}, "unused"

        return lax.custom_linear_solve(
            matvec, b, forward, lambda m, b: (backward(m, b)[0], b["u"]), has_aux=True
        )

    b = {"u": np.array(3.0), "v": np.array([1.0, 2.0])}
    x, aux = by(scale, b)
    np.testing.assert_allclose(x["v"], [-0.125, 0.1])
    assert int(aux["steps"]) == 3 and float(aux["norm"]) == 6.0
    flat = lambda u, v, b, c: perspex.tree.leaves(  # noqa: E731
        by({"u": u, "v": v}, {"u": b, "v": c})[0]
    )
    checks.check_derivatives(flat, [scale["u"], scale["v"], b["u"], b["v"]])
    # Of auxiliary output there is no derivative.
    _, (_, tangents) = jvp(lambda b: by(scale, b), (b,), (b,))
    assert float(tangents["norm"]) == 0.0


def test_a_symmetric_matrix_needs_one_solver() -> None:
    s = A @ A.T

    def f(s: Any, b: Any) -> list[Any]:
        mine = lambda matvec, b: inverse(s) @ b  # noqa: E731
        return [lax.custom_linear_solve(lambda x: s @ x, b, mine, symmetric=True)]

    np.testing.assert_allclose(f(s, B)[0], np.linalg.solve(s, B), rtol=1e-13)
    back = jacrev(lambda b: f(s, b)[0])
    np.testing.assert_allclose(back(B), np.linalg.inv(s), rtol=1e-12)
    np.testing.assert_allclose(jit(back)(B), np.linalg.inv(s), rtol=1e-12)


def test_the_transpose_of_any_linear_function() -> None:
    def by(theta: Any, b: Any) -> Any:
        def matvec(x: Any) -> Any:
            # A rotation in two steps: the loop, a call and a nonlinear coefficient.
            c, s = pnp.cos(theta), pnp.sin(theta)
            turn = jit(lambda y, c, s: pnp.stack([c * y[0] - s * y[1], s * y[0] + c * y[1]]))
            return lax.fori_loop(0, 2, lambda i, y: turn(y, c, s), x)

        def forward(matvec: Any, b: Any) -> Any:
            return pnp.stack([matvec(e) for e in np.eye(2)]) @ b  # its inverse is its transpose

        return lax.custom_linear_solve(matvec, b, forward, forward)

    checks.check_derivatives(lambda theta, b: [by(theta, b)], [np.array(0.3), B])


def test_effects_are_those_of_the_solver(capsys: pytest.CaptureFixture[str]) -> None:
    def solve(matvec: Any, b: Any) -> Any:
        perspex.debug.print("solves {}", b, ordered=True)
        return b / 2

    def by(b: Any) -> Any:
        root = lax.custom_root(lambda x: x - b, 1.0, lambda f, x: solve(f, b), lambda g, y: y)
        return lax.custom_linear_solve(lambda x: 2 * x, root, solve, solve)

    assert float(jit(by)(8.0)) == 2.0
    perspex.effects_barrier()
    assert capsys.readouterr().out == "solves 8.0\nsolves 4.0\n"


def test_program() -> None:
    closed = make_jaxpr(lambda a, b: grad(lambda b: solve(a, b).sum())(b))(A, B)
    check(closed.jaxpr)
    # No product with the matrix and no second solution: the gradient is one system.
    used = [eqn.primitive.name for eqn in closed.eqns if any(map(id, eqn.outvars))]
    assert used.count("custom_linear_solve") == 2 and "dot_general" not in used


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: grad(lambda b: lax.custom_linear_solve(lambda x: x, b, lambda m, b: b).sum())(
                B
            ),
            TypeError,
            "transpose_solve is required",
        ),
        (
            lambda: lax.custom_linear_solve(lambda x: x[:1], B, lambda m, b: b),
            ValueError,
            r"matvec\(\) output shapes must match b, got \[\(1,\)\] and \[\(2,\)\].*"
            r"test_implicit.py",
        ),
        (
            lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, b: (b, b)),
            ValueError,
            r"solve\(\) output shapes",
        ),
        (
            lambda: lax.custom_linear_solve(lambda x: [x], B, lambda m, b: b),
            TypeError,
            r"matvec\(\) output pytree",
        ),
        (
            lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, b: b, has_aux=True),
            ValueError,
            "must return a pair",
        ),
        (
            lambda: lax.custom_linear_solve(lambda x: x * x, B, lambda m, b: b, lambda m, b: b),
            ValueError,
            "must be linear",
        ),
        (lambda: lax.custom_linear_solve(3, B, lambda m, b: b), TypeError, "matvec must be"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# ---- custom_root --------------------------------------------------------------------------------


def newton(f: Any, x: Any) -> Any:
    step = lambda x: x - f(x) / grad(f)(x)  # noqa: E731
    return lax.fori_loop(0, 8, lambda i, x: step(x), x)


def cube_root(a: Any) -> Any:
    return lax.custom_root(lambda x: x**3 - a, 1.5, newton, lambda g, y: y / g(1.0))


def test_root_and_derivatives() -> None:
    a = np.array(2.0)
    np.testing.assert_allclose(cube_root(a), 2 ** (1 / 3), rtol=1e-14)
    checks.check_derivatives(lambda a: [cube_root(a)], [a])
    third = jit(grad(grad(grad(cube_root))))(a)
    np.testing.assert_allclose(third, 10 / 27 * 2 ** (-8 / 3), rtol=1e-12)


def test_roots_in_batches() -> None:
    checks.check_batches(lambda a: [cube_root(a), grad(cube_root)(a)], [np.array(2.0)])
    a = np.array([1.0, 2.0, 3.0])
    for run in (lambda f: f, jit):
        found = run(grad(lambda a: vmap(cube_root)(a).sum()))(a)
        np.testing.assert_allclose(found, a ** (-2 / 3) / 3, rtol=1e-12)
        found = run(hessian(lambda a: vmap(cube_root)(a).sum()))(a)
        np.testing.assert_allclose(found, np.diag(-2 / 9 * a ** (-5 / 3)), rtol=1e-11)


def test_roots_in_loops_branches_calls_and_checkpoints() -> None:
    def f(a: Any) -> list[Any]:
        def step(c: Any, k: Any) -> Any:
            y = lax.cond(k > 1.5, lambda: cube_root(c * a), lambda: c * k)
            return y, checkpoint(lambda y: cube_root(y + a))(y)

        last, ys = lax.scan(step, a, np.arange(1.0, 3.0))
        return [jit(cube_root)(last), ys]

    checks.check_reverse(f, [np.array(2.0)], tol=1e-11)
    checks.check_forward(f, [np.array(2.0)])


def test_roots_of_trees() -> None:
    def root(p: Any) -> Any:
        def f(x: Any) -> Any:
            return {"u": x["u"] ** 2 - p, "v": x["v"] * x["u"] - 1}

        def solve(f: Any, x: Any) -> Any:
            return {"u": pnp.sqrt(p), "v": 1 / pnp.sqrt(p)}, p

        def tangent_solve(g: Any, y: Any) -> Any:
            one, zero = pnp.ones_like(p), pnp.zeros_like(p)
            by_u, by_v = g({"u": one, "v": zero}), g({"u": zero, "v": one})
            u = y["u"] / by_u["u"]
            return {"u": u, "v": (y["v"] - by_u["v"] * u) / by_v["v"]}

        guess = {"u": np.ones(2), "v": np.ones(2)}
        return lax.custom_root(f, guess, solve, tangent_solve, has_aux=True)

    p = np.array([2.0, 3.0])
    for jacobian in (jacfwd, jacrev):
        for run in (lambda f: f, jit):
            found = run(jacobian(lambda p: root(p)[0]))(p)
            np.testing.assert_allclose(found["u"], np.diag(0.5 * p**-0.5), atol=1e-13)
            np.testing.assert_allclose(found["v"], np.diag(-0.5 * p**-1.5), atol=1e-13)
    assert not np.any(jacrev(lambda p: root(p)[1])(p))


def test_the_guess_does_not_matter() -> None:
    f = lambda x: x**2 - 2.0  # noqa: E731
    by = lambda guess: lax.custom_root(f, guess, newton, lambda g, y: y / g(1.0))  # noqa: E731
    assert float(grad(by)(1.5)) == 0.0
    np.testing.assert_allclose(vmap(by)(np.array([1.0, 3.0])), np.sqrt([2, 2]), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: lax.custom_root(lambda x: (x, x), 1.0, newton, newton),
            r"f\(\) output pytree structure must match initial_guess",
        ),
        (
            lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), newton),
            r"solve\(\) output pytree structure",
        ),
        (
            lambda: lax.custom_root(lambda x: x[:1], B, lambda f, x: x, newton),
            r"float64\[1\].*float64\[2\].*convert one of them",
        ),
        (
            lambda: grad(
                lambda a: lax.custom_root(lambda x: x * a, 1.0, newton, lambda g, y: (y, y))
            )(1.0),
            r"tangent_solve\(\) output pytree structure must match x",
        ),
        (lambda: lax.custom_root(lambda x: x, 1.0, newton, 3), "tangent_solve must be a function"),
    ],
)
def test_root_errors(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_root_of_a_partial_function() -> None:
    f = functools.partial(lambda a, x: x - a, 2.0)
    assert float(lax.custom_root(f, 0.0, newton, lambda g, y: y / g(1.0))) == 2.0
