"""The first half of a `custom_vjp` rule as one call, which the function can replace.

    operands -> residuals, results of the function

Where nothing reads the residuals, as in the first pass of `checkpoint`, only the function's results
are wanted. The function may compute them at less cost than the rule without its residuals: where
one opaque operation gives results and residuals together, none of it is dead code. A rule with
`optimize_remat` is therefore this one equation, which also holds the program of the function, and
the removal of dead code chooses between the two. In everything else it is a call of the rule's
program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from perspex.jitted.call import jit_p
from perspex.ops.structural import convert
from perspex.rules.calls import WholeCall, plain_call, transposed_call
from perspex.rules.custom_call import check_constants
from perspex.tracing.axes import Axis
from perspex.tracing.staging import JaxprTrace, stage_closed
from perspex.tracing.trace import state, typeof
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import batch_in_front, rearranged
from perspex.transforms.identity import HowToTransform
from perspex.transforms.jvp import jvp_jaxpr
from perspex.transforms.linearize import Rest
from perspex.transforms.programs import cut, pick, with_gaps
from perspex.transforms.vmap import batch_jaxpr


class Substitute(HowToTransform):
    """The program of the function, made when it is asked for: most are never needed."""

    def __init__(self, name: str, make: Callable[[], ClosedJaxpr]) -> None:
        self.name = name
        self.program = functools.cache(make)

    def derived(self, make: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Substitute:
        """What `make` makes of the program."""
        return Substitute(self.name, lambda: make(self.program()))

    def __repr__(self) -> str:
        return self.name


class ForwardCall(WholeCall):
    """The call as an equation; the first `num_res` results are the residuals."""

    name = "remat_opt"
    program = "fwd_jaxpr"

    def jvp(
        self, primals: Any, tangents: Any, *, fwd_jaxpr: ClosedJaxpr, fun: Substitute, num_res: int
    ) -> tuple[list[Any], list[Any]]:
        nonzero = tuple([t is not None for t in tangents])
        body, out_nonzero = jvp_jaxpr(fwd_jaxpr, nonzero)
        of_residuals, of_results = cut(out_nonzero, num_res)
        residuals, results, dual_residuals, dual_results = cut(
            body.jaxpr.outvars, num_res, len(of_results), sum(of_residuals)
        )

        def dual(closed: ClosedJaxpr) -> ClosedJaxpr:
            found, some = jvp_jaxpr(closed, nonzero, tuple(of_results))
            outs, ts = cut(found.jaxpr.outvars, len(some))
            # The function's own results may have tangents where the rule says that they are zero.
            wanted = pick(ts, pick(of_results, some))
            return rearranged(found, found.jaxpr.invars, [*outs, *wanted])

        outs = self(
            *primals,
            *pick(tangents, nonzero),
            fwd_jaxpr=rearranged(
                body, body.jaxpr.invars, [*residuals, *dual_residuals, *results, *dual_results]
            ),
            fun=fun.derived(dual),
            num_res=num_res + len(dual_residuals),
        )
        stored, stored_ts, outs, ts = cut(outs, num_res, len(dual_residuals), len(results))
        return [*stored, *outs], [*with_gaps(stored_ts, of_residuals), *with_gaps(ts, of_results)]

    def batch(
        self,
        axis: Axis,
        operands: Any,
        axes: Any,
        *,
        fwd_jaxpr: ClosedJaxpr,
        fun: Substitute,
        num_res: int,
    ) -> tuple[list[Any], list[int | None]]:
        batched = tuple([at is not None for at in axes])
        # All results have the axis, as then they have it whichever program gives them.
        wanted = tuple([i >= num_res for i in range(len(fwd_jaxpr.out_avals))])
        body, out_batched = batch_jaxpr(fwd_jaxpr, axis, batched, wanted)
        outs = self(
            *batch_in_front(operands, axes),
            fwd_jaxpr=body,
            fun=fun.derived(lambda closed: batch_jaxpr(closed, axis, batched, True)[0]),
            num_res=num_res,
        )
        return outs, [0 if flag else None for flag in out_batched]

    def split(
        self,
        unknown: Sequence[bool],
        *operands: Any,
        fwd_jaxpr: ClosedJaxpr,
        fun: Substitute,
        num_res: int,
    ) -> tuple[list[Any], Rest | None]:
        # A part of the rule is no rule: from here on it is a call.
        return jit_p.split(unknown, *operands, **plain_call(fwd_jaxpr, fun.name, inline=True))

    def transpose(
        self, cts: Any, *operands: Any, fwd_jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        return transposed_call(fwd_jaxpr, cts, operands)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        if all(used):
            return eqn
        params = eqn.params
        fun, num_res = params["fun"], params["num_res"]
        of_residuals, of_results = cut(used, num_res)
        outvars = pick(eqn.outvars, used)
        if any(of_residuals) and any(of_results):
            # Both may still be wanted of either program: all operands stay.
            results, keep = tuple(of_results), (True,) * len(eqn.invars)
            body, _ = dce_closed(params["fwd_jaxpr"], tuple(used), keep)
            fun = fun.derived(lambda closed: dce_closed(closed, results, keep)[0])
            smaller = {"fwd_jaxpr": body, "fun": fun, "num_res": sum(of_residuals)}
            return eqn.replace(outvars=outvars, params=smaller)
        if any(of_residuals):
            body, needed = dce_closed(params["fwd_jaxpr"], tuple(used))
        else:
            body, needed = dce_closed(fun.program(), tuple(of_results))
        invars = pick(eqn.invars, needed)
        call = plain_call(body, fun.name, inline=True)
        return JaxprEqn(jit_p, invars, outvars, call, eqn.source)


forward_call = ForwardCall()


def is_written() -> bool:
    """Whether what happens now is written into a program, below whatever transforms it."""
    trace: Any = state.trace
    while trace is not None and trace.__class__ is not JaxprTrace:
        trace = getattr(trace, "parent", None)
    return trace is not None


def call_forward(
    rule: Any, forward: Callable[..., list[Any]], args: Sequence[Any], num_res: Callable[[], int]
) -> list[Any]:
    """`forward(*args)`, residuals and results, as an equation that knows the function of `rule`.

    `num_res()` is the number of residuals, which is known when `forward` has run.
    """
    avals = [typeof(x) for x in args]
    fun, of_fun = stage_closed(rule.primal, avals, rule.name)
    rule.note_types(fun.out_avals)

    def like_function(*args: Any) -> list[Any]:
        residuals, outs = cut(forward(*args), num_res())
        # Of the same types, also where those are weak: either program may give them.
        return [
            *residuals,
            *[
                convert(y, aval.dtype, aval.weak_type)
                for y, aval in zip(outs, fun.out_avals, strict=True)
            ],
        ]

    fwd, of_fwd = stage_closed(like_function, avals, rule.rule_name)
    consts = [*of_fwd, *of_fun]
    check_constants(rule, consts)
    # Each program takes what the other one closes over, too.
    mine, given = cut(fwd.jaxpr.invars, len(of_fwd))
    fwd = rearranged(fwd, [*mine, *[Var(typeof(x)) for x in of_fun], *given])
    mine, given = cut(fun.jaxpr.invars, len(of_fun))
    closed = rearranged(fun, [*[Var(typeof(x)) for x in of_fwd], *mine, *given])
    return forward_call(
        *consts, *args, fwd_jaxpr=fwd, fun=Substitute(rule.name, lambda: closed), num_res=num_res()
    )
