"""Tokens: values without content, by which a program says what comes after what.

A token is one boolean that is false. Nothing here takes one to do something; what a program makes
of them is an order among themselves, which the compiler keeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops.structural import to_front
from perspex.tracing.primitive import Primitive

TOKEN = ShapedArray((), np.dtype("bool"))


class CreateToken(Primitive):
    """A token that comes after nothing."""

    name = "create_token"
    only_moves = True

    def type(self) -> ShapedArray:
        return TOKEN

    def lower(self, b: Any) -> Any:
        return b.constant(False, TOKEN)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(), None


class AfterAll(Primitive):
    """A token that comes after all of the operands, which are tokens."""

    name = "after_all"
    only_moves = True

    def type(self, *avals: ShapedArray) -> ShapedArray:
        # Under `vmap` a token may have an axis.
        for i, aval in enumerate(avals):
            if aval.dtype != TOKEN.dtype:
                raise TypeError(
                    f"Arguments to after_all must be tokens, got {aval.str_short()} at position "
                    f"{i}; lax.create_token makes one"
                )
        return avals[0] if avals else TOKEN

    def lower(self, b: Any, *tokens: Any) -> Any:
        if not tokens:
            return b.constant(False, TOKEN)
        made = b.ops("stablehlo.optimization_barrier", tokens, b.in_avals).results
        return made[0]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), None

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return self(*[to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]), 0


create_token = CreateToken()
after_all = AfterAll()
