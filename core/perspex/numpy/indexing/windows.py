"""An index as windows of a gather or a scatter, so that reading and writing agree.

Axes that are read at computed places (integer arrays, and the integers beside them) become *lanes*:
axes of the array of index vectors. The other axes run over a window. A slice with a step other than
1 or -1 is a lane too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.arguments.shapes import joint_shape
from perspex.base.dimensions import is_known
from perspex.numpy.indexing.parse import INT32, Index, Picks, Point, Span
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate, iota
from perspex.ops.structural import broadcast_in_dim, convert, size_as
from perspex.tracing.trace import typeof


def is_advanced(index: Index) -> bool:
    """Whether arrays of integers are among the entries, so that reading takes a gather."""
    return any([e.__class__ is Picks for e in index.entries])


def is_static(index: Index) -> bool:
    """Whether all places are known numbers."""
    for e in index.entries:
        kind = e.__class__
        if kind is Picks or (kind is Point and not is_known(e.place)):  # type: ignore[union-attr]
            return False
        if kind is Span and not is_known(e.start):  # type: ignore[union-attr]
            return False
    return True


def is_inside(index: Index, shape: tuple[int, ...], wrap: bool = True) -> bool:
    """Whether all places are known and inside; with `wrap`, negative ones count from the end."""
    if not is_static(index):
        return False
    sizes = iter(shape)
    for e in index.entries:
        if e is not None:
            n = next(sizes)
            low = -n if wrap else 0
            if e.__class__ is Point and not low <= e.place < n:
                return False
    return True


def is_strided(index: Index) -> bool:
    """Whether a slice leaves elements out between those that it takes."""
    return any([e.__class__ is Span and abs(e.step) > 1 and e.size > 1 for e in index.entries])


def ascends(index: Index) -> bool:
    """Whether, without arrays, the places that are left after windows come in ascending order."""
    return all([e.__class__ is not Span or e.step > -2 for e in index.entries])


class Windows(NamedTuple):
    """An index as windows.

    * `indices`: the index vectors, an array of shape `(*lanes, number of indexed axes)`;
    * `index_map`: the axis of the operand that each entry of an index vector is for;
    * `collapsed`: the axes of the operand that a window lacks;
    * `window`: the size of a window along each axis of the operand;
    * `offset`: the axes of the result, new ones left out, that run over a window;
    * `reversed`: those that run backwards;
    * `new`: the new axes, counted in the result;
    * `shape`: the shape of the result.
    """

    indices: Any
    index_map: tuple[int, ...]
    collapsed: tuple[int, ...]
    window: tuple[int, ...]
    offset: tuple[int, ...]
    reversed: tuple[int, ...]
    new: tuple[int, ...]
    shape: tuple[int, ...]


class _Column(NamedTuple):
    """One entry of the index vectors: numbers whose axes are those of `lanes`, by name."""

    values: Any
    lanes: tuple[Any, ...]


def windows(index: Index, shape: tuple[int, ...], wrap: bool = True) -> Windows:
    """What the entries read or write as windows; with `wrap`, negative places count from the end.

    Raises `ValueError` for integer arrays whose shapes do not broadcast.
    """
    entries = index.entries
    advanced = is_advanced(index)
    picked = [e.places for e in entries if e.__class__ is Picks]
    block = joint_shape([np.shape(p) for p in picked], "arrays in an index must broadcast")
    # The axes of the result: an axis of the operand, a lane, or `None`.
    layout: list[Any] = []
    sizes: list[int] = []
    lanes = [("picked", i) for i in range(len(block))]
    placed = False

    def place() -> None:
        nonlocal placed
        placed = True
        layout.extend(lanes)
        sizes.extend(block)

    if advanced and index.separated:
        place()
    columns: list[_Column] = []
    index_map, collapsed, window, backwards = [], [], [], []
    axis = 0
    for e in entries:
        if e is None:
            layout.append(None)
            sizes.append(1)
            continue
        n = shape[axis]
        if e.__class__ is Span:
            start, size, step, _ = e
            strided = abs(step) > 1 and size > 1
            layout.append(("strided", axis) if strided else axis)
            sizes.append(size)
            if strided:
                steps = convert_range(start, size, step)
                columns.append(_Column(steps, (("strided", axis),)))
                collapsed.append(axis)
            elif size != n or not is_known(start):
                low = start if step > 0 or size < 2 else add_number(start, 1 - size)
                columns.append(_Column(low, ()))
            window.append(1 if strided else size)
            if strided or size != n or not is_known(start):
                index_map.append(axis)
            if step < 0 and not strided and size > 1:
                backwards.append(axis)
        else:
            if advanced and not placed:
                place()
            values = e[0]
            own = tuple(lanes[len(lanes) - np.ndim(values) :]) if e.__class__ is Picks else ()
            columns.append(_Column(wrapped(values, n) if wrap else values, own))
            index_map.append(axis)
            collapsed.append(axis)
            window.append(1)
        axis += 1
    dense = [d for d in layout if d is not None]
    order = [d for d in dense if d.__class__ is tuple]
    lane_sizes = {d: n for d, n in zip(layout, sizes, strict=True) if d.__class__ is tuple}
    return Windows(
        indices=_index_vectors(columns, order, [lane_sizes[d] for d in order]),
        index_map=tuple(index_map),
        collapsed=tuple(collapsed),
        window=tuple(window),
        offset=tuple([i for i, d in enumerate(dense) if d.__class__ is int]),
        reversed=tuple([i for i, d in enumerate(dense) if d in backwards]),
        new=tuple([i for i, d in enumerate(layout) if d is None]),
        shape=tuple(sizes),
    )


def _index_vectors(columns: Sequence[_Column], order: Sequence[Any], lanes: Sequence[int]) -> Any:
    """The columns side by side in an array of shape `(*lanes, len(columns))`."""
    full = (*lanes, 1)
    wide = any([_dtype(c.values).itemsize > 4 for c in columns])
    dtype = np.dtype("int64") if wide else INT32
    if all([isinstance(c.values, (int, np.ndarray)) for c in columns]):
        out = np.empty((*lanes, len(columns)), dtype)
        for k, (values, own) in enumerate(columns):
            axes = [i for i, name in enumerate(order) if name not in own]
            out[..., k] = np.expand_dims(np.asarray(values), axes) if own else values
        return out
    parts = []
    for values, own in columns:
        value = as_places(values, dtype)
        dims = tuple([order.index(name) for name in own])
        parts.append(broadcast_in_dim(value, shape=full, broadcast_dimensions=dims))
    return parts[0] if len(parts) == 1 else concatenate(*parts, dimension=len(lanes))


def place_dtype(x: Any) -> np.dtype:
    """The dtype in which places like `x` go into index vectors: int32, unless they are wider."""
    return np.dtype("int64") if _dtype(x).itemsize > 4 else INT32


def _dtype(x: Any) -> np.dtype:
    return INT32 if is_known(x) else typeof(x).dtype


def as_places(values: Any, dtype: np.dtype = INT32) -> Any:
    """Places as integers of `dtype`."""
    if is_known(values):
        return size_as(values, dtype)
    if isinstance(values, np.ndarray):
        return values.astype(dtype)
    return convert(values, dtype)


def as_starts(places: Sequence[Any]) -> list[Any]:
    """Integers and scalars as scalars of one dtype, for dynamic slices."""
    wide = any([_dtype(p).itemsize > 4 for p in places])
    dtype = np.dtype("int64") if wide else INT32
    return [as_places(p, dtype) for p in places]


def wrapped(values: Any, n: int) -> Any:
    """Places counted from the front of an axis of size `n`; those outside stay outside."""
    if is_known(values):
        return values + n if values < 0 else values
    if isinstance(values, np.ndarray) and n.__class__ is int:
        signed = values.astype(np.int64)
        low, high = -n - 1, math.inf if n > 2**31 - 1 else 2**31 - 1
        return np.clip(np.where(signed < 0, signed + n, signed), low, high).astype(
            np.int64 if n > 2**31 - 1 else INT32
        )
    dtype = typeof(values).dtype
    if n > 2**31 - 1 and dtype.itemsize <= 4:
        wide = np.dtype("int64")
        if dtypes.canonicalize_dtype(wide) != wide:
            raise OverflowError(
                f"places on an axis of size {n} do not fit {dtype.name}: index it with known "
                "integers and slices, or turn enable_x64 on"
            )
        values = convert(values, wide)
    elif dtypes.issubdtype(dtype, np.unsignedinteger):
        if dtype.itemsize >= 4:
            # Too great a number would become a negative one: any number outside does.
            values = ops.min(values, size_as(n, dtype))
        return values
    elif dtype.itemsize < 4:
        values = convert(values, INT32)
    dtype = typeof(values).dtype
    return ops.select(ops.lt(values, dtype.type(0)), ops.add(values, size_as(n, dtype)), values)


def add_number(x: Any, n: int) -> Any:
    """`x + n` for an integer or a scalar of integers."""
    return x + n if is_known(x) else ops.add(x, size_as(n, typeof(x).dtype))


def convert_range(start: Any, size: int, step: int) -> Any:
    """The places of a slice, as an array."""
    if start.__class__ is int and size.__class__ is int:
        return np.arange(start, start + size * step, step, dtype=INT32)
    dtype = INT32 if is_known(start) else typeof(start).dtype
    start = as_places(start, dtype)
    count = iota(dtype=dtype, shape=(size,), dimension=0)
    return ops.add(ops.mul(count, dtype.type(step)), start)
