"""Elements in another order along an axis: flips, quarter turns, rolls."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.arguments.arrays import arraylike, check_arraylike, flat
from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis
from perspex.arguments.glossary import describe
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.base.dimensions import Symbolic
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import remainder
from perspex.numpy.axes import squeeze, swapaxes
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, Index, Span, whole
from perspex.numpy.indexing.read import read
from perspex.numpy.shaping import reshape
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate, part, rev
from perspex.ops.structural import convert, size_as
from perspex.runtime.dispatch import EVAL
from perspex.tracing.trace import concrete_value, state, typeof

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Reverse the order of the elements along some axes.

    Args:
      m: an array or a number.
      axis: the axis or axes to reverse; None reverses all.

    Returns:
      An array of the shape and dtype of `m`.

    >>> import perspex.numpy as jnp
    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    x = arraylike("flip", m)
    given = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple([canonical_axis(d, x.ndim) for d in given])
    return rev(x, dimensions=axes) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of the elements along the second axis.

    Args:
      m: an array of two axes or more.

    Returns:
      An array of the shape and dtype of `m`.

    >>> import perspex.numpy as jnp
    >>> jnp.fliplr(jnp.arange(4).reshape(2, 2))
    Array([[1, 0],
           [3, 2]], dtype=int32)
    """
    return flip(arraylike("fliplr", m), 1)


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of the elements along the first axis.

    Args:
      m: an array of one axis or more.

    Returns:
      An array of the shape and dtype of `m`.

    >>> import perspex.numpy as jnp
    >>> jnp.flipud(jnp.arange(4).reshape(2, 2))
    Array([[2, 3],
           [0, 1]], dtype=int32)
    """
    return flip(arraylike("flipud", m), 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turn an array `k` times by 90 degrees, from the first of `axes` towards the second.

    Args:
      m: an array of two axes or more.
      k: how many quarter turns, a concrete integer; negative ones turn the other way.
      axes: the two axes that span the plane of the turn.

    Returns:
      An array of the dtype of `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` not an integer.
      ValueError: for fewer than two axes, and for `axes` that are not two different ones.

    >>> import perspex.numpy as jnp
    >>> jnp.rot90(jnp.arange(4).reshape(2, 2))
    Array([[1, 3],
           [0, 2]], dtype=int32)
    """
    x = arraylike("rot90", m)
    if x.ndim < 2:
        raise ValueError(f"rot90: the array must have at least two axes, got shape {x.shape}")
    first, second = canonical_axes(tuple(axes), x.ndim)
    turns = concrete("rot90: k", operator.index, k) % 4
    if turns == 2:
        return rev(x, dimensions=(first, second))
    if turns == 1:
        return swapaxes(rev(x, dimensions=(second,)), first, second)
    return rev(swapaxes(x, first, second), dimensions=(second,)) if turns else x


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axis = None) -> Array:
    """Shift the elements; those that leave at the end come in again at the start.

    Args:
      a: the array.
      shift: an integer, or one for each axis; may be traced.
      axis: the axis or axes to roll along; None rolls the elements in one axis.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for axes that do not exist, and for several shifts that are not one for each axis.

    >>> import perspex.numpy as jnp
    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = arraylike("roll", a)
    axis = hashable_axis("roll", axis)
    shifts = asarray(shift) if isinstance(shift, (list, tuple, Symbolic)) else shift
    check_arraylike("roll", shifts)
    known = None if state.trace is EVAL else concrete_value(shifts)
    if known is not None:
        return _rolled(x, np.asarray(known), axis)
    return _roll(x, shifts, axis)


@fused(static=("axis",))
def _roll(x: Any, shift: Any, axis: Any) -> Any:
    return _rolled(x, arraylike("roll", shift), axis)


def _rolled(x: Any, shift: Any, axis: Any) -> Any:
    """Roll by numbers that are known, a NumPy array, or that are not."""
    if axis is None:
        return reshape(_rolled(flat(x), shift, 0) if x.size else x, x.shape)
    axes = [canonical_axis(d, x.ndim) for d in ((axis,) if isinstance(axis, int) else axis)]
    if not axes:
        return x
    if shift.ndim > 1:
        raise ValueError(f"roll: shift must be an integer or a sequence, got shape {shift.shape}")
    count = max(len(axes), shift.size)
    if shift.ndim and shift.size not in (1, count) or len(axes) not in (1, count):
        raise ValueError(f"roll: {shift.size} shifts do not match the axes {tuple(axes)}")
    for k in range(count):
        d = axes[k if len(axes) > 1 else 0]
        n = x.shape[d]
        if n == 0:
            continue
        by = _entry(shift, k if shift.size > 1 else 0)
        x = _rolled_by(x, int(by) % n, d) if isinstance(by, np.generic) else _rolled_at(x, by, d)
    return x


def _entry(shift: Any, k: int) -> Any:
    if isinstance(shift, np.ndarray):
        return shift.reshape(-1)[k]
    return squeeze(part(flat(shift), k, k + 1, 0, (shift.size,)))


def _rolled_by(x: Any, by: int, axis: int) -> Any:
    if by.__class__ is int and not by:
        return x
    n = x.shape[axis]
    front, back = part(x, n - by, n, axis, x.shape), part(x, 0, n - by, axis, x.shape)
    return concatenate(front, back, dimension=axis)


def _rolled_at(x: Any, by: Any, axis: int) -> Any:
    n = x.shape[axis]
    by = convert(by, INT32) if typeof(by).dtype.itemsize < 4 or by.dtype.kind != "i" else by
    start = ops.sub(size_as(n, by.dtype), remainder(by, n))
    twice = concatenate(x, x, dimension=axis)
    entries = whole(twice.shape)
    entries[axis] = Span(start, n, 1, 0)
    return read(twice, Index(tuple(entries)))


describe(
    (flip, fliplr, flipud),
    {},
    "TypeError: if `m` is not an array.\nValueError: for an axis that does not exist.",
)
