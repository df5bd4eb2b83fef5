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

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex.hlo import types
from perspex.hlo.placed import carried
from perspex.hlo.watched import is_watched, unless_stopped
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.tracing import cuts
from perspex.transforms.higher_order import program_work
from perspex.transforms.programs import cut

_INDEX = ShapedArray((), np.dtype("int32"))
# A scan is watched if it may take so many nanoseconds ...
_LONG = 2e7
# ... once in every block of turns, which takes between the first and the last, best the second.
_BLOCK = 2e5, 2e6, 2e7


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of `length` values of type `aval`, along a new first axis."""
    return cuts.with_axis(aval, length)


def _estimate(step: ClosedJaxpr) -> float | None:
    """About how many nanoseconds a step takes, at 32 operations and 8 bytes in one."""
    work = program_work(step)
    if work.flops is None or work.traffic is None:
        return None
    return work.flops / 32 + work.traffic / 8 + len(step.eqns)


def is_long(step: ClosedJaxpr, length: Any) -> bool:
    """Whether a scan may take so long that somebody might want to stop it.

    A step whose work is not known may take any time.
    """
    if length.__class__ is not int:
        return False
    each = _estimate(step)
    return length > 1 if each is None else length * each >= _LONG


def block_of(step: ClosedJaxpr, turns: int, unroll: int) -> int:
    """How many turns of a scan to make between two looks at the page.

    XLA knows how often a block is repeated, so it tests nothing after each turn: to read the page
    there took 0.2 to 1 us a turn. A number that divides the turns leaves none over.
    """
    each = _estimate(step)
    if each is None:
        return 1
    least, best, most = [max(1.0, time / (each * unroll)) for time in _BLOCK]
    if best == 1.0:
        return 1
    fitting = [n for n in range(int(least), int(min(most, turns)) + 1) if turns % n == 0]
    return min(fitting, key=lambda n: abs(math.log(n / best)), default=min(int(best), turns))


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
        b, unroll = self.b, self.unroll
        buffers = [b.constant(0, stacked(aval, self.length)) for aval in self.y_avals]
        state = [*self.init, *buffers]
        zero = b.constant(0, _INDEX)
        if not self.is_watched:
            return self._parts(self._turns(b, zero, turns, state))
        block = block_of(self.jaxpr, turns, unroll)
        if block == 1:
            return self._parts(self._watched(b, zero, turns, 1, state))
        # Turns that are left over come first: after a stop, nothing else is to be done.
        left = turns % block
        if left:
            state = self._turns(b, zero, left, state)
        first = b.constant(left * unroll, _INDEX)
        return self._parts(self._watched(b, first, turns, block, state))

    def _parts(self, state: list[Any]) -> tuple[list[Any], list[Any]]:
        carry, buffers = cut(state, len(self.init))
        return carry, buffers

    def _watched(
        self, b: Any, first: Any, turns: int, block: int, state: Sequence[Any]
    ) -> list[Any]:
        """Blocks of turns from step `first` to the last of `turns`, unless they are stopped."""

        def going(inner: Any, i: Any) -> Any:
            end = inner.constant(turns * self.unroll, _INDEX)
            # The page is read at a place that changes with each block.
            count = inner.op(
                "stablehlo.divide", i, inner.constant(block * self.unroll, _INDEX), aval=_INDEX
            )
            return unless_stopped(inner, inner.compare("LT", i, end, _INDEX), count)

        def turn(inner: Any, i: Any, values: list[Any]) -> list[Any]:
            if block == 1:
                return self._turn(inner, i, values)
            return self._turns(inner, i, block, values)

        return self._loop(b, first, block * self.unroll, state, going, turn)

    def _turns(self, b: Any, first: Any, turns: int, state: Sequence[Any]) -> list[Any]:
        """So many turns, from step `first` on."""

        def going(inner: Any, i: Any) -> Any:
            return inner.compare("LT", i, inner.constant(turns * self.unroll, _INDEX), _INDEX)

        def turn(inner: Any, i: Any, values: list[Any]) -> list[Any]:
            if self.is_watched:
                i = inner.op("stablehlo.add", first, i, aval=_INDEX)
            return self._turn(inner, i, values)

        return self._loop(b, b.constant(0, _INDEX), self.unroll, state, going, turn)

    def _loop(
        self,
        b: Any,
        start: Any,
        step: int,
        state: Sequence[Any],
        going: Callable[[Any, Any], Any],
        turn: Callable[[Any, Any, list[Any]], list[Any]],
    ) -> list[Any]:
        """A loop over a counter from `start` on, by `step`, and the carry and buffers."""
        buffer_avals = [stacked(aval, self.length) for aval in self.y_avals]
        avals = [_INDEX, *self.carry_avals, *buffer_avals]
        loop = b.ops("stablehlo.while", [start, *state], avals, regions=2)
        with b.block(loop.regions[0], avals) as (inner, (i, *_)):
            inner.terminate("stablehlo.return", [going(inner, i)])
        with b.block(loop.regions[1], avals) as (inner, (i, *values)):
            after = turn(inner, i, carried(inner, values, avals[1:]))
            following = inner.op("stablehlo.add", i, inner.constant(step, _INDEX), aval=_INDEX)
            inner.terminate("stablehlo.return", [following, *after])
        return list(loop.results)[1:]

    def _turn(self, inner: Any, i: Any, state: Sequence[Any]) -> list[Any]:
        """One turn, which begins with step `i`: the carry and the buffers after it."""
        length, unroll = self.length, self.unroll
        carry, buffers = cut(state, len(self.init))
        row = i
        if self.reverse:
            last = inner.constant(length - unroll, _INDEX)
            row = inner.op("stablehlo.subtract", last, i, aval=_INDEX)
        blocks = [
            self._slice(inner, x, row, aval) for x, aval in zip(self.xs, self.x_avals, strict=True)
        ]
        order = range(unroll)[::-1] if self.reverse else range(unroll)
        carry, rows = self._line(inner, carry, order, blocks)
        stacks = self._stack(inner, rows)
        buffers = [
            self._update(inner, buffer, block, row, aval)
            for buffer, block, aval in zip(buffers, stacks, self.y_avals, strict=True)
        ]
        return [*carry, *buffers]

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
