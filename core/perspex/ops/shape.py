"""Taking arrays apart and putting them together at places known while tracing.

Reverse, pad, slice, concatenate, split, stack, tile, iota: all linear in their array operands, so
each jvp is the operation itself, and pad and slice are each other's transposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import dtypes
from perspex.base.dimensions import greatest
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.elementwise import select, sub
from perspex.ops.lowering import emit_part
from perspex.ops.structural import (
    JointlyLinear,
    Structural,
    broadcast_in_dim,
    check_rank,
    check_same_dtype,
    inserted,
    is_linear,
    reduce_sum,
    reshape,
    to_front,
    without,
    zero_of,
    zeros,
)
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

PaddingConfig = tuple[tuple[int, int, int], ...]


class Rev(Structural):
    """The elements in reverse order along `dimensions`."""

    name = "rev"

    def type(self, x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
        if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < x.ndim for d in dimensions):
            raise TypeError(
                f"rev: dimensions must be different axes of the {x.ndim} of the operand, got "
                f"{dimensions}"
            )
        return x

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return b.op("stablehlo.reverse", x, attributes={"dimensions": types.integers(dimensions)})

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return [rev(ct, dimensions=dimensions)]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, dimensions: tuple[int, ...]
    ) -> Any:
        (at,) = axes
        return self(operands[0], dimensions=tuple([d + (d >= at) for d in dimensions])), at


class Pad(JointlyLinear):
    """Padding around and between elements: `(low, high, interior)` for each axis.

    Negative `low` and `high` take elements away, after the interior padding went in.
    """

    name = "pad"
    makes_nan = True

    def type(
        self, x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig
    ) -> ShapedArray:
        check_same_dtype(self.name, (x, value))
        if value.shape:
            raise ValueError(f"pad: the padding value must be a scalar, got shape {value.shape}")
        if len(padding_config) != x.ndim:
            raise ValueError(
                f"pad: padding_config must have one (low, high, interior) for each of the "
                f"{x.ndim} axes of the operand, got {padding_config}"
            )
        shape = []
        for n, (low, high, interior) in zip(x.shape, padding_config, strict=True):
            if interior < 0:
                raise ValueError(
                    f"pad: interior padding must not be negative, got {padding_config}"
                )
            padded = low + high + n + (greatest(0, n - 1) * interior if interior else 0)
            if padded.__class__ is int and padded < 0:
                raise ValueError(
                    f"pad: padding_config {padding_config} takes more elements away than the "
                    f"operand of shape {x.shape} has"
                )
            shape.append(padded)
        return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)

    def cut(
        self, out: ShapedArray, x: ShapedArray, value: ShapedArray, **params: Any
    ) -> cuts.Parts:
        return cuts.resized("padding", x, out)

    def pending(self, x: ShapedArray, value: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
        low, high, interior = zip(*padding_config, strict=True) if padding_config else ((),) * 3
        return b.op(
            "stablehlo.pad",
            x,
            value,
            attributes={
                "edge_padding_low": types.integers(low),
                "edge_padding_high": types.integers(high),
                "interior_padding": types.integers(interior),
            },
        )

    def transpose(self, ct: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
        # The cotangents of the elements of `x` that the padding took away are zeros.
        back = pad(
            ct, zero_of(ct), padding_config=tuple([(-lo, -hi, 0) for lo, hi, _ in padding_config])
        )
        ndim = typeof(ct).ndim
        to_x = slice(
            back,
            start_indices=(0,) * ndim,
            limit_indices=typeof(back).shape,
            strides=tuple([interior + 1 for _, _, interior in padding_config]),
        )
        if not is_linear(value):
            return [to_x, None]
        axes = tuple(range(ndim))
        total = reduce_sum(ct, axes=axes)
        to_value = sub(total, reduce_sum(to_x, axes=axes))
        return [to_x if is_linear(x) else None, to_value]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, padding_config: PaddingConfig
    ) -> Any:
        (x, value), (at, value_at) = operands, axes
        if value_at is None:
            return self(x, value, padding_config=inserted(padding_config, at, (0, 0, 0))), at
        # One padding value for each element of the batch: pad, then fill in where nothing was.
        x = to_front(x, at, axis_size)
        config = inserted(padding_config, 0, (0, 0, 0))
        padded = self(x, zero_of(x), padding_config=config)
        shape = typeof(padded).shape
        inside = broadcast_in_dim(np.bool_(True), shape=typeof(x).shape, broadcast_dimensions=())
        mask = self(inside, np.bool_(False), padding_config=config)
        values = broadcast_in_dim(value, shape=shape, broadcast_dimensions=(0,))
        return select(mask, padded, values), 0


class Slice(Structural):
    """The elements from `start_indices` below `limit_indices`, in steps of `strides`."""

    name = "slice"

    def type(
        self,
        x: ShapedArray,
        *,
        start_indices: tuple[int, ...],
        limit_indices: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> ShapedArray:
        steps = (1,) * x.ndim if strides is None else strides
        check_rank(self.name, "start_indices", start_indices, x.ndim)
        check_rank(self.name, "limit_indices", limit_indices, x.ndim)
        check_rank(self.name, "strides", steps, x.ndim)
        bounds = f"start_indices {start_indices}, limit_indices {limit_indices}"
        if any(i < 0 for i in start_indices):
            raise TypeError(f"slice: start_indices must not be negative, got {start_indices}")
        if any(i > n for i, n in zip(limit_indices, x.shape, strict=True)):
            raise TypeError(
                f"slice: limit_indices must not exceed the shape {x.shape} of the operand: {bounds}"
            )
        if any(i > j for i, j in zip(start_indices, limit_indices, strict=True)):
            raise TypeError(f"slice: limit_indices must not be below start_indices: {bounds}")
        if any(step <= 0 for step in steps):
            raise TypeError(f"slice: strides must be positive, got {strides}; `rev` goes backwards")
        shape = [
            -(-(stop - start) // step)
            for start, stop, step in zip(start_indices, limit_indices, steps, strict=True)
        ]
        return ShapedArray(shape, x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.resized("slicing", x, out)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
        return b.op(
            "stablehlo.slice",
            x,
            attributes={
                "start_indices": types.integers(start_indices),
                "limit_indices": types.integers(limit_indices),
                "strides": types.integers(strides or (1,) * len(start_indices)),
            },
        )

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        extra = in_avals[0].physical().shape[in_avals[0].ndim :]
        strides = params["strides"]
        return {
            "start_indices": (*params["start_indices"], *[0] * len(extra)),
            "limit_indices": (*params["limit_indices"], *extra),
            "strides": strides and (*strides, *[1] * len(extra)),
        }

    def transpose(
        self,
        ct: Any,
        x: Any,
        *,
        start_indices: tuple[int, ...],
        limit_indices: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> Any:
        config = []
        steps = strides or (1,) * x.ndim
        for n, m, start, step in zip(x.shape, typeof(ct).shape, start_indices, steps, strict=True):
            is_empty = m.__class__ is int and m == 0
            reached = start + (0 if is_empty else 1 + (m - 1) * step)
            config.append((start, n - reached, step - 1))
        return [pad(ct, zero_of(ct), padding_config=tuple(config))]

    def batch(
        self,
        axis_size: int,
        operands: Any,
        axes: Any,
        *,
        start_indices: tuple[int, ...],
        limit_indices: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> Any:
        (at,) = axes
        out = self(
            operands[0],
            start_indices=inserted(start_indices, at, 0),
            limit_indices=inserted(limit_indices, at, axis_size),
            strides=None if strides is None else inserted(strides, at, 1),
        )
        return out, at


class Concatenate(JointlyLinear):
    """The operands one after another along an axis; the other axes agree."""

    name = "concatenate"

    def type(self, *avals: ShapedArray, dimension: int) -> ShapedArray:
        if not avals:
            raise TypeError("concatenate expects at least one operand, got 0")
        first = avals[0]
        if any(a.ndim != first.ndim for a in avals):
            raise TypeError(
                "Cannot concatenate arrays with different numbers of dimensions: "
                f"got {', '.join([str(a.shape) for a in avals])}; reshape them first"
            )
        if not 0 <= dimension < first.ndim:
            raise TypeError(
                f"concatenate: dimension {dimension} is out of bounds for shapes "
                f"{', '.join([str(a.shape) for a in avals])}"
            )
        if any(without(a.shape, (dimension,)) != without(first.shape, (dimension,)) for a in avals):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the "
                f"one being concatenated, {dimension}: {', '.join([str(a.shape) for a in avals])}"
            )
        check_same_dtype(self.name, avals)
        shape = list(first.shape)
        shape[dimension] = sum(a.shape[dimension] for a in avals)
        return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))

    def cut(self, out: ShapedArray, *avals: ShapedArray, dimension: int) -> cuts.Parts:
        return cuts.merged(self.name, avals)

    def pending(self, *avals: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.joined(self.name, avals, cuts.LINEAR)

    def lower(self, b: Any, *xs: Any, dimension: int) -> Any:
        return b.op(
            "stablehlo.concatenate", *xs, attributes={"dimension": types.integer(dimension)}
        )

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, *operands: Any, dimension: int) -> Any:
        shape = typeof(ct).shape
        cts: list[Any] = []
        start = 0
        for x in operands:
            stop = start + typeof(x).shape[dimension]
            cts.append(part(ct, start, stop, dimension, shape) if is_linear(x) else None)
            start = stop
        return cts

    def batch(self, axis_size: int, operands: Any, axes: Any, *, dimension: int) -> Any:
        fronted = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        return self(*fronted, dimension=dimension + 1), 0


def part(x: Any, start: int, stop: int, axis: int, shape: Sequence[int]) -> Any:
    """The elements of `x`, whose shape is `shape`, from `start` below `stop` along one axis."""
    return slice(
        x,
        start_indices=tuple([start if i == axis else 0 for i in range(len(shape))]),
        limit_indices=tuple([stop if i == axis else n for i, n in enumerate(shape)]),
        strides=None,
    )


class Split(JointlyLinear):
    """Consecutive parts of the operand along an axis, of the given sizes."""

    name = "split"
    multiple_results = True

    def type(self, x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> Any:
        if not 0 <= axis < x.ndim:
            raise ValueError(f"split: axis {axis} is out of range for shape {x.shape}")
        if any(n < 0 for n in sizes):
            raise ValueError(f"split: sizes must not be negative, got {sizes}")
        if sum(sizes) != x.shape[axis]:
            raise ValueError(
                f"split: sizes {sizes} sum to {sum(sizes)} but the axis {axis} of shape {x.shape} "
                f"has size {x.shape[axis]}"
            )
        return tuple(
            [
                ShapedArray((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type)
                for n in sizes
            ]
        )

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> list[cuts.Parts]:
        return [cuts.resized(self.name, x, aval) for aval in out]

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
        (given,) = b.in_avals
        outs, start = [], 0
        for n, out in zip(sizes, b.out_avals, strict=True):
            outs.append(emit_part(b, x, given, out, start, axis))
            start += n
        return outs

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
        if all(c is None for c in ct):
            return [None]
        shape = x.shape
        full = [
            zeros(ShapedArray((*shape[:axis], n, *shape[axis + 1 :]), x.dtype)) if c is None else c
            for c, n in zip(ct, sizes, strict=True)
        ]
        return [concatenate(*full, dimension=axis)]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, sizes: tuple[int, ...], axis: int
    ) -> Any:
        (at,) = axes
        outs = self(operands[0], sizes=sizes, axis=axis + (axis >= at))
        return outs, [at] * len(outs)


class Stack(JointlyLinear):
    """The operands, which have one shape, along a new axis."""

    name = "stack"

    def type(self, *avals: ShapedArray, axis: int) -> ShapedArray:
        if not avals:
            raise TypeError("stack expects at least one operand, got 0")
        shape = avals[0].shape
        if any(a.shape != shape for a in avals):
            raise TypeError(
                "stack: all operands must have the same shape, got "
                f"{', '.join([str(a.shape) for a in avals])}"
            )
        check_same_dtype(self.name, avals)
        if not 0 <= axis <= len(shape):
            raise TypeError(f"stack: axis {axis} is out of range for {len(shape) + 1} axes")
        weak = all(a.weak_type for a in avals)
        return ShapedArray(inserted(shape, axis, len(avals)), avals[0].dtype, weak)

    def cut(self, out: ShapedArray, *avals: ShapedArray, axis: int) -> cuts.Parts:
        return inserted(cuts.merged(self.name, avals), axis, ())

    def pending(self, *avals: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.joined(self.name, avals, cuts.LINEAR)

    def lower(self, b: Any, *xs: Any, axis: int) -> Any:
        (out,), (given, *_) = b.out_avals, b.in_avals
        single = ShapedArray(inserted(given.shape, axis, 1), out.dtype)
        return b.op(
            "stablehlo.concatenate",
            *[b.reshape(x, single) for x in xs],
            attributes={"dimension": types.integer(axis)},
        )

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, *operands: Any, axis: int) -> Any:
        cts = unstack(ct, axis=axis)
        return [c if is_linear(x) else None for c, x in zip(cts, operands, strict=True)]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, axis: int) -> Any:
        fronted = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        return self(*fronted, axis=axis + 1), 0


class Unstack(JointlyLinear):
    """The operand at each index of an axis."""

    name = "unstack"
    multiple_results = True

    def type(self, x: ShapedArray, *, axis: int) -> Any:
        if not 0 <= axis < x.ndim:
            raise ValueError(f"unstack: axis {axis} is out of range for shape {x.shape}")
        out = ShapedArray(without(x.shape, (axis,)), x.dtype, x.weak_type)
        return (out,) * x.shape[axis]

    def cut(self, out: Any, x: ShapedArray, *, axis: int) -> list[cuts.Parts]:
        cuts.uncut(self.name, "the operand", x, (axis,))
        return [cuts.without(cuts.parts(x), (axis,))] * len(out)

    def lower(self, b: Any, x: Any, *, axis: int) -> Any:
        (given,) = b.in_avals
        single = given.update(shape=(*given.shape[:axis], 1, *given.shape[axis + 1 :]))
        return [
            b.reshape(emit_part(b, x, given, single, i, axis), out)
            for i, out in enumerate(b.out_avals)
        ]

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, axis: int) -> Any:
        if all(c is None for c in ct):
            return [None]
        zero = zeros(ShapedArray(without(x.shape, (axis,)), x.dtype))
        return [stack(*[zero if c is None else c for c in ct], axis=axis)]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, axis: int) -> Any:
        (at,) = axes
        outs = self(operands[0], axis=axis + (axis >= at))
        return outs, [at - (axis < at)] * len(outs)


class Tile(Structural):
    """The operand repeated `reps[i]` times along each axis `i`."""

    name = "tile"

    def type(self, x: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
        check_rank(self.name, "reps", reps, x.ndim)
        if any(r < 0 for r in reps):
            raise ValueError(f"tile: reps must not be negative, got {reps}")
        shape = [n * r for n, r in zip(x.shape, reps, strict=True)]
        return ShapedArray(shape, x.dtype, x.weak_type)

    def cut(self, out: ShapedArray, x: ShapedArray, *, reps: tuple[int, ...]) -> cuts.Parts:
        cuts.uncut(self.name, "the operand", x, [i for i, r in enumerate(reps) if r != 1])
        return cuts.parts(x)

    def lower(self, b: Any, x: Any, *, reps: tuple[int, ...]) -> Any:
        (given,), (out,) = b.in_avals, b.out_avals
        pairs = ShapedArray(interleaved(reps, given.shape), out.dtype)
        return b.reshape(b.broadcast(x, pairs, tuple(range(1, 2 * given.ndim, 2))), out)

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        extra = in_avals[0].physical().ndim - in_avals[0].ndim
        return {"reps": (*params["reps"], *[1] * extra)}

    def transpose(self, ct: Any, x: Any, *, reps: tuple[int, ...]) -> Any:
        pairs = reshape(ct, new_sizes=interleaved(reps, x.shape))
        return [reduce_sum(pairs, axes=tuple(range(0, 2 * x.ndim, 2)))]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, reps: tuple[int, ...]) -> Any:
        (at,) = axes
        return self(operands[0], reps=inserted(reps, at, 1)), at


def interleaved(reps: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """`(reps[0], shape[0], reps[1], shape[1], ...)`: a tiled array before its axes are merged."""
    return tuple([n for pair in zip(reps, shape, strict=True) for n in pair])


class Iota(Primitive):
    """`0, 1, 2, ...` along the axis `dimension` of an array of `shape`."""

    name = "iota"
    only_moves = True
    printed: ClassVar[dict[str, Any]] = {"sharding": None}

    def type(
        self, *, dtype: np.dtype, shape: tuple[int, ...], dimension: int, sharding: Any = None
    ) -> ShapedArray:
        if not dtypes.issubdtype(dtype, np.number):
            raise TypeError(f"iota does not accept dtype {dtype.name}: it gives numbers")
        if not 0 <= dimension < len(shape):
            raise ValueError(f"iota: dimension {dimension} is out of range for shape {shape}")
        return ShapedArray(shape, dtype)

    def lower(self, b: Any, *, dimension: int, **params: Any) -> Any:
        return b.op("stablehlo.iota", attributes={"iota_dimension": types.integer(dimension)})

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return self(**params), None


rev = Rev()
pad = Pad()
slice = Slice()
concatenate = Concatenate()
split = Split()
stack = Stack()
unstack = Unstack()
tile = Tile()
iota = Iota()
