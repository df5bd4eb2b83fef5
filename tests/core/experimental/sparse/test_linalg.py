"""The sparse solvers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex.experimental import sparse
from perspex.experimental.sparse.linalg import lobpcg_standard, spsolve

RNG = np.random.default_rng(3)


def test_solutions_and_their_derivatives() -> None:
    with perspex.enable_x64(True):
        dense = np.diag(np.arange(1.0, 5.0)) + np.diag([0.5, 0.25, 1.0], 1)
        mat = sparse.CSR.fromdense(dense)
        b = RNG.normal(size=4)

        def solve(data: Any, b: Any) -> Any:
            return spsolve(data, mat.indices, mat.indptr, b)

        np.testing.assert_allclose(solve(mat.data, b), np.linalg.solve(dense, b))
        many = RNG.normal(size=(3, 4))
        got = perspex.jit(perspex.vmap(solve, (None, 0)))(mat.data, many)
        np.testing.assert_allclose(got, np.linalg.solve(dense, many.T).T)
        np.testing.assert_allclose(perspex.jacrev(solve, 1)(mat.data, b), np.linalg.inv(dense))
        h = 1e-6
        for i in range(mat.nse):
            t = np.eye(mat.nse)[i]
            want = (solve(mat.data + h * t, b) - solve(mat.data - h * t, b)) / (2 * h)
            got = perspex.jvp(lambda d: solve(d, b), (mat.data,), (t,))[1]
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
        forward, back = perspex.jacfwd(solve)(mat.data, b), perspex.jacrev(solve)(mat.data, b)
        np.testing.assert_allclose(forward, back)


def test_systems_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="indptr one longer than b"):
        spsolve(np.ones(2), np.arange(2), np.arange(2), np.ones(2))
    with pytest.raises(ValueError, match="do not match"):
        spsolve(np.ones(2, np.int32), np.arange(2), np.arange(3), np.ones(2, np.float32))


def test_the_largest_eigenvalues() -> None:
    q, _ = np.linalg.qr(RNG.normal(size=(20, 20)))
    values = np.linspace(1, 10, 20)
    a = ((q * values) @ q.T).astype(np.float32)
    start = RNG.normal(size=(20, 3)).astype(np.float32)
    mat = sparse.BCOO.fromdense(a)
    theta, u, turns = lobpcg_standard(lambda x: mat @ x, start)
    np.testing.assert_allclose(theta, values[::-1][:3], rtol=1e-4)
    np.testing.assert_allclose(a @ u, u * theta, atol=2e-3)
    np.testing.assert_allclose(u.T @ u, np.eye(3), atol=1e-4)
    assert 0 < int(turns) <= 100
    with pytest.raises(ValueError, match=r"search dim \* 5"):
        lobpcg_standard(a, np.ones((20, 4), np.float32))
