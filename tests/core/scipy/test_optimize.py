"""`minimize` against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import perspex
from perspex import jit, vmap
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


def test_inverse_hessian_of_a_parabola() -> None:
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    with perspex.enable_x64(True):
        found = minimize(lambda x, a: x @ a @ x / 2, np.array([1.0, -3.0]), (a,), method="bfgs")
    np.testing.assert_allclose(found.hess_inv, np.linalg.inv(a), atol=1e-4)


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
