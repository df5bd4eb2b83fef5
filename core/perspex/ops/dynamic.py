"""Slices of a static size that start at places computed while running.

The start is moved until the slice lies inside the operand. A batch of starts is a gather or a
scatter, which is why this stands above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.indexing import gather, scatter
from perspex.ops.shape import stack
from perspex.ops.structural import is_linear, to_front, zeros, zeros_like
from perspex.ops.windows import CLIP, GatherDimensionNumbers, ScatterDimensionNumbers
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


def check_starts(name: str, starts: Sequence[ShapedArray], ndim: int) -> None:
    """There must be one scalar integer for each axis, all of one dtype."""
    if len(starts) != ndim:
        raise TypeError(
            f"{name}: start indices must have one entry for each of the {ndim} axes of the "
            f"operand, got {len(starts)}"
        )
    for start in starts:
        if start.shape:
            raise TypeError(f"{name}: start indices must be scalars, got shape {start.shape}")
        if not dtypes.issubdtype(start.dtype, np.integer):
            raise TypeError(f"{name}: start indices must be integers, got {start.dtype.name}")
        if start.dtype != starts[0].dtype:
            found = ", ".join([s.dtype.name for s in starts])
            raise TypeError(f"{name}: start indices must have one dtype, got {found}")


def batched_starts(
    axis_size: int, starts: Sequence[Any], axes: Sequence[int | None]
) -> tuple[Any, int]:
    """The start indices of each element of the batch as one array of index vectors."""
    return stack(
        *[to_front(s, at, axis_size) for s, at in zip(starts, axes, strict=True)], axis=1
    ), 0


def emit_starts(b: Any, aval: ShapedArray, starts: Sequence[Any]) -> list[Any]:
    """The starts along the axes of the numbers that hold the operand: 0 inside a typed key."""
    extra = aval.physical().ndim - aval.ndim
    dtype = b.in_avals[-1].dtype if starts else np.dtype("int32")
    return [*starts, *[b.constant(0, ShapedArray((), dtype))] * extra]


def zero_start(starts: Sequence[Any]) -> Any:
    """0, in the dtype of the other starts."""
    return typeof(starts[0]).dtype.type(0) if starts else np.int32(0)


def check_bounds(
    checks: Any, primitive: Primitive, x: Any, starts: Sequence[Any], sizes: Sequence[int]
) -> None:
    """Have `checks` see whether the slice lies inside of `x`."""
    if checks.bounds_count and starts:
        last = [n - size for n, size in zip(typeof(x).shape, sizes, strict=True)]
        checks.bounds(primitive, x, stack(*starts, axis=0), last, range(len(last)))


class DynamicSlice(Primitive):
    """The slice of size `slice_sizes` that starts at the scalars after the operand."""

    name = "dynamic_slice"
    degree = 1
    only_moves = True
    lowers_keys = True

    def type(
        self, x: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]
    ) -> ShapedArray:
        check_starts(self.name, starts, x.ndim)
        if len(slice_sizes) != x.ndim:
            raise TypeError(
                f"dynamic_slice: slice_sizes must have one entry for each of the {x.ndim} axes of "
                f"the operand, got {slice_sizes}"
            )
        if any(not 0 <= s <= n for s, n in zip(slice_sizes, x.shape, strict=True)):
            raise TypeError(
                f"dynamic_slice: slice_sizes {slice_sizes} do not fit in the operand of shape "
                f"{x.shape}"
            )
        return ShapedArray(slice_sizes, x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, *starts: Any, **params: Any) -> cuts.Parts:
        return cuts.resized(self.name, x, out)

    def traffic(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(2 * results[0].nbytes)

    def lower(self, b: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
        (out,) = b.out_avals
        return b.op(
            "stablehlo.dynamic_slice",
            x,
            *emit_starts(b, out, starts),
            attributes={"slice_sizes": types.integers(out.physical().shape)},
        )

    def checked(self, checks: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
        check_bounds(checks, self, x, starts, slice_sizes)
        return self(x, *starts, slice_sizes=slice_sizes)

    def jvp(self, primals: Any, tangents: Any, *, slice_sizes: tuple[int, ...]) -> Any:
        x, *starts = primals
        out = self(x, *starts, slice_sizes=slice_sizes)
        t = tangents[0]
        return out, None if t is None else self(t, *starts, slice_sizes=slice_sizes)

    def transpose(self, ct: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
        nothing = zeros(x.aval.strip_weak_type())
        return [dynamic_update_slice(nothing, ct, *starts), *[None] * len(starts)]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, slice_sizes: tuple[int, ...]
    ) -> Any:
        (x, *starts), (at, *starts_at) = operands, axes
        if all(a is None for a in starts_at):
            x = to_front(x, at, axis_size)
            return self(x, zero_start(starts), *starts, slice_sizes=(axis_size, *slice_sizes)), 0
        indices, indices_at = batched_starts(axis_size, starts, starts_at)
        every = tuple(range(len(slice_sizes)))
        return gather.batch(
            axis_size,
            (x, indices),
            (at, indices_at),
            dimension_numbers=GatherDimensionNumbers(every, (), every),
            slice_sizes=slice_sizes,
            unique_indices=True,
            indices_are_sorted=True,
            mode=CLIP,
            fill_value=None,
        )


class DynamicUpdateSlice(Primitive):
    """The operand with the slice that starts at the scalars after the update replaced by it."""

    name = "dynamic_update_slice"
    degree = 1
    only_moves = True
    lowers_keys = True

    def type(self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
        check_starts(self.name, starts, x.ndim)
        if x.dtype != update.dtype:
            raise TypeError(
                "dynamic_update_slice: operand and update must have one dtype, got "
                f"{x.dtype.name} and {update.dtype.name}; convert the update"
            )
        if x.ndim != update.ndim or any(m > n for m, n in zip(update.shape, x.shape, strict=True)):
            raise TypeError(
                f"dynamic_update_slice: the update of shape {update.shape} does not fit in the "
                f"operand of shape {x.shape}"
            )
        return ShapedArray(x.shape, x.dtype)

    def cut(
        self, out: ShapedArray, x: ShapedArray, update: ShapedArray, *starts: Any
    ) -> cuts.Parts:
        return cuts.merged(self.name, (x, update))

    def traffic(self, operands: Any, results: Any, params: dict[str, Any]) -> float:
        return float(2 * operands[1].nbytes)  # the rest stays where it is

    def lower(self, b: Any, x: Any, update: Any, *starts: Any) -> Any:
        (out,) = b.out_avals
        return b.op("stablehlo.dynamic_update_slice", x, update, *emit_starts(b, out, starts))

    def checked(self, checks: Any, x: Any, update: Any, *starts: Any) -> Any:
        check_bounds(checks, self, x, starts, typeof(update).shape)
        return self(x, update, *starts)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        x, update, *starts = primals
        t, t_update, *_ = tangents
        out = self(x, update, *starts)
        if t is None and t_update is None:
            return out, None
        t = zeros_like(x) if t is None else t
        t_update = zeros_like(update) if t_update is None else t_update
        return out, self(t, t_update, *starts)

    def transpose(self, ct: Any, x: Any, update: Any, *starts: Any) -> Any:
        shape = typeof(update).shape
        to_x = to_update = None
        if is_linear(x):
            to_x = self(ct, zeros(ShapedArray(shape, typeof(ct).dtype)), *starts)
        if is_linear(update):
            to_update = dynamic_slice(ct, *starts, slice_sizes=shape)
        return [to_x, to_update, *[None] * len(starts)]

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        (x, update, *starts), (at, update_at, *starts_at) = operands, axes
        if all(a is None for a in starts_at):
            x, update = to_front(x, at, axis_size), to_front(update, update_at, axis_size)
            return self(x, update, zero_start(starts), *starts), 0
        indices, indices_at = batched_starts(axis_size, starts, starts_at)
        every = tuple(range(len(starts)))
        return scatter.batch(
            axis_size,
            (x, indices, update),
            (at, indices_at, update_at),
            dimension_numbers=ScatterDimensionNumbers(every, (), every),
            unique_indices=True,
            indices_are_sorted=True,
            mode=CLIP,
        )


dynamic_slice = DynamicSlice()
dynamic_update_slice = DynamicUpdateSlice()
