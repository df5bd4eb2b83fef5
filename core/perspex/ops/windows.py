"""What gather and scatter say about windows: dimension numbers, modes, fill values, checks."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.base.dimensions import least
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.elementwise import clamp
from perspex.ops.shape import concatenate, part
from perspex.ops.structural import reshape, size_as, without
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

Axes = tuple[int, ...]


class GatherScatterMode(enum.Enum):
    """What happens to windows that do not lie inside the operand."""

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode that `"clip"`, `"fill"`, `"drop"`, `"promise_in_bounds"` or `None` names.

        `None` is `FILL_OR_DROP`. Raises `ValueError` for anything else.

        >>> GatherScatterMode.from_any("drop")
        <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            raise ValueError(
                f'Unknown gather mode "{mode}": it is one of "clip", "fill", "drop" and '
                '"promise_in_bounds"'
            ) from None

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODES = {
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    None: GatherScatterMode.FILL_OR_DROP,
}
CLIP = GatherScatterMode.CLIP
FILL_OR_DROP = GatherScatterMode.FILL_OR_DROP


class GatherDimensionNumbers(NamedTuple):
    """Which axes are which in a gather.

    * `offset_dims`: the axes of the result that run over a window;
    * `collapsed_slice_dims`: the axes of the operand, of window size one, that the result lacks;
    * `start_index_map`: the axis of the operand that each entry of an index vector is for;
    * `operand_batching_dims`, `start_indices_batching_dims`: pairs of axes of the operand and of
      the indices that go together.
    """

    offset_dims: Axes
    collapsed_slice_dims: Axes
    start_index_map: Axes
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes are which in a scatter.

    * `update_window_dims`: the axes of the updates that run over a window;
    * `inserted_window_dims`: the axes of the operand, of window size one, that the updates lack;
    * `scatter_dims_to_operand_dims`: the axis of the operand that each entry of an index vector is
      for;
    * `operand_batching_dims`, `scatter_indices_batching_dims`: pairs of axes of the operand and of
      the indices that go together.
    """

    update_window_dims: Axes
    inserted_window_dims: Axes
    scatter_dims_to_operand_dims: Axes
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()


