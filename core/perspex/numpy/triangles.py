"""Matrices made of positions: identity, triangles, diagonals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import (
    arraylike,
    as_array,
    as_dtype,
    check_arraylike,
    flat,
    spread,
    weak_like,
)
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import canonical_shape
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Placement
from perspex.base.dimensions import size
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.creation import asarray
from perspex.numpy.grids import _INT32
from perspex.numpy.promotion import strengthened, strong
from perspex.ops import elementwise as ops
from perspex.ops import shape as shape_ops
from perspex.ops.keys import filled_keys
from perspex.ops.shape import iota, pad
from perspex.ops.structural import broadcast_in_dim, convert, reshape, transpose
from perspex.runtime.dispatch import device_put

__all__ = [
    "diag", "diagflat", "diagonal", "eye", "identity", "tri", "tril", "tril_indices",
    "tril_indices_from", "triu", "triu_indices", "triu_indices_from",
]  # fmt: skip

# ---- Identity and triangles ---------------------------------------------------------------------


def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """A matrix with ones on a diagonal.

    Args:
      N: the number of rows.
      M: the number of columns; as many as rows if not given.
      k: an integer: which diagonal; positive above the main one. It may be traced.

    Returns:
      A matrix of shape `(N, M)`.

    Raises:
      ValueError: for negative sizes, and for a `k` that is not an integer.
      TypeError: for sizes that are not integers.

    >>> import perspex.numpy as jnp
    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows = concrete("eye: N", size, N)
    columns = rows if M is None else concrete("eye: M", size, M)
    if rows < 0 or columns < 0:
        raise ValueError(f"eye: sizes must not be negative, got {rows} and {columns}")
    check_arraylike("eye", k)
    if np.shape(k) or not dtypes.issubdtype(dtypes.dtype_of(k), np.integer):
        raise ValueError(f"eye: k must be an integer, got {k!r}")
    moved = None if isinstance(k, int) and k == 0 else k
    out = _eye(moved, rows, columns, dtypes.check_user_dtype(dtype, "eye"))
    return out if device is None else device_put(out, device)


@fused(static=("rows", "columns", "dtype"))
def _eye(k: Any, rows: int, columns: int, dtype: Any) -> Any:
    row, column = _positions(rows, columns)
    if k is not None:
        row = ops.add(row, as_dtype(k, _INT32))
    return convert(ops.eq(row, column), dtype)


