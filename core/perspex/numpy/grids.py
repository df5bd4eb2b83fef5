"""Matrices and grids made of positions: identity, triangles, diagonals, coordinates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import power
from perspex.numpy.creation import arange, asarray, linspace
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    arraylike,
    as_array,
    as_dtype,
    canonical_axis,
    canonical_shape,
    check_arraylike,
    concrete,
    expand,
    filled,
    flat,
    promote_dtypes,
)
from perspex.ops import elementwise as ops
from perspex.ops import shape as shape_ops
from perspex.ops.shape import iota, pad, stack
from perspex.ops.structural import (
    broadcast_in_dim,
    convert,
    reshape,
    to_front,
    transpose,
)
from perspex.runtime.dispatch import device_put
from perspex.transforms.vmap import batch

_INT32 = np.dtype("int32")

# ---- Identity and triangles ---------------------------------------------------------------------


def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
) -> Array:
    """A matrix with ones on a diagonal.

    Args:
      N, M: numbers of rows and columns; as many columns as rows if not given.
      k: which diagonal; positive above the main one.
      dtype: the default floating dtype if not given.
      device: where to put the array; the default device if not given.

    Errors:
      `ValueError` for negative sizes and for a `k` that is not an integer.

    >>> import perspex.numpy as jnp
    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows = concrete("eye: N", operator.index, N)
    columns = rows if M is None else concrete("eye: M", operator.index, M)
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


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """The identity matrix of `n` rows.

    >>> import perspex.numpy as jnp
    >>> jnp.identity(2, int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None) -> Array:
    """A matrix with ones on and below a diagonal; arguments as of `eye`.

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

    >>> import perspex.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle(m, "tril", concrete("tril: k", operator.index, k))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below a diagonal of the last two axes.

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
    zero = m.dtype.type(0)
    return ops.select(mask, m, zero) if name == "tril" else ops.select(mask, zero, m)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements of a lower triangle, as `numpy.tril_indices`.

    >>> import perspex.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = np.tril_indices(n, k, m)
    return asarray(rows), asarray(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements of an upper triangle, as `numpy.triu_indices`.

    >>> import perspex.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = np.triu_indices(n, k, m)
    return asarray(rows), asarray(columns)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of the matrix `arr`.

    >>> import perspex.numpy as jnp
    >>> jnp.tril_indices_from(jnp.ones((1, 2)), 1)
    (Array([0, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of the matrix `arr`.

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
      axis1, axis2: the axes of rows and columns.

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
    kept = [i for i in range(a.ndim) if i not in (axis1, axis2)]
    order = (*kept, axis1, axis2)
    if order != tuple(range(a.ndim)):
        a = transpose(a, permutation=order)
    *outer, rows, columns = a.shape
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if count == 0:
        return filled(a.dtype.type(0), (*outer, 0))
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
      k: which diagonal; positive above the main one.

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
    zero = v.dtype.type(0)
    # Row i of the matrix holds v[i], or v[i + k] below the main diagonal.
    padded = pad(v, zero, padding_config=((max(0, -k), max(0, k), 0),)) if k else v
    rows = broadcast_in_dim(padded, shape=(size, size), broadcast_dimensions=(0,))
    row, column = _positions(size, size)
    return ops.select(ops.eq(ops.add(row, np.int32(k)), column), rows, zero)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with all elements of `v` on a diagonal.

    >>> import perspex.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1], [2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    check_arraylike("diagflat", v)
    return diag(flat(as_array(v)), k)


# ---- Coordinates --------------------------------------------------------------------------------


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """The coordinates of the points of a grid, one array for each axis.

    Args:
      xi: the places along each axis, arrays of one axis.
      copy: only True.
      sparse: give arrays that broadcast to the grid, instead of arrays of its shape.
      indexing: `"xy"` swaps the first two axes, as in a picture; `"ij"` does not, as in a matrix.

    >>> import perspex.numpy as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(2))[0]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("meshgrid: copy must be True, because arrays share no memory")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    if any(np.ndim(x) != 1 for x in xi):
        shapes = ", ".join([str(np.shape(x)) for x in xi])
        raise ValueError(f"meshgrid takes arrays of one axis, got shapes {shapes}")
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    return tuple(_meshgrid(tuple(xi), bool(sparse), tuple(order)))


@fused(static=("sparse", "order"))
def _meshgrid(xi: tuple[Any, ...], sparse: bool, order: tuple[int, ...]) -> list[Any]:
    sizes = [0] * len(xi)
    for x, axis in zip(xi, order, strict=True):
        sizes[axis] = x.shape[0]
    out = []
    for x, axis in zip(xi, order, strict=True):
        shape = [1] * len(xi)
        shape[axis] = x.shape[0]
        full = tuple(shape if sparse else sizes)
        out.append(broadcast_in_dim(x, shape=full, broadcast_dimensions=(axis,)))
    return out


def indices(
    dimensions: Sequence[int], dtype: DTypeLike = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The coordinates of the elements of an array of shape `dimensions`.

    Args:
      dimensions: a shape, known while tracing.
      dtype: the default integer dtype if not given.
      sparse: give a tuple of arrays that broadcast, instead of one array with a leading axis.

    >>> import perspex.numpy as jnp
    >>> jnp.indices((1, 3))
    Array([[[0, 0, 0]],
           [[0, 1, 2]]], dtype=int32)
    """
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, "indices")
    shape = canonical_shape("indices", dimensions)
    axes = [arange(n, dtype=dtype) for n in shape]
    if sparse:
        return meshgrid(*axes, sparse=True, indexing="ij")
    if not shape:
        return filled(dtype.type(0), (0,))
    return _coordinates(shape, dtype)


@fused(static=("shape", "dtype"))
def _coordinates(shape: tuple[int, ...], dtype: Any) -> Any:
    axes = [iota(dtype=dtype, shape=shape, dimension=d) for d in range(len(shape))]
    return stack(*axes, axis=0)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """What `function` gives at each point of a grid.

    Args:
      function: takes the coordinates of one point, as scalars; it is called once, batched.
      shape: the shape of the grid.
      dtype: the dtype of the coordinates.
      kwargs: passed on to `function`.

    >>> import perspex.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int)
    Array([[ 0, 10],
           [ 1, 11]], dtype=int32)
    """
    shape = canonical_shape("fromfunction", shape)
    axes = [arange(n, dtype=dtype) for n in shape]
    structure: Any = None

    def at_point(*point: Any) -> list[Any]:
        nonlocal structure
        leaves, structure = tree.flatten(function(*point, **kwargs))
        return [arraylike("fromfunction", leaf) for leaf in leaves]

    def along(axis: int, *point: Any) -> list[Any]:
        if axis == len(shape):
            return at_point(*point)
        outs, places = batch(lambda x: along(axis + 1, *point, x), shape[axis], [axes[axis]], [0])
        return [to_front(y, at, shape[axis]) for y, at in zip(outs, places, strict=True)]

    if not shape:
        return function(**kwargs)
    leaves = along(0)
    return tree.unflatten(structure, leaves)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: powers of `x` in its columns.

    Args:
      x: an array of one axis.
      N: the number of columns; as many as rows if not given.
      increasing: powers from 0 up, instead of down to 0.

    >>> import perspex.numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = arraylike("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander takes an array of one axis, got shape {x.shape}")
    columns = x.shape[0] if N is None else concrete("vander: N", operator.index, N)
    if columns < 0:
        raise ValueError(f"vander: N must not be negative, got {columns}")
    return _vander(x, columns, bool(increasing))


@fused(static=("columns", "increasing"))
def _vander(x: Any, columns: int, increasing: bool) -> Any:
    exponents = iota(dtype=x.dtype, shape=(columns,), dimension=0)
    if not increasing:
        exponents = ops.sub(x.dtype.type(columns - 1), exponents)
    return power(expand(x, (1,)), expand(exponents, (0,)))


class _Grid:
    """Coordinates by slices: `jnp.mgrid[0:2, 0:1:3j]`; an imaginary step counts the samples."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._axis(key)
        axes = [self._axis(k) for k in key]
        if not axes:
            return [] if self.sparse else arange(0)
        axes = promote_dtypes(self.name, *axes)
        out = meshgrid(*axes, sparse=self.sparse, indexing="ij")
        return list(out) if self.sparse else _stack(out)

    def _axis(self, key: Any) -> Any:
        start, stop = key.start or 0, key.stop
        step = 1 if key.step is None else key.step
        if isinstance(step, complex):
            return linspace(start, stop, int(abs(step)))
        return arange(start, stop, step)

    def __repr__(self) -> str:
        return f"<perspex.numpy.{self.name}>"


@fused
def _stack(arrays: Sequence[Any]) -> Any:
    return stack(*arrays, axis=0)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)
