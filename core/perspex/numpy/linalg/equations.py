"""Linear equations, inverses and determinants."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, as_dtype, check_arraylike, spread
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import common_shape
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import ShapedArray
from perspex.jitted.fused import fused
from perspex.numpy import reductions, words
from perspex.numpy.axes import transpose
from perspex.numpy.linalg.factorizations import matrices_of, square
from perspex.numpy.promotion import inexact, promote_dtypes, strong
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg import solve as solving
from perspex.ops.linalg.matrices import apart, as_dtype_of, beside, in_rows
from perspex.ops.structural import convert, full_like, move_axis, reshape, zeros

__all__ = [
    "SlogdetResult", "det", "inv", "lstsq", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve",
]  # fmt: skip


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


# ---- Equations ----------------------------------------------------------------------------------


def solved(a: Any, b: Any, solve: Any = solving.solve) -> Any:
    """`solve(a, b)` for matrices with batch axes that broadcast; a `b` of one axis is a vector."""
    if b.ndim == 1:
        out = solved(a, reshape(b, new_sizes=(*b.shape, 1)), solve)
        return reshape(out, new_sizes=out.shape[:-1])
    if a.ndim == 2 and b.ndim > 2:
        # One matrix, many right-hand sides: they are more columns.
        batch = b.shape[:-2]
        flat = reshape(b, new_sizes=(math.prod(batch), *b.shape[-2:]))
        columns, count = beside(flat, 0)
        out, axis = apart(solve(a, columns), count)
        return reshape(move_axis(out, axis, 0), new_sizes=(*batch, *b.shape[-2:]))
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    a, b = (spread(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return solve(a, b)


@fused
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve the linear equations `a @ x = b`.

    Args:
      a: shape `(..., n, n)`.
      b: shape `(n,)`, or `(..., n, k)`; the batch axes broadcast.

    Returns:
      An array like `b`; of infinities and NaNs for a singular `a`.

    Raises:
      TypeError: for lists.
      ValueError: for an `a` that is not square, and for sizes that do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    check_arraylike("solve", a, b)
    a, b = (as_array(x) for x in promote_dtypes("solve", a, b, to=dtypes.to_inexact_dtype))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"linalg.solve takes square matrices, got the shape {a.shape}")
    if not b.ndim or b.shape[-1 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError(
            f"linalg.solve: a matrix of shape {a.shape} does not fit a right-hand side of shape "
            f"{b.shape}"
        )
    return solved(a, b)


@fused
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices; infinities and NaNs where there is none.

    Args:
      a: matrices of shape `(..., n, n)`.

    Returns:
      Matrices of the same shape, of a floating or complex dtype.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return solving.inverse(square("inv", a))


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
      a: shape `(..., m, n)`.
      rtol: singular values up to this multiple of the greatest count as zero; by default
        `10 * max(m, n)` times the precision of the dtype. A number for each matrix, or for all.
      hermitian: use that the matrices are Hermitian.
      rcond: another name of `rtol`.

    Returns:
      Shape `(..., n, m)`. The derivative is that of Golub and Pereyra (1973), for changes that
      keep the rank.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for fewer than two axes, and if both `rtol` and `rcond` are given.

    References:
      Golub and Pereyra, SIAM J. Numer. Anal. 10, 413 (1973): the derivative at constant rank.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified; they are the same")
    return _pinv(a, rcond if rtol is None else rtol, hermitian=bool(hermitian))


@fused(static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    a = strong(matrices_of("pinv", a))
    dtype = np.dtype(dtypes.finfo(a.dtype).dtype)
    if rtol is None:
        rtol = dtype.type(10 * max(a.shape[-2:]) * float(dtypes.finfo(dtype).eps))
    rtol = spread(as_dtype(rtol, dtype), a.shape[:-2])
    return ops.pseudo_inverse(a, rtol, hermitian=hermitian)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solve linear equations by least squares: minimize `|a @ x - b|`, then `|x|`.

    Args:
      a: a matrix of shape `(m, n)`.
      b: shape `(m,)` or `(m, k)`.
      rcond: singular values below this multiple of the greatest count as zero; by default
        `max(m, n)` times the precision of the dtype.
      numpy_resid: give residuals only where NumPy does, which cannot be done while tracing.

    Returns:
      `x`; the sums of squared residuals, of shape `(1,)` or `(k,)`; the rank, int32; and the
      singular values of `a`.

    Raises:
      TypeError: for lists, and for a batch of matrices: use `vmap`.
      ValueError: if `a` and `b` differ in the number of rows.

    >>> import perspex.numpy as jnp
    >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1.0], [0.0]]), jnp.array([2.0, 3.0]))
    >>> x
    Array([2.], dtype=float32)
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid:
        m, n = np.shape(a)
        empty = int(rank) < n or m <= n
        residuals = residuals[:0] if empty else residuals
    return x, residuals, rank, s


@fused
def _lstsq(a: Any, b: Any, rcond: Any) -> Any:
    check_arraylike("lstsq", a, b)
    a, b = (as_array(x) for x in promote_dtypes("lstsq", a, b, to=dtypes.to_inexact_dtype))
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise TypeError(
            f"linalg.lstsq takes a matrix and a vector or matrix, got the shapes {a.shape} and "
            f"{b.shape}; use vmap for a batch"
        )
    if a.shape[0] != b.shape[0]:
        raise ValueError(
            f"linalg.lstsq: both arguments must have as many rows, got shapes {a.shape}, {b.shape}"
        )
    is_vector = b.ndim == 1
    rows = b.reshape(-1, 1) if is_vector else b
    m, n = a.shape
    k = rows.shape[1]
    s, u, vh = ops.svd(
        a, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None
    )
    if not a.size:
        x, rank = zeros(ShapedArray((n, k), a.dtype)), zeros(ShapedArray((), np.dtype("int32")))
        residuals = reductions.sum(ew.square(ew.abs(rows)), axis=0)
    else:
        eps = float(dtypes.finfo(s.dtype).eps)
        limit = as_dtype(eps * max(m, n) if rcond is None else rcond, s.dtype)
        if rcond is not None:
            limit = ew.select(ew.lt(limit, s.dtype.type(0)), s.dtype.type(eps), limit)
        kept = ew.bitwise_and(ew.gt(s, full_like(s, 0)), ew.ge(s, ew.mul(s[0], limit)))
        rank = reductions.sum(convert(kept, np.dtype("int32")))
        safe = ew.select(kept, s, full_like(s, 1))
        scale = ew.select(kept, ew.div(full_like(s, 1), safe), full_like(s, 0))
        turned = ops.matrices.matmul(u, rows, "H")
        scaled = ew.mul(turned, as_dtype_of(in_rows(scale, turned.shape), turned))
        x = ops.matrices.matmul(vh, scaled, "H")
        gap = ew.sub(rows, ops.matrices.matmul(a, x))
        residuals = reductions.sum(ew.square(ew.abs(gap)), axis=0)
    return x.reshape(-1) if is_vector else x, residuals, rank, s


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve the tensor equation `tensordot(a, x, x.ndim) = b`.

    Args:
      a: an array whose first axes are those of `b`, the others those of `x`.
      b: an array.
      axes: axes of `a` to move to the end first.

    Returns:
      An array of the last axes of `a`.

    Raises:
      TypeError: for lists.
      ValueError: for sizes that do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    check_arraylike("tensorsolve", a, b)
    a, b = (as_array(x) for x in promote_dtypes("tensorsolve", a, b, to=dtypes.to_inexact_dtype))
    if axes is not None:
        moved = tuple(operator.index(i) % a.ndim for i in axes)
        order = [i for i in range(a.ndim) if i not in moved]
        a = transpose(a, (*order, *moved))
    shape = a.shape[b.ndim :]
    if math.prod(a.shape[: b.ndim]) != math.prod(shape) or b.size != math.prod(shape):
        raise ValueError(
            f"linalg.tensorsolve: a of shape {a.shape} is not square for b of shape {b.shape}: "
            "the product of its first axes must be that of the others, and the size of b"
        )
    return solve(a.reshape(b.size, b.size), b.reshape(-1)).reshape(shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of the linear map `x -> tensordot(a, x, x.ndim)`.

    Args:
      a: an array whose first `ind` axes have as many elements as the others.
      ind: how many axes the result of the map has.

    Returns:
      An array of the last axes of `a` followed by the first `ind`.

    Raises:
      TypeError: if `a` is not an array, or `ind` not an integer.
      ValueError: for an `ind` below 1, and for sizes that do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    a = strong(as_array(inexact("tensorinv", a)))
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"linalg.tensorinv: ind must be a positive integer, got {ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise ValueError(
            f"linalg.tensorinv: the product of the first {ind} axes must be that of the others, "
            f"got the shape {a.shape}"
        )
    return inv(a.reshape(math.prod(first), math.prod(last))).reshape(*last, *first)


# ---- Determinants -------------------------------------------------------------------------------


@fused
def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    The gradient is the transposed adjugate, for singular matrices too.

    Args:
      a: matrices of shape `(..., n, n)`.

    Returns:
      Numbers of shape `(...)`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    matrix: Any = square("det", a)
    if _is_narrow(matrix, 3):
        wide = as_dtype(matrix, np.dtype("float32"))
        return as_dtype(ops.determinant(wide), matrix.dtype)
    # As in JAX, which writes out the sums of two and three rows.
    return ops.determinant(matrix if matrix.shape[-1] in (2, 3) else strong(matrix))


def _is_narrow(a: Any, most: int) -> bool:
    """Whether these are small matrices of floats below float32; JAX refuses larger ones."""
    return a.dtype.kind != "c" and a.dtype.itemsize < 4 and 0 < a.shape[-1] <= most


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign, or phase, of the determinant and the logarithm of its absolute value.

    Args:
      a: shape `(..., n, n)`.
      method: `"lu"`, or `"qr"`, which gives the same.

    Returns:
      A pair `(sign, logabsdet)` of shapes `(...)`; 0 and minus infinity for a singular matrix.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for matrices that are not square, and for another `method`.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method {method!r}: it must be None, 'lu' or 'qr'")
    return _slogdet(a, method == "qr")


@fused(static=("factored",))
def _slogdet(a: Any, factored: bool) -> Any:
    a = square("slogdet", a)
    if factored or not _is_narrow(a, 2):
        return SlogdetResult(*ops.slogdet(a if a.shape[-1] <= 2 else strong(a)))
    parts = ops.slogdet(as_dtype(a, np.dtype("float32")))
    return SlogdetResult(*[as_dtype(x, a.dtype) for x in parts])


describe((inv, det), words.MATRIX, words.NOT_SQUARE)
