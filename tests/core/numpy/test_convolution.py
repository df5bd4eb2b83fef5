"""Convolutions of vectors that are long, or not finite everywhere, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp


def test_long_convolutions() -> None:
    rng = np.random.default_rng(0)
    for n, m in ((1000, 300), (513, 257), (300, 256), (7, 7)):
        a, b = rng.standard_normal(n), rng.standard_normal(m)
        got = jnp.convolve(jnp.array(a), jnp.array(b))
        np.testing.assert_allclose(got, np.convolve(a, b), 1e-4, 1e-3)


@pytest.mark.parametrize("m", [3, 8, 9, 300])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_infinities_and_nan_reach_only_what_depends_on_them(name: str, m: int) -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.standard_normal(700), rng.standard_normal(m)
    x[[0, 350, 400, 699]] = np.inf, -np.inf, np.nan, np.inf
    for mode in ("full", "same", "valid"):
        with np.errstate(invalid="ignore"):
            want = getattr(np, name)(x, kernel, mode)
        got = getattr(jnp, name)(jnp.array(x, "float32"), jnp.array(kernel, "float32"), mode)
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)
        examples = jnp.array([x, np.nan_to_num(x, posinf=1, neginf=1)], "float32")
        first, second = perspex.vmap(lambda v, mode=mode: getattr(jnp, name)(v, kernel, mode))(
            examples
        )
        np.testing.assert_allclose(first, want, 1e-4, 1e-4)
        assert np.isfinite(second).all()
