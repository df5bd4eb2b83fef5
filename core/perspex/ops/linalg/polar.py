"""Singular values by polar decomposition, for platforms that have QR and eigenvalues but no `svd`.

The polar decomposition `a = u h`, with unitary `u` and Hermitian `h` without negative eigenvalues,
turns one problem into another: with `h = v s v^H`, `a = (u v) s v^H`. (Higham and Papadimitriou,
"A new parallel algorithm for computing the singular value decomposition", 1994; Nakatsukasa and
Higham, SIAM J. Sci. Comput. 35 (2013) A1325.)

`u` is the limit of Halley's iteration with weights that are best for singular values between `l`
and 1: QDWH, after Nakatsukasa, Bai and Gygi, SIAM J. Matrix Anal. Appl. 31 (2010) 2700. The weights
depend on `l` alone. Here `l` begins at the precision of the dtype instead of at an estimate for
each matrix: singular values below that are lost in rounding anyway, and six steps do for all. So
the steps are known when the program is written, and a batch needs no loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from perspex.ops import elementwise as ew
from perspex.ops.linalg.eigh import eigh
from perspex.ops.linalg.matrices import (
    adjoint,
    as_dtype_of,
    conj,
    diagonal_of,
    hermitian_part,
    identity,
    in_columns,
    in_rows,
    matmul,
    part_dtype,
    per_matrix,
    real,
    resized,
)
from perspex.ops.linalg.qr import qr
from perspex.ops.reductions import reduce_max
from perspex.ops.shape import concatenate, rev
from perspex.ops.shape import slice as slice_
from perspex.ops.structural import full_like, reduce_sum, scalar_like
from perspex.tracing.trace import typeof

_MOST_STEPS = 8


def weights(least: float, precision: float) -> Iterator[tuple[float, float, float]]:
    """The weights `a`, `b`, `c` of the steps that take singular values in `[least, 1]` to 1.

    A step takes `s` to `s (a + b s^2) / (1 + c s^2)`; the last one ends within the precision.
    """
    for _ in range(_MOST_STEPS):
        if 1 - least < precision:
            return
        square = least * least
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        yield a, b, c
        least = min(1.0, least * (a + b * square) / (1 + c * square))


def _scaled(x: Any, number: Any) -> Any:
    """`x` times a number for all matrices, or one for each."""
    factor = scalar_like(x, number) if isinstance(number, float) else number
    return ew.mul(x, factor)


def _of_norm_one(x: Any) -> tuple[Any, Any]:
    """Matrices over their Frobenius norms, and those norms; ones for matrices of zeros."""
    axes = (typeof(x).ndim - 2, typeof(x).ndim - 1)
    largest = _without_zero(reduce_max(ew.abs(x), axes=axes))
    x = ew.div(x, as_dtype_of(per_matrix(largest, typeof(x).shape), x))
    norm = _without_zero(ew.sqrt(reduce_sum(real(ew.mul(conj(x), x)), axes=axes)))
    x = ew.div(x, as_dtype_of(per_matrix(norm, typeof(x).shape), x))
    return x, ew.mul(norm, largest)


def _without_zero(v: Any) -> Any:
    return ew.select(ew.eq(v, scalar_like(v, 0)), full_like(v, 1), v)


def unitary_factor(x: Any) -> Any:
    """The unitary factor of square matrices whose singular values are at most 1."""
    aval = typeof(x)
    n = aval.shape[-1]
    one = identity(aval.shape, aval.dtype)
    precision = float(np.finfo(part_dtype(aval)).eps)
    for a, b, c in weights(precision / 8, precision):
        # With [sqrt(c) x; 1] = [q1; q2] r, q1 q2^H is sqrt(c) x (1 + c x^H x)^-1, without the
        # inverse of a matrix that may be nearly singular.
        stacked = concatenate(_scaled(x, math.sqrt(c)), one, dimension=aval.ndim - 2)
        q, _ = qr(stacked, full_matrices=False, pivoting=False)
        above, below = (_rows(q, start, start + n) for start in (0, n))
        turned = matmul(above, below, right="H")
        x = ew.add(_scaled(x, b / c), _scaled(turned, (a - b / c) / math.sqrt(c)))
    return x


def _rows(x: Any, start: int, stop: int) -> Any:
    shape = typeof(x).shape
    starts, stops = [0] * len(shape), [*shape]
    starts[-2], stops[-2] = start, stop
    return slice_(x, start_indices=tuple(starts), limit_indices=tuple(stops), strides=None)


def _columns(x: Any, start: int) -> Any:
    shape = typeof(x).shape
    starts = [0] * len(shape)
    starts[-1] = start
    return slice_(x, start_indices=tuple(starts), limit_indices=shape, strides=None)


def _orthonormal(x: Any) -> Any:
    """The columns, where those whose singular value is lost are replaced by orthonormal ones.

    The others are orthonormal but for rounding, and keep their directions.
    """
    q, r = qr(x, full_matrices=False, pivoting=False)
    diagonal = real(diagonal_of(r))
    negative = ew.lt(diagonal, scalar_like(diagonal, 0))
    return ew.select(in_columns(negative, typeof(q).shape), ew.neg(q), q)


def _square(x: Any, compute_uv: bool) -> tuple[Any, ...]:
    """Descending singular values of square matrices, with `u` and `vh` if they are wanted."""
    x, norm = _of_norm_one(x)
    unitary = unitary_factor(x)
    v, w = eigh(
        hermitian_part(matmul(unitary, x, "H")),
        algorithm=None,
        lower=True,
        sort_eigenvalues=True,
        subset_by_index=None,
        symmetrize_input=False,
    )
    last = typeof(w).ndim - 1
    w = rev(w, dimensions=(last,))
    # What should be zero may be a little less.
    w = ew.select(ew.lt(w, scalar_like(w, 0)), full_like(w, 0), w)
    s = ew.mul(w, in_rows(norm, typeof(w).shape))
    if not compute_uv:
        return (s,)
    v = rev(v, dimensions=(last + 1,))
    return s, _orthonormal(matmul(unitary, v)), adjoint(v)


def singular_values(x: Any, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    """Descending singular values `s`, and `u` and `vh` with `u * s @ vh = x` if `compute_uv`.

    Args:
      x: matrices, an array `[..., m, n]`.
      full_matrices: whether `u` and `vh` are square.
      compute_uv: whether they are wanted.

    Returns:
      `s`, or `s`, `u` and `vh`.
    """
    *batch, m, n = typeof(x).shape
    if m < n:
        s, *vectors = singular_values(adjoint(x), full_matrices, compute_uv)
        return (s, *[adjoint(v) for v in reversed(vectors)])
    if m == n:
        return _square(x, compute_uv)
    # A tall matrix has the singular values of its triangular factor.
    q, r = qr(x, full_matrices=full_matrices and compute_uv, pivoting=False)
    s, *vectors = _square(resized(r, (*batch, n, n)), compute_uv)
    if not vectors:
        return (s,)
    u, vh = vectors
    turned = matmul(resized(q, (*batch, m, n)), u)
    if full_matrices:
        turned = concatenate(turned, _columns(q, n), dimension=len(batch) + 1)
    return s, turned, vh
