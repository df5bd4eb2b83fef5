"""Interpolation on grids against SciPy; against JAX: the oracle's `interpolation`."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate

import perspex
from perspex import tree
from perspex.scipy.interpolate import RegularGridInterpolator

GRID = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5, 2.0, 4.0])
POINTS = np.array([[0.5, 0.0], [1.0, 0.5], [2.9, -1.0], [5.0, 0.0], [1.7, -2.0]])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 7.0, None])
def test_values_are_those_of_scipy(method: str, fill: float | None) -> None:
    values = np.cos(np.arange(24.0)).reshape(3, 4, 2)
    options = {"method": method, "bounds_error": False, "fill_value": fill}
    wanted = scipy.interpolate.RegularGridInterpolator(GRID, values, **options)(POINTS)
    found = RegularGridInterpolator(GRID, values, method, fill_value=fill)(POINTS)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_it_is_a_tree_whose_leaves_may_be_anything() -> None:
    made = RegularGridInterpolator(GRID, np.ones((3, 4)))
    assert tree.structure(tree.map(lambda _: None, made, is_leaf=lambda x: x is None)) is not None
    assert tree.map(lambda x: x.shape, made).values == (3, 4)
    doubled = perspex.jit(lambda f: tree.map(lambda x: 2 * x, f))(made)
    assert float(doubled(2 * POINTS[:1])[0]) == 2.0
