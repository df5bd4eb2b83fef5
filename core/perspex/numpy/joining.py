"""Putting arrays together and taking them apart: concatenate, stack, split, repeat, insert."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.creation import asarray
from perspex.numpy.indexers import INT32, Index, Picks, whole, wrapped
from perspex.numpy.indexing import getitem, read
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    arraylike,
    as_array,
    as_dtype,
    canonical_axis,
    check_arraylike,
    check_no_out,
    concrete,
    expand,
    filled,
    flat,
    promote_dtypes,
    spread,
)
from perspex.numpy.selection import known, nonzero
from perspex.numpy.shaping import moveaxis, reshape
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import cumsum
from perspex.ops.indexing import scatter, scatter_add
from perspex.ops.shape import concatenate as concatenate_p
from perspex.ops.shape import iota
from perspex.ops.shape import split as split_p
from perspex.ops.shape import stack as stack_p
from perspex.ops.shape import tile as tile_p
from perspex.ops.shape import unstack as unstack_p
from perspex.ops.sorting import sort
from perspex.ops.structural import broadcast_in_dim, convert
from perspex.ops.structural import reshape as reshape_p
from perspex.ops.windows import CLIP, FILL_OR_DROP, ScatterDimensionNumbers
from perspex.tracing.trace import is_concrete

_LANES = ScatterDimensionNumbers((), (0,), (0,))

# ---- Joining ------------------------------------------------------------------------------------


def _is_array(arrays: Any) -> bool:
    """Whether a sequence of arrays is given as one array, whose first axis counts them."""
    return isinstance(arrays, np.ndarray) or hasattr(arrays, "aval")


def _joined_dtype(name: str, arrays: Sequence[Any], dtype: Any) -> Sequence[Any]:
    if dtype is None:
        return promote_dtypes(name, *arrays)
    target = dtypes.check_user_dtype(dtype, name)
    return [as_dtype(asarray(x), target) for x in arrays]


def concatenate(
    arrays: Sequence[ArrayLike] | Array, axis: int | None = 0, dtype: DTypeLike = None
) -> Array:
    """The arrays one after another along an axis.

    Args:
      arrays: arrays that agree in all other axes; they are promoted to one dtype.
      axis: the axis; None joins the elements of each array in one axis.
      dtype: the dtype of the result.

    Errors:
      `ValueError` for no arrays and for scalars; `TypeError` for lists, and for shapes that differ.

    >>> import perspex.numpy as jnp
    >>> jnp.concatenate([jnp.arange(2), jnp.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    return _concatenated("concatenate", arrays, axis, dtype)


def _concatenated(name: str, arrays: Any, axis: int | None, dtype: Any = None) -> Any:
    if _is_array(arrays):
        return _merged(name, asarray(arrays), axis, dtype)
    given = tuple(arrays)
    if not given:
        raise ValueError("Need at least one array to concatenate.")
    check_arraylike(name, *given)
    if axis is None:
        given, axis = tuple([flat(asarray(x)) for x in given]), 0
    ndim = np.ndim(given[0])
    if not ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return _join(given, canonical_axis(axis, ndim), dtype)


@fused(static=("axis", "dtype"))
def _join(arrays: Any, axis: int, dtype: Any) -> Any:
    joined = _joined_dtype("concatenate", arrays, dtype)
    return concatenate_p(*joined, dimension=axis)


def _merged(name: str, x: Any, axis: int | None, dtype: Any) -> Any:
    """Concatenate what the first axis of an array counts: two axes become one."""
    if x.ndim < 2:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    if not x.shape[0]:
        raise ValueError("Need at least one array to concatenate.")
    at = 0 if axis is None else canonical_axis(axis, x.ndim - 1)
    shape = list(x.shape[1:])
    shape[at] *= x.shape[0]
    out = reshape(x, -1) if axis is None else reshape(moveaxis(x, 0, at), tuple(shape))
    return out if dtype is None else as_dtype(out, dtypes.check_user_dtype(dtype, name))


def concat(arrays: Sequence[ArrayLike] | Array, /, *, axis: int | None = 0) -> Array:
    """The arrays one after another along an axis: `concatenate`.

    >>> import perspex.numpy as jnp
    >>> jnp.concat([jnp.zeros((1, 2)), jnp.ones((1, 2))], axis=1)
    Array([[0., 0., 1., 1.]], dtype=float32)
    """
    return _concatenated("concat", arrays, axis)


def stack(
    arrays: Sequence[ArrayLike] | Array, axis: int = 0, out: None = None, dtype: DTypeLike = None
) -> Array:
    """The arrays, which have one shape, along a new axis.

    Args:
      arrays: arrays or numbers; they are promoted to one dtype.
      axis: the place of the new axis, in the result.
      out: not supported.
      dtype: the dtype of the result.

    Errors:
      `ValueError` for no arrays, and for shapes that differ.

    >>> import perspex.numpy as jnp
    >>> jnp.stack([jnp.arange(2), jnp.zeros(2)])
    Array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
    check_no_out("stack", out)
    if _is_array(arrays):
        x = asarray(arrays)
        moved = moveaxis(x, 0, canonical_axis(axis, x.ndim))
        return moved if dtype is None else as_dtype(moved, dtypes.check_user_dtype(dtype, "stack"))
    if not len(arrays):
        raise ValueError("Need at least one array to stack.")
    check_arraylike("stack", *arrays)
    shapes = [np.shape(x) for x in arrays]
    if any([s != shapes[0] for s in shapes]):
        raise ValueError(
            f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}."
        )
    return _stack(tuple(arrays), canonical_axis(axis, len(shapes[0]) + 1), dtype)


@fused(static=("axis", "dtype"))
def _stack(arrays: Any, axis: int, dtype: Any) -> Any:
    return stack_p(*_joined_dtype("stack", arrays, dtype), axis=axis)


def _at_least(name: str, tup: Any, ndim: int) -> list[Any]:
    """The arrays with axes put in front until there are `ndim`."""
    if _is_array(tup):
        tup = unstack_p(asarray(tup), axis=0)
    check_arraylike(name, *tup)
    if not len(tup):
        raise ValueError("Need at least one array to concatenate.")
    arrays = [asarray(x) for x in tup]
    return [expand(x, range(ndim - x.ndim)) for x in arrays]


def hstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike = None) -> Array:
    """The arrays side by side: along the second axis, or the first if there is only one.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.
      dtype: the dtype of the result.

    >>> import perspex.numpy as jnp
    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    arrays = _at_least("hstack", tup, 1)
    return _concatenated("hstack", arrays, 0 if arrays[0].ndim == 1 else 1, dtype)


def vstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike = None) -> Array:
    """The arrays one below another, along the first axis; those of one axis become rows.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.
      dtype: the dtype of the result.

    >>> import perspex.numpy as jnp
    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return _concatenated("vstack", _at_least("vstack", tup, 2), 0, dtype)


def dstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike = None) -> Array:
    """The arrays one behind another, along the third axis.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.
      dtype: the dtype of the result.

    >>> import perspex.numpy as jnp
    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)]).shape
    (1, 2, 2)
    """
    arrays = [expand(x, (2,)) if x.ndim == 2 else x for x in _at_least("dstack", tup, 2)]
    return _concatenated("dstack", arrays, 2, dtype)


def column_stack(tup: Sequence[ArrayLike] | Array) -> Array:
    """The arrays side by side; those of one axis become columns.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.

    >>> import perspex.numpy as jnp
    >>> jnp.column_stack([jnp.arange(2), jnp.zeros((2, 1))])
    Array([[0., 0.],
           [1., 0.]], dtype=float32)
    """
    arrays = [expand(x, (1,)) if x.ndim == 1 else x for x in _at_least("column_stack", tup, 1)]
    return _concatenated("column_stack", arrays, 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with `values` after it along an axis; None joins the elements in one axis.

    >>> import perspex.numpy as jnp
    >>> jnp.append(jnp.arange(3), 7)
    Array([0, 1, 2, 7], dtype=int32)
    """
    return _concatenated("append", [arr, values], axis)


