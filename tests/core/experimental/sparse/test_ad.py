"""Derivatives with respect to sparse arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import numpy as pnp
from perspex.experimental import sparse

DENSE = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], np.float32)
V = np.array([1.0, -2.0, 0.5], np.float32)


@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC])
def test_gradients_lie_where_the_elements_do(kind: Any) -> None:
    mat = kind.fromdense(DENSE)

    def loss(m: Any, v: Any) -> Any:
        return pnp.sum(pnp.exp(m @ v))

    value, (got, got_v) = sparse.value_and_grad(loss, (0, 1))(mat, V)
    want, want_v = perspex.grad(loss, (0, 1))(pnp.asarray(DENSE), pnp.asarray(V))
    assert type(got) is kind
    np.testing.assert_allclose(got.todense(), np.where(DENSE != 0, want, 0), rtol=1e-5)
    np.testing.assert_allclose(got_v, want_v, rtol=1e-5)
    np.testing.assert_allclose(value, loss(DENSE, V), rtol=1e-5)


def test_jacobians_have_the_axes_of_the_result_in_front() -> None:
    mat = sparse.BCOO.fromdense(DENSE)
    for jacobian in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        got = jacobian(lambda m: m @ V)(mat)
        assert got.shape == (2, 2, 3)
        want = np.eye(2)[:, :, None] * V * (DENSE != 0)
        np.testing.assert_allclose(got.todense(), want)
    got = perspex.jit(sparse.grad(lambda p: pnp.sum(p["m"] @ V) * 3.0))({"m": mat})
    np.testing.assert_allclose(got["m"].todense(), 3 * V * (DENSE != 0))


def test_arguments_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="argnums=2"):
        sparse.grad(lambda m, v: pnp.sum(m @ v), 2)(sparse.eye(3), V)
