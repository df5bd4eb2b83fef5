"""Functions of two numbers applied along an axis from left to right, by loops compiled once.

A universal function without a better way of its own uses them; see `ufuncs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.api.shapes import eval_shape
from perspex.arguments.arrays import as_array, as_dtype, expand, spread
from perspex.arguments.axes import canonical_axes
from perspex.ir.avals import ShapedArray, shaped
from perspex.jitted.fused import fused
from perspex.lax.associative import associative_scan
from perspex.lax.control import scan
from perspex.numpy import arithmetic, logic
from perspex.numpy.indexing.at import at as at_places
from perspex.numpy.promotion import select, to_bool
from perspex.ops.shape import concatenate
from perspex.ops.structural import move_axis, reshape


def _prepared(function: Any, a: Any, dtype: Any) -> tuple[Any, Any]:
    """The operand of a loop, and the dtype that the function returns, which is carried."""
    x = as_array(a) if dtype is None else as_dtype(as_array(a), dtype)
    if dtype is None:
        item = ShapedArray((), x.dtype)
        dtype = eval_shape(function, item, item).dtype
    return as_dtype(x, x.dtype), dtype


@fused(static=("function", "axis", "dtype", "keepdims"))
def folded(
    a: Any, initial: Any, where: Any, function: Any, axis: Any, dtype: Any, keepdims: bool
) -> Any:
    """All elements along an axis combined, one after the other."""
    x, carried = _prepared(function, a, dtype)
    mask: Any = None if where is None else spread(to_bool(as_array(where)), x.shape)
    axes = canonical_axes(axis, x.ndim)

    def ordered(v: Any) -> Any:
        return reshape(v, new_sizes=(v.size,)) if axis is None else move_axis(v, axes[0], 0)

    x, mask = ordered(x), None if mask is None else ordered(mask)
    begin = initial
    if begin is None and (mask is not None or not x.shape[0]):
        begin = function.identity
        if begin is None:
            raise ValueError(
                f"zero-size array to reduction operation {function.__name__} which has no "
                "identity; give `initial`"
            )
    if begin is None:
        total, x = as_dtype(x[0], carried), x[1:]
    else:
        total = spread(as_dtype(as_array(begin), carried), x.shape[1:])

    def step(total: Any, item: Any) -> tuple[Any, None]:
        x, taken = item
        combined = as_dtype(function(total, x), carried)
        return (combined if taken is None else select("reduce", taken, combined, total)), None

    total, _ = scan(step, total, (x, mask))
    return expand(total, axes) if keepdims else total


@fused(static=("function", "axis", "dtype", "associative"))
def accumulated(a: Any, function: Any, axis: int, dtype: Any, associative: bool) -> Any:
    """All running values; pairwise, in as many steps as the length has digits, if `associative`."""
    x, carried = _prepared(function, a, dtype)

    def combined(x: Any, y: Any) -> Any:
        return as_dtype(function(x, y), carried)

    if not x.shape[axis]:
        return as_dtype(x, carried)
    if associative:
        return associative_scan(combined, as_dtype(x, carried), axis=axis)
    x = move_axis(x, axis, 0)
    first = as_dtype(x[0], carried)

    def step(total: Any, item: Any) -> tuple[Any, Any]:
        total = combined(total, item)
        return total, total

    _, rest = scan(step, first, x[1:])
    return move_axis(concatenate(expand(first, (0,)), rest, dimension=0), 0, axis)


def applied_at(function: Any, a: Any, *rest: Any) -> Any:
    """`a` with the function applied at places, which are the last argument."""
    *operand, indices = rest
    x = as_array(a)
    every = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    # A place that is outside becomes one behind the last, where nothing is stored.
    places = at_places(as_array(every))[indices].get(mode="fill", fill_value=x.size)
    operands = [spread(as_array(b), places.shape) for b in operand]
    return _at_places(x, places, operands, function)


@fused(static=("function",))
def _at_places(x: Any, places: Any, operands: Any, function: Any) -> Any:
    items = [ShapedArray((), shaped(v).dtype) for v in (x, *operands)]
    dtype = eval_shape(function, *items).dtype

    def step(flat: Any, item: Any) -> tuple[Any, None]:
        place, *given = item
        found = as_dtype(function(flat[place], *given), dtype)
        return flat.at[place].set(found, mode="drop"), None

    columns = [reshape(v, new_sizes=(v.size,)) for v in (places, *operands)]
    flat, _ = scan(step, reshape(as_dtype(x, dtype), new_sizes=(x.size,)), columns)
    return reshape(flat, new_sizes=x.shape)


@fused(static=("function", "axis", "dtype"))
def by_slices(a: Any, indices: Any, function: Any, axis: int, dtype: Any) -> Any:
    """The elements from each index up to the next combined."""
    x, found = _prepared(function, a, dtype)
    carried = dtypes.promote_types(x.dtype, found)  # a slice may be one element
    weak = dtype is None and shaped(a).weak_type and carried == x.dtype
    x = move_axis(as_dtype(x, carried), axis, 0)
    starts = as_array(indices)
    length = x.shape[0]
    following = concatenate(starts[1:], as_array(np.full(1, length, starts.dtype)), dimension=0)
    alone = arithmetic.add(starts, 1)
    ends = select("reduceat", logic.less(starts, following), following, alone)
    column = (starts.shape[0], *[1] * (x.ndim - 1))

    # All slices grow at once, each while the loop is inside of it.
    def step(totals: Any, item: Any) -> tuple[Any, None]:
        place, x_here = item
        begins = reshape(logic.equal(starts, place), new_sizes=column)
        goes_on = logic.logical_and(logic.less(starts, place), logic.less(place, ends))
        grown = as_dtype(function(totals, x_here), x.dtype)
        totals = select("reduceat", reshape(goes_on, new_sizes=column), grown, totals)
        return select("reduceat", begins, x_here, totals), None

    totals = spread(x.dtype.type(0), (starts.shape[0], *x.shape[1:]))
    places = as_array(np.arange(length, dtype=starts.dtype))
    totals, _ = scan(step, totals, (places, x))
    return as_dtype(move_axis(totals, 0, axis), carried, weak)
