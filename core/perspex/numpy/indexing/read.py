"""Reading parts of arrays: `x[...]`, iteration, and elements along an axis.

While tracing, an index of known numbers becomes a slice; one with scalars a dynamic slice; one with
arrays a gather. Reads outside are moved inside, unless a fill value is asked for.

Eagerly an index is one compiled program for each *pattern*: places are operands, so that another
integer, or another slice of the same length, compiles nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from perspex.arguments.arrays import expand, spread
from perspex.arguments.types import Array
from perspex.base.dimensions import greatest, is_known, least
from perspex.jitted.fused import fused
from perspex.numpy.indexing.parse import Index, Picks, Point, Span, check_place, grow, parse, whole
from perspex.numpy.indexing.windows import (
    add_number,
    as_places,
    as_starts,
    ascends,
    is_advanced,
    is_inside,
    is_static,
    place_dtype,
    windows,
    wrapped,
)
from perspex.ops.dynamic import dynamic_slice
from perspex.ops.indexing import gather
from perspex.ops.shape import rev, slice, unstack
from perspex.ops.structural import reshape, squeeze
from perspex.ops.windows import FillValue, GatherDimensionNumbers, GatherScatterMode, default_fill
from perspex.runtime.dispatch import EVAL
from perspex.tracing.trace import state

__all__ = ["getitem", "iterate"]

PROMISED = GatherScatterMode.PROMISE_IN_BOUNDS
FILL = GatherScatterMode.FILL_OR_DROP

# Up to so many rows are computed together by iteration. To compile each of them takes XLA as long
# as the one program that reads any row (30 ms).
_TOGETHER = 4


# ---- x[...] -------------------------------------------------------------------------------------


def getitem(x: Array, index: Any) -> Array:
    """A part of an array: what `x[index]` is.

    Integers outside read the nearest element. Negative ones count from the end.

    Args:
      x: an array.
      index: integers, slices, `None`, `...`, arrays of integers, masks, and tuples of them.

    Returns:
      An array of the dtype of `x`.

    Raises:
      TypeError: for lists, floats and strings.
      IndexError: for too many indices, masks that do not fit, and integers on an axis of size zero.
      NonConcreteBooleanIndexError: for traced masks.
      OverflowError: for integers beyond int32, unless they are on an axis that is as long.

    >>> import perspex.numpy as jnp
    >>> jnp.arange(6).reshape(2, 3)[1, ::2]
    Array([3, 5], dtype=int32)
    """
    if state.trace is EVAL:
        try:
            if index.__class__ is int:
                return _row.fast(x, index)
            return evaluate(_read, x, parse(index, x.shape))
        except OverflowError:
            parsed = parse(index, x.shape)
            if max(x.shape, default=0) < 2**31 or not is_static(parsed):
                raise
            return _read_far(x, parsed)
    shape = x.aval.shape
    first = shape[0] if shape else None
    if index.__class__ is int and first.__class__ is int and -first <= index < first:
        return _known_row(x, index, shape)
    return read(x, parse(index, shape))


@fused
def _any_row(x: Any, place: Any) -> Any:
    check_place(0, x.shape)
    return read(x, Index((Point(place), *whole(x.shape[1:]))))


@fused(static=("index",))
def _read_far(x: Any, index: Index) -> Any:
    """What is on axes with places that int32 does not hold: they stand in the program."""
    return read(x, index)


_row: Any = _any_row


def _known_row(x: Any, place: int, shape: tuple[int, ...]) -> Any:
    if shape[0] == 1:
        return squeeze(x, dimensions=(0,))
    start = place if place >= 0 else place + shape[0]
    zeros = (0,) * (len(shape) - 1)
    row = slice(
        x, start_indices=(start, *zeros), limit_indices=(start + 1, *shape[1:]), strides=None
    )
    return squeeze(row, dimensions=(0,))


def evaluate(program: Any, x: Any, parsed: Index, *rest: Any) -> Any:
    """Call the compiled `program(x, places, *rest, pattern)` for an index of a concrete array."""
    places: list[Any] = []
    pattern: list[Any] = []
    sizes = iter(grow(x.shape, parsed.grown))
    for e in parsed.entries:
        kind = e.__class__
        if e is None:
            pattern.append(None)
            continue
        n = next(sizes)
        if kind is Span:
            start, size, step, _ = e  # type: ignore[misc]
            if is_known(start) and (size in (0, n) or start.__class__ is not int):
                pattern.append(e)
            else:
                pattern.append((size, step))
                places.append(start)
        else:
            pattern.append(kind is Picks)
            places.append(e[0])
    key = (tuple(pattern), parsed.separated, parsed.grown)
    return program.fast(x, places, *rest, key)


def restored(places: Sequence[Any], pattern: Any) -> Index:
    """The index that `evaluate` took apart."""
    given = iter(places)
    entries: list[Any] = []
    kinds, separated, grown = pattern
    for e in kinds:
        if e is None or e.__class__ is Span:
            entries.append(e)
        elif e.__class__ is tuple:
            start = next(given)
            size, step = e
            # Where nothing is compiled (`disable_jit`) the places are the numbers that they were.
            stop = start + size * step if start.__class__ is int else 0
            entries.append(Span(start, size, step, stop))
        else:
            entries.append((Picks if e else Point)(next(given)))
    return Index(tuple(entries), separated, grown)


@fused(static=("pattern",))
def _read(x: Any, places: Any, pattern: Any) -> Any:
    return read(x, restored(places, pattern))


def read(
    x: Any,
    index: Index,
    mode: GatherScatterMode = PROMISED,
    fill_value: FillValue | None = None,
    wrap: bool = True,
    **promises: bool,
) -> Any:
    """What the parsed index takes from `x`.

    `mode` is what happens outside, `wrap` whether negative places count from the end; `promises`
    are `unique_indices` and `indices_are_sorted`.
    """
    if index.grown:
        x = expand(x, index.grown)
    advanced = is_advanced(index)
    if advanced or (mode is FILL and not is_inside(index, x.shape, wrap)):
        return _gathered(x, index, mode, fill_value, wrap, advanced, promises)
    # A dynamic slice moves what is outside to the nearest place, and `checkify` hears of it.
    if is_inside(index, x.shape, wrap):
        return _sliced(x, index, wrap)
    return _sliced_at(x, index, wrap, mode)


def _sliced(x: Any, index: Index, wrap: bool) -> Any:
    """The index of known numbers as a slice."""
    shape = x.shape
    starts, stops, steps, backwards, points = [], [], [], [], []
    axes = [e for e in index.entries if e is not None]
    for axis, (e, n) in enumerate(zip(axes, shape, strict=True)):
        if e.__class__ is Point:
            place = e.place + n if wrap and e.place < 0 else e.place
            place = least(greatest(place, 0), n - 1)
            starts.append(place)
            stops.append(place + 1)
            steps.append(1)
            points.append(axis)
            continue
        start, size, step, stop = e  # type: ignore[misc]
        if step < 0:
            backwards.append(axis)
            start, stop, step = start + (size - 1) * step, start + 1, -step
        starts.append(start)
        stops.append(stop)
        steps.append(step)
    if any([s != 0 for s in starts]) or tuple(stops) != shape or any([s != 1 for s in steps]):
        x = slice(
            x,
            start_indices=tuple(starts),
            limit_indices=tuple(stops),
            strides=tuple(steps) if any([s != 1 for s in steps]) else None,
        )
    return _finished(x, index, backwards, points)


def _sliced_at(x: Any, index: Index, wrap: bool, mode: GatherScatterMode) -> Any:
    """The index with scalars as a dynamic slice."""
    starts, sizes, steps, backwards, points = [], [], [], [], []
    axes = [e for e in index.entries if e is not None]
    for axis, (e, n) in enumerate(zip(axes, x.shape, strict=True)):
        if e.__class__ is Point:
            starts.append(wrapped(e.place, n) if wrap else e.place)
            sizes.append(1)
            steps.append(1)
            points.append(axis)
            continue
        start, size, step, _ = e  # type: ignore[misc]
        reach = 0 if size.__class__ is int and not size else (size - 1) * step
        if step < 0:
            backwards.append(axis)
            start = add_number(start, reach)
        if not is_known(start):
            if step > 1:  # each place is moved inside by itself
                return _gathered(x, index, mode, None, wrap, False, {})
            start = wrapped(start, n) if wrap else start
        starts.append(start)
        sizes.append(size if abs(step) == 1 else min(abs(reach) + 1, n) if size else 0)
        steps.append(abs(step))
    x = dynamic_slice(x, *as_starts(starts), slice_sizes=tuple(sizes))
    if any([s != 1 for s in steps]):
        x = slice(x, start_indices=(0,) * x.ndim, limit_indices=x.shape, strides=tuple(steps))
    return _finished(x, index, backwards, points)


def _finished(x: Any, index: Index, backwards: Sequence[int], points: Sequence[int]) -> Any:
    """The slice turned round, without the axes of integers, and with the new ones."""
    if backwards:
        x = rev(x, dimensions=tuple(backwards))
    if points:
        x = squeeze(x, dimensions=tuple(points))
    layout = [e for e in index.entries if e.__class__ is not Point]
    return expand(x, [i for i, e in enumerate(layout) if e is None])


def _gathered(
    x: Any,
    index: Index,
    mode: GatherScatterMode,
    fill_value: FillValue | None,
    wrap: bool,
    advanced: bool,
    promises: dict[str, bool],
) -> Any:
    w = windows(index, x.shape, wrap)
    if 0 in w.shape:
        return nothing(x, w.shape)
    for axis in w.index_map:
        if not x.shape[axis]:
            raise TypeError(
                f"an array of integers reads from axis {axis} of shape {x.shape}, which is empty"
            )
    if w.index_map:
        x = gather(
            x,
            w.indices,
            dimension_numbers=GatherDimensionNumbers(w.offset, w.collapsed, w.index_map),
            slice_sizes=w.window,
            unique_indices=promises.get("unique_indices", False) or not advanced,
            indices_are_sorted=promises.get("indices_are_sorted", False)
            or (not advanced and ascends(index)),
            mode=mode,
            fill_value=(fill_value or default_fill(x.dtype)) if mode is FILL else None,
        )
    if w.reversed:
        x = rev(x, dimensions=w.reversed)
    return expand(x, w.new)


def nothing(x: Any, shape: tuple[int, ...]) -> Any:
    """No elements of `x`, in a shape of size zero."""
    zeros = (0,) * x.ndim
    empty = slice(x, start_indices=zeros, limit_indices=zeros, strides=None)
    return reshape(empty, new_sizes=shape)


# ---- for row in x -------------------------------------------------------------------------------


def iterate(x: Array) -> Iterator[Array]:
    """The elements along the first axis, one after another.

    Args:
      x: an array of one axis or more.

    Returns:
      An iterator of arrays without that axis.

    Raises:
      TypeError: for an array without axes.

    >>> import perspex.numpy as jnp
    >>> [int(row.sum()) for row in jnp.arange(6).reshape(2, 3)]
    [3, 12]
    """
    if not x.ndim:
        raise TypeError("iteration over a 0-d array")
    n = operator.index(x.shape[0])
    if state.trace is not EVAL or n <= _TOGETHER:
        return iter(unstack(x, axis=0))
    return (_row.fast(x, place) for place in range(n))


# ---- Elements along an axis ---------------------------------------------------------------------


def along(places: Any, shape: tuple[int, ...], axis: int, wrap: bool) -> Any:
    """The index vectors `(*lanes, 1)` of places along an axis, and the batching axes.

    Axes of size one of `places` are not lanes: they are windows over the whole operand.
    """
    lanes = _lanes(places.shape, shape, axis)
    if wrap:
        places = wrapped(places, shape[axis])
    places = as_places(places, place_dtype(places))
    batching = tuple([d for d in lanes if d != axis and shape[d] != 1])
    return (
        reshape(places, new_sizes=(*[places.shape[d] for d in lanes], 1)),
        batching,
        tuple([lanes.index(d) for d in batching]),
    )


def _lanes(places: tuple[int, ...], shape: tuple[int, ...], axis: int) -> list[int]:
    lanes = []
    for d, (m, n) in enumerate(zip(places, shape, strict=True)):
        if d != axis and m != n and 1 not in (m, n):
            raise ValueError(
                f"Incompatible shapes for broadcasting: indices of shape {places} and an array of "
                f"shape {shape} must agree except along axis {axis}, or be of size 1"
            )
        if d == axis or m != 1:
            lanes.append(d)
    return lanes


def read_along(
    x: Any, places: Any, axis: int, mode: Any, fill_value: Any = None, wrap: bool = True
) -> Any:
    """The elements of `x` that `places`, of as many axes, names along an axis."""
    shape, lanes = x.shape, _lanes(places.shape, x.shape, axis)
    if 0 in places.shape or not x.size:
        sizes = enumerate(zip(places.shape, shape, strict=True))
        full = tuple([m if d == axis or m != 1 else n for d, (m, n) in sizes])
        # As in JAX, places on an axis without elements read 0.
        return nothing(x, full) if 0 in full else spread(x.dtype.type(0), full)
    indices, batching, indices_batching = along(places, shape, axis, wrap)
    # Axes of size one that the places spread over are dropped: every lane reads them at 0.
    dropped = tuple([d for d in lanes if d != axis and shape[d] == 1])
    if dropped:
        x = squeeze(x, dimensions=dropped)
    kept = [d for d in range(len(shape)) if d not in dropped]
    offset = tuple([d for d in range(len(shape)) if d not in lanes])
    return gather(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers(
            offset,
            (kept.index(axis),),
            (kept.index(axis),),
            tuple([kept.index(d) for d in batching]),
            indices_batching,
        ),
        slice_sizes=tuple([shape[d] if d in offset else 1 for d in kept]),
        unique_indices=False,
        indices_are_sorted=False,
        mode=mode,
        fill_value=(fill_value or default_fill(x.dtype)) if mode is FILL else None,
    )