def block(arrays: Any) -> Array:
    """One array from nested lists of blocks: the innermost lists go along the last axis.

    Args:
      arrays: an array or number, or lists, nested to one depth, of them.

    Errors:
      `ValueError` for tuples, empty lists, uneven depths; `TypeError` for blocks that do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    depth = _depth(arrays)

    def largest(x: Any) -> int:
        return max([largest(y) for y in x]) if isinstance(x, list) else np.ndim(x)

    ndim = max(largest(arrays), depth)

    def assembled(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            check_arraylike("block", x)
            x = asarray(x)
            return expand(x, range(ndim - x.ndim))
        parts = [assembled(y, level + 1) for y in x]
        return _concatenated("block", parts, ndim - depth + level)

    return assembled(arrays, 0)


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise ValueError(f"block does not allow tuples, only nested lists; got {arrays}")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block does not allow empty list arguments")
    depths = {_depth(x) for x in arrays}
    if len(depths) > 1:
        raise ValueError("block: mismatched list depths; blocks must all be nested equally deep")
    return 1 + depths.pop()


# ---- Splitting ----------------------------------------------------------------------------------


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Consecutive parts along an axis.

    Args:
      ary: the array.
      indices_or_sections: how many parts of equal size, or where the parts after the first begin.
      axis: the axis.

    Errors:
      `ValueError` if the axis does not divide into that many parts.

    >>> import perspex.numpy as jnp
    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Consecutive parts along an axis; if the axis does not divide, the first ones are longer.

    Args:
      ary: the array.
      indices_or_sections: how many parts, or where the parts after the first begin.
      axis: the axis.

    >>> import perspex.numpy as jnp
    >>> [x.size for x in jnp.array_split(jnp.arange(5), 3)]
    [2, 2, 1]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Parts along the second axis, or the first if there is only one: `split`.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Parts along the first axis: `split`.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.vsplit(jnp.zeros((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Parts along the third axis: `split`.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.dsplit(jnp.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


def _split(name: str, ary: Any, sections: Any, axis: int) -> list[Any]:
    x = arraylike(name, ary)
    axis = canonical_axis(axis, x.ndim)
    n = x.shape[axis]
    if np.ndim(sections) == 0:
        count = concrete(f"the sections of {name}", int, sections)
        if count <= 0:
            raise ValueError(f"{name}: the number of sections must be positive, got {count}")
        size, rest = divmod(n, count)
        if rest and name != "array_split":
            raise ValueError(
                f"{name}: array split does not result in an equal division: rest is {rest} for "
                f"{count} parts of axis {axis} of shape {x.shape}; array_split allows it"
            )
        sizes = [size + 1] * rest + [size] * (count - rest)
    else:
        given = [concrete(f"the indices of {name}", operator.index, i) for i in sections]
        bounds = [0, *[min(max(i + n if i < 0 else i, 0), n) for i in given], n]
        sizes = [high - low for low, high in zip(bounds[:-1], bounds[1:], strict=True)]
        if any(s < 0 for s in sizes):
            raise ValueError(f"{name}: the indices must ascend, got {given}")
    return split_p(x, sizes=tuple(sizes), axis=axis)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The array at each index of an axis.

    >>> import perspex.numpy as jnp
    >>> jnp.unstack(jnp.arange(4).reshape(2, 2))
    (Array([0, 1], dtype=int32), Array([2, 3], dtype=int32))
    """
    array = arraylike("unstack", x)
    return tuple(unstack_p(array, axis=canonical_axis(axis, array.ndim)))


