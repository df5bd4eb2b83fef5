"""`minimize` against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import perspex
from perspex import grad, jit, vmap
from perspex import numpy as pnp
from perspex.scipy.optimize import minimize


def rosenbrock(x: Any, scale: float = 100.0) -> Any:
    return (scale * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def eggs(x: Any) -> Any:
    return pnp.log(1 + pnp.sum((x - pnp.arange(3.0)) ** 4)) + pnp.sum(x**2)


@pytest.mark.parametrize(
    ("fun", "start"),
    [
        (rosenbrock, [-1.2, 1.0]),
        (rosenbrock, [0.5, 0.6, 0.7, 1.5]),
        (himmelblau, [1.0, 1.0]),
        (himmelblau, [-3.0, -3.0]),
        (eggs, [5.0, -2.0, 1.0]),
    ],
)
def test_against_scipy(fun: Any, start: list[float]) -> None:
    with perspex.enable_x64(True):
        found = minimize(fun, np.array(start), method="BFGS")
        want = scipy.optimize.minimize(lambda x: float(fun(x)), start, method="BFGS")
        np.testing.assert_allclose(found.x, want.x, atol=1e-4)
        np.testing.assert_allclose(found.fun, want.fun, atol=1e-8)
        assert bool(found.success) and int(found.status) == 0
        assert np.abs(found.jac).max() < 1e-5
        assert int(found.nit) <= 2 * want.nit and int(found.nfev) >= int(found.nit)


def narrow(x: Any) -> Any:
    return 1e4 * (x[0] - x[1]) ** 2 + (x[0] + x[1] + 1) ** 2


@pytest.mark.parametrize("start", [(1, 1), (0, 0), (-1, 1), (3, -2), (-2, -2), (0.5, -4)])
@pytest.mark.parametrize("fun", [himmelblau, rosenbrock, narrow])
@pytest.mark.parametrize("wide", [False, True])
def test_the_minimum_that_scipy_finds(fun: Any, start: tuple[float, ...], wide: bool) -> None:
    # Of the four minima of `himmelblau` the same; in the narrow valley the lowest point.
    with perspex.enable_x64(wide):
        x0 = pnp.array(start, float)
        found = minimize(fun, x0, method="BFGS")
        slope = jit(grad(fun))
        want = scipy.optimize.minimize(
            lambda x: float(fun(x)),
            start,
            jac=lambda x: np.asarray(slope(pnp.asarray(x)), float),
            method="BFGS",
        )
        np.testing.assert_allclose(found.x, want.x, atol=3e-3)
        assert bool(found.success)


def test_inverse_hessian_of_a_parabola() -> None:
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    start = np.array([1.0, -3.0])
    with perspex.enable_x64(True):
        found = minimize(lambda x, a: x @ a @ x / 2, start, (a,), method="bfgs")
    # As near as SciPy, whose steps depend on the line search as ours do.
    theirs = scipy.optimize.minimize(lambda x: x @ a @ x / 2, start, jac=lambda x: a @ x)
    exact = np.linalg.inv(a)
    assert np.abs(found.hess_inv - exact).max() <= np.abs(theirs.hess_inv - exact).max() < 5e-3


def test_compiled_and_in_batches() -> None:
    starts = np.array([[1.0, 1.0], [-3.0, -3.0], [-2.0, 2.0]], np.float32)
    run = jit(vmap(lambda x: minimize(himmelblau, x, method="BFGS", tol=1e-3).x))
    found = run(starts)
    minima = [[3, 2], [-3.779310, -3.283186], [-2.805118, 3.131312]]
    np.testing.assert_allclose(found, minima, atol=1e-3)


def test_what_it_says_when_it_does_not_get_there() -> None:
    found = minimize(rosenbrock, np.zeros(2, "f4"), method="BFGS", options={"maxiter": 2})
    assert not bool(found.success) and int(found.status) == 1 and int(found.nit) == 2
    found = minimize(lambda x: pnp.sum(abs(x)) * np.nan, np.ones(2, "f4"), method="BFGS")
    assert int(found.status) == 3
    np.testing.assert_array_equal(found.x, [1, 1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: minimize(rosenbrock, np.ones(2), method="Newton"), ValueError, "not recognized"),
        (lambda: minimize(rosenbrock, np.ones(2), 3.0, method="BFGS"), TypeError, r"\(value,\)"),
        (lambda: minimize(rosenbrock, 1.0, method="BFGS"), TypeError, r"vector of floats.*\[\]"),
        (lambda: minimize(rosenbrock, [1, 2], method="BFGS"), TypeError, "vector|list"),
        (
            lambda: minimize(rosenbrock, np.ones(2), method="BFGS", options={"disp": True}),
            ValueError,
            r"no options \['disp'\]",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
