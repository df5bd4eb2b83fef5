"""Elements of an axis repeated, put in and taken out: `tile`, `repeat`, `insert`, `delete`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import (
    arraylike,
    as_array,
    as_dtype,
    check_arraylike,
    expand,
    flat,
    spread,
)
from perspex.arguments.axes import canonical_axis
from perspex.arguments.sharded import OutSharding, decided
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.base.dimensions import size as as_size
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.axes import moveaxis
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, Index, Picks, whole
from perspex.numpy.indexing.read import getitem, read
from perspex.numpy.indexing.windows import wrapped
from perspex.numpy.promotion import strong
from perspex.numpy.selection import known, known_nonzero, nonzero
from perspex.numpy.shaping import reshape
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import cumsum
from perspex.ops.dropping import scatter_add_inside
from perspex.ops.indexing import scatter
from perspex.ops.shape import concatenate as concatenate_p
from perspex.ops.shape import iota
from perspex.ops.shape import tile as tile_p
from perspex.ops.sorting import sort
from perspex.ops.structural import broadcast_in_dim, convert
from perspex.ops.structural import reshape as reshape_p
from perspex.ops.windows import CLIP, FILL_OR_DROP, ScatterDimensionNumbers
from perspex.tracing.trace import Tracer

__all__ = ["delete", "insert", "repeat", "tile", "trim_zeros"]

_LANES = ScatterDimensionNumbers((), (0,), (0,))


# ---- Repeating ----------------------------------------------------------------------------------


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Repeat a whole array along each axis.

    Args:
      A: the array.
      reps: how often: an integer for the last axis, or one for each of the last axes.

    Returns:
      An array of the dtype of `A`.

    Raises:
      TypeError: if `A` is not an array or a number, and for `reps` that are not integers.
      ValueError: for negative `reps`.
      ConcretizationTypeError: for traced `reps`.

    >>> import perspex.numpy as jnp
    >>> jnp.tile(jnp.arange(2), 3)
    Array([0, 1, 0, 1, 0, 1], dtype=int32)
    """
    x = arraylike("tile", A)
    given = (reps,) if np.ndim(reps) == 0 else tuple(reps)  # type: ignore[arg-type]
    counts = [concrete("tile: reps must be concrete integers", as_size, r) for r in given]
    x = expand(x, range(len(counts) - x.ndim))
    counts = [1] * (x.ndim - len(counts)) + counts
    return tile_p(x, reps=tuple(counts)) if any([r != 1 for r in counts]) else x


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Repeat each element along an axis.

    Args:
      a: the array.
      repeats: how often: a number, or one for each element.
      axis: the axis; None repeats the elements in one axis.
      total_repeat_length: the size of the axis of the result; what is too much is cut off, what is
        missing is filled up with the last element. Must be given if `repeats` is traced.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`. The compiler
        decides how all else lies.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: for lists, and for `repeats` that are negative or not integers.
      ValueError: for a number of `repeats` that does not fit the axis.
      ConcretizationTypeError: for traced `repeats` without a length.

    >>> import perspex.numpy as jnp
    >>> jnp.repeat(jnp.arange(3), jnp.array([2, 0, 1]))
    Array([0, 0, 2], dtype=int32)
    """
    check_arraylike("repeat", a, repeats)
    x = arraylike("repeat", a)
    x, axis = (flat(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim))
    n = x.shape[axis]
    if total_repeat_length is None:
        remedy = "give the size of the result: repeat(x, n, total_repeat_length=size)."
        counts = known("repeat without total_repeat_length", repeats, remedy).reshape(-1)
    if not dtypes.issubdtype(shaped(repeats).dtype, np.integer):
        raise TypeError(f"repeat: repeats must be integers, got {shaped(repeats).dtype.name}")
    if np.ndim(repeats) > 1 or np.size(repeats) not in (1, n):
        raise ValueError(
            f"repeat: repeats of shape {np.shape(repeats)} do not fit axis {axis} of size {n}"
        )
    if total_repeat_length is not None:
        length = concrete("repeat: total_repeat_length", operator.index, total_repeat_length)
        x = x if length else strong(x)
        several = functools.partial(_repeat, axis=axis, length=length)
        return decided(out_sharding, several, x, repeats)
    if (counts < 0).any():
        raise TypeError(f"repeat: repeats must not be negative, got {counts.tolist()}")
    x = x if counts.any() or not np.ndim(repeats) else strong(x)
    if counts.size == 1:
        evenly = functools.partial(_repeat_evenly, count=int(counts[0]), axis=axis)
        return decided(out_sharding, evenly, x)
    places = np.repeat(np.arange(n, dtype=INT32), counts)
    return decided(out_sharding, functools.partial(_picked, places=places, axis=axis), x)


def _picked(x: Any, places: Any, axis: int) -> Any:
    """The elements at `places` along an axis; eagerly, another list of them compiles nothing."""
    return getitem(x, (*[slice(None)] * axis, places))


@fused(static=("count", "axis"))
def _repeat_evenly(x: Any, count: int, axis: int) -> Any:
    shape = x.shape
    dims = tuple([d + (d > axis) for d in range(x.ndim)])
    pairs = (*shape[: axis + 1], count, *shape[axis + 1 :])
    out = broadcast_in_dim(x, shape=pairs, broadcast_dimensions=dims)
    return reshape_p(out, new_sizes=(*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


@fused(static=("axis", "length"))
def _repeat(x: Any, repeats: Any, axis: int, length: int) -> Any:
    n = x.shape[axis]
    counts = spread(flat(convert(arraylike("repeat", repeats), INT32)), (n,))
    if not n or not length:
        return read(x, Index((*whole(x.shape[:axis]), Picks(np.zeros(0, INT32)))))
    # At the end of each element's copies the next one begins: count the ends that have been passed.
    ends = reshape_p(cumsum(counts, axis=0, reverse=False), new_sizes=(n, 1))
    passed = scatter_add_inside(
        spread(INT32.type(0), (length,)),
        ends,
        spread(INT32.type(1), (n,)),
        dimension_numbers=_LANES,
        indices_are_sorted=True,
        unique_indices=False,
        mode=FILL_OR_DROP,
    )
    places = ops.min(cumsum(passed, axis=0, reverse=False), INT32.type(n - 1))
    return read(x, Index((*whole(x.shape[:axis]), Picks(places), *whole(x.shape[axis + 1 :]))))


# ---- Inserting and deleting ---------------------------------------------------------------------


def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array:
    """Insert values before the given places of an axis.

    Args:
      arr: the array.
      obj: an integer, an array of them or a slice; those outside are moved to the ends.
      values: what broadcasts to the elements put in; converted to the dtype of `arr`.
      axis: the axis; None puts them into the elements in one axis.

    Returns:
      An array of the dtype of `arr`.

    Raises:
      TypeError: for lists.
      ValueError: for places that are not integers in one axis, and values that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> jnp.insert(jnp.arange(3), 1, 99)
    Array([ 0, 99,  1,  2], dtype=int32)
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    x, new = asarray(arr), asarray(values)
    x, axis = (flat(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim))
    n = x.shape[axis]
    places = asarray(np.arange(*obj.indices(n), dtype=INT32)) if isinstance(obj, slice) else obj
    places = asarray(places)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise ValueError(f"insert: places must be integers, got {places.dtype.name}")
    if places.ndim > 1:
        raise ValueError(
            f"insert: places must be a slice, an integer or an array of one axis, got shape "
            f"{places.shape}"
        )
    new = as_dtype(expand(new, range(x.ndim - new.ndim)), x.dtype, shaped(x).weak_type)
    if places.size == 1:
        if places.ndim == 0:
            new = moveaxis(new, 0, axis)
        count = new.shape[axis]
        places = spread(reshape(places, 1), (count,))
    return _insert(x, places, new, axis)


@fused(static=("axis",))
def _insert(x: Any, places: Any, new: Any, axis: int) -> Any:
    n, count = x.shape[axis], places.shape[0]
    if not count:
        return x
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    both = concatenate_p(x, spread(new, shape), dimension=axis)
    places = convert(wrapped(places, n), INT32)
    places = ops.clamp(INT32.type(0), places, INT32.type(n))
    number = iota(dtype=INT32, shape=(count,), dimension=0)
    places, number = sort(places, number, dimension=0, is_stable=True, num_keys=1)
    # Of the result: which of the new elements stands where, and of the others, how many before it.
    lines = ops.add(places, iota(dtype=INT32, shape=(count,), dimension=0))
    taken = scatter(
        spread(INT32.type(-1), (n + count,)),
        reshape_p(lines, new_sizes=(count, 1)),
        number,
        dimension_numbers=_LANES,
        indices_are_sorted=True,
        unique_indices=True,
        mode=CLIP,
    )
    is_old = ops.lt(taken, INT32.type(0))
    rank = ops.sub(cumsum(convert(is_old, INT32), axis=0, reverse=False), INT32.type(1))
    source = ops.select(is_old, rank, ops.add(taken, INT32.type(n)))
    return read(both, Index((*whole(x.shape[:axis]), Picks(source), *whole(x.shape[axis + 1 :]))))


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Delete the elements at the given places of an axis.

    Args:
      arr: the array.
      obj: an integer, an array of them, a mask or a slice; concrete, unless it is an array of
        different integers.
      axis: the axis; None deletes from the elements in one axis.
      assume_unique_indices: promises that no integer comes twice, which traced ones must not.

    Returns:
      An array of the dtype of `arr`.

    Raises:
      TypeError: for lists.
      ValueError: for one place outside, a mask of another size, and places that are not integers.
      IndexError: for an array with a place outside.
      ConcretizationTypeError: for traced places without `assume_unique_indices`.

    >>> import perspex.numpy as jnp
    >>> jnp.delete(jnp.arange(5), jnp.array([0, 2]))
    Array([1, 3, 4], dtype=int32)
    """
    check_arraylike("delete", arr, 0 if isinstance(obj, slice) else obj)
    x = asarray(arr)
    x, axis = (flat(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim))
    n = x.shape[axis]
    if isinstance(obj, slice):
        kept = np.delete(np.arange(n, dtype=INT32), obj)
        return _picked(x, kept, axis)
    if isinstance(obj, Tracer) and assume_unique_indices and obj.dtype != bool and obj.ndim:
        return _deleted(x, obj, axis)
    remedy = "give concrete places; or different integers, with assume_unique_indices=True."
    host = known("delete", obj, remedy)
    if host.dtype == bool and host.shape != (n,):
        raise ValueError(
            f"delete: a mask must have one axis, as long as axis {axis} of size {n}; got shape "
            f"{host.shape}"
        )
    if host.dtype != bool and not dtypes.issubdtype(host.dtype, np.integer):
        raise ValueError(f"delete: places must be integers or a mask, got {host.dtype.name}")
    if not host.ndim:
        host = np.asarray(canonical_axis(int(host), n))
    return _picked(x, np.delete(np.arange(n, dtype=INT32), host), axis)


def _deleted(x: Any, places: Any, axis: int) -> Any:
    n, count = x.shape[axis], places.size
    mask = scatter(
        spread(np.bool_(True), (n,)),
        reshape_p(convert(wrapped(places, n), INT32), new_sizes=(count, 1)),
        spread(np.bool_(False), (count,)),
        dimension_numbers=_LANES,
        indices_are_sorted=False,
        unique_indices=True,
        mode=FILL_OR_DROP,
    )
    (kept,) = nonzero(mask, size=n - count)
    return _picked(x, kept, axis)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """Trim the zeros from the ends of an array.

    Args:
      filt: a concrete array.
      trim: `"f"` for those at the front, `"b"` at the back, `"fb"` for both.
      axis: the axis or axes to trim; None trims all.

    Returns:
      A part of `filt`.

    Raises:
      TypeError: if `filt` is not an array or a number.
      ConcretizationTypeError: for traced arrays.

    >>> import perspex.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    x = arraylike("trim_zeros", filt)
    if not x.ndim:
        return as_array(x)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    places = known_nonzero("trim_zeros", x)
    index = [slice(None)] * x.ndim
    for d in axes:
        d = canonical_axis(d, x.ndim)
        held = places[d]
        if not held.size:
            index[d] = slice(0, 0)
            continue
        low, high = int(held.min()), int(held.max()) + 1
        index[d] = slice(low if "f" in trim.lower() else 0, high if "b" in trim.lower() else None)
    return getitem(x, tuple(index))
