"""Other shapes for the same elements: reshape, transpose, new axes, spreading, flips, rolls."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from perspex import dtypes
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import remainder
from perspex.numpy.creation import asarray
from perspex.numpy.indexers import INT32, Index, Span, whole
from perspex.numpy.indexing import read
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    arraylike,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    check_arraylike,
    concrete,
    expand,
    filled,
    flat,
    hashable_axis,
    spread,
)
from perspex.ops import elementwise as ops
from perspex.ops.shape import bitcast_convert_type, concatenate, part, rev, tile
from perspex.ops.structural import convert
from perspex.ops.structural import reshape as reshape_p
from perspex.ops.structural import squeeze as squeeze_p
from perspex.ops.structural import transpose as transpose_p
from perspex.runtime.dispatch import EVAL
from perspex.tracing.trace import is_concrete, state, typeof

# ---- Shape --------------------------------------------------------------------------------------


def shape(a: Any) -> tuple[int, ...]:
    """The length of each axis.

    >>> import perspex.numpy as jnp
    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes.

    >>> import perspex.numpy as jnp
    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return np.ndim(a)


def size(a: Any, axis: Axis = None) -> int:
    """The number of elements, or of those along `axis`, an integer or a tuple of them.

    >>> import perspex.numpy as jnp
    >>> jnp.size(jnp.zeros((2, 3)), axis=1)
    3
    """
    lengths = np.shape(a)
    return math.prod([lengths[d] for d in canonical_axes(axis, len(lengths))])


