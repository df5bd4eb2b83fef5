"""`odeint` against SciPy and known solutions; against JAX: the oracle's `interpolation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.integrate

import perspex
from perspex import grad, jit, lax
from perspex import numpy as pnp
from perspex.experimental.ode import odeint

TIMES = np.linspace(0.0, 2.0, 5)


def pendulum(y: Any, t: Any, friction: Any, gravity: Any) -> Any:
    return pnp.stack([y[1], -friction * y[1] - gravity * pnp.sin(y[0])])


def test_the_solution_is_that_of_scipy() -> None:
    def slope(t: float, y: np.ndarray) -> list[float]:
        return [y[1], -0.25 * y[1] - 9.8 * np.sin(y[0])]

    wanted = scipy.integrate.solve_ivp(
        slope, (0, 2), [1.0, 0.2], t_eval=TIMES, rtol=1e-10, atol=1e-10
    ).y.T
    with perspex.enable_x64(True):
        found = odeint(pendulum, np.array([1.0, 0.2]), TIMES, 0.25, 9.8)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_gradients_are_those_of_the_known_solution() -> None:
    # y' = -r y has the solution y0 exp(-r (t - t0)).
    def last(y0: Any, times: Any, rate: Any) -> Any:
        return odeint(lambda y, t, r: -r * y, y0, times, rate)[-1]

    with perspex.enable_x64(True):
        arguments = 2.0, TIMES, 0.5
        y0, times, rate = jit(grad(last, argnums=(0, 1, 2)))(*arguments)
        # What the dynamics close over counts as an argument.
        closed = grad(lambda r: odeint(lambda y, t: -r * y, 2.0, TIMES)[-1])(0.5)
    end = np.exp(-1.0)
    np.testing.assert_allclose(y0, end, rtol=1e-6)
    np.testing.assert_allclose(times, [end, 0, 0, 0, -end], atol=1e-6)
    np.testing.assert_allclose([rate, closed], -4 * end, rtol=1e-6)


def test_in_a_scan_that_is_differentiated() -> None:
    def total(rate: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            return odeint(lambda y, t: -rate * y, y, TIMES[:2])[-1], None

        return lax.scan(step, 1.0, length=3)[0]

    with perspex.enable_x64(True):
        np.testing.assert_allclose(grad(total)(0.5), -1.5 * np.exp(-0.75), rtol=1e-6)
