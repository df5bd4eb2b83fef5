"""How a scan becomes a loop of the machine: `stablehlo.while` over a counter and buffers.

    i, carry, buffers of ys = 0, init, empty
    while i < n:
        carry, y = body(consts, carry, xs[row(i)])
        buffers[row(i)], i = y, i + 1

The body is written into the loop, where the consts and xs are visible: a function for it, called
from the loop, compiles no faster (119 ms and 101 ms, 232 and 209, 198 and 226 were measured), as
XLA inlines it. With `unroll` each turn makes several steps, on one slice of as many rows; steps
that are left over follow the loop in a straight line, and a loop of one turn is no loop at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.hlo import types
from perspex.hlo.watched import is_watched, unless_stopped
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.tracing import cuts
from perspex.transforms.higher_order import program_work
from perspex.transforms.programs import cut

_INDEX = ShapedArray((), np.dtype("int32"))
# A scan is worth watching from this many operations on: some milliseconds of them.
_LONG = 1e7
# What an equation costs beside its work, in operations.
_EACH = 16


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of `length` values of type `aval`, along a new first axis."""
    return cuts.with_axis(aval, length)


def is_long(step: ClosedJaxpr, length: Any) -> bool:
    """Whether a scan may take so long that somebody might want to stop it.

    XLA unrolls loops of known length, and leaves checks of bounds out of them: a condition that
    reads a page takes that away. A step whose work is not known may take any time.
    """
    if length.__class__ is not int:
        return True
    work = program_work(step)
    if work.flops is None or work.traffic is None:
        return length > 1
    return bool(length * (work.flops + work.traffic + _EACH * len(step.eqns)) >= _LONG)