def _positions(rows: int, columns: int) -> tuple[Any, Any]:
    """The row and the column of each element of a matrix."""
    shape = (rows, columns)
    return tuple([iota(dtype=_INT32, shape=shape, dimension=d) for d in (0, 1)])


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """An identity matrix.

    Args:
      n: the number of rows and columns.

    Returns:
      A matrix of shape `(n, n)`.

    Raises:
      ValueError: for a negative `n`.
      TypeError: for an `n` that is not an integer.

    >>> import perspex.numpy as jnp
    >>> jnp.identity(2, int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal, zeros above.

    Args:
      N: the number of rows.
      M: the number of columns; as many as rows if not given.

    Returns:
      A matrix of shape `(N, M)`.

    Raises:
      TypeError: for sizes that are negative or not integers, and for a `k` that is not an integer.

    >>> import perspex.numpy as jnp
    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    rows, columns = canonical_shape("tri", (N, N if M is None else M))
    k = concrete("tri: k", operator.index, k)
    return _tri(rows, columns, k, dtypes.check_user_dtype(dtype, "tri"))


@fused(static=("rows", "columns", "k", "dtype"))
def _tri(rows: int, columns: int, k: int, dtype: Any) -> Any:
    return convert(_below(rows, columns, k), dtype)


def _below(rows: int, columns: int, k: int) -> Any:
    row, column = _positions(rows, columns)
    if k:
        # Offsets that no int32 holds leave the matrix in any case.
        row = ops.add(row, np.int32(max(-rows - 1, min(k, columns))))
    return ops.ge(row, column)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangles of matrices: zeros above a diagonal of the last two axes.

    Args:
      m: an array of two axes or more.

    Returns:
      An array of the shape and dtype of `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` not an integer.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle(m, "tril", concrete("tril: k", operator.index, k))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below a diagonal of the last two axes.

    Args:
      m: an array of two axes or more.

    Returns:
      An array of the shape and dtype of `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` not an integer.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle(m, "triu", concrete("triu: k", operator.index, k))


@fused(static=("name", "k"))
def _triangle(m: Any, name: str, k: int) -> Any:
    m = arraylike(name, m)
    if m.ndim < 2:
        raise ValueError(f"{name} takes matrices, with two axes or more, got shape {m.shape}")
    rows, columns = m.shape[-2:]
    mask = _below(rows, columns, k if name == "tril" else k - 1)
    mask = (
        broadcast_in_dim(mask, shape=m.shape, broadcast_dimensions=(m.ndim - 2, m.ndim - 1))
        if m.ndim > 2
        else mask
    )
    is_key = isinstance(m.dtype, dtypes.KeyType)
    zero = filled_keys(np.uint32(0), m.shape, m.dtype) if is_key else weak_like(m, 0)
    return ops.select(mask, m, zero) if name == "tril" else ops.select(mask, zero, m)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements of a lower triangle.

    Args:
      n: the number of rows.
      m: the number of columns; as many as rows if not given.

    Returns:
      Two int32 arrays of one axis, which index a matrix of shape `(n, m)`.

    Raises:
      TypeError: for sizes that are not numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = np.tril_indices(n, k, m)
    return asarray(rows), asarray(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements of an upper triangle.

    Args:
      n: the number of rows.
      m: the number of columns; as many as rows if not given.

    Returns:
      Two int32 arrays of one axis, which index a matrix of shape `(n, m)`.

    Raises:
      TypeError: for sizes that are not numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = np.triu_indices(n, k, m)
    return asarray(rows), asarray(columns)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of the matrix `arr`.

    Args:
      arr: a matrix; only its shape counts.

    Returns:
      Two int32 arrays of one axis.

    Raises:
      ValueError: if `arr` does not have two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.tril_indices_from(jnp.ones((1, 2)), 1)
    (Array([0, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of the matrix `arr`.

    Args:
      arr: a matrix; only its shape counts.

    Returns:
      Two int32 arrays of one axis.

    Raises:
      ValueError: if `arr` does not have two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.triu_indices_from(jnp.ones((1, 2)))
    (Array([0, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _matrix_shape(name: str, x: Any) -> tuple[int, ...]:
    if np.ndim(x) != 2:
        raise ValueError(f"{name} takes a matrix, got shape {np.shape(x)}")
    return np.shape(x)


# ---- Diagonals ----------------------------------------------------------------------------------


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of the matrices that two axes span, along the last axis of the result.

    Args:
      a: an array of two axes or more.
      offset: which diagonal; positive above the main one.
      axis1: the axis of the rows.
      axis2: the axis of the columns.

    Returns:
      An array of the other axes and, as the last one, the diagonal.

    Raises:
      TypeError: if `a` is not an array, or `offset` not an integer.
      ValueError: for fewer than two axes, and for axes that are equal or do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _diagonal(a, concrete("diagonal: offset", operator.index, offset), axis1, axis2)


@fused(static=("offset", "axis1", "axis2"))
def _diagonal(a: Any, offset: int, axis1: int, axis2: int) -> Any:
    a = arraylike("diagonal", a)
    if a.ndim < 2:
        raise ValueError(f"diagonal takes an array of two axes or more, got shape {a.shape}")
    axis1, axis2 = canonical_axis(axis1, a.ndim), canonical_axis(axis2, a.ndim)
    if axis1 == axis2:
        raise ValueError(f"diagonal: axis1 and axis2 must differ, got {axis1}")
    if a.ndim == 2 and a.shape[0] == a.shape[1] and offset == 0 and a.dtype != bool:
        a = strong(a)  # what JAX takes as a sum of products
    kept = [i for i in range(a.ndim) if i not in (axis1, axis2)]
    order = (*kept, axis1, axis2)
    if order != tuple(range(a.ndim)):
        a = transpose(a, permutation=order)
    *outer, rows, columns = a.shape
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if count == 0:
        return as_dtype(spread(a.dtype.type(0), (*outer, 0)), a.dtype, shaped(a).weak_type)
    # In the elements one after another, those of a diagonal are `columns + 1` apart.
    start = offset if offset >= 0 else -offset * columns
    lines = reshape(a, new_sizes=(*outer, rows * columns))
    return shape_ops.slice(
        lines,
        start_indices=(*[0] * len(outer), start),
        limit_indices=(*outer, start + (count - 1) * (columns + 1) + 1),
        strides=(*[1] * len(outer), columns + 1),
    )


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix with a diagonal.

    Args:
      v: an array of one axis or two.

    Returns:
      The diagonal of a matrix `v`, else a square matrix of zeros with `v` on that diagonal.

    Raises:
      TypeError: if `v` is not an array, or `k` not an integer.
      ValueError: for another number of axes.

    >>> import perspex.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    return _diag(v, concrete("diag: k", operator.index, k))


@fused(static=("k",))
def _diag(v: Any, k: int) -> Any:
    v = arraylike("diag", v)
    if v.ndim == 2:
        return _diagonal(v, k, 0, 1)
    if v.ndim != 1:
        raise ValueError(f"diag takes an array of one axis or two, got shape {v.shape}")
    size = v.size + abs(k)
    weak, v = shaped(v).weak_type, strengthened(v)
    zero = v.dtype.type(0)
    # Row i of the matrix holds v[i], or v[i + k] below the main diagonal.
    padded = pad(v, zero, padding_config=((max(0, -k), max(0, k), 0),)) if k else v
    rows = broadcast_in_dim(padded, shape=(size, size), broadcast_dimensions=(0,))
    row, column = _positions(size, size)
    out = ops.select(ops.eq(ops.add(row, np.int32(k)), column), rows, zero)
    return as_dtype(out, v.dtype, weak)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with all elements of `v` on a diagonal.

    Args:
      v: an array of any shape.

    Returns:
      A square matrix of zeros with those elements on the diagonal.

    Raises:
      TypeError: if `v` is not an array, or `k` not an integer.

    >>> import perspex.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1], [2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    check_arraylike("diagflat", v)
    v = flat(as_array(v))
    return diag(convert(v, v.dtype), k)  # strongly typed, as in JAX


describe(
    (eye, identity, tri, tril, triu, tril_indices, triu_indices),
    {**words.SHAPE, **words.DIAGONAL},
)
describe((tril_indices_from, triu_indices_from, diag, diagflat), words.DIAGONAL)
