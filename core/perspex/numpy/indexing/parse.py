"""What stands between the brackets: NumPy's indexing rules, worked out before anything is read.

`parse` turns an index into one entry for each axis of the operand and each new axis of the result.
Numbers in an index may be tracers: shapes never depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes, errors
from perspex.advice import messages
from perspex.base.dimensions import is_known, size, slice_of
from perspex.numpy.creation import asarray
from perspex.ops.slices import Slice, static_size
from perspex.tracing.trace import concrete_value

INT32 = np.dtype("int32")


def place_dtype() -> np.dtype:
    """The dtype of the places that are results: int32, and int64 where 64-bit types are on."""
    return dtypes.canonicalize_dtype("int64")


class Span(NamedTuple):
    """A slice: `size` elements from `start` in steps of `step`; `stop` is where it was to end."""

    start: Any
    size: int
    step: int
    stop: int


class Point(NamedTuple):
    """One place on an axis, which the result lacks: an integer or a scalar."""

    place: Any


class Picks(NamedTuple):
    """The places on an axis that an array of integers lists."""

    places: Any


Entry = Span | Point | Picks | None


class Index(NamedTuple):
    """An index by axes.

    * `entries`: for each axis of the operand what is taken from it; `None` for a new axis;
    * `separated`: other entries stand between the arrays, so their axes come first in the result;
    * `grown`: where the operand gets an axis of size one first, for scalar masks.
    """

    entries: tuple[Entry, ...]
    separated: bool = False
    grown: tuple[int, ...] = ()


def parse(index: Any, shape: tuple[int, ...]) -> Index:
    """The index of an operand of shape `shape`.

    Raises `TypeError` for what is no index, `IndexError` for too many entries, masks that do not
    fit, integers for an axis of size zero, and slices whose bounds are traced, and
    `NonConcreteBooleanIndexError` for traced masks.
    """
    given = index if index.__class__ is tuple else (_alone(index),)
    items = [_item(x) for x in given]
    rest = len(shape) - sum([_axes_of(x) for x in items])
    if rest < 0:
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, "
            f"but {len(shape) - rest} were indexed"
        )
    dots = [i for i, x in enumerate(items) if x is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not dots:
        items.append(Ellipsis)
    entries: list[Entry] = []
    grown: list[int] = []
    places: list[int] = []  # which items are advanced indices
    axis = 0
    for i, item in enumerate(items):
        kind = item.__class__
        if item is None:
            entries.append(None)
        elif item is Ellipsis:
            entries += whole(shape[axis : axis + rest])
            axis += rest
        elif kind is slice:
            entries.append(_span(item, shape[axis]))
            axis += 1
        elif kind is Slice:
            entries.append(_sized(item))
            axis += 1
        elif is_known(item):
            check_place(axis, shape, items)
            entries.append(Point(item))
            places.append(i)
            axis += 1
        elif item.dtype == bool:
            if item.ndim == 0:
                grown.append(axis + len(grown))
            masks = mask_places(item, shape, axis, i)
            entries += [Picks(p) for p in masks]
            places.append(i)
            axis += item.ndim
        else:
            if item.size:
                check_place(axis, shape, items)
            entries.append(Picks(item) if item.ndim else Point(item))
            places.append(i)
            axis += 1
    separated = bool(places) and places != list(range(places[0], places[-1] + 1))
    return Index(tuple(entries), separated, tuple(grown))


def _alone(index: Any) -> Any:
    """An index that is not a tuple; sequences other than arrays are refused."""
    if isinstance(index, Sequence) and not isinstance(index, str):
        nested = isinstance(index, list) and any(
            [isinstance(x, (Sequence, slice)) or x is None or x is Ellipsis for x in index]
        )
        remedy = "`arr[tuple(seq)]`" if nested else "`arr[array(seq)]`"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"{remedy} instead of `arr[seq]`"
        )
    return index


def _item(x: Any) -> Any:
    """One entry of a tuple: an int, a slice, `None`, `...`, or an array of integers or booleans."""
    kind = x.__class__
    if kind is int or kind is slice or x is None or x is Ellipsis:
        return x
    if isinstance(x, str):
        raise TypeError(f"strings do not index arrays; got idx={x!r}; index with integers or masks")
    if isinstance(x, (bool, np.bool_)):
        return np.asarray(x)
    if isinstance(x, (list, tuple)):
        x = asarray(x) if len(x) else np.zeros(0, INT32)
    elif isinstance(x, (float, complex)):
        x = np.asarray(x)
    if kind is Slice:
        return _fixed(x)
    if hasattr(x, "dtype"):
        if not (x.dtype == bool or dtypes.issubdtype(x.dtype, np.integer)):
            raise TypeError(
                "Indexer must have integer or boolean type, got indexer with type "
                f"{x.dtype.name}; convert it with astype(int)"
            )
        is_number = x.ndim == 0 and isinstance(x, (np.generic, np.ndarray)) and x.dtype != bool
        return int(x) if is_number else x
    try:
        return size(x)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
            f"boolean arrays are valid indices. Got {x!r}"
        ) from None


def _axes_of(item: Any) -> int:
    """How many axes of the operand an entry takes up."""
    if item is None or item is Ellipsis:
        return 0
    if is_known(item) or item.__class__ in (slice, Slice) or item.dtype != bool:
        return 1
    return item.ndim


def check_place(axis: int, shape: tuple[int, ...], items: Sequence[Any] = ()) -> None:
    """Raise `IndexError` if there is nothing on the axis to point at, or no such axis.

    An index with arrays among its `items` may point at nothing: such an update changes nothing.
    """
    if axis == len(shape):
        raise IndexError(
            f"Too many indices: array is {axis}-dimensional, but {axis + 1} were indexed"
        )
    if shape[axis] == 0 and not any(getattr(x, "ndim", 0) for x in items):
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")


def _span(item: slice, n: int) -> Span:
    try:
        start, stop, step, count = slice_of(item, n)
    except errors.TracerIntegerConversionError:
        raise IndexError(
            "Array slice indices must have static start/stop/step to be used with NumPy indexing "
            f"syntax. Got {item}. lax.dynamic_slice reads a slice of static size at a traced "
            "place, lax.dynamic_update_slice writes one"
        ) from None
    if count == 0:
        start = max(start, 0)
        return Span(start, 0, 1, start)
    return Span(start, count, step, stop)


def _fixed(x: Slice) -> slice | Slice:
    """The slice of numbers that a slice with a known start is."""
    count = static_size(x)
    if x.is_dynamic_start or not x.stride:
        return Slice(_start(x.start), count, x.stride)
    start = size(x.start)
    return slice(start, start + count, x.stride)


def _start(x: Any) -> Any:
    """A start that may be an array; `TypeError` for one that is no scalar of integers."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return size(x)
    if x.ndim or not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(
            "ds: the start must be a scalar of integers, got an array of shape "
            f"{x.shape} and dtype {dtype.name}"
        )
    return x


