"""Factorizations and solutions, against SciPy, which calls the same LAPACK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from support import harness
from support.harness import Draw, Op, Sample, fixed, given, normal, sample

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ops import linalg as ops
from perspex.ops.linalg import solve as solving
from perspex.transforms.jvp import jvp
from perspex.transforms.vmap import batch

DTYPES = ("float32", "float64", "complex64", "complex128")
# Results of several dtypes, or with signs that hang on the last digit, are as SciPy's in these;
# single precision is tested by putting the factors together again.
DOUBLE = ("float64", "complex128")

# ---- Samples ------------------------------------------------------------------------------------


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(*shape: int) -> Draw:
    """Positive definite matrices whose eigenvalues lie apart."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        x = normal(*shape, scale=0.5)(rng, dtype)
        n = shape[-1]
        return np.asarray(x @ adjoint(x) + np.diag(np.arange(n) * 2.0 + 2)).astype(dtype)

    return draw


def regular(*shape: int) -> Draw:
    """Square matrices with a good condition whose eigenvalues lie apart."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        n = shape[-1]
        x = normal(*shape, scale=0.4)(rng, dtype)
        return np.asarray(x + np.diag(np.arange(n) * 2.0 - n + 0.5)).astype(dtype)

    return draw


def apart(*shape: int) -> Draw:
    """Matrices of any shape with singular values that lie apart."""

    def draw(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        x = normal(*shape, scale=0.3)(rng, dtype)
        return np.asarray(x + np.eye(*shape[-2:]) * (1.0 + np.arange(shape[-1]))).astype(dtype)

    return draw


def hermitian(x: np.ndarray) -> np.ndarray:
    return (x + adjoint(x)) / 2


def each(f: Any, *xs: np.ndarray) -> Any:
    """`f` on each matrix of a batch."""
    lead = xs[0].shape[:-2]
    if not lead:
        return f(*xs)
    parts = [f(*[x[i] for x in xs]) for i in np.ndindex(*lead)]
    if isinstance(parts[0], tuple):
        return tuple(np.stack(p).reshape(*lead, *p[0].shape) for p in zip(*parts, strict=True))
    return np.stack(parts).reshape(*lead, *parts[0].shape)


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


def adjugate_reference(x: np.ndarray) -> Any:
    def one(v: np.ndarray) -> Any:
        n = len(v)
        out = np.ones_like(v)
        for i, j in np.ndindex(n, n) if n > 1 else ():
            minor = np.delete(np.delete(v, i, 0), j, 1)
            out[j, i] = (-1) ** (i + j) * np.linalg.det(minor)
        return np.linalg.det(v), out

    return each(one, x)


# ---- Records ------------------------------------------------------------------------------------

SPD = {"symmetrize_input": True}
SOLVES = [
    dict(
        left_side=bool(i & 1),
        lower=bool(i & 2),
        transpose_a=bool(i & 4),
        conjugate_a=bool(i & 8),
        unit_diagonal=i in (3, 6),
    )
    for i in (0, 6, 11, 15)
]
EIGH: dict[str, Any] = {
    "algorithm": None,
    "lower": True,
    "sort_eigenvalues": True,
    "subset_by_index": None,
    "symmetrize_input": True,
}
SVD: dict[str, Any] = {
    "full_matrices": False,
    "compute_uv": True,
    "subset_by_index": None,
    "algorithm": None,
}
EIG = {
    "compute_left_eigenvectors": True,
    "compute_right_eigenvectors": True,
    "enable_eigvec_derivs": True,
}


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
    return solving.solve_positive(ops.matrices.hermitian_part(x), b)


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
        (lambda: ops.triangular_solve.type(SQUARE, RECT, **SOLVES[0]), TypeError, "does not fit"),
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
            "not available on the CPU",
        ),
    ],
)
def test_errors_name_operation_and_remedy(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
