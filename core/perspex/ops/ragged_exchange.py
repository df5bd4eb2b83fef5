"""`ragged_all_to_all`: rows that devices send each other, as many as the data say.

Each example sends slices of its rows to all examples, itself included, and says where in the rows
of the receiver each one goes. XLA's CPU compiler has no such exchange: there every example gets the
rows of all, and takes its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import dtypes
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops.casts import Name, Named
from perspex.ops.collectives import all_gather, all_to_all
from perspex.ops.elementwise import add, bitwise_and, div, le, lt, mul, select, sub
from perspex.ops.indexing import gather
from perspex.ops.lowering import expand
from perspex.ops.manual import replica_groups
from perspex.ops.reductions import reduce_or
from perspex.ops.shape import iota
from perspex.ops.structural import (
    broadcast_in_dim,
    convert,
    merge_axis,
    move_axis,
    reduce_sum,
    reshape,
    scalar_like,
    split_axis,
    to_front,
    zeros,
    zeros_like,
)
from perspex.ops.windows import GatherDimensionNumbers, GatherScatterMode
from perspex.tracing.axes import Axis
from perspex.tracing.trace import typeof

_OFFSETS = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def check_slices(
    operand: ShapedArray, output: ShapedArray, offsets: Sequence[ShapedArray], size: int
) -> None:
    """Raise `ValueError` unless these are the types of an exchange among `size` examples."""
    for what, aval in zip(_OFFSETS, offsets, strict=True):
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise ValueError(f"ragged_all_to_all: {what} must be integers, got {aval.dtype.name}")
        if aval.ndim != 1 or not aval.size or aval.size % size:
            raise ValueError(
                f"ragged_all_to_all: {what} must have one axis whose length is a multiple of the "
                f"{size} examples, got shape {aval.shape}"
            )
    if not operand.ndim or operand.shape[1:] != output.shape[1:] or operand.dtype != output.dtype:
        raise ValueError(
            "ragged_all_to_all: operand and output must be rows of one type, got "
            f"{operand.str_short()} and {output.str_short()}"
        )


class RaggedAllToAll(Named):
    """Operand, rows to write into, and the slices that are sent and received -> the rows written.

    Linear in the first two.
    """

    name = "ragged_all_to_all"
    only_moves = True
    printed: ClassVar[dict[str, Any]] = {"axis_index_groups": None}
    quiet: ClassVar[dict[str, Any]] = {"axis_size": ...}

    def axis_names(self, params: dict[str, Any]) -> Iterable[Name]:
        found: tuple[Name, ...] = params["axis_name"]
        return found

    def type(
        self,
        operand: ShapedArray,
        output: ShapedArray,
        *offsets: ShapedArray,
        axis_name: tuple[Name],
        axis_size: int,
    ) -> ShapedArray:
        check_slices(operand, output, offsets, axis_size)
        return output.strip_weak_type()

    def lower(self, b: Any, *values: Any, axis_name: tuple[Name], axis_size: int) -> Any:
        if b.platform != "cpu":
            config = {
                "replica_groups": replica_groups(b, self.name, axis_name),
                "channel_id": types.integer(1),
            }
            attributes = {
                "call_target_name": types.string(self.name),
                "api_version": types.integer(4, 32),
                "backend_config": types.dictionary(config),
            }
            return b.op("stablehlo.custom_call", *values, attributes=attributes)

        def by_gathering(x: Any, out: Any, source: Any, _: Any, place: Any, count: Any) -> Any:
            params = {"axis_name": axis_name, "axis_size": axis_size, "tiled": False}
            whole = all_gather(x, all_gather_dimension=0, **params)
            arrived = [_swapped(v, axis_name[0], axis_size) for v in (source, place)]
            rows: list[Any] = [
                reshape(v, new_sizes=(1, *typeof(v).shape)) for v in (out, *arrived, count)
            ]
            return reshape(delivered(whole, *rows), new_sizes=typeof(out).shape)

        return expand(b, by_gathering, *values)[0]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        (operand, output, *offsets), (by_operand, by_output, *_) = primals, tangents
        out = self(*primals, **params)
        if by_operand is None and by_output is None:
            return out, None
        moved = [
            zeros_like(x) if t is None else t
            for x, t in ((operand, by_operand), (output, by_output))
        ]
        return out, self(*moved, *offsets, **params)

    def transpose(
        self,
        ct: Any,
        operand: Any,
        output: Any,
        source: Any,
        sent: Any,
        place: Any,
        received: Any,
        *,
        axis_name: tuple[Name],
        axis_size: int,
    ) -> list[Any]:
        name = axis_name[0]
        there, back = _swapped(place, name, axis_size), _swapped(source, name, axis_size)
        given = zeros(typeof(operand).strip_weak_type())
        by_operand = self(
            ct, given, there, received, back, sent, axis_name=axis_name, axis_size=axis_size
        )
        first, count = [reshape(v, new_sizes=(1, *typeof(v).shape)) for v in (there, received)]
        rows = typeof(ct).shape[0]
        mask = reshape(reduce_or(_hits(first, count, rows), axes=(1,)), new_sizes=(rows,))
        mask = broadcast_in_dim(mask, shape=typeof(ct).shape, broadcast_dimensions=(0,))
        return [by_operand, select(mask, zeros_like(ct), ct), None, None, None, None]

    def batch(
        self, axis: Axis, operands: Any, axes: Any, *, axis_name: tuple[Name], axis_size: int
    ) -> Any:
        size = axis.size
        moved = [to_front(x, at, size) for x, at in zip(operands, axes, strict=True)]
        operand, output, source, sent, place, received = moved
        if axis.name in axis_name:
            # The examples are at hand: what each sends to another is an element of a matrix.
            arrived = [
                merge_axis(move_axis(split_axis(v, 1, size), 0, 1), 1, 1) for v in (source, place)
            ]
            return delivered(operand, output, arrived[0], arrived[1], received), 0
        # The rows of all examples, one after another, and more slices for each receiver.
        lengths = typeof(operand).shape[1], typeof(output).shape[1]
        offsets = []
        for v, length in zip(moved[2:], (lengths[0], 0, lengths[1], 0), strict=True):
            if length:
                first = iota(dtype=typeof(v).dtype, shape=typeof(v).shape, dimension=0)
                v = add(v, mul(first, scalar_like(first, length)))
            slices = move_axis(split_axis(v, 1, axis_size), 0, 1)
            offsets.append(reshape(slices, new_sizes=(typeof(v).size,)))
        flat = [merge_axis(x, 0, 0) for x in (operand, output)]
        out = self(*flat, *offsets, axis_name=axis_name, axis_size=axis_size)
        return reshape(out, new_sizes=typeof(output).shape), 0


def _swapped(x: Any, name: Name, size: int) -> Any:
    """What all examples say to this one, given what this one says to all."""
    return all_to_all(x, axis_name=name, axis_size=size, split_axis=0, concat_axis=0, tiled=True)


def _hits(place: Any, count: Any, rows: int) -> Any:
    """Which slices write which rows: for each receiver, a matrix of slices and rows."""
    shape = (*typeof(place).shape, rows)
    first, behind = [
        broadcast_in_dim(v, shape=shape, broadcast_dimensions=(0, 1))
        for v in (place, add(place, convert(count, typeof(place).dtype)))
    ]
    row = iota(dtype=typeof(place).dtype, shape=shape, dimension=2)
    return bitwise_and(le(first, row), lt(row, behind))


def delivered(whole: Any, out: Any, source: Any, place: Any, count: Any) -> Any:
    """What receivers have when all slices have come.

    `whole` has the rows of all senders; the first axis of the other arguments is that of the
    receivers, the second one of the last three that of slices, those of each sender together.
    """
    receivers, slices = typeof(source).shape
    senders, length = typeof(whole).shape[:2]
    rest = typeof(whole).shape[2:]
    source = convert(source, typeof(place).dtype)
    hit = _hits(place, count, typeof(out).shape[1])
    shape = typeof(hit).shape
    # At most one slice writes a row: a sum over the slices picks it.
    sender = iota(dtype=typeof(place).dtype, shape=(receivers, slices), dimension=1)
    sender = div(sender, scalar_like(sender, slices // senders))
    shift = add(sub(source, place), mul(sender, scalar_like(sender, length)))
    shift = broadcast_in_dim(shift, shape=shape, broadcast_dimensions=(0, 1))
    shift = reduce_sum(select(hit, shift, zeros_like(shift)), axes=(1,))
    at = add(shift, iota(dtype=typeof(place).dtype, shape=(receivers, shape[2]), dimension=1))
    rows = gather(
        reshape(whole, new_sizes=(senders * length, *rest)),
        reshape(at, new_sizes=(receivers, shape[2], 1)),
        dimension_numbers=GatherDimensionNumbers(tuple(range(2, 2 + len(rest))), (0,), (0,)),
        slice_sizes=(1, *rest),
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )
    written = broadcast_in_dim(
        reduce_or(hit, axes=(1,)), shape=typeof(out).shape, broadcast_dimensions=(0, 1)
    )
    return select(written, rows, out)


ragged_all_to_all = RaggedAllToAll()