# ---- Repeating ----------------------------------------------------------------------------------


def tile(A: ArrayLike, reps: Any) -> Array:
    """The array repeated as a whole along each axis.

    Args:
      A: the array.
      reps: how often: an integer for the last axis, or one for each of the last axes.

    >>> import perspex.numpy as jnp
    >>> jnp.tile(jnp.arange(2), 3)
    Array([0, 1, 0, 1, 0, 1], dtype=int32)
    """
    x = arraylike("tile", A)
    given = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    counts = [concrete("tile: reps must be concrete integers", operator.index, r) for r in given]
    x = expand(x, range(len(counts) - x.ndim))
    counts = [1] * (x.ndim - len(counts)) + counts
    return tile_p(x, reps=tuple(counts)) if any([r != 1 for r in counts]) else x


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Array:
    """Each element along an axis repeated.

    Args:
      a: the array.
      repeats: how often: a number, or one for each element.
      axis: the axis; None repeats the elements in one axis.
      total_repeat_length: the size of the axis of the result; what is too much is cut off, what is
        missing is filled up with the last element. Must be given if `repeats` is traced.

    Errors:
      `ConcretizationTypeError` for traced `repeats` without a length; `ValueError` for a number of
      `repeats` that does not fit; `TypeError` for negative ones and those that are not integers.

    >>> import perspex.numpy as jnp
    >>> jnp.repeat(jnp.arange(3), jnp.array([2, 0, 1]))
    Array([0, 0, 2], dtype=int32)
    """
    check_arraylike("repeat", a, repeats)
    x = arraylike("repeat", a)
    x, axis = (flat(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim))
    n = x.shape[axis]
    if not dtypes.issubdtype(shaped(repeats).dtype, np.integer):
        raise TypeError(f"repeat: repeats must be integers, got {shaped(repeats).dtype.name}")
    if np.ndim(repeats) > 1 or np.size(repeats) not in (1, n):
        raise ValueError(
            f"repeat: repeats of shape {np.shape(repeats)} do not fit axis {axis} of size {n}"
        )
    if total_repeat_length is not None:
        length = concrete("repeat: total_repeat_length", operator.index, total_repeat_length)
        return _repeat(x, repeats, axis, length)
    remedy = "give the size of the result: repeat(x, n, total_repeat_length=size)."
    counts = known("repeat without total_repeat_length", repeats, remedy).reshape(-1)
    if (counts < 0).any():
        raise TypeError(f"repeat: repeats must not be negative, got {counts.tolist()}")
    if counts.size == 1:
        return _repeat_evenly(x, int(counts[0]), axis)
    return _picked(x, np.repeat(np.arange(n, dtype=INT32), counts), axis)


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
    passed = scatter_add(
        filled(INT32.type(0), (length,)),
        ends,
        filled(INT32.type(1), (n,)),
        dimension_numbers=_LANES,
        indices_are_sorted=True,
        unique_indices=False,
        mode=FILL_OR_DROP,
    )
    places = ops.min(cumsum(passed, axis=0, reverse=False), INT32.type(n - 1))
    return read(x, Index((*whole(x.shape[:axis]), Picks(places), *whole(x.shape[axis + 1 :]))))