def _sized(item: Slice) -> Entry:
    if item.stride:
        return Span(item.start, item.size, item.stride, 0)
    return Picks(asarray(item.start) + np.zeros(item.size, INT32))  # one place, again and again


def mask_places(mask: Any, shape: tuple[int, ...], axis: int, position: int) -> Sequence[Any]:
    """The integer arrays that pick what a mask of axes from `axis` on picks."""
    host = concrete_value(mask)
    if host is None:
        raise errors.NonConcreteBooleanIndexError(messages.boolean_index(*mask._story()))
    expected = shape[axis : axis + mask.ndim]
    # As in JAX, an axis of size zero of the mask picks nothing from an axis of any size.
    if any(m not in (0, n) for m, n in zip(mask.shape, expected, strict=True)):
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {position}: "
            f"got {mask.shape}, expected {expected}"
        )
    if not mask.ndim:
        return (np.zeros(int(bool(host)), INT32),)
    return [p.astype(INT32) for p in np.nonzero(np.asarray(host))]


def whole(shape: Sequence[int]) -> list[Span]:
    """The entries that take all of the axes."""
    return [Span(0, n, 1, n) for n in shape]


def grow(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    """`shape` with ones put in, at the places `axes` of the result."""
    sizes = list(shape)
    for axis in axes:
        sizes.insert(axis, 1)
    return tuple(sizes)
