"""Elements replaced by number or on the diagonal: `put` and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, check_arraylike, flat
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.arithmetic import remainder
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import Index, Picks, Span
from perspex.numpy.indexing.read import read
from perspex.numpy.indexing.write import Options, check_cast, updated
from perspex.ops import elementwise as ops
from perspex.ops.shape import tile
from perspex.ops.structural import reshape
from perspex.ops.windows import GatherScatterMode

__all__ = ["fill_diagonal", "put", "put_along_axis"]


def _check_not_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"{name} cannot modify arrays in-place: arrays are immutable. "
            "Pass inplace=False, and use the array that it returns"
        )


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Replace elements of an array, counted as if it had one axis.

    Args:
      a: the array.
      ind: integers.
      v: the new elements; repeated if they are fewer.
      mode: what happens outside: `"clip"` takes the first and the last element, also for negative
        integers, and `"wrap"` goes round; None clips too, but negative integers count from the end.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      TypeError: for lists.
      ValueError: for `inplace=True` and unknown modes.
      NotImplementedError: for `mode="raise"`.

    >>> import perspex.numpy as jnp
    >>> jnp.put(jnp.arange(4), jnp.array([0, 9]), -1, inplace=False)
    Array([-1,  1,  2, -1], dtype=int32)
    """
    _check_not_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    if mode == "raise":
        raise NotImplementedError('put: mode="raise" is not supported; use "clip" or "wrap"')
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode should be one of 'wrap' or 'clip'; got {mode!r}")
    check_cast(asarray(a), v)
    return _put(a, ind, v, mode)


@fused(static=("mode",))
def _put(a: Any, ind: Any, v: Any, mode: Any) -> Any:
    x, places, values = (arraylike("put", arg) for arg in (a, ind, v))
    if not x.size or not places.size or not values.size:
        return x
    places, values = flat(places), flat(values)
    if mode == "wrap":
        places = remainder(places, x.size)
    elif mode == "clip":
        places = ops.max(places, places.dtype.type(0))
    n = places.size
    if values.size < n:
        values = tile(values, reps=(-(-n // values.size),))
    values = read(values, Index((Span(0, n, 1, n),)))
    how = GatherScatterMode.CLIP
    out = updated(flat(x), Index((Picks(places),)), values, Options("set", how))
    return reshape(out, new_sizes=x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace the elements that `take_along_axis` would read.

    Args:
      arr: the array.
      indices: integers; as many axes as `arr`, of the same sizes or 1 except along `axis`.
      values: what broadcasts to the shape of `indices`.
      axis: the axis to write along; None writes to the elements in one axis.
      mode: what happens outside: `"drop"` (the default), `"clip"` or `"promise_in_bounds"`.

    Returns:
      An array of the shape and dtype of `arr`.

    Raises:
      TypeError: for lists, and for indices that are not integers.
      ValueError: for `inplace=True`, another mode, and shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> x = jnp.zeros((2, 3))
    >>> jnp.put_along_axis(x, jnp.array([[0], [2]]), 9, axis=1, inplace=False)
    Array([[9., 0., 0.],
           [0., 0., 9.]], dtype=float32)
    """
    _check_not_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    check_cast(asarray(arr), values)
    return _put_along_axis(arr, indices, values, axis, GatherScatterMode.from_any(mode))


@fused(static=("axis", "mode"))
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any, mode: Any) -> Any:
    x, places = arraylike("put_along_axis", arr), arraylike("put_along_axis", indices)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise TypeError(f"put_along_axis: indices must be integers, got {places.dtype.name}")
    shape = x.shape
    if axis is None:
        x, axis = flat(x), 0
    if places.ndim != x.ndim:
        raise ValueError(
            "put_along_axis: indices and arr must have the same number of dimensions; "
            f"{places.ndim} vs. {x.ndim}"
        )
    axis = canonical_axis(axis, x.ndim)
    picks = []
    for d, n in enumerate(x.shape):
        lane = np.arange(n, dtype=np.int32).reshape([n if k == d else 1 for k in range(x.ndim)])
        picks.append(Picks(places if d == axis else lane))
    out = updated(x, Index(tuple(picks)), values, Options("set", mode))
    return reshape(out, new_sizes=shape)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Fill the diagonal of an array.

    Args:
      a: an array of two axes, or of more that have one size.
      val: a number, or numbers for the diagonal from its start, repeated if they are fewer.
      wrap: only False.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      TypeError: for lists.
      ValueError: for fewer than two axes, and for more that have different sizes.
      NotImplementedError: for `inplace=True` and `wrap=True`.

    >>> import perspex.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 3)), 7, inplace=False)
    Array([[7., 0., 0.],
           [0., 7., 0.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("fill_diagonal: arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported")
    check_arraylike("fill_diagonal", a, val)
    shape = np.shape(a)
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal: array must be at least 2-d, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) != 1:
        raise ValueError(f"fill_diagonal: all axes must be of equal length, got shape {shape}")
    check_cast(asarray(a), val)
    return _fill_diagonal(a, val)


@fused
def _fill_diagonal(a: Any, val: Any) -> Any:
    x, values = arraylike("fill_diagonal", a), arraylike("fill_diagonal", val)
    n = min(x.shape)
    if not n or not values.size:
        return x
    if values.ndim:
        values = flat(values)
        values = tile(values, reps=(-(-n // values.size),))
        values = read(values, Index((Span(0, n, 1, n),)))
    places = Picks(np.arange(n, dtype=np.int32))
    options = Options("set", unique=True, is_sorted=True)
    return updated(x, Index((places,) * x.ndim), values, options)


describe((put, put_along_axis, fill_diagonal), words.INDEXED)