# ---- Inserting and deleting ---------------------------------------------------------------------


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with `values` put in before the given places of an axis.

    Args:
      arr: the array.
      obj: an integer, an array of them or a slice; those outside are moved to the ends.
      values: what broadcasts to the elements put in; converted to the dtype of `arr`.
      axis: the axis; None puts them into the elements in one axis.

    Errors:
      `TypeError` for lists; `ValueError` for places that are not integers in one axis.

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
    new = as_dtype(expand(new, range(x.ndim - new.ndim)), x.dtype)
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
        filled(INT32.type(-1), (n + count,)),
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
    arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """The array without the elements at the given places of an axis.

    Args:
      arr: the array.
      obj: an integer, an array of them, a mask or a slice; concrete, unless it is an array of
        different integers.
      axis: the axis; None deletes from the elements in one axis.
      assume_unique_indices: promises that no integer comes twice, which traced ones must not.

    Errors:
      `ConcretizationTypeError` for traced places; `ValueError` and `IndexError` for those outside.

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
    if not is_concrete(obj) and assume_unique_indices and obj.dtype != bool and obj.ndim:
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
        filled(np.bool_(True), (n,)),
        reshape_p(convert(wrapped(places, n), INT32), new_sizes=(count, 1)),
        filled(np.bool_(False), (count,)),
        dimension_numbers=_LANES,
        indices_are_sorted=False,
        unique_indices=True,
        mode=FILL_OR_DROP,
    )
    (kept,) = nonzero(mask, size=n - count)
    return _picked(x, kept, axis)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """The array without the zeros at its ends.

    Args:
      filt: a concrete array.
      trim: `"f"` for those at the front, `"b"` at the back, `"fb"` for both.
      axis: the axis or axes to trim; None trims all.

    Errors:
      `ConcretizationTypeError` for traced arrays.

    >>> import perspex.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    x = arraylike("trim_zeros", filt)
    if not x.ndim:
        return as_array(x)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    places = np.nonzero(known("trim_zeros", x))
    index = [slice(None)] * x.ndim
    for d in axes:
        d = canonical_axis(d, x.ndim)
        held = places[d]
        low, high = (int(held.min()), int(held.max()) + 1) if held.size else (0, 0)
        index[d] = slice(low if "f" in trim.lower() else 0, high if "b" in trim.lower() else None)
    return getitem(x, tuple(index))
