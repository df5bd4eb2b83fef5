"""Factors where they are special: free phases, single precision, singular and empty matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import normal
from support.matrices import (
    EIG,
    EIGH,
    SOLVES,
    SPD,
    SVD,
    adjoint,
    adjugate_reference,
    apart,
    hermitian,
    positive,
    regular,
)

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import linalg as ops
from perspex.transforms.jvp import jvp

# ---- Where the phase is free --------------------------------------------------------------------


def check_tangent(f: Any, x: np.ndarray, t: np.ndarray) -> None:
    """The tangent of the real or complex array `f(x)` against central differences."""
    h = 1e-5
    slope = (np.asarray(f(x + h * t)) - np.asarray(f(x - h * t))) / (2 * h)
    (_,), (found,) = jvp(lambda v: [f(v)], [x], [t])
    np.testing.assert_allclose(np.asarray(found), slope, atol=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_projector_on_complex_eigenvectors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, t = positive(4, 4)(rng, np.dtype(complex)), normal(4, 4)(rng, np.dtype(complex))
    two = np.diag([1.0, 1, 0, 0]).astype(complex)

    def projector(x: Any) -> Any:
        v, w = ops.eigh(x, **EIGH)
        return ops.matrices.matmul(ops.matrices.matmul(v, two), v, "", "H")

    with config.enable_x64(True):
        check_tangent(projector, x, t)
        check_tangent(lambda x: ops.eigh(x, **EIGH)[1], x, t)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_part_of_a_complex_matrix_by_its_singular_vectors(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    x, t = apart(*shape)(rng, np.dtype(complex)), normal(*shape)(rng, np.dtype(complex))
    first = np.diag(np.arange(min(shape)) == 0).astype(complex)

    def polar_part(x: Any) -> Any:
        _, u, vh = ops.svd(x, **SVD)
        return ops.matrices.matmul(ops.matrices.matmul(u, first), vh)

    with config.enable_x64(True):
        check_tangent(polar_part, x, t)
        check_tangent(lambda x: ops.svd(x, **SVD)[0], x, t)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_columns_of_a_full_q_that_do_not_turn(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, t = apart(4, 2)(rng, np.dtype(dtype)), normal(4, 2)(rng, np.dtype(dtype))
    flags = {"full_matrices": True, "pivoting": False}
    with config.enable_x64(True):
        check_tangent(lambda x: ops.qr(x, **flags)[1], x, t)
        first = np.eye(4, 2).astype(dtype)
        check_tangent(lambda x: ops.matrices.matmul(ops.qr(x, **flags)[0], first), x, t)
        (q, _), (tq, _) = jvp(lambda x: ops.qr(x, **flags), [x], [t])
        turn = adjoint(np.asarray(q)) @ np.asarray(tq)
        np.testing.assert_allclose(turn, -adjoint(turn), atol=1e-12)


# ---- Single precision ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_factors_in_single_precision(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, tall = regular(2, 4, 4)(rng, np.dtype(dtype)), apart(2, 4, 3)(rng, np.dtype(dtype))
    x_h = positive(2, 4, 4)(rng, np.dtype(dtype))

    def close(found: Any, wanted: np.ndarray) -> None:
        np.testing.assert_allclose(found, wanted, atol=3e-5)

    packed, pivots, order = map(np.asarray, ops.lu(tall))
    lower, upper = np.tril(packed, -1) + np.eye(4, 3), np.triu(packed)[:, :3]
    close(lower @ upper, np.stack([m[p] for m, p in zip(tall, order, strict=True)]))
    assert (packed.dtype, pivots.dtype, order.dtype) == (dtype, "int32", "int32")

    v, w = map(np.asarray, ops.eigh(x_h, **EIGH))
    close(v * w[:, None] @ adjoint(v), hermitian(x_h))
    assert (v.dtype, w.dtype) == (dtype, "float32")

    s, u, vh = map(np.asarray, ops.svd(tall, **SVD))
    close(u * s[:, None] @ vh, tall)
    assert (s.dtype, u.dtype, vh.dtype) == ("float32", dtype, dtype)

    w, vl, vr = map(np.asarray, ops.eig(x, **EIG))
    close(x @ vr, vr * w[:, None])
    close(adjoint(vl) @ x, w[:, :, None] * adjoint(vl))
    assert {a.dtype.name for a in (w, vl, vr)} == {"complex64"}

    t, z = map(np.asarray, ops.schur(x, compute_schur_vectors=True))
    close(z @ t @ adjoint(z), x)
    assert {a.dtype.name for a in (t, z)} == {dtype}

    sign, size = map(np.asarray, ops.slogdet(x))
    close(sign * np.exp(size), np.linalg.det(x))
    assert (sign.dtype, size.dtype) == (dtype, "float32")

    q, r, order = map(np.asarray, ops.qr(tall, full_matrices=False, pivoting=True))
    close(q @ r, np.stack([m[:, p] for m, p in zip(tall, order, strict=True)]))


# ---- Singular matrices, failures, empty matrices ------------------------------------------------

SINGULAR = {
    "rank n - 1, pivot at the end": [[1.0, 2, 3, 4], [2, 4, 6, 8.5], [0, 1, 0, 1], [1, 3, 3, 5]],
    "a zero column": [[0.0, 1, 2, 1], [0, 2, 1, 5], [0, 1, 1, 2], [0, 7, 1, 1]],
    "rank n - 2": [[1.0, 2, 3, 4], [2, 4, 6, 8], [1, 1, 1, 1], [2, 2, 2, 2]],
    "zero": [[0.0] * 4] * 4,
}


@pytest.mark.parametrize("x", SINGULAR.values(), ids=SINGULAR)
def test_gradient_of_a_determinant_at_singular_matrices(x: Any) -> None:
    x = np.asarray(x)
    _, cofactors = adjugate_reference(x)
    with config.enable_x64(True):
        _, found = ops.determinant_and_adjugate(x)
        np.testing.assert_allclose(np.asarray(found), cofactors, atol=1e-12)


@pytest.mark.parametrize(
    "x", [[[0.0]], [[1.0, 2], [2, 4]], [[1.0, 2, 3], [2, 4, 6], [0, 1, 1]], [[0.0] * 3] * 3]
)
def test_second_derivative_of_small_determinants_at_singular_matrices(x: Any) -> None:
    x, t = np.asarray(x), np.random.default_rng(0).normal(size=np.shape(x))

    def slope(x: Any) -> Any:
        return jvp(lambda v: [ops.determinant(v)], [x], [t])[1][0]

    with config.enable_x64(True):
        (_,), (second,) = jvp(lambda v: [slope(v)], [x], [t])
        plus, zero, minus = (np.linalg.det(x + h * t) for h in (1e-3, 0, -1e-3))
        wanted = (plus - 2 * zero + minus) / 1e-6
        np.testing.assert_allclose(0 if second is None else second, wanted, atol=1e-6)


def test_what_has_no_factor_gives_nan() -> None:
    indefinite = np.diag([1.0, -1]).astype("f")
    assert np.isnan(np.tril(ops.cholesky(np.stack([indefinite, np.eye(2, dtype="f")]), **SPD))[0])[
        np.tril_indices(2)
    ].all()
    both = np.asarray(ops.cholesky(np.stack([indefinite, np.eye(2, dtype="f")]), **SPD))
    np.testing.assert_array_equal(both[1], np.eye(2))
    # Above the diagonal a factor is 0, and so is its tangent.
    _, (tangent,) = jvp(lambda v: [ops.cholesky(v, **SPD)], [indefinite], [np.eye(2, dtype="f")])
    assert np.isnan(tangent[1, 1]) and tangent[0, 1] == 0
    bad = np.full((3, 3), np.nan, "f")
    for out in (*ops.eigh(bad, **EIGH), *ops.svd(bad, **SVD), *ops.eig(bad, **EIG)):
        assert np.isnan(np.asarray(out)).all()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_empty_square_matrices(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, "f")
    outs = [
        ops.cholesky(x, **SPD),
        *ops.lu(x),
        *ops.eigh(x, **EIGH),
        *ops.eig(x, **EIG),
        *ops.schur(x, compute_schur_vectors=True),
        ops.triangular_solve(x, x, **SOLVES[0]),
    ]
    assert all(np.asarray(out).size == 0 for out in outs)
    det = np.asarray(ops.determinant(x))
    np.testing.assert_array_equal(det, np.linalg.det(x))
    sign, size = ops.slogdet(x)
    np.testing.assert_array_equal(np.asarray(sign), np.linalg.slogdet(x)[0])
    np.testing.assert_array_equal(np.asarray(size), np.linalg.slogdet(x)[1])


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_empty_matrices_have_orthonormal_factors(shape: tuple[int, int]) -> None:
    x = np.ones(shape, "f")
    q, r = ops.qr(x, full_matrices=True, pivoting=False)
    np.testing.assert_array_equal(np.asarray(q), np.eye(shape[0]))
    assert np.asarray(r).shape == shape
    s, u, vh = ops.svd(x, **SVD | {"full_matrices": True})
    assert s.shape == (0,)
    np.testing.assert_array_equal(np.asarray(u), np.eye(shape[0]))
    np.testing.assert_array_equal(np.asarray(vh), np.eye(shape[1]))
    packed, pivots, order = ops.lu(x)
    assert packed.shape == shape and pivots.shape == (0,)
    np.testing.assert_array_equal(np.asarray(order), np.arange(shape[0]))


# ---- Errors -------------------------------------------------------------------------------------

RECT, HALF = ShapedArray((3, 2), np.dtype("float32")), ShapedArray((2, 2), np.dtype("float16"))
SQUARE = ShapedArray((3, 3), np.dtype("float32"))


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: ops.cholesky.type(RECT, **SPD), ValueError, r"\[\.\.\., n, n\], got the shape"),
        (lambda: ops.cholesky.type(HALF, **SPD), TypeError, "cholesky does not accept .* float16"),
        (lambda: ops.lu.type(ShapedArray((3,), np.dtype("float32"))), TypeError, "at least two"),
        (lambda: ops.triangular_solve.type(SQUARE, RECT, **SOLVES[0]), ValueError, "does not fit"),
        (lambda: ops.eigh.type(RECT, **EIGH), ValueError, "eigh takes square"),
        (
            lambda: ops.svd.jvp(
                [np.ones((3, 2))], [np.ones((3, 2))], **SVD | {"full_matrices": True}
            ),
            NotImplementedError,
            "use full_matrices=False",
        ),
        (
            lambda: ops.eig.jvp([np.eye(2)], [np.eye(2)], **EIG | {"enable_eigvec_derivs": False}),
            NotImplementedError,
            "enable_eigvec_derivs=True",
        ),
        (
            lambda: ops.svd(np.eye(2), **SVD | {"algorithm": ops.SvdAlgorithm.JACOBI}),
            NotImplementedError,
            "not available on the platform 'cpu'",
        ),
    ],
)
def test_errors_name_operation_and_remedy(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
