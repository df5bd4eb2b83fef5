"""Forward mode: values that carry a tangent along.

A `JvpTracer` is a dual number. An operation on one calls the `jvp` rule of its primitive, under
the trace below, with primals and tangents taken apart. `None` is the tangent zero, at every
boundary: it is never an array unless a rule or a caller has no other way (`instantiate`). Values
without a tangent are not wrapped at all, so Python may branch on them, and operations on them cost
next to nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.structural import zeros
from perspex.tracing.past import UNKNOWN, Names
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import refuse_leaks
from perspex.transforms.programs import by_program, cut, like_primals, pick, program, with_gaps
from perspex.transforms.trace import PrimalTracer, TransformTrace


class JvpTracer(PrimalTracer):
    """A primal with its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: JvpTrace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self._past = UNKNOWN
        self.primal = primal
        self.tangent = tangent
        self.aval = shaped(primal)

    def __repr__(self) -> str:
        return f"JvpTracer(primal={self.primal!r}, tangent={self.tangent!r})"


class JvpTrace(TransformTrace):
    """Differentiates: every operation on dual numbers is its `jvp` rule."""

    __slots__ = ()
    doing = "differentiated"

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        nonzero = False
        for x in args:
            if x.__class__ is JvpTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                nonzero = True
            else:
                primals.append(x)
                tangents.append(None)
        if not nonzero:
            return self.below(self.parent.bind, (primitive, args, params), {})
        out, tangent = self.below(primitive.jvp, (primals, tangents), params)
        if primitive.multiple_results:
            outs = [
                y if t is None else JvpTracer(self, y, t) for y, t in zip(out, tangent, strict=True)
            ]
            if self.remembers:
                self.remember(primitive, args, outs)
            return outs
        if tangent is None:
            return out
        dual = JvpTracer(self, out, tangent)
        if self.remembers:
            dual._past = self.past_of(primitive, args, dual.aval)
        return dual


def jvp(
    f: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    arg_names: Names | None = None,
) -> tuple[list[Any], list[Any]]:
    """Results of the flat function `f` at `primals`, and their tangents due to `tangents`.

    `None` is zero, among the tangents given and those returned. `arg_names` tells errors what the
    user's function and its arguments are called.
    """
    trace = JvpTrace(arg_names)
    args = [
        x if t is None else JvpTracer(trace, x, t) for x, t in zip(primals, tangents, strict=True)
    ]
    outs = trace.run(f, args)
    mine = [y.__class__ is JvpTracer and y._trace is trace for y in outs]
    found = (
        [y.primal if own else y for y, own in zip(outs, mine, strict=True)],
        [y.tangent if own else None for y, own in zip(outs, mine, strict=True)],
    )
    if config.check_tracer_leaks.value:
        del args, outs
        refuse_leaks(trace)
    return found


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type that a tangent has inside a program: that of its primal, weak type included."""
    return aval


def cotangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type that a cotangent has inside a program: reduced where its primal is unreduced."""
    return tangent_aval(aval).cotangent()


def is_differentiable(aval: ShapedArray) -> bool:
    """Whether tangents of values of that type can differ from zero."""
    return not aval.is_extended and dtypes.issubdtype(aval.dtype, np.inexact)


@by_program
def jvp_jaxpr(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], instantiate: tuple[bool, ...] | bool = False
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program that computes results and their tangents.

    It takes the arguments of `closed` and the tangents of those marked `nonzero`; it returns the
    results, then the tangents of the results marked in the second value returned. Results marked
    `instantiate` have a tangent in any case, of zeros if need be.
    """
    count, outs = len(closed.in_avals), len(closed.out_avals)
    wanted = (instantiate,) * outs if isinstance(instantiate, bool) else instantiate
    out_nonzero: tuple[bool, ...] = ()

    def dual(*args: Any) -> list[Any]:
        nonlocal out_nonzero
        primals, given = cut(args, count)
        f = functools.partial(eval_jaxpr, closed.jaxpr, closed.consts)
        results, tangents = jvp(f, primals, with_gaps(given, nonzero))
        tangents = [
            zeros(tangent_aval(aval)) if t is None and want and is_differentiable(aval) else t
            for t, aval, want in zip(tangents, closed.out_avals, wanted, strict=True)
        ]
        out_nonzero = tuple([t is not None for t in tangents])
        return [*results, *like_primals(tangents, closed.out_avals)]

    avals = [*closed.in_avals, *map(tangent_aval, pick(closed.in_avals, nonzero))]
    return program(dual, avals, closed.jaxpr.name), out_nonzero
