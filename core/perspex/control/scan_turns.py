"""A scan as a program that makes some of its turns, and goes on from what it gave.

    i, carry, buffers of ys = step(consts, xs, i, carry, buffers of ys)

The number of the step and the buffers are part of what goes around, so the program is a `while`
over blocks of steps: as in `control.scan_lowering`, of a known number, where XLA tests nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.control.loops import Params, while_p
from perspex.control.scan_lowering import block_of, stacked
from perspex.hlo.watched import COUNT
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.arithmetic import add, bitwise_and, lt, sub
from perspex.ops.dynamic import dynamic_slice, dynamic_update_slice
from perspex.ops.structural import reshape_like, zeros
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.higher_order import Turns
from perspex.transforms.programs import by_program, cut, program

_ZERO, _ONE = np.int32(0), np.int32(1)


def turns_of(
    scan: Primitive,
    *,
    jaxpr: ClosedJaxpr,
    length: Any,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> Turns | None:
    """The turns of a scan, given the primitive of scans and the params of one."""
    ys = jaxpr.out_avals[num_carry:]
    if length.__class__ is not int or any(y.is_extended or y.is_float0 for y in ys):
        return None  # there are no zeros of these to begin with
    unroll = max(unroll, 1)
    turns = length // unroll
    steps = unroll * block_of(jaxpr, turns, unroll) if turns > 1 else length
    left = length % steps
    begin, advance = _programs(
        jaxpr, scan, length, reverse, unroll, num_consts, num_carry, steps, left
    )
    count = len(jaxpr.in_avals)
    fixed = tuple([not num_consts <= i < num_consts + num_carry for i in range(count)])
    return Turns(fixed, begin, advance, steps, left, length)


@by_program
def _programs(
    jaxpr: ClosedJaxpr,
    scan: Primitive,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
    steps: int,
    left: int,
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """`begin` and `advance`, as in `Turns`."""
    consts, carry, rows = cut(jaxpr.in_avals, num_consts, num_carry)
    carry = jaxpr.out_avals[:num_carry]
    xs = [stacked(x, length) for x in rows]
    buffers = [stacked(y, length) for y in jaxpr.out_avals[num_carry:]]
    fixed = len(consts) + len(xs)
    last = np.int32(length - 1)

    def step(*args: Any) -> list[Any]:
        given, stacks, (i,), values, ys = cut(args, len(consts), len(xs), 1, num_carry)
        row = sub(last, i) if reverse else i
        x = [_row(stack, row, aval) for stack, aval in zip(stacks, rows, strict=True)]
        after, found = cut(eval_jaxpr(jaxpr.jaxpr, (), *given, *values, *x), num_carry)
        ys = [_with_row(y, row, new) for y, new in zip(ys, found, strict=True)]
        return [add(i, _ONE), *after, *ys]

    state = [COUNT, *carry, *buffers]
    body = program(step, [*consts, *xs, *state], "step")

    def some(count: int, args: Sequence[Any]) -> list[Any]:
        """So many steps, in a loop of that length."""
        if count == 0:
            return list(args[fixed:])
        if count == 1:
            return eval_jaxpr(body.jaxpr, (), *args)
        return list(
            scan(
                *args,
                jaxpr=body,
                length=count,
                reverse=False,
                unroll=unroll,
                num_consts=fixed,
                num_carry=len(state),
            )
        )

    def begin(*args: Any) -> list[Any]:
        given, init, stacks = cut(args, num_consts, num_carry)
        return some(left, [*given, *stacks, _ZERO, *init, *map(zeros, buffers)])

    def going(limit: Any, made: Any, i: Any, *values: Any) -> list[Any]:
        return [bitwise_and(lt(i, np.int32(length)), lt(made, limit))]

    def turn(*args: Any) -> list[Any]:
        given, (made, *values) = cut(args, fixed)
        return [add(made, _ONE), *some(steps, [*given, *values])]

    def advance(*args: Any) -> list[Any]:
        given, (*values, limit) = cut(args, fixed)
        made, *after = while_p(limit, *given, _ZERO, *values, **loop._asdict())
        return [*after, made]

    loop = Params(
        program(going, [COUNT, COUNT, *state], "cond"),
        1,
        program(turn, [*consts, *xs, COUNT, *state], "body"),
        fixed,
    )
    return (
        program(begin, [*consts, *carry, *xs], "begin"),
        program(advance, [*consts, *xs, *state, COUNT], "advance"),
    )


def _row(stack: Any, row: Any, aval: Any) -> Any:
    """One row of xs."""
    starts = [row, *[_ZERO] * aval.ndim]
    found = dynamic_slice(stack, *starts, slice_sizes=(1, *aval.shape))
    return reshape_like(found, aval)


def _with_row(stack: Any, row: Any, value: Any) -> Any:
    """The buffer of ys with a row in its place."""
    starts = [row, *[_ZERO] * typeof(value).ndim]
    return dynamic_update_slice(stack, reshape_like(value, stacked(typeof(value), 1)), *starts)