class Loop:
    """One scan on its way into the module of builder `b`."""

    def __init__(
        self,
        b: Any,
        values: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        length: int,
        reverse: bool,
        unroll: int,
        num_consts: int,
        num_carry: int,
    ) -> None:
        self.b = b
        self.jaxpr = jaxpr
        self.length = length
        self.reverse = reverse
        self.unroll = max(unroll, 1)
        self.consts, self.init, self.xs = cut(values, num_consts, num_carry)
        self.x_avals = jaxpr.in_avals[num_consts + num_carry :]
        self.carry_avals = jaxpr.out_avals[:num_carry]
        self.y_avals = jaxpr.out_avals[num_carry:]
        self.is_watched = is_watched(b) and is_long(jaxpr, length)

    def emit(self) -> list[Any]:
        """Write the loop; returns the last carry and the stacked ys."""
        turns, left = divmod(self.length, self.unroll)
        if turns.__class__ is int and turns <= 1:
            carry, rows = self._line(self.b, self.init, self._rows(0, self.length))
            return [*carry, *self._stack(self.b, rows)]
        carry, buffers = self._while(turns)
        if left != 0:
            carry, rows = self._line(self.b, carry, self._rows(turns * self.unroll, left))
            # In order of rows: those of the steps that are left over are last, or first in reverse.
            start = 0 if self.reverse else turns * self.unroll
            at = self.b.constant(start, _INDEX)
            blocks = self._stack(self.b, rows)
            buffers = [
                self._update(self.b, buffer, block, at, aval)
                for buffer, block, aval in zip(buffers, blocks, self.y_avals, strict=True)
            ]
        return [*carry, *buffers]

    def _rows(self, first: int, count: int) -> list[int]:
        """The rows of xs that the steps from `first` on read."""
        steps = range(first, first + count)
        return [self.length - 1 - s if self.reverse else s for s in steps]

    def _while(self, turns: int) -> tuple[list[Any], list[Any]]:
        b, length, unroll = self.b, self.length, self.unroll
        buffers = [b.constant(0, stacked(aval, length)) for aval in self.y_avals]
        buffer_avals = [stacked(aval, length) for aval in self.y_avals]
        avals = [_INDEX, *self.carry_avals, *buffer_avals]
        start = [b.constant(0, _INDEX), *self.init, *buffers]
        loop = b.ops("stablehlo.while", start, avals, regions=2)
        with b.block(loop.regions[0], avals) as (inner, (i, *_)):
            end = inner.constant(turns * unroll, _INDEX)
            going = inner.compare("LT", i, end, _INDEX)
            if self.is_watched:
                going = unless_stopped(inner, going, i)
            inner.terminate("stablehlo.return", [going])
        with b.block(loop.regions[1], avals) as (inner, (i, *state)):
            carry, buffers = cut(state, len(self.init))
            row = i
            if self.reverse:
                last = inner.constant(length - unroll, _INDEX)
                row = inner.op("stablehlo.subtract", last, i, aval=_INDEX)
            blocks = [
                self._slice(inner, x, row, aval)
                for x, aval in zip(self.xs, self.x_avals, strict=True)
            ]
            order = range(unroll)[::-1] if self.reverse else range(unroll)
            carry, rows = self._line(inner, carry, order, blocks)
            buffers = [
                self._update(inner, buffer, block, row, aval)
                for buffer, block, aval in zip(
                    buffers, self._stack(inner, rows), self.y_avals, strict=True
                )
            ]
            step = inner.constant(unroll, _INDEX)
            following = inner.op("stablehlo.add", i, step, aval=_INDEX)
            inner.terminate("stablehlo.return", [following, *carry, *buffers])
        _, carry, buffers = cut(list(loop.results), 1, len(self.init))
        return carry, buffers

    def _line(
        self, b: Any, carry: list[Any], rows: Sequence[int], xs: Sequence[Any] | None = None
    ) -> tuple[list[Any], dict[int, list[Any]]]:
        """Steps in a straight line, each on a row of `xs`; returns the carry and ys by row."""
        found = {}
        for row in rows:
            x = [
                self._row(b, whole, row, aval)
                for whole, aval in zip(self.xs if xs is None else xs, self.x_avals, strict=True)
            ]
            outs = b.inline(self.jaxpr.jaxpr, [*self.consts, *carry, *x])
            carry, found[row] = cut(outs, len(self.init))
        return carry, found

    def _row(self, b: Any, whole: Any, row: int, aval: ShapedArray) -> Any:
        """One row, at a place that is known."""
        shape = tuple(whole.type.shape)
        if shape[0] != 1:
            rest = shape[1:]
            attributes = {
                "start_indices": types.integers((row, *[0] * len(rest))),
                "limit_indices": types.integers((row + 1, *rest)),
                "strides": types.integers((1,) * len(shape)),
            }
            whole = b.op("stablehlo.slice", whole, attributes=attributes, aval=stacked(aval, 1))
        return b.reshape(whole, aval)

    def _slice(self, b: Any, whole: Any, row: Any, aval: ShapedArray) -> Any:
        """The rows that one turn reads, at a place that is not."""
        block = stacked(aval, self.unroll)
        shape = block.physical().shape
        zero = b.constant(0, _INDEX)
        attributes = {"slice_sizes": types.integers(shape)}
        start = [row, *[zero] * (len(shape) - 1)]
        return b.op("stablehlo.dynamic_slice", whole, *start, attributes=attributes, aval=block)

    def _update(self, b: Any, whole: Any, block: Any, row: Any, aval: ShapedArray) -> Any:
        zero = b.constant(0, _INDEX)
        out = stacked(aval, self.length)
        start = [row, *[zero] * (out.physical().ndim - 1)]
        return b.op("stablehlo.dynamic_update_slice", whole, block, *start, aval=out)

    def _stack(self, b: Any, rows: dict[int, list[Any]]) -> list[Any]:
        """The ys of some steps, in the order of their rows."""
        if not rows:
            return [b.constant(0, stacked(aval, 0)) for aval in self.y_avals]
        found = []
        for i, aval in enumerate(self.y_avals):
            one = stacked(aval, 1)
            parts = [b.reshape(rows[row][i], one) for row in sorted(rows)]
            if len(parts) > 1:
                attributes = {"dimension": types.integer(0)}
                out = stacked(aval, len(parts))
                parts = [b.op("stablehlo.concatenate", *parts, attributes=attributes, aval=out)]
            found.append(parts[0])
        return found


__all__ = ["Loop", "is_long", "stacked"]
