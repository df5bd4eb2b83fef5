"""Values and slopes of polynomials, against NumPy's; how a long one is computed."""

from __future__ import annotations

import numpy as np
import pytest

import perspex
from perspex import grad, make_jaxpr, vjp, vmap
from perspex import numpy as pnp

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_polynomials_and_their_slopes(count: int) -> None:
    p, x = RANDOM.normal(size=count), RANDOM.uniform(-1, 1, 7)
    with perspex.enable_x64():
        value, pull = vjp(pnp.polyval, p, x)
        by_p, by_x = pull(np.ones(7))
        second = vmap(grad(grad(lambda x: pnp.polyval(p, x))))(x)
    np.testing.assert_allclose(value, np.polyval(p, x), rtol=1e-12)
    np.testing.assert_allclose(by_x, np.polyval(np.polyder(p), x), rtol=1e-12)
    np.testing.assert_allclose(by_p, np.vander(x, count).sum(0), rtol=1e-12)
    np.testing.assert_allclose(second, np.polyval(np.polyder(p, 2), x), rtol=1e-12)


def test_a_long_polynomial_and_its_slope_are_loops() -> None:
    """Written out, the slope of one with 4,000 coefficients took XLA two minutes."""
    slope = make_jaxpr(grad(lambda x: pnp.polyval(np.ones(4000, "f"), x)))(0.5)
    assert len(str(slope).splitlines()) < 60


@pytest.mark.parametrize("count", [1, 2, 40])
def test_polynomials_of_infinity(count: int) -> None:
    wanted = 1 if count == 1 else np.inf
    assert pnp.polyval(np.ones(count, "f"), np.inf) == wanted
