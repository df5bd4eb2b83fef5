"""Rotations against SciPy; against JAX: the oracle's `interpolation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform

from perspex.scipy.spatial.transform import Rotation, Slerp

ANGLES = np.array([[0.3, -1.2, 2.1], [1.0, 0.4, -0.6], [0.0, 0.1, 0.2], [-2.0, 1.1, 0.9]])
SCIPY = scipy.spatial.transform.Rotation.from_euler("xyz", ANGLES)
OURS = Rotation.from_euler("xyz", ANGLES)
METHODS: dict[str, Any] = {
    "matrix": lambda r: r.as_matrix(),
    "rotvec": lambda r: r.as_rotvec(),
    "rotvec in degrees": lambda r: r.as_rotvec(degrees=True),
    "mrp": lambda r: r.as_mrp(),
    "quat": lambda r: r.as_quat(canonical=True),
    "quat, scalar first": lambda r: r.as_quat(canonical=True, scalar_first=True),
    "magnitude": lambda r: r.magnitude(),
    "inverse": lambda r: r.inv().as_matrix(),
    "product": lambda r: (r * r).as_matrix(),
    "part": lambda r: r[1:3].as_matrix(),
    "one": lambda r: r[1].as_matrix(),
    "apply": lambda r: r.apply(ANGLES),
    "apply, inverse": lambda r: r.apply(ANGLES, inverse=True),
    "mean": lambda r: r.mean().as_matrix(),
    "weighted mean": lambda r: r.mean(np.arange(1.0, 5.0)).as_matrix(),
    "from matrix": lambda r: type(r).from_matrix(r.as_matrix()).as_matrix(),
    "from rotvec": lambda r: type(r).from_rotvec(r.as_rotvec()).as_matrix(),
    "from mrp": lambda r: type(r).from_mrp(r.as_mrp()).as_matrix(),
    "joined": lambda r: type(r).concatenate([r, r[:1]]).as_matrix(),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_those_of_scipy(name: str) -> None:
    wanted, found = METHODS[name](SCIPY), METHODS[name](OURS)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "zxz", "YXY"])
def test_euler_angles_are_those_of_scipy(seq: str) -> None:
    there = scipy.spatial.transform.Rotation.from_euler(seq, ANGLES)
    here = Rotation.from_euler(seq, ANGLES)
    np.testing.assert_allclose(here.as_matrix(), there.as_matrix(), atol=1e-6)
    np.testing.assert_allclose(here.as_euler(seq), there.as_euler(seq), atol=1e-4)


def test_slerp_is_that_of_scipy() -> None:
    times, at = [0.0, 1.0, 2.5, 3.0], [0.0, 0.3, 1.0, 2.9]
    wanted = scipy.spatial.transform.Slerp(times, SCIPY)(at).as_matrix()
    np.testing.assert_allclose(Slerp.init(times, OURS)(at).as_matrix(), wanted, atol=1e-5)
