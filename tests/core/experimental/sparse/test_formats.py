"""Sparse arrays as values of transforms: trees, `vmap`, loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.experimental import sparse

DENSE = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 5 % 3
MATS = sparse.BCOO.fromdense(DENSE, n_batch=1)
ROWS = sparse.BCSR.fromdense(DENSE, n_batch=1)


@pytest.mark.parametrize("mats", [MATS, ROWS], ids=["BCOO", "BCSR"])
def test_a_batch_is_mapped_by_its_batch_axes(mats: Any) -> None:
    def f(m: Any) -> Any:
        assert m.shape == (3, 4)
        return m, m @ pnp.ones(4)

    same, sums = perspex.jit(perspex.vmap(f))(mats)
    assert same.shape == (2, 3, 4)
    np.testing.assert_array_equal(same.todense(), DENSE)
    np.testing.assert_allclose(sums, DENSE.sum(-1))


def test_batches_within_batches() -> None:
    mats = sparse.BCOO.fromdense(DENSE, n_batch=2)
    got = perspex.vmap(perspex.vmap(lambda row, x: row @ x, (0, None)), (0, None))(mats, np.ones(4))
    np.testing.assert_allclose(got, DENSE.sum(-1))


def test_results_of_a_batch() -> None:
    made = perspex.vmap(lambda x: {"m": sparse.BCOO.fromdense(x, nse=8)})(DENSE)["m"]
    assert (made.shape, made.n_batch) == ((2, 3, 4), 1)
    np.testing.assert_array_equal(made.todense(), DENSE)
    shared = perspex.vmap(lambda x: sparse.eye(2) * x)(np.arange(3.0))
    assert shared.shape == (3, 2, 2)
    named = perspex.vmap(lambda x, *, m: m @ x, in_axes=None)(np.ones(4), m=MATS)
    np.testing.assert_allclose(named, DENSE.sum(-1))


def test_other_axes_cannot_be_mapped() -> None:
    with pytest.raises(ValueError, match="in_axis=1 for BCOO array with n_batch=1"):
        perspex.vmap(lambda m: m, in_axes=1)(MATS)
    with pytest.raises(ValueError, match="cannot add out_axis=1"):
        perspex.vmap(lambda m: m, out_axes=1)(MATS)


def test_loops_carry_sparse_arrays() -> None:
    mat = sparse.BCOO.fromdense(DENSE[0])

    def twice(m: Any) -> Any:
        return sparse.BCOO((2 * m.data, m.indices), **m._info._asdict())

    after = lax.fori_loop(0, 3, lambda i, m: twice(m), mat)
    np.testing.assert_allclose(after.todense(), 8 * DENSE[0])
    chosen = perspex.jit(lambda p: lax.cond(p, twice, lambda m: m, mat))(True)
    np.testing.assert_allclose(chosen.todense(), 2 * DENSE[0])


def test_operators_with_dense_arrays_on_the_left() -> None:
    mat = sparse.BCOO.fromdense(DENSE[0])
    for ones in (np.ones(3, np.float32), pnp.ones(3)):
        np.testing.assert_allclose(ones @ mat, DENSE[0].sum(0))
    np.testing.assert_allclose((np.float32(2) * mat).todense(), 2 * DENSE[0])
    with pytest.raises(NotImplementedError, match="COO has no __mul__"):
        _ = sparse.COO.fromdense(DENSE[0]) * 2