def iterable(y: Any) -> bool:
    """Whether `iter(y)` works.

    >>> import perspex.numpy as jnp
    >>> jnp.iterable(jnp.zeros(())), jnp.iterable(jnp.zeros(2))
    (False, True)
    """
    return np.iterable(y)


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape as the user wrote it, -1 included; `TypeError` unless it is of concrete integers."""
    alone = getattr(shape, "ndim", None) == 0 or isinstance(shape, str)
    given = (shape,) if alone or not isinstance(shape, Iterable) else tuple(shape)
    try:
        return tuple([operator.index(n) for n in given])
    except TypeError:
        shown = ", ".join([repr(n) for n in given])
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got [{shown}].\n"
            "Remedy: compute sizes from `x.shape` with Python or NumPy, as in `np.prod(x.shape)`; "
            "or mark the argument with `static_argnames`."
        ) from None


def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements in another shape.

    Args:
      a: the array.
      shape: an integer or a sequence of them, concrete; one may be -1 and is computed.
      order: `"C"` reads and writes with the last axis changing fastest, `"F"` with the first.
      copy: has no effect: arrays never change.

    Errors:
      `TypeError` for a shape of another size, and for sizes that are traced.

    >>> import perspex.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    x = arraylike("reshape", a)
    aval = x.aval
    sizes = _sizes(shape)
    if -1 in sizes:
        sizes = _completed(aval, sizes)
    if order == "C":
        return x if sizes == aval.shape else reshape_p(x, new_sizes=sizes)
    if order == "F":
        turned = reshape_p(_reversed_axes(x), new_sizes=sizes[::-1])
        return _reversed_axes(turned)
    if order == "A":
        raise NotImplementedError("reshape: order='A' is not supported; use 'C' or 'F'")
    raise ValueError(f"reshape: unexpected value for 'order' argument: {order}; use 'C' or 'F'")


def _completed(aval: Any, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the size that stands for -1."""
    if sizes.count(-1) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {sizes}")
    rest = math.prod([n for n in sizes if n != -1])
    if rest <= 0 or aval.size % rest:
        raise TypeError(
            f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape {sizes} "
            f"because the product of specified axis sizes ({rest}) does not divide {aval.size}"
        )
    return tuple([aval.size // rest if n == -1 else n for n in sizes])


def _reversed_axes(x: Any) -> Any:
    n = x.ndim
    return x if n < 2 else transpose_p(x, permutation=tuple(range(n - 1, -1, -1)))


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """The elements in one axis.

    Args:
      a: the array.
      order: `"C"` with the last axis changing fastest, `"F"` with the first.

    >>> import perspex.numpy as jnp
    >>> jnp.ravel(jnp.arange(4).reshape(2, 2), order="F")
    Array([0, 2, 1, 3], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not supported; use 'C' or 'F'")
    return reshape(arraylike("ravel", a), (-1,) if np.size(a) else (0,), order)


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """An array of `new_shape` of the elements in one axis, repeated or cut off.

    Errors:
      `ValueError` for negative sizes.

    >>> import perspex.numpy as jnp
    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    x = arraylike("resize", a)
    sizes = _sizes(new_shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"resize: all elements of `new_shape` must be non-negative, got {sizes}")
    return _resize(x, sizes)


@fused(static=("sizes",))
def _resize(x: Any, sizes: tuple[int, ...]) -> Any:
    total = math.prod(sizes)
    if not x.size or not total:
        return filled(x.dtype.type(0), sizes)
    x = flat(x)
    if x.size < total:
        x = tile(x, reps=(-(-total // x.size),))
    return reshape(part(x, 0, total, 0, x.shape), sizes)


def view(a: ArrayLike, dtype: DTypeLike = None) -> Array:
    """The same bits as another dtype: what `x.view(dtype)` is.

    A narrower dtype makes the last axis longer, a wider one shorter.

    Errors:
      `ValueError` if the last axis cannot be divided, and for scalars of another width.

    >>> import perspex.numpy as jnp
    >>> jnp.array([1, 2]).view("int16")
    Array([1, 0, 2, 0], dtype=int16)
    """
    x = arraylike("view", a)
    if dtype is None:
        return x
    return _view(x, dtypes.check_user_dtype(dtype, "view"))


@fused(static=("dtype",))
def _view(x: Any, dtype: np.dtype) -> Any:
    if x.dtype == dtype:
        return x
    if not x.ndim and x.dtype.itemsize != dtype.itemsize:
        raise ValueError("view: of a 0d array it is only supported if the itemsize is unchanged")
    if x.dtype == bool:
        x = convert(x, np.dtype("uint8"))
    if dtype.kind == "b":
        # NumPy reads any other byte as true, but keeps the byte: here it becomes 1.
        return ops.ne(_view(x, np.dtype("uint8")), np.uint8(0))
    if x.dtype.kind == "c":
        parts = expand(ops.real(x), (x.ndim,)), expand(ops.imag(x), (x.ndim,))
        x = reshape(concatenate(*parts, dimension=x.ndim), (*x.shape[:-1], -1))
    target = ops.real_dtype(dtype)
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(target)
    if new > old:
        ratio = new // old
        if x.shape[-1] % ratio:
            raise ValueError(
                f"view: to read {x.dtype.name} as {dtype.name}, the size {x.shape[-1]} of the last "
                f"axis must be a multiple of {ratio}"
            )
        x = reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
    out = bitcast_convert_type(x, new_dtype=target)
    if new < old:
        out = reshape(out, (*out.shape[:-2], out.shape[-2] * out.shape[-1]))
    if target == dtype:
        return out
    if out.shape[-1] % 2:
        raise ValueError(f"view: as {dtype.name}, the last axis must hold pairs of numbers")
    pairs = reshape(out, (*out.shape[:-1], out.shape[-1] // 2, 2))
    real, imag = (part(pairs, k, k + 1, pairs.ndim - 1, pairs.shape) for k in range(2))
    return squeeze_p(ops.complex(real, imag), dimensions=(pairs.ndim - 1,))


# ---- Order of axes ------------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes permuted; reversed if no axes are given.

    Args:
      a: the array.
      axes: axis `i` of the result is axis `axes[i]` of `a`.

    Errors:
      `TypeError` if `axes` is no permutation; `ValueError` for axes that do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = arraylike("transpose", a)
    if axes is None:
        return _reversed_axes(x)
    return _permuted(x, tuple([canonical_axis(d, x.ndim) for d in axes]))


def _permuted(x: Any, permutation: tuple[int, ...]) -> Any:
    if permutation == tuple(range(x.ndim)):
        return x
    return transpose_p(x, permutation=permutation)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array with its axes permuted: `transpose` with axes.

    >>> import perspex.numpy as jnp
    >>> jnp.permute_dims(jnp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes swapped.

    Errors:
      `ValueError` for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.matrix_transpose(jnp.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = arraylike("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must have at least two axes, got {x.ndim}")
    return _permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes swapped.

    >>> import perspex.numpy as jnp
    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = arraylike("swapaxes", a)
    order = list(range(x.ndim))
    i, j = operator.index(axis1), operator.index(axis2)
    for axis in (i, j):
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(axis, x.ndim)
    order[i], order[j] = order[j], order[i]
    return _permuted(x, tuple(order))


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with some axes moved; the others keep their order.

    Args:
      a: the array.
      source: the axes to move.
      destination: where they go, in the result.

    Errors:
      `ValueError` for different numbers of axes, axes that do not exist or come twice.

    >>> import perspex.numpy as jnp
    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = arraylike("moveaxis", a)
    origin, target = (
        canonical_axes(_axes(source), x.ndim),
        canonical_axes(_axes(destination), x.ndim),
    )
    if len(origin) != len(target):
        raise ValueError(
            f"moveaxis: inconsistent number of elements: {len(origin)} vs {len(target)}"
        )
    order = [d for d in range(x.ndim) if d not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return _permuted(x, tuple(order))


def _axes(axis: Any) -> tuple[int, ...]:
    axis = hashable_axis("moveaxis", axis)
    return (axis,) if axis.__class__ is int else axis


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with one axis moved in front of the axis `start`; `moveaxis` says it better.

    >>> import perspex.numpy as jnp
    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = arraylike("rollaxis", a)
    start = operator.index(start)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"rollaxis: {start=} must satisfy {-x.ndim}<=start<={x.ndim}")
    source = canonical_axis(axis, x.ndim)
    target = start + x.ndim if start < 0 else start
    return moveaxis(x, source, target - (target > source))


# ---- Axes of size one ---------------------------------------------------------------------------


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """The array without axes of size one, or without those of them that are given.

    Errors:
      `ValueError` for an axis of another size.

    >>> import perspex.numpy as jnp
    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    x = arraylike("squeeze", a)
    if axis is None:
        axes = tuple([d for d, n in enumerate(x.shape) if n == 1])
    else:
        axes = tuple(sorted(canonical_axes(axis, x.ndim)))
    return squeeze_p(x, dimensions=axes) if axes else x


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with axes of size one put in, at the places `axis` of the result.

    Errors:
      `ValueError` for places that do not exist or come twice.

    >>> import perspex.numpy as jnp
    >>> jnp.expand_dims(jnp.zeros(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = arraylike("expand_dims", a)
    given = (axis,) if isinstance(axis, int) else _axes(axis)
    return expand(x, canonical_axes(given, x.ndim + len(given)))


def _each(name: str, arys: Sequence[Any], f: Any) -> Any:
    check_arraylike(name, *arys)
    out = tuple([f(arraylike(name, x)) for x in arys])
    return out[0] if len(arys) == 1 else out


def atleast_1d(*arys: ArrayLike) -> Any:
    """Scalars as arrays of one element; other arrays as they are.

    >>> import perspex.numpy as jnp
    >>> jnp.atleast_1d(3.0).shape
    (1,)
    """
    return _each("atleast_1d", arys, lambda x: x if x.ndim else expand(x, (0,)))


def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with axes put in front until there are two.

    >>> import perspex.numpy as jnp
    >>> jnp.atleast_2d(jnp.zeros(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", arys, lambda x: expand(x, range(2 - x.ndim)))


def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three axes: `(n,)` becomes `(1, n, 1)`, `(m, n)` becomes `(m, n, 1)`.

    >>> import perspex.numpy as jnp
    >>> jnp.atleast_3d(jnp.zeros(3)).shape
    (1, 3, 1)
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each("atleast_3d", arys, lambda x: expand(x, new.get(x.ndim, ())))


# ---- Spreading ----------------------------------------------------------------------------------


def broadcast_to(array: ArrayLike, shape: Any) -> Array:
    """The array repeated along new axes and along axes of size one, to fill `shape`.

    Errors:
      `ValueError` if the shapes do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (3, 2))
    Array([[0, 1],
           [0, 1],
           [0, 1]], dtype=int32)
    """
    x = arraylike("broadcast_to", array)
    sizes = canonical_shape("broadcast_to", shape)
    if x.ndim > len(sizes):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={x.shape} shape={sizes}"
        )
    if any([m not in (1, n) for m, n in zip(x.shape[::-1], sizes[::-1], strict=False)]):
        raise ValueError(
            f"Incompatible shapes for broadcasting: broadcast_to of shape {x.shape} and requested "
            f"shape {sizes}; sizes must be equal or 1, counted from the last axis"
        )
    return spread(x, sizes)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which all of `shapes` can be spread.

    Errors:
      `ValueError` if there is none.

    >>> import perspex.numpy as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    given = [canonical_shape("broadcast_shapes", s) for s in shapes]
    try:
        return np.broadcast_shapes(*given)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={given}; sizes must be equal or 1, "
            "counted from the last axis"
        ) from None


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """The arrays spread over one shape.

    Errors:
      `ValueError` if their shapes do not fit.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros((2, 1)), jnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    check_arraylike("broadcast_arrays", *args)
    common = broadcast_shapes(*[np.shape(x) for x in args])
    return tuple([spread(arraylike("broadcast_arrays", x), common) for x in args])


# ---- Reversal and rolling -----------------------------------------------------------------------


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """The elements in reverse order along `axis`; along all axes if none is given.

    >>> import perspex.numpy as jnp
    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    x = arraylike("flip", m)
    axes = canonical_axes(axis, x.ndim)
    return rev(x, dimensions=axes) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """The elements in reverse order along the second axis.

    >>> import perspex.numpy as jnp
    >>> jnp.fliplr(jnp.arange(4).reshape(2, 2))
    Array([[1, 0],
           [3, 2]], dtype=int32)
    """
    return flip(arraylike("fliplr", m), 1)


def flipud(m: ArrayLike) -> Array:
    """The elements in reverse order along the first axis.

    >>> import perspex.numpy as jnp
    >>> jnp.flipud(jnp.arange(4).reshape(2, 2))
    Array([[2, 3],
           [0, 1]], dtype=int32)
    """
    return flip(arraylike("flipud", m), 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned `k` times by 90 degrees, from the first of `axes` towards the second.

    Errors:
      `ValueError` for fewer than two axes, and for axes that are not two different ones.

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


def roll(a: ArrayLike, shift: Any, axis: Axis = None) -> Array:
    """The elements moved on by `shift` places; what falls off the end comes in at the start.

    Args:
      a: the array.
      shift: an integer, or one for each axis; may be traced.
      axis: the axis or axes to roll along; None rolls the elements in one axis.

    >>> import perspex.numpy as jnp
    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = arraylike("roll", a)
    axis = hashable_axis("roll", axis)
    shifts = asarray(shift) if isinstance(shift, (list, tuple)) else shift
    check_arraylike("roll", shifts)
    if state.trace is not EVAL and is_concrete(shifts):
        return _rolled(x, np.asarray(shifts), axis)
    return _roll(x, shifts, axis)


@fused(static=("axis",))
def _roll(x: Any, shift: Any, axis: Any) -> Any:
    return _rolled(x, arraylike("roll", shift), axis)


def _rolled(x: Any, shift: Any, axis: Any) -> Any:
    """Roll by numbers that are known, a NumPy array, or that are not."""
    if axis is None:
        return reshape(_rolled(flat(x), shift, 0) if x.size else x, x.shape)
    axes = [canonical_axis(d, x.ndim) for d in ((axis,) if isinstance(axis, int) else axis)]
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
    if not by:
        return x
    n = x.shape[axis]
    front, back = part(x, n - by, n, axis, x.shape), part(x, 0, n - by, axis, x.shape)
    return concatenate(front, back, dimension=axis)


def _rolled_at(x: Any, by: Any, axis: int) -> Any:
    n = x.shape[axis]
    by = convert(by, INT32) if typeof(by).dtype.itemsize < 4 or by.dtype.kind != "i" else by
    start = ops.sub(by.dtype.type(n), remainder(by, n))
    twice = concatenate(x, x, dimension=axis)
    entries = whole(twice.shape)
    entries[axis] = Span(start, n, 1, 0)
    return read(twice, Index(tuple(entries)))