class FillValue:
    """A number among params, equal only to the same number: `0.0` is not `-0.0`, NaN is NaN."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = (type(value), repr(value))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, FillValue) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return str(self.value)


ZERO = FillValue(0)


def default_fill(dtype: Any) -> FillValue:
    """What a read outside gives: NaN, the least signed or the greatest unsigned integer, True."""
    if dtypes.issubdtype(dtype, np.inexact):
        return FillValue(math.nan)
    if dtype.kind == "b":
        return FillValue(True)
    if dtypes.issubdtype(dtype, dtypes.extended):
        return FillValue(2**32 - 1)
    info = dtypes.iinfo(dtype)
    unsigned = dtypes.issubdtype(dtype, np.unsignedinteger)
    return FillValue(int(info.max if unsigned else info.min))


def shifted(dims: Axes, by: int = 1) -> Axes:
    return tuple([d + by for d in dims])


def window_dims(ndim: int, *taken: Axes) -> list[int]:
    """The axes of the operand that a window runs over: those in none of `taken`."""
    return [d for d in range(ndim) if not any(d in dims for dims in taken)]


def check_dims(name: str, what: str, dims: Axes, bound: int, ascending: bool = True) -> None:
    """Axes must be in range and different, and in ascending order where that is asked for."""
    if ascending and list(dims) != sorted(dims):
        raise TypeError(f"{name}: {what} must be in ascending order, got {dims}")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name}: {what} must not repeat an axis, got {dims}")
    if any(not 0 <= d < bound for d in dims):
        raise TypeError(f"{name}: {what} must be axes below {bound}, got {dims}")


def check_index(
    name: str,
    operand: ShapedArray,
    indices: ShapedArray,
    index_map: Axes,
    dropped: Axes,
    batching: Axes,
    indices_batching: Axes,
    words: Sequence[str],
) -> None:
    """What gather and scatter ask of their indices; `words` are their names of the dims."""
    map_word, dropped_word, indices_word = words
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"{name}: indices must have an integer type, got {indices.dtype.name}; convert them "
            "with astype(int)"
        )
    if not indices.shape:
        raise TypeError(f"{name}: indices must have a last axis of index vectors, got a scalar")
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{name}: an index vector has {indices.shape[-1]} entries for {len(index_map)} axes "
            f"in {map_word}={index_map}"
        )
    check_dims(name, map_word, index_map, operand.ndim, ascending=False)
    check_dims(name, dropped_word, dropped, operand.ndim)
    check_dims(name, "operand_batching_dims", batching, operand.ndim)
    check_dims(name, indices_word, indices_batching, indices.ndim - 1, ascending=False)
    for other, dims in ((dropped_word, dropped), (map_word, index_map)):
        if set(dims) & set(batching):
            raise TypeError(
                f"{name}: an axis of the operand is in operand_batching_dims {batching} and in "
                f"{other} {dims}"
            )
    sizes = [operand.shape[d] for d in batching]
    if sizes != [indices.shape[d] for d in indices_batching]:
        raise TypeError(
            f"{name}: operand_batching_dims {batching} of shape {operand.shape} and {indices_word} "
            f"{indices_batching} of shape {indices.shape} must have equal sizes"
        )


def check_updates(
    name: str,
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    numbers: ScatterDimensionNumbers,
) -> None:
    """What scatter asks of its operands."""
    window, dropped, index_map, batching, indices_batching = numbers
    if operand.dtype != updates.dtype:
        raise TypeError(
            f"{name}: operand and updates must have one dtype, got {operand.dtype.name} and "
            f"{updates.dtype.name}; convert the updates"
        )
    words = (
        "scatter_dims_to_operand_dims",
        "inserted_window_dims",
        "scatter_indices_batching_dims",
    )
    check_index(name, operand, indices, index_map, dropped, batching, indices_batching, words)
    if set(dropped) & set(batching):
        raise TypeError(
            f"{name}: an axis is in inserted_window_dims {dropped} and in "
            f"operand_batching_dims {batching}"
        )
    ndim = indices.ndim - 1 + len(window)
    if updates.ndim != ndim:
        raise TypeError(
            f"{name}: updates must have {indices.ndim - 1} axes of the indices and "
            f"{len(window)} of windows, got shape {updates.shape}"
        )
    check_dims(name, "update_window_dims", window, ndim)
    axes = window_dims(operand.ndim, dropped, batching)
    if len(window) != len(axes):
        raise TypeError(
            f"{name}: a window runs over {len(axes)} axes of the operand of shape "
            f"{operand.shape}, update_window_dims are {window}"
        )
    if any(updates.shape[d] > operand.shape[a] for d, a in zip(window, axes, strict=True)):
        raise TypeError(
            f"{name}: the windows of updates of shape {updates.shape} do not fit in the "
            f"operand of shape {operand.shape}"
        )
    lanes = without(updates.shape, window)
    if lanes != indices.shape[:-1]:
        raise TypeError(
            f"{name}: updates of shape {updates.shape} hold windows for {lanes} index vectors, "
            f"the indices of shape {indices.shape} are {indices.shape[:-1]}"
        )


def window_sizes(numbers: ScatterDimensionNumbers, ndim: int, updates: Axes) -> list[int]:
    """The size of a window along each axis of the operand."""
    sizes = iter([updates[d] for d in numbers.update_window_dims])
    axes = window_dims(ndim, numbers.inserted_window_dims, numbers.operand_batching_dims)
    return [next(sizes) if d in axes else 1 for d in range(ndim)]


@functools.cache
def update_program(combine: Primitive, dtype: Any) -> ClosedJaxpr:
    """`combine` of two scalars as a program: how a scatter updates an element."""
    scalar = ShapedArray((), dtype)
    jaxpr, consts = stage(lambda x, y: [combine(x, y)], [scalar, scalar])
    for eqn in jaxpr.eqns:
        eqn.source = None  # it is written once and used everywhere
    return ClosedJaxpr(jaxpr, consts)


def check_windows(
    checks: Any, primitive: Any, operand: Any, indices: Any, sizes: Sequence[int], numbers: Any
) -> bool:
    """Have `checks` see whether windows of these sizes lie inside; false if it does not want to."""
    if not checks.bounds_count:
        return False
    shape, axes = typeof(operand).shape, numbers[2]  # the axes that index vectors are for
    checks.bounds(primitive, operand, indices, [shape[d] - sizes[d] for d in axes], axes)
    return True


def entry(indices: Any, k: int) -> Any:
    """Entry `k` of each index vector."""
    shape = typeof(indices).shape
    return reshape(part(indices, k, k + 1, len(shape) - 1, shape), new_sizes=shape[:-1])


def index_number(indices: Any, n: int) -> Any:
    """`n` in the dtype of the indices, or the greatest number of that dtype if it is less."""
    dtype = typeof(indices).dtype
    return size_as(least(n, int(dtypes.iinfo(dtype).max)), dtype)


def clip_indices(indices: Any, largest: Sequence[int]) -> Any:
    """The index vectors with every entry moved to at least 0 and at most `largest`."""
    shape = typeof(indices).shape
    columns = [
        reshape(
            clamp(index_number(indices, 0), entry(indices, k), index_number(indices, limit)),
            new_sizes=(*shape[:-1], 1),
        )
        for k, limit in enumerate(largest)
    ]
    return concatenate(*columns, dimension=len(shape) - 1) if columns else indices
