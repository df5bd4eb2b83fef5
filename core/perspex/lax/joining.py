"""Joining arrays and taking them apart, at static places."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from perspex.arguments.arrays import as_array
from perspex.arguments.axes import canonical_axis
from perspex.arguments.dtypes import check_equal_dtypes
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike
from perspex.ops import shape as ops
from perspex.tracing.trace import typeof

__all__ = ["concatenate", "split", "stack", "tile", "unstack"]


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """The operands one after another along an axis.

    Args:
      operands: arrays of one dtype, with equal sizes along the other axes.
      dimension: the axis, counted from the front.

    Returns:
      An array of the dtype of the operands.

    Raises:
      ValueError: for no operands.
      TypeError: for dtypes or shapes that disagree.

    >>> from perspex import lax, numpy as jnp
    >>> lax.concatenate([jnp.arange(2), jnp.arange(3)], 0)
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequence of arrays")
    if len(operands) == 1 and 0 <= dimension < typeof(operands[0]).ndim:
        return as_array(operands[0])
    return ops.concatenate(*operands, dimension=operator.index(dimension))


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """The operands, of one shape and dtype, along a new axis.

    Args:
      operands: arrays of one shape and dtype.
      axis: the place of the new axis.

    Returns:
      An array of the dtype of the operands, with one axis more.

    Raises:
      ValueError: for no operands, other shapes or an axis out of bounds.
      TypeError: for other dtypes.

    >>> from perspex import lax, numpy as jnp
    >>> lax.stack([jnp.arange(2), jnp.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    if len(operands) == 0:
        raise ValueError("stack requires a non-empty sequence of arrays")
    avals = [typeof(x) for x in operands]
    if any(a.shape != avals[0].shape for a in avals):
        shapes = ", ".join([str(a.shape) for a in avals])
        raise ValueError(f"stack: all operands must have the same shape, got {shapes}")
    check_equal_dtypes("stack", avals)
    return ops.stack(*operands, axis=canonical_axis(axis, avals[0].ndim + 1, "stack"))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array at each index of an axis.

    Args:
      x: an array.
      axis: the axis to take apart.

    Returns:
      A tuple of arrays without the axis.

    Raises:
      ValueError: if there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.unstack(jnp.arange(4).reshape(2, 2))
    (Array([0, 1], dtype=int32), Array([2, 3], dtype=int32))
    """
    return tuple(ops.unstack(x, axis=canonical_axis(axis, typeof(x).ndim, "unstack")))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive parts of the operand along an axis.

    Args:
      operand: an array.
      sizes: the sizes of the parts; their sum is that of the axis.
      axis: the axis.

    Returns:
      A list of arrays.

    Raises:
      ValueError: if the sizes are negative or do not add up, or there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.split(jnp.arange(3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    axis = canonical_axis(axis, typeof(operand).ndim, "split")
    return ops.split(operand, sizes=integers("split", "sizes", sizes), axis=axis)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The operand repeated `reps[i]` times along each axis `i`.

    Args:
      operand: an array.
      reps: how many times to repeat along each axis.

    Returns:
      An array of the dtype of the operand.

    Raises:
      TypeError: unless there is an entry for each axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.tile(jnp.arange(2), (2,))
    Array([0, 1, 0, 1], dtype=int32)
    """
    return ops.tile(operand, reps=integers("tile", "reps", reps))
