"""The polar decomposition by Halley's iteration, with weights that speed it up."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, aval_of
from perspex.arguments.types import Array, ArrayLike
from perspex.lax.control import while_loop
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg.matrices import as_dtype_of, conj, hermitian_part, identity, matmul, real
from perspex.ops.reductions import reduce_max
from perspex.ops.shape import concatenate, part
from perspex.ops.structural import convert, full_like, reduce_sum, scalar_like

__all__ = ["qdwh"]


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition `u @ h = x`: orthonormal columns, times a positive semidefinite `h`.

    Args:
      x: a matrix of shape `(m, n)`, `m >= n`.
      is_hermitian: has no effect on the result.
      max_iterations: stop after so many steps, 10 unless given.
      eps: the precision wanted, that of the dtype unless given.
      dynamic_shape: not available.

    Returns:
      `u`, `h`, the number of steps, and whether they have converged.

    Raises:
      ValueError: for fewer rows than columns or a batch.

    References:
      Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar
        decomposition" (2010)

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> u, h, steps, converged = linalg.qdwh(np.array([[2.0, 0.0], [0.0, -3.0]]))
    >>> np.round(h, 4)
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    aval = aval_of("qdwh", x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(
            f"qdwh takes a matrix with at least as many rows as columns, got the shape {aval.shape}"
        )
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh: dynamic_shape is not available; slice the matrix instead")
    a = convert(as_array(x), dtypes.to_inexact_dtype(aval.dtype))
    m, n = aval.shape
    info = dtypes.finfo(a.dtype)
    precision = float(info.eps) if eps is None else eps
    limit = 10 if max_iterations is None else max_iterations
    # A bound of the largest singular value, and one of the smallest after division by it.
    size = ew.abs(a)
    columns, rows = (reduce_max(reduce_sum(size, axes=(i,)), axes=(0,)) for i in (0, 1))
    norm = ew.sqrt(ew.mul(columns, rows))
    norm = ew.select(ew.eq(norm, scalar_like(norm, 0)), scalar_like(norm, 1), norm)
    start = ew.div(a, as_dtype_of(norm, a))
    eye = identity((n, n), a.dtype)
    tolerance = scalar_like(norm, (5 * precision) ** (1 / 3))

    def go_on(state: Any) -> Any:
        _, low, step, change = state
        far = ew.bitwise_or(
            ew.gt(change, tolerance), ew.gt(ew.abs(ew.sub(low, scalar_like(low, 1))), tolerance)
        )
        return ew.bitwise_and(ew.lt(step, limit), far)

    def iterate(state: Any) -> Any:
        u, low, step, _ = state
        wa, wb, wc = _weights(low)
        root = ew.sqrt(wc)
        # u and the identity over each other, factored: stable where u^H u would lose digits.
        both = concatenate(ew.mul(u, as_dtype_of(root, u)), eye, dimension=0)
        q, _ = ops.qr(both, full_matrices=False, pivoting=False)
        upper, lower = part(q, 0, m, 0, (m + n, n)), part(q, m, m + n, 0, (m + n, n))
        ratio = ew.div(wb, wc)
        scale = ew.div(ew.sub(wa, ratio), root)
        moved = ew.add(
            ew.mul(u, as_dtype_of(ratio, u)),
            ew.mul(matmul(upper, lower, "", "H"), as_dtype_of(scale, u)),
        )
        gain = ew.mul(low, ew.add(wa, ew.mul(wb, ew.square(low))))
        low = ew.div(gain, ew.add(scalar_like(low, 1), ew.mul(wc, ew.square(low))))
        low = ew.min(low, scalar_like(low, 1))
        gap = ew.sub(moved, u)
        change = ew.sqrt(reduce_sum(real(ew.mul(gap, conj(gap))), axes=(0, 1)))
        return moved, low, ew.add(step, 1), change

    first = (start, full_like(norm, precision), 0, full_like(norm, np.inf))
    u, _, steps, change = while_loop(go_on, iterate, first)
    # One step of Newton and Schulz restores the last digits.
    gram = matmul(u, u, "H")
    u = ew.sub(ew.mul(u, scalar_like(u, 1.5)), ew.mul(matmul(u, gram), scalar_like(u, 0.5)))
    return u, hermitian_part(matmul(u, a, "H")), steps, ew.le(change, tolerance)


def _weights(low: Any) -> tuple[Any, Any, Any]:
    """The weights of a step, for singular values between `low` and 1."""
    square = ew.square(low)
    one = scalar_like(low, 1)
    cube = ew.cbrt(ew.div(ew.mul(scalar_like(low, 4), ew.sub(one, square)), ew.square(square)))
    root = ew.sqrt(ew.add(one, cube))
    rest = ew.div(
        ew.mul(scalar_like(low, 8), ew.sub(scalar_like(low, 2), square)), ew.mul(square, root)
    )
    inner = ew.sub(scalar_like(low, 8), ew.mul(scalar_like(low, 4), cube))
    inner = ew.max(ew.add(inner, rest), scalar_like(low, 0))
    wa = ew.add(root, ew.mul(scalar_like(low, 0.5), ew.sqrt(inner)))
    wb = ew.mul(ew.square(ew.sub(wa, one)), scalar_like(low, 0.25))
    return wa, wb, ew.sub(ew.add(wa, wb), one)
