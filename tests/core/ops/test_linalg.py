"""Factorizations and solutions, against SciPy, which calls the same LAPACK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from support import harness
from support.harness import Op, Sample, fixed, given, normal, sample
from support.matrices import (
    DOUBLE,
    DTYPES,
    EIG,
    EIGH,
    SOLVES,
    SPD,
    SVD,
    adjoint,
    adjugate_reference,
    apart,
    each,
    hermitian,
    positive,
    regular,
)

from perspex import enable_x64, jit
from perspex.lax import linalg
from perspex.ops import linalg as ops
from perspex.ops.linalg import solve as solving
from perspex.transforms.jvp import jvp
from perspex.transforms.vmap import batch

# ---- References ---------------------------------------------------------------------------------


def lu_reference(x: np.ndarray) -> Any:
    packed, pivots = scipy.linalg.lu_factor(x, check_finite=False) if x.size else (x, [])
    if x.shape[0] != x.shape[1]:
        routine = scipy.linalg.get_lapack_funcs("getrf", (x,))
        packed, pivots, _ = routine(x)
    order = np.arange(x.shape[0])
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return packed, np.asarray(pivots, np.int32), order.astype(np.int32)


def permutation_of(pivots: np.ndarray, permutation_size: int) -> np.ndarray:
    out = np.broadcast_to(
        np.arange(permutation_size, dtype=np.int32), (*pivots.shape[:-1], permutation_size)
    ).copy()
    for at in np.ndindex(*pivots.shape[:-1]):
        for i, j in enumerate(pivots[at]):
            out[at][[i, j]] = out[at][[j, i]]
    return out


def triangular_reference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> np.ndarray:
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    a = np.conj(a) if conjugate_a else a
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    if left_side:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def triangles_reference(x: np.ndarray, below: bool, diagonal: str, above: bool) -> np.ndarray:
    n, m = x.shape[-2:]
    eye = np.eye(n, m)
    middle = {"keep": x * eye, "zero": 0 * eye, "half": x * eye / 2, "one": eye}[diagonal]
    return below * np.tril(x, -1) + above * np.triu(x, 1) + middle


def qr_reference(x: np.ndarray, *, full_matrices: bool, pivoting: bool) -> Any:
    mode = "full" if full_matrices else "economic"
    out = each(lambda v: scipy.linalg.qr(v, mode=mode, pivoting=pivoting), x)
    return (*out[:2], out[2].astype(np.int32)) if pivoting else out


def reflectors(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (packed, tau), _ = scipy.linalg.qr(x, mode="raw")
    return packed, tau


PACKED, TAUS = reflectors(np.random.default_rng(3).normal(size=(4, 3)))
A = regular(4, 4)(np.random.default_rng(4), np.dtype("complex128"))
FACTORS, _, ORDER = lu_reference(A)
POSITIVE = positive(4, 4)(np.random.default_rng(5), np.dtype("complex128"))


def multiplied(
    a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool, transpose: bool
) -> np.ndarray:
    q = np.eye(a.shape[0], dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.concatenate([np.zeros(i), [1.0], a[i + 1 :, i]])[:, None]
        q = q @ (np.eye(len(q)) - tau * v @ adjoint(v))
    q = adjoint(q) if transpose else q
    return q @ c if left else c @ q


def hessenberg_reference(x: np.ndarray) -> Any:
    gehrd = scipy.linalg.get_lapack_funcs("gehrd", (x,))
    packed, tau, _ = gehrd(x, lo=0, hi=len(x) - 1)
    return packed, tau


def tridiagonal_reference(x: np.ndarray, *, lower: bool) -> Any:
    name = "hetrd" if np.iscomplexobj(x) else "sytrd"
    packed, d, e, tau, _ = scipy.linalg.get_lapack_funcs(name, (x,))(x, lower=lower)
    return packed, d, e, tau


def tridiagonal_matrix(dl: np.ndarray, d: np.ndarray, du: np.ndarray) -> np.ndarray:
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


def eig_reference(x: np.ndarray, **_: Any) -> Any:
    def one(v: np.ndarray) -> Any:
        routine = scipy.linalg.get_lapack_funcs("geev", (v.astype(np.complex128),))
        return scipy.linalg.eig(v, left=True) if v.dtype.kind != "c" else routine(v)[:3]

    return each(one, x)


# ---- Records ------------------------------------------------------------------------------------


def svd_reference(x: np.ndarray, *, full_matrices: bool, compute_uv: bool, **_: Any) -> Any:
    def one(v: np.ndarray) -> Any:
        u, s, vh = scipy.linalg.svd(v, full_matrices=full_matrices)
        return (s, u, vh) if compute_uv else (s,)

    return each(one, x)


OPS = [
    Op(
        ops.triangles,
        triangles_reference,
        [
            sample(normal(3, 3), below=True, diagonal="keep", above=False),
            sample(normal(2, 3, 4), below=False, diagonal="half", above=True),
            sample(normal(4, 3), below=True, diagonal="zero", above=True),
            Sample((normal(3, 3),), {"below": False, "diagonal": "one", "above": False}, linear=()),
        ],
        (*DTYPES, "bfloat16"),
        tolerance=0,
        linear=((0,),),
    ),
    Op(
        ops.cholesky,
        lambda x, **_: np.linalg.cholesky(hermitian(x)),
        [
            sample(positive(4, 4), **SPD),
            sample(positive(2, 3, 3), **SPD),
            sample(positive(1, 1), **SPD),
        ],
        DTYPES,
        tolerance=8,
    ),
    Op(
        ops.triangular_solve,
        triangular_reference,
        [
            *[sample(regular(3, 3), normal(3, 3), **params) for params in SOLVES],
            sample(regular(2, 3, 3), normal(2, 3, 2), **SOLVES[2]),
            sample(regular(2, 3, 3), normal(2, 1, 3), **SOLVES[0]),
        ],
        DTYPES,
        tolerance=20,
        linear=((1,),),
    ),
    Op(
        ops.lu,
        lambda x: each(lu_reference, x),
        [sample(regular(2, 3, 3))] + [sample(apart(*shape)) for shape in [(4, 2), (2, 4)]],
        DOUBLE,
        result=None,
        tolerance=16,
    ),
    Op(
        ops.lu_pivots_to_permutation,
        permutation_of,
        [
            sample(fixed([2, 1, 3, 3]), permutation_size=4),
            sample(fixed([[2, 3], [1, 1]]), permutation_size=5),
        ],
        ("int32",),
        tolerance=0,
        weak=None,
    ),
    Op(
        ops.lu_solve,
        lambda a, f, p, b, transpose_a: np.linalg.solve(a.T if transpose_a else a, b),
        [
            Sample(
                (given(A), given(FACTORS), fixed(ORDER), normal(4, 2)),
                {"transpose_a": flip},
                differentiable=(3,),
                linear=((3,),),
            )
            for flip in (False, True)
        ],
        ("complex64", "complex128"),
        tolerance=20,
        weak=None,
    ),
    Op(
        ops.cholesky_solve,
        lambda a, f, b: np.linalg.solve(a, b),
        [
            Sample(
                (given(POSITIVE), given(np.linalg.cholesky(POSITIVE)), normal(4, 2)),
                {},
                differentiable=(2,),
                linear=((2,),),
            )
        ],
        ("complex64", "complex128"),
        tolerance=20,
        weak=None,
    ),
    Op(
        ops.slogdet,
        lambda x: tuple(np.linalg.slogdet(x)),
        [sample(regular(2, 3, 3)), sample(regular(1, 1))],
        DOUBLE,
        result=None,
        tolerance=20,
    ),
    Op(
        ops.determinant,
        np.linalg.det,
        [sample(regular(*shape)) for shape in [(1, 1), (2, 2), (2, 3, 3), (4, 4)]],
        DOUBLE,
        tolerance=20,
    ),
    Op(
        ops.determinant_and_adjugate,
        adjugate_reference,
        [sample(regular(*shape)) for shape in [(1, 1), (2, 2), (2, 3, 3), (4, 4)]],
        DOUBLE,
        tolerance=30,
    ),
    Op(
        ops.qr,
        qr_reference,
        [
            sample(apart(3, 3), full_matrices=False, pivoting=False),
            sample(apart(2, 4, 2), full_matrices=False, pivoting=False),
            sample(apart(2, 4), full_matrices=True, pivoting=False),
        ],
        DTYPES,
        tolerance=20,
    ),
    Op(
        ops.qr,
        qr_reference,
        [sample(apart(4, 3), full_matrices=False, pivoting=True)],
        DOUBLE,
        result=None,
        tolerance=20,
        name="qr-pivoting",
    ),
    Op(
        ops.qr,
        qr_reference,
        [sample(apart(4, 2), full_matrices=True, pivoting=False)],
        DOUBLE,
        tolerance=20,
        # The columns of q beyond those of the matrix may turn freely: see below.
        smooth=(),
        name="qr-full",
    ),
    Op(
        ops.householder_product,
        lambda a, taus: multiplied(a, taus, np.eye(4), left=True, transpose=False)[:, :3],
        [sample(given(PACKED), given(TAUS))],
        DOUBLE,
        tolerance=8,
    ),
    Op(
        ops.ormqr,
        multiplied,
        [
            Sample(
                (given(PACKED), given(TAUS), normal(4, 4)),
                {"left": left, "transpose": flip},
                differentiable=(2,),
                linear=((2,),),
            )
            for left, flip in [(True, True), (False, False)]
        ],
        DOUBLE,
        tolerance=8,
    ),
    Op(
        ops.eigh,
        lambda x, **_: each(lambda v: scipy.linalg.eigh(v, driver="evd")[::-1], hermitian(x)),
        [sample(positive(2, 3, 3), **EIGH)],
        DOUBLE,
        result=None,
        tolerance=20,
        # The phase of complex eigenvectors is free: see below.
        smooth=("float64",),
    ),
    Op(
        ops.svd,
        svd_reference,
        [
            sample(apart(3, 3), **SVD),
            sample(apart(2, 4, 2), **SVD),
            sample(apart(2, 4), **SVD),
            sample(apart(3, 3), **SVD | {"full_matrices": True}),
            sample(apart(4, 2), **SVD | {"compute_uv": False}),
        ],
        DOUBLE,
        result=None,
        tolerance=20,
        smooth=("float64",),
    ),
    Op(
        ops.eig,
        eig_reference,
        [sample(regular(2, 3, 3), **EIG)],
        DOUBLE,
        result=lambda dtype: np.result_type(dtype, np.complex64),
        tolerance=40,
    ),
    Op(
        ops.schur,
        lambda x, **_: each(
            lambda v: scipy.linalg.schur(v, "complex" if np.iscomplexobj(v) else "real"), x
        ),
        [sample(regular(2, 3, 3), compute_schur_vectors=True)],
        DOUBLE,
        tolerance=40,
    ),
    Op(ops.hessenberg, hessenberg_reference, [sample(regular(4, 4))], DOUBLE, tolerance=20),
    Op(
        ops.tridiagonal,
        tridiagonal_reference,
        [sample(positive(4, 4), lower=lower) for lower in (True, False)],
        DOUBLE,
        result=None,
        tolerance=20,
    ),
    Op(
        ops.tridiagonal_solve,
        lambda dl, d, du, b, **_: np.linalg.solve(tridiagonal_matrix(dl, d, du), b),
        [
            sample(
                normal(4), given([5, -6, 7, 8.0]), normal(4), normal(4, 2), perturb_singular=flag
            )
            for flag in (False, True)
        ],
        DOUBLE,
        tolerance=20,
        linear=((3,),),
    ),
]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)


class Function:
    """A function of arrays with the rules that its operations give it."""

    multiple_results = True

    def __init__(self, f: Any) -> None:
        self.f = f

    def __call__(self, *xs: Any) -> Any:
        return [self.f(*xs)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return jvp(self, primals, tangents)

    def batch(self, size: int, operands: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return batch(self, size, operands, axes)


def as_positive(x: Any, b: Any) -> Any:
    return solving.solve_positive(ops.matrices.hermitian_part(x), b, lower=True)


FUNCTIONS = [
    Op(
        Function(solving.solve),
        np.linalg.solve,
        [sample(regular(4, 4), normal(4, 2)), sample(regular(2, 3, 3), normal(2, 3, 1))],
        DTYPES,
        tolerance=20,
        weak=None,
        name="solve",
    ),
    Op(
        Function(as_positive),
        lambda a, b: np.linalg.solve(hermitian(a), b),
        [sample(positive(4, 4), normal(4, 2))],
        DTYPES,
        tolerance=20,
        weak=None,
        name="solve_positive",
    ),
    Op(
        Function(solving.inverse),
        np.linalg.inv,
        [sample(regular(4, 4))],
        DTYPES,
        tolerance=20,
        weak=None,
        name="inverse",
    ),
]
(
    test_function_value,
    test_function_staged,
    test_function_jvp,
    _,
    test_function_batch,
    _,
) = harness.tests(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("algorithm", [None, linalg.SvdAlgorithm.QR])
def test_singular_values_of_an_infinite_matrix_are_nan(dtype: str, algorithm: Any) -> None:
    """LAPACK's routine may go on for ever."""
    with enable_x64():
        finite = np.arange(9.0).reshape(3, 3).astype(dtype)
        infinite = finite.copy()
        infinite[0, 1] = -np.inf
        outs = jit(linalg.svd, static_argnames="algorithm")(
            np.stack([infinite, finite]), algorithm=algorithm
        )
        for out in outs:
            assert np.isnan(out[0]).all() and not np.isnan(out[1]).any()
        expected = np.linalg.svd(finite, compute_uv=False)
        np.testing.assert_allclose(outs[1][1], expected, atol=1e-5)
