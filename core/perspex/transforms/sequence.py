"""Ordered effects: their order as data, so that no compiler changes it.

Before a program with ordered effects is lowered it is given a *token*, which each of them takes
from the one before and hands to the next. For the compiler a token is an array like any other that
nobody but the effect itself can compute; it goes round loops as a carry, through branches and calls
as a result, and from one compiled call to the next.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from perspex.base.effects import has_order
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr, hoist_consts
from perspex.tracing.trace import under
from perspex.transforms.programs import by_program, cut, program
from perspex.transforms.trace import TransformTrace

# One element, because XLA makes constants of arrays that have none.
TOKEN = ShapedArray((), np.dtype("bool"))


class SequenceTrace(TransformTrace):
    """Operations with ordered effects get the token of the last one, and set it."""

    __slots__ = ("token",)

    def __init__(self, token: Any) -> None:
        super().__init__()
        self.token = token

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not has_order(primitive.effects(params)):
            return self.below(self.parent.bind, (primitive, args, params), {})
        self.token, outs = self.below(primitive.sequence, (self.token, *args), params)
        return outs


@by_program
def sequenced(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with a token more: its first argument, and its first result."""

    def in_order(token: Any, *args: Any) -> list[Any]:
        trace = SequenceTrace(token)
        f = functools.partial(eval_jaxpr, closed.jaxpr, closed.consts)
        outs = under(trace, f, *args)
        return [trace.token, *outs]

    return program(in_order, [TOKEN, *closed.in_avals], closed.jaxpr.name)


def sequenced_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """`sequenced` for a program that still has variables for its constants."""
    whole = sequenced(ClosedJaxpr(hoist_consts(jaxpr))).jaxpr
    (token,), consts, args = cut(whole.invars, 1, len(jaxpr.constvars))
    return whole.replace(constvars=consts, invars=[token, *args])
