"""Coordinates: grids of points, and functions of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.arguments.arrays import arraylike, check_arraylike, expand, spread
from perspex.arguments.shapes import canonical_shape
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import power
from perspex.numpy.promotion import promote_dtypes
from perspex.numpy.ranges import arange, linspace
from perspex.ops import elementwise as ops
from perspex.ops.shape import iota, stack
from perspex.ops.structural import broadcast_in_dim, to_front
from perspex.transforms.vmap import batch

__all__ = ["fromfunction", "indices", "meshgrid", "mgrid", "ogrid", "vander"]

_INT32 = np.dtype("int32")


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """The coordinates of the points of a grid, one array for each axis.

    Args:
      xi: the places along each axis, arrays of one axis.
      copy: only True: arrays share no memory.
      sparse: give arrays that broadcast to the grid, instead of arrays of its shape.
      indexing: `"xy"` swaps the first two axes, as in a picture; `"ij"` does not, as in a matrix.

    Returns:
      A tuple of as many arrays as there are in `xi`.

    Raises:
      TypeError: for lists.
      ValueError: for arrays without exactly one axis, another `indexing`, and `copy=False`.

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
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The coordinates of the elements of an array of shape `dimensions`.

    Args:
      dimensions: a shape, known while tracing.
      dtype: the default integer dtype if not given.
      sparse: give a tuple of arrays that broadcast, instead of one array with a leading axis.

    Returns:
      An array of shape `(len(dimensions), *dimensions)`; with `sparse`, a tuple of arrays.

    Raises:
      TypeError: for sizes that are negative, traced or not integers, and for a wrong `dtype`.

    >>> import perspex.numpy as jnp
    >>> jnp.indices((1, 3))
    Array([[[0, 0, 0]],
           [[0, 1, 2]]], dtype=int32)
    """
    kind = dtypes.check_user_dtype(int if dtype is None else dtype, "indices")
    shape = canonical_shape("indices", dimensions)
    axes = [arange(n, dtype=kind) for n in shape]
    if sparse:
        return meshgrid(*axes, sparse=True, indexing="ij")
    if not shape:
        return spread(kind.type(0), (0,))
    return _coordinates(shape, kind)


@fused(static=("shape", "dtype"))
def _coordinates(shape: tuple[int, ...], dtype: Any) -> Any:
    axes = [iota(dtype=dtype, shape=shape, dimension=d) for d in range(len(shape))]
    return stack(*axes, axis=0)


def fromfunction(
    function: Callable[..., Any], shape: int | Shape, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """Evaluate a function at each point of a grid.

    Args:
      function: takes the coordinates of one point, as scalars; it is called once, batched.
      shape: the shape of the grid.
      dtype: the dtype of the coordinates.
      kwargs: passed on to `function`.

    Returns:
      An array of that shape; where `function` returns a tree of arrays, the same tree.

    Raises:
      TypeError: for a wrong `shape`, and for results of `function` that are not arrays or numbers.

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

    Returns:
      A matrix of shape `(len(x), N)` of the dtype of `x`.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for an `x` without exactly one axis, and for a negative `N`.

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
