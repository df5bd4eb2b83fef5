"""Singular values and vectors."""

from __future__ import annotations

import enum
import functools
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ew
from perspex.ops.linalg.matrices import (
    OfMatrices,
    adjoint,
    as_dtype_of,
    check_matrix,
    columns_of_product,
    diagonal_of,
    in_columns,
    in_rows,
    info_of,
    is_complex,
    matmul,
    nan_unless,
    part_dtype,
    real,
    resized,
    sized,
    triangles,
    with_diagonal,
)
from perspex.ops.linalg.polar import singular_values
from perspex.ops.linalg.solvers import call_gpu, call_lapack, code, flag, is_gpu
from perspex.ops.lowering import expand
from perspex.ops.structural import full_like, scalar_like
from perspex.tracing.trace import typeof


class SvdAlgorithm(enum.Enum):
    """How singular values are found.

    On CPUs, the default is by division (`gesdd`), which is faster; `QR` (`gesvd`) is more
    accurate for small singular values. Jacobi's and the polar one are for accelerators.

    >>> SvdAlgorithm("QR")
    <SvdAlgorithm.QR: 'QR'>
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

    def __str__(self) -> str:
        return f"SvdAlgorithm.{self.name}"


_ON_CPU = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}
# On TPUs, which have no routine for it.
_BY_POLAR = (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.POLAR)
_ON_GPU = {
    SvdAlgorithm.JACOBI: "gesvdj",
    SvdAlgorithm.POLAR: "gesvdp",
    SvdAlgorithm.QR: "gesvd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
}
# Up to here Jacobi's method is the faster one on GPUs, and up to here the matrices of a batch are
# decomposed together, with all vectors.
_JACOBI_SIZE, _TOGETHER_SIZE = 1024, 32


class SVD(OfMatrices):
    """Descending `s`, and `u` and `vh` with orthonormal columns and rows, with `u * s @ vh = x`.

    `s` alone unless `compute_uv`; square `u` and `vh` with `full_matrices`.
    """

    name = "svd"
    multiple_results = True

    def type(
        self,
        x: ShapedArray,
        *,
        full_matrices: bool,
        compute_uv: bool,
        subset_by_index: tuple[int, int] | None,
        algorithm: SvdAlgorithm | None,
    ) -> tuple[ShapedArray, ...]:
        check_matrix(self.name, x)
        m, n = x.shape[-2:]
        k = min(m, n)
        if subset_by_index is not None:
            k = min(k, subset_by_index[1] - subset_by_index[0])
        s = sized(x, k, dtype=part_dtype(x))
        if not compute_uv:
            return (s,)
        if full_matrices:
            return s, sized(x, m, m), sized(x, n, n)
        return s, sized(x, m, k), sized(x, k, n)

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        full_matrices: bool,
        compute_uv: bool,
        subset_by_index: Any,
        algorithm: SvdAlgorithm | None,
    ) -> Any:
        (given,) = b.in_avals
        m, n = given.shape[-2:]
        if not given.size:
            # Any orthonormal vectors will do.
            return [b.constant(0, b.out_avals[0])] + [
                b.constant(np.broadcast_to(np.eye(*a.shape[-2:]), a.shape), a)
                for a in b.out_avals[1:]
            ]
        if b.out_avals[0].shape[-1] != min(m, n):
            raise NotImplementedError(
                "svd: subset_by_index is not available; select from all singular values"
            )
        s, *vectors = b.out_avals
        if is_gpu(b):
            return _lower_on_gpu(b, x, given, _on_gpu(b, given, algorithm), full_matrices)
        if b.platform == "tpu" and algorithm in _BY_POLAR:
            flags = (full_matrices, compute_uv)
            return expand(b, lambda x: singular_values(x, *flags), x)
        routine = _ON_CPU.get(algorithm)
        if routine is None or b.platform != "cpu":
            raise _no_algorithm(b, algorithm)
        u, vh = vectors or (sized(given, m, m), sized(given, n, n))
        info = info_of(given)
        (x,) = expand(b, _nan_for_infinity, x)
        _, *found, report = call_lapack(
            b,
            routine,
            [(x, given, 2)],
            [(given, 2), (s, 1), (u, 2), (vh, 2), (info, 0)],
            f"mode = {code(('A' if full_matrices else 'S') if compute_uv else 'N')}",
            [(0, 0)],
        )
        wanted = list(zip(found, (s, u, vh), strict=True))
        return nan_unless(b, "EQ", report, info, wanted if compute_uv else wanted[:1])

    def jvp(
        self, primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, **params: Any
    ) -> Any:
        # Giles (2008), Townsend (2016), "Differentiating the singular value decomposition": with
        # p = u^H dx v, ds is the diagonal of p, du = u q and dv = v r, where
        # q = (p s + s p^H) / (s_j^2 - s_i^2) and r = (s p + p^H s) / (s_j^2 - s_i^2), and what
        # dx does outside of the spaces that u and v span.
        (x,), (t,) = primals, tangents
        m, n = typeof(x).shape[-2:]
        if t is None:
            outs = self(x, full_matrices=full_matrices, compute_uv=compute_uv, **params)
            return outs, [None] * len(outs)
        if compute_uv and full_matrices and m != n:
            raise NotImplementedError(
                "svd has no derivative with full_matrices=True for matrices that are not square, "
                "as the vectors of the null space may turn freely; use full_matrices=False"
            )
        s, u, vh = self(x, full_matrices=False, compute_uv=True, **params)
        if typeof(s).shape[-1] != min(m, n):
            raise NotImplementedError("svd has no derivative with subset_by_index")
        turned = matmul(t, vh, "", "H")
        ts = real(columns_of_product(u, turned))
        if not compute_uv:
            return [s], [ts]
        p = matmul(u, turned, "H")
        shape = typeof(p).shape
        across, down = in_columns(s, shape), in_rows(s, shape)
        gaps = with_diagonal(ew.mul(ew.sub(across, down), ew.add(across, down)), "one")
        across, down, gaps = (as_dtype_of(v, p) for v in (across, down, gaps))

        def rotation(scaled: Any) -> Any:
            return with_diagonal(ew.div(ew.add(scaled, adjoint(scaled)), gaps), "zero")

        q, r = rotation(ew.mul(p, across)), rotation(ew.mul(down, p))
        if is_complex(x):
            # Only the product of the phases of u and v counts: all of it goes to u.
            phases = ew.div(ew.imag(diagonal_of(p)), _nonzero(s))
            turn = in_rows(ew.complex(scalar_like(phases, 0), phases), shape)
            q = ew.add(q, triangles(turn, below=False, diagonal="keep", above=False))
        tu, tv = matmul(u, q), matmul(r, vh, "H")
        if m > n:
            outside = ew.sub(turned, matmul(u, p))
            scale = in_columns(_inverted(s), typeof(outside).shape)
            tu = ew.add(tu, ew.mul(outside, as_dtype_of(scale, outside)))
        if n > m:
            rest = matmul(u, t, "H")
            outside = ew.sub(rest, matmul(p, vh))
            scale = in_rows(_inverted(s), typeof(outside).shape)
            tv = ew.add(tv, ew.mul(as_dtype_of(scale, outside), outside))
        return [s, u, vh], [ts, tu, tv]


def _nan_for_infinity(x: Any) -> Any:
    """What LAPACK is given: with an infinite number `gesdd` may never end, with NaN it does."""
    parts = [ew.real(x), ew.imag(x)] if is_complex(x) else [x]
    finite = functools.reduce(ew.bitwise_and, map(ew.is_finite, parts))
    return ew.select(finite, x, full_like(x, np.nan))


def _no_algorithm(b: Any, algorithm: Any) -> NotImplementedError:
    return NotImplementedError(
        f"svd: {algorithm} is not available on the platform {b.platform!r}; use "
        "SvdAlgorithm.DEFAULT or QR"
    )


def _on_gpu(b: Any, given: ShapedArray, algorithm: SvdAlgorithm | None) -> SvdAlgorithm:
    """The algorithm for a GPU."""
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        small = max(given.shape[-2:]) <= _JACOBI_SIZE
        return SvdAlgorithm.JACOBI if small else SvdAlgorithm.QR
    assert algorithm is not None
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER and b.platform != "rocm":
        raise _no_algorithm(b, algorithm)
    return algorithm


def _lower_on_gpu(
    b: Any, x: Any, given: ShapedArray, algorithm: SvdAlgorithm, full_matrices: bool
) -> list[Any]:
    """Emit the call of a GPU's routine.

    By Jacobi's method and the polar one, it gives `v` and not `vh`, and needs room for vectors that
    nobody asked for; by `QR`, a matrix must have no more columns than rows, so a wide one is read
    by rows, as its transpose.
    """
    s, *vectors = b.out_avals
    m, n = given.shape[-2:]
    gives_v = algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR)
    is_thin = not full_matrices
    if algorithm is SvdAlgorithm.JACOBI:
        is_thin = is_thin and min(m, n) > _TOGETHER_SIZE
    is_wide = algorithm is SvdAlgorithm.QR and m < n
    if gives_v:
        k = min(m, n)
        u, v = sized(given, m, k if is_thin else m), sized(given, n, k if is_thin else n)
    else:
        u, v = vectors or [ShapedArray((), given.dtype)] * 2
        if is_wide:
            u, v = v, u
    flags = [flag("compute_uv", bool(vectors)), flag("full_matrices", not is_thin)]
    if not gives_v:
        flags.append(flag("transposed", is_wide))
    info = info_of(given)
    _, values, left, right, report = call_gpu(
        b,
        SVD.name,
        f"solver_{_ON_GPU[algorithm]}_ffi",
        [(x, given, 2)],
        [(given, 2), (s, 1), (u, min(u.ndim, 2)), (v, min(v.ndim, 2)), (info, 0)],
        ", ".join(flags),
        [(0, 0)],
        by_rows=is_wide,
    )
    if not vectors:
        return nan_unless(b, "EQ", report, info, [(values, s)])
    if is_wide:
        left, right = right, left
    elif gives_v:
        corner = (*given.shape[:-2], *vectors[1].shape[-2:])
        (right,) = expand(b, lambda v: resized(adjoint(v), corner), right, avals=[v])
        (left,) = expand(b, lambda u: resized(u, vectors[0].shape), left, avals=[u])
    found = [(values, s), (left, vectors[0]), (right, vectors[1])]
    return nan_unless(b, "EQ", report, info, found)


def _nonzero(s: Any) -> Any:
    """`s` with ones for its zeros."""
    return ew.select(ew.eq(s, scalar_like(s, 0)), full_like(s, 1), s)


def _inverted(s: Any) -> Any:
    """`1 / s`, and 0 where `s` is 0."""
    inverse = ew.div(full_like(s, 1), _nonzero(s))
    return ew.select(ew.eq(s, scalar_like(s, 0)), full_like(s, 0), inverse)


svd = SVD()
