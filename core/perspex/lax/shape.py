"""Shapes: broadcast, reshape, transpose, pad and slice, at static places."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.arguments.arrays import as_array
from perspex.arguments.axes import canonical_axes, canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import iterated_shape, joint_shape
from perspex.arguments.sharded import WORDS, OutSharding, asked
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, Shape
from perspex.base.dimensions import size as as_size
from perspex.ops import shape as ops
from perspex.ops import structural
from perspex.tracing.trace import typeof

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "collapse", "expand_dims", "index_in_dim", "pad", "reshape", "rev", "shape_as_value", "slice",
    "slice_in_dim", "squeeze", "transpose",
]  # fmt: skip

# ---- Broadcasting -------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that arrays of the given shapes have together by NumPy's rules.

    Args:
      shapes: shapes, or plain integers for sizes of one axis.

    Returns:
      A tuple of integers; an integer if all shapes are plain integers.

    Raises:
      ValueError: if they do not fit together.
      TypeError: for entries that are not integers.

    >>> from perspex import lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    if shapes and all(isinstance(s, (int, np.integer)) for s in shapes):
        return broadcast_shapes(*[(s,) for s in shapes])[0]
    return joint_shape([iterated_shape("broadcast_shapes", s) for s in shapes])


def broadcast(operand: ArrayLike, sizes: Shape, *, out_sharding: OutSharding = None) -> Array:
    """The operand repeated along new axes of the given sizes in front.

    Args:
      operand: an array of shape `s`.
      sizes: the sizes of the new axes.

    Returns:
      An array of shape `(*sizes, *s)`.

    Raises:
      TypeError: for sizes that are negative or not integers.

    >>> from perspex import lax, numpy as jnp
    >>> lax.broadcast(jnp.arange(2), (3,)).shape
    (3, 2)
    """
    sizes = iterated_shape("broadcast", integers("broadcast", "sizes", sizes))
    if not sizes and out_sharding is None:
        return as_array(operand)
    shape = (*sizes, *typeof(operand).shape)
    dims = tuple(range(len(sizes), len(shape)))
    params = asked("broadcast", out_sharding, "sharding")
    return structural.broadcast_in_dim(operand, shape=shape, broadcast_dimensions=dims, **params)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Shape,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The operand repeated to `shape`; its axis `i` becomes axis `broadcast_dimensions[i]`.

    Args:
      operand: an array; its axes have size one or that of the axis they become.
      shape: the shape of the result.
      broadcast_dimensions: an axis of the result for each axis of the operand, ascending.

    Returns:
      An array of shape `shape` and the dtype of the operand.

    Raises:
      TypeError: if the sizes or the number of axes do not fit.

    >>> from perspex import lax, numpy as jnp
    >>> lax.broadcast_in_dim(jnp.arange(2), (2, 3), (0,))
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    name = "broadcast_in_dim"
    params = asked(name, out_sharding, "sharding")
    shape = iterated_shape(name, shape)
    dims = integers(name, "broadcast_dimensions", broadcast_dimensions)
    if not params and typeof(operand).shape == shape and dims == tuple(range(len(shape))):
        return as_array(operand)
    return structural.broadcast_in_dim(operand, shape=shape, broadcast_dimensions=dims, **params)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with axes of size one in front until there are `rank` axes.

    Args:
      x: an array.
      rank: the number of axes of the result; no axis is taken away.

    Returns:
      An array of the dtype of `x`.

    Raises:
      TypeError: if `x` is not an array or a number.

    >>> from perspex import lax, numpy as jnp
    >>> lax.broadcast_to_rank(jnp.arange(2), 3).shape
    (1, 1, 2)
    """
    missing = builtins.max(rank - typeof(x).ndim, 0)
    return expand_dims(x, tuple(range(missing)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """`arr` repeated to the shape of `like_arr` by NumPy's rules.

    Args:
      arr: an array.
      like_arr: an array of the wanted shape.

    Returns:
      An array of the shape of `like_arr` and the dtype of `arr`.

    Raises:
      ValueError: if `arr` does not broadcast to that shape.

    >>> from perspex import lax, numpy as jnp
    >>> lax.broadcast_like(jnp.arange(3), jnp.zeros((2, 3))).shape
    (2, 3)
    """
    given, shape = typeof(arr).shape, typeof(like_arr).shape
    start = len(shape) - len(given)
    if start < 0 or any(n not in (1, m) for n, m in zip(given, shape[start:], strict=True)):
        raise ValueError(
            f"broadcast_like: an array of shape {given} does not broadcast to shape {shape}"
        )
    return broadcast_in_dim(arr, shape, tuple(range(start, len(shape))))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with axes of size one inserted.

    Args:
      array: an array.
      dimensions: the places of the new axes in the result; negative ones count from the end.

    Returns:
      An array of the dtype of `array`.

    Raises:
      ValueError: if an axis is out of bounds or comes twice.
      TypeError: if `dimensions` is a number.

    >>> from perspex import lax, numpy as jnp
    >>> lax.expand_dims(jnp.arange(2), (0, -1)).shape
    (1, 2, 1)
    """
    shape = list(typeof(array).shape)
    if not np.ndim(dimensions):
        raise TypeError(
            f"expand_dims: dimensions must be a sequence of integers, got {dimensions!r}; for one "
            f"axis write ({dimensions!r},)"
        )
    dimensions = tuple(dimensions)
    if not dimensions:
        return as_array(array)
    ndim = len(shape) + len(dimensions)
    axes = canonical_axes(tuple(dimensions), ndim, "expand_dims")
    for axis in sorted(axes):
        shape.insert(axis, 1)
    rest = tuple([i for i in range(ndim) if i not in axes])
    return structural.broadcast_in_dim(array, shape=tuple(shape), broadcast_dimensions=rest)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array without some of its axes of size one.

    Args:
      array: an array.
      dimensions: the axes to remove; negative ones count from the end.

    Returns:
      An array of the dtype of `array`.

    Raises:
      ValueError: if an axis has another size, is out of bounds or comes twice.

    >>> from perspex import lax, numpy as jnp
    >>> lax.squeeze(jnp.zeros((1, 3, 1)), (0, -1)).shape
    (3,)
    """
    axes = tuple(sorted(canonical_axes(tuple(dimensions), typeof(array).ndim, "squeeze")))
    return structural.squeeze(array, dimensions=axes) if axes else as_array(array)


# ---- Another order ------------------------------------------------------------------------------


def reshape(
    operand: ArrayLike,
    new_sizes: Shape,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The elements of the operand in another shape of the same size.

    Args:
      operand: an array.
      new_sizes: the shape of the result; no entry may be -1.
      dimensions: the axes of the operand in the order in which they are read; in order if not
        given.

    Returns:
      An array of shape `new_sizes` and the dtype of the operand.

    Raises:
      TypeError: if the sizes do not agree or `dimensions` is not a permutation.

    >>> from perspex import lax, numpy as jnp
    >>> lax.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    params = asked("reshape", out_sharding, "sharding")
    shape = iterated_shape("reshape", new_sizes)
    aval = typeof(operand)
    if dimensions is not None:
        order = integers("reshape", "dimensions", dimensions)
        structural.check_permutation("reshape", order, aval.ndim)
        operand = transpose(operand, order)
        aval = typeof(operand)
    if aval.shape == shape and not params:
        return as_array(operand)
    return structural.reshape(operand, new_sizes=shape, **params)


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The operand with consecutive axes merged into one.

    Args:
      operand: an array.
      start_dimension: the first of these axes.
      stop_dimension: the axis after the last of them; the last axis is merged too if not given.

    Returns:
      An array of the dtype of the operand.

    Raises:
      ValueError: if the stop lies before the start.

    >>> from perspex import lax, numpy as jnp
    >>> lax.collapse(jnp.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = typeof(operand).shape
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(f"collapse: no axes from {start} below {stop} in shape {shape}")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array:
    """The operand with its axes in another order.

    Args:
      operand: an array.
      permutation: axis `permutation[i]` of the operand becomes axis `i`.

    Returns:
      An array of the dtype of the operand.

    Raises:
      TypeError: unless `permutation` has each axis once.

    >>> from perspex import lax, numpy as jnp
    >>> lax.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    order = integers("transpose", "the permutation", permutation)
    if order == tuple(range(typeof(operand).ndim)):
        return as_array(operand)
    return structural.transpose(operand, permutation=order)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The operand with its elements in reverse order along axes.

    Args:
      operand: an array.
      dimensions: the axes, counted from the front.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      TypeError: for negative axes.
      ValueError: for axes that do not exist or come twice.

    >>> from perspex import lax, numpy as jnp
    >>> lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    axes = integers("rev", "dimensions", dimensions)
    if any(a < 0 for a in axes):
        raise TypeError(f"rev: dimensions must not be negative, got {axes}; count from the front")
    return ops.rev(operand, dimensions=axes)


# ---- Parts --------------------------------------------------------------------------------------


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """The operand with padding around and between its elements.

    Args:
      operand: an array.
      padding_value: the scalar to fill with, of the same dtype.
      padding_config: `(low, high, interior)` for each axis: how much before, after and between
        elements. Negative `low` and `high` take elements away.

    Returns:
      An array of the dtype of the operand.

    Raises:
      TypeError: for other dtypes.
      ValueError: for a wrong number of entries, a negative interior or size, and a padding value
        that is not a scalar.

    >>> from perspex import lax, numpy as jnp
    >>> lax.pad(jnp.array([1, 2]), 0, ((1, 0, 1),))
    Array([0, 1, 0, 2], dtype=int32)
    """
    config = tuple([integers("pad", "an entry of padding_config", c) for c in padding_config])
    if any(len(c) != 3 for c in config):
        raise ValueError(f"pad: padding_config has (low, high, interior) by axis, got {config}")
    return ops.pad(operand, padding_value, padding_config=config)


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """The elements between static bounds along every axis.

    Args:
      operand: an array.
      start_indices: the first index along each axis.
      limit_indices: the index after the last along each axis.
      strides: the step along each axis; 1 if not given.

    Returns:
      An array of the dtype of the operand.

    Raises:
      TypeError: if the bounds do not lie inside the operand.

    >>> from perspex import lax, numpy as jnp
    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    return ops.slice(
        operand,
        start_indices=integers("slice", "start_indices", start_indices),
        limit_indices=integers("slice", "limit_indices", limit_indices),
        strides=None if strides is None else integers("slice", "strides", strides),
    )


def slice_in_dim(
    operand: Array | np.ndarray,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """The elements between static bounds along one axis.

    Args:
      operand: an array.
      start_index: the first index; negative ones count from the end, `None` is the start.
      limit_index: the index after the last; negative ones count from the end, `None` is the end.
      stride: the step.
      axis: the axis to slice; the others are taken whole.

    Returns:
      An array of the dtype of the operand.

    Raises:
      ValueError: if there is no such axis.
      TypeError: if the bounds lie outside the operand.

    >>> from perspex import lax, numpy as jnp
    >>> lax.slice_in_dim(jnp.arange(5), 1, -1)
    Array([1, 2, 3], dtype=int32)
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape), "slice_in_dim")
    size = shape[axis]
    start = 0 if start_index is None else as_size(start_index)
    stop = size if limit_index is None else as_size(limit_index)
    starts, stops, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    stops[axis] = stop + size if stop < 0 else stop
    strides[axis] = operator.index(stride)
    return slice(operand, tuple(starts), tuple(stops), tuple(strides))


def index_in_dim(
    operand: Array | np.ndarray, index: int, axis: int = 0, keepdims: bool = True
) -> Array:
    """The operand at one index of an axis.

    Args:
      operand: an array.
      index: an integer; negative ones count from the end.
      axis: the axis to index.
      keepdims: keep the axis, with size one.

    Returns:
      An array of the dtype of the operand.

    Raises:
      IndexError: if the index is out of bounds.
      ValueError: if there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False)
    Array([2, 5], dtype=int32)
    """
    axis = canonical_axis(axis, typeof(operand).ndim, "index_in_dim")
    index, size = as_size(index), typeof(operand).shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    start = index + size if index < 0 else index
    found = slice_in_dim(operand, start, start + 1, 1, axis)
    return found if keepdims else squeeze(found, (axis,))


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of integers.

    Args:
      shape: integers.

    Returns:
      A 1-D int32 array.

    Raises:
      TypeError: for entries that are not integers.

    >>> from perspex import lax
    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    sizes = np.array(integers("shape_as_value", "the shape", shape), np.int32)
    return as_array(sizes)


describe((broadcast, broadcast_in_dim, reshape), {"out_sharding": WORDS})
