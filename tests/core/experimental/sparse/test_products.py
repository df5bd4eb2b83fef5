"""Contractions of sparse arrays against NumPy on dense ones: all layouts, derivatives, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.experimental import sparse

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((2, 3, 4)) < 0.5, RNG.normal(size=(2, 3, 4)), 0).astype(np.float32)
OTHER = RNG.normal(size=(2, 4, 3)).astype(np.float32)
LAYOUTS = [(0, 0), (1, 0), (2, 0), (1, 1)]


CONTRACTIONS = [
    (((2,), (1,)), ((0,), (0,))),
    (((0,), (0,)), ((), ())),
    (((1,), (2,)), ((), ())),
    (((0, 1, 2), (0, 2, 1)), ((), ())),
    (((), ()), ((), ())),
]


def expected(numbers: Any) -> np.ndarray:
    (a, b), (c, d) = numbers
    left, right = list("abc"), list("uvw")
    for i, j in zip((*a, *c), (*b, *d), strict=True):
        right[j] = left[i]
    out = [left[i] for i in c]
    out += [x for i, x in enumerate(left) if i not in (*a, *c)]
    out += [x for j, x in enumerate(right) if j not in (*b, *d)]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", DENSE, OTHER)


def allowed(numbers: Any, n_batch: int, n_dense: int) -> bool:
    (contract, _), (batch, _) = numbers
    last = 3 - n_dense
    return all(i < n_batch for i in batch) and all(i < last for i in contract)


@pytest.mark.parametrize("numbers", CONTRACTIONS, ids=str)
def test_contractions_of_all_layouts(numbers: Any) -> None:
    checked = 0
    for n_batch, n_dense in LAYOUTS:
        mat = sparse.BCOO.fromdense(DENSE, n_batch=n_batch, n_dense=n_dense)
        if not allowed(numbers, n_batch, n_dense):
            with pytest.raises(NotImplementedError, match="dimensions"):
                sparse.bcoo_dot_general(mat, OTHER, dimension_numbers=numbers)
            continue
        got = sparse.bcoo_dot_general(mat, OTHER, dimension_numbers=numbers)
        np.testing.assert_allclose(got, expected(numbers), rtol=1e-5, atol=1e-5)
        checked += 1
    assert checked


def test_the_derivative_is_that_of_the_elements() -> None:
    numbers = (((2,), (1,)), ((0,), (0,)))
    mat = sparse.BCOO.fromdense(DENSE, n_batch=1)

    def loss(data: Any, other: Any) -> Any:
        one = sparse.BCOO((data, mat.indices), shape=mat.shape)
        return pnp.sum(pnp.sin(sparse.bcoo_dot_general(one, other, dimension_numbers=numbers)))

    def dense_loss(x: Any, other: Any) -> Any:
        return pnp.sum(pnp.sin(x @ other))

    got, got_other = perspex.grad(loss, (0, 1))(mat.data, OTHER)
    want, want_other = perspex.grad(dense_loss, (0, 1))(pnp.asarray(DENSE), OTHER)
    np.testing.assert_allclose(got_other, want_other, rtol=1e-4, atol=1e-5)
    kept = sparse.bcoo_extract(mat, want).data
    np.testing.assert_allclose(got, np.where(mat.data != 0, kept, got), rtol=1e-4, atol=1e-5)
    forward = perspex.jacfwd(loss)(mat.data, OTHER)
    np.testing.assert_allclose(forward, got, rtol=1e-4, atol=1e-5)


def test_transforms_of_one_another() -> None:
    mat = sparse.BCOO.fromdense(DENSE[0])
    vectors = RNG.normal(size=(5, 4)).astype(np.float32)

    def energy(v: Any, data: Any) -> Any:
        one = sparse.BCOO((data, mat.indices), shape=mat.shape)
        return pnp.sum((one @ v) ** 2)

    def step(v: Any, _: Any) -> tuple[Any, Any]:
        return v - 0.1 * perspex.grad(energy)(v, mat.data), None

    @perspex.jit
    def descent(v: Any) -> Any:
        return lax.scan(step, v, None, length=3)[0]

    want = vectors.T
    for _ in range(3):
        want = want - 0.2 * DENSE[0].T @ (DENSE[0] @ want)
    np.testing.assert_allclose(perspex.vmap(descent)(vectors), want.T, rtol=1e-4, atol=1e-5)
    hessian = perspex.hessian(energy)(vectors[0], mat.data)
    np.testing.assert_allclose(hessian, 2 * DENSE[0].T @ DENSE[0], rtol=1e-4, atol=1e-5)


def test_the_product_of_two_sparse_arrays() -> None:
    a, b = sparse.BCOO.fromdense(DENSE[0]), sparse.BCOO.fromdense(DENSE[1])
    np.testing.assert_allclose((a @ b.T).todense(), DENSE[0] @ DENSE[1].T, rtol=1e-5, atol=1e-6)

    def total(data: Any) -> Any:
        one = sparse.BCOO((data, a.indices), shape=a.shape)
        return pnp.sum((one @ b.T).data)

    # JAX has no reverse rule for this product.
    got = perspex.grad(total)(a.data)
    want = sparse.bcoo_extract(a, np.ones((3, 3), np.float32) @ DENSE[1]).data
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_convolution() -> None:
    x = np.array([1.0, 0.0, 2.0, 0.0, -1.0], np.float32)
    kernel = np.array([1.0, 10.0, 100.0], np.float32)
    got = sparse.bcoo_conv_general_dilated(
        sparse.BCOO.fromdense(x[None, None]),
        kernel[None, None, ::-1],
        window_strides=(1,),
        padding=[(2, 2)],
    )
    np.testing.assert_allclose(got.todense()[0, 0], np.convolve(x, kernel))
