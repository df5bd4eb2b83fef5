"""BCOO arrays made and put in order, against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import perspex
from perspex import numpy as pnp
from perspex.experimental import sparse

RNG = np.random.default_rng(1)
DENSE = np.where(RNG.random((4, 5)) < 0.4, RNG.normal(size=(4, 5)), 0).astype(np.float32)


def test_elements_are_those_of_scipy() -> None:
    ours, theirs = sparse.BCOO.fromdense(DENSE), scipy.sparse.coo_array(DENSE)
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.indices, np.stack(theirs.coords, -1))
    again = sparse.BCOO.from_scipy_sparse(theirs)
    np.testing.assert_array_equal(again.todense(), DENSE)


def test_duplicates_are_summed() -> None:
    at = RNG.integers(0, [4, 5], (40, 2))
    numbers = RNG.normal(size=40).astype(np.float32)
    want = np.zeros((4, 5), np.float32)
    np.add.at(want, tuple(at.T), numbers)
    mat = sparse.BCOO((numbers, at), shape=(4, 5))
    unique = mat.sum_duplicates()
    assert unique.nse == len(np.unique(at, axis=0))
    for x in (
        mat,
        mat.sort_indices(),
        unique,
        perspex.jit(lambda m: m.sum_duplicates(nse=20))(mat),
    ):
        np.testing.assert_allclose(x.todense(), want, rtol=1e-5, atol=1e-6)


def test_the_size_must_be_known_where_a_program_is_traced() -> None:
    mat = sparse.BCOO.fromdense(DENSE)
    with pytest.raises(ValueError, match="nse must be specified"):
        perspex.jit(lambda m: m.sum_duplicates(remove_zeros=False))(mat)
    with pytest.raises(perspex.errors.ConcretizationTypeError, match="nse"):
        perspex.jit(sparse.BCOO.fromdense)(DENSE)


def test_reading_and_writing_are_transposes() -> None:
    mat = sparse.BCOO((np.ones(6, np.float32), RNG.integers(0, [5, 6], (6, 2))), shape=(4, 5))
    ct = RNG.normal(size=(4, 5)).astype(np.float32)
    x = RNG.normal(size=6).astype(np.float32)

    def dense(data: Any) -> Any:
        return sparse.BCOO((data, mat.indices), shape=mat.shape).todense()

    forward = np.vdot(ct, dense(x))
    (back,) = perspex.linear_transpose(dense, x)(ct)
    np.testing.assert_allclose(np.vdot(back, x), forward, rtol=1e-4)
    np.testing.assert_allclose(back, perspex.vjp(dense, x)[1](ct)[0])
    np.testing.assert_allclose(back, sparse.bcoo_extract(mat, ct, assume_unique=True).data)


def test_an_equation_has_a_name() -> None:
    mat = sparse.BCOO.fromdense(DENSE)
    text = str(perspex.make_jaxpr(lambda m: m.todense())(mat))
    assert "bcoo_todense" in text
    compiled = perspex.jit(lambda m: m.todense() + 1).lower(mat).compile()
    np.testing.assert_array_equal(compiled(mat), DENSE + 1)


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="data of shape"):
        sparse.BCOO((pnp.ones(3), pnp.ones((2, 1), int)), shape=(3,))
    with pytest.raises(TypeError, match="must be integers, got float32"):
        sparse.BCOO((pnp.ones(2), pnp.ones((2, 1))), shape=(3,))
    with pytest.raises(ValueError, match="batch dimensions"):
        sparse.BCOO((pnp.ones((2, 2)), pnp.ones((3, 2, 1), int)), shape=(3, 4))
