"""`while`: a loop that ends when the carried values say so.

    (cond consts, carry) -> bool           goes on while it is true
    (body consts, carry) -> carry          the program of one turn

The number of turns is not known before, so nothing can be stacked: forward mode and batching work,
reverse mode does not. A batch of loops runs until the last of them is done; those that are done
before keep what they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.base import source
from perspex.base.effects import is_io
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from perspex.ops.elementwise import select
from perspex.ops.reductions import reduce_or
from perspex.ops.structural import broadcast_in_dim, to_front
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import state, typeof
from perspex.transforms.dce import dce_closed, without_effects
from perspex.transforms.higher_order import (
    HigherOrder,
    batch_in_front,
    check_operands,
    fixpoint,
    instantiated,
    rearranged,
)
from perspex.transforms.jvp import jvp_jaxpr
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, merge, partition, pick, program, spread
from perspex.transforms.sequence import TOKEN, sequenced
from perspex.transforms.vmap import batch_jaxpr, batched_aval

_FLAG = ShapedArray((), np.dtype("bool"))


class While(HigherOrder):
    """The loop as an equation.

    Params: `cond_jaxpr` with the first `cond_nconsts` operands as consts; `body_jaxpr` with the
    next `body_nconsts`.
    """

    name = "while"

    def type(
        self,
        *avals: ShapedArray,
        cond_jaxpr: ClosedJaxpr,
        cond_nconsts: int,
        body_jaxpr: ClosedJaxpr,
        body_nconsts: int,
    ) -> tuple[ShapedArray, ...]:
        cond_consts, body_consts, init = cut(avals, cond_nconsts, body_nconsts)
        check_operands("while: cond", [*cond_consts, *init], cond_jaxpr.in_avals)
        check_operands("while: body", [*body_consts, *init], body_jaxpr.in_avals)
        check_operands("while: the carry after a turn", body_jaxpr.out_avals, init)
        check_operands("while: the result of cond", cond_jaxpr.out_avals, [_FLAG])
        return tuple(body_jaxpr.out_avals)

    def lower(
        self,
        b: Any,
        *values: Any,
        cond_jaxpr: ClosedJaxpr,
        cond_nconsts: int,
        body_jaxpr: ClosedJaxpr,
        body_nconsts: int,
    ) -> list[Any]:
        cond_consts, body_consts, init = cut(values, cond_nconsts, body_nconsts)
        avals = body_jaxpr.out_avals
        loop = b.ops("stablehlo.while", init, avals, regions=2)
        programs = ((cond_consts, cond_jaxpr), (body_consts, body_jaxpr))
        for region, (consts, closed) in zip(loop.regions, programs, strict=True):
            with b.block(region, avals) as (inner, carry):
                outs = inner.inline(closed.jaxpr, [*consts, *carry])
                inner.terminate("stablehlo.return", outs)
        return list(loop.results)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        cond_jaxpr: ClosedJaxpr,
        cond_nconsts: int,
        body_jaxpr: ClosedJaxpr,
        body_nconsts: int,
    ) -> tuple[list[Any], list[Any]]:
        cond_consts, body_consts, init = cut(primals, cond_nconsts, body_nconsts)
        _, consts_t, init_t = cut(tangents, cond_nconsts, body_nconsts)
        nonzero = tuple([t is not None for t in (*consts_t, *init_t)])
        body, carry_nonzero = _jvp_body(body_jaxpr, body_nconsts, nonzero)
        consts_t = [t for t in consts_t if t is not None]
        init_t = instantiated(init_t, init, carry_nonzero)
        outs = self(
            *[*cond_consts, *body_consts, *consts_t, *init, *init_t],
            cond_jaxpr=_with_arguments(cond_jaxpr, tuple([typeof(t) for t in init_t])),
            cond_nconsts=cond_nconsts,
            body_jaxpr=body,
            body_nconsts=body_nconsts + len(consts_t),
        )
        results, found = cut(outs, len(init))
        return results, spread(found, carry_nonzero)

    def batch(
        self,
        axis: Axis,
        operands: Sequence[Any],
        axes: Sequence[int | None],
        *,
        cond_jaxpr: ClosedJaxpr,
        cond_nconsts: int,
        body_jaxpr: ClosedJaxpr,
        body_nconsts: int,
    ) -> tuple[list[Any], list[int | None]]:
        sizes = cond_nconsts, body_nconsts
        batched = tuple([at is not None for at in axes])
        cond, body, many, carry_batched = _batch_loop(body_jaxpr, cond_jaxpr, axis, *sizes, batched)
        cond_consts, body_consts, init = cut(operands, *sizes)
        cond_at, body_at, init_at = cut(axes, *sizes)
        cond_consts = batch_in_front(cond_consts, cond_at)
        body_consts = batch_in_front(body_consts, body_at)
        init = [
            to_front(x, at, axis.size) if flag else x
            for x, at, flag in zip(init, init_at, carry_batched, strict=True)
        ]
        out_axes = [0 if flag else None for flag in carry_batched]
        if many is None:
            outs = self(
                *[*cond_consts, *body_consts, *init],
                cond_jaxpr=cond,
                cond_nconsts=cond_nconsts,
                body_jaxpr=body,
                body_nconsts=body_nconsts,
            )
            return outs, out_axes
        if is_io(cond_jaxpr.effects | body_jaxpr.effects):
            raise NotImplementedError(
                "IO effects are not supported in a while_loop whose predicate differs among the "
                "examples of a vmap: the loop runs for all of them until the last one is done. "
                "Use debug.callback, or call io_callback outside the loop."
            )
        going = eval_jaxpr(cond.jaxpr, (), *cond_consts, *init)
        outs = self(
            *[*cond_consts, *body_consts, *going, *init],
            cond_jaxpr=many[0],
            cond_nconsts=0,
            body_jaxpr=many[1],
            body_nconsts=cond_nconsts + body_nconsts,
        )
        return outs[1:], out_axes

    def sequence(
        self,
        token: Any,
        *operands: Any,
        cond_jaxpr: ClosedJaxpr,
        cond_nconsts: int,
        body_jaxpr: ClosedJaxpr,
        body_nconsts: int,
    ) -> tuple[Any, list[Any]]:
        cond_consts, body_consts, init = cut(operands, cond_nconsts, body_nconsts)
        cond, body = _sequenced_loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts)
        token, going = eval_jaxpr(sequenced(cond_jaxpr).jaxpr, (), token, *cond_consts, *init)
        _, token, *outs = self(
            *[*cond_consts, *body_consts, going, token, *init],
            cond_jaxpr=cond,
            cond_nconsts=0,
            body_jaxpr=body,
            body_nconsts=cond_nconsts + body_nconsts,
        )
        return token, outs

    def split(
        self,
        unknown: Sequence[bool],
        *operands: Any,
        cond_jaxpr: ClosedJaxpr,
        cond_nconsts: int,
        body_jaxpr: ClosedJaxpr,
        body_nconsts: int,
    ) -> tuple[list[Any], Rest | None]:
        params = {
            "cond_jaxpr": cond_jaxpr,
            "cond_nconsts": cond_nconsts,
            "body_jaxpr": body_jaxpr,
            "body_nconsts": body_nconsts,
        }
        sizes = cond_nconsts, body_nconsts
        cond, body, carry = _split_loop(body_jaxpr, cond_jaxpr, *sizes, tuple(unknown))
        if all(carry):
            return [None] * len(carry), Rest(self, operands, params)
        flags = (*unknown[: sum(sizes)], *carry)
        outs = self(
            *partition(operands, flags)[0],
            cond_jaxpr=cond,
            cond_nconsts=list(flags[:cond_nconsts]).count(False),
            body_jaxpr=body,
            body_nconsts=list(flags[cond_nconsts : sum(sizes)]).count(False),
        )
        results = merge(carry, outs, [None] * sum(carry))
        if not any(carry):
            return results, None
        # The unknown part repeats the whole loop: how often, only the loop knows. Effects have
        # happened in the known part.
        params["cond_jaxpr"] = without_effects(cond_jaxpr)
        params["body_jaxpr"] = without_effects(body_jaxpr)
        if self.effects(params):
            raise NotImplementedError(
                "linearize: an io_callback with results in a while_loop would be called twice, "
                "because the derivative runs the loop again; use lax.scan, or pure_callback"
            )
        return results, Rest(self, operands, params, carry)

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> Any:
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop, nor for lax.fori_loop "
            "whose bounds are traced: how many turns there are, and so how many values to keep "
            "for the way back, is not known before. Use lax.scan, or lax.fori_loop with bounds "
            "that are Python integers (static under jit); or differentiate in forward mode "
            f"(jvp, jacfwd). The loop is at {source.summary(state.source)}."
        )

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        params = eqn.params
        cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
        sizes = params["cond_nconsts"], params["body_nconsts"]
        _, read = dce_closed(cond_jaxpr, (True,))
        start = [a or b for a, b in zip(used, read[sizes[0] :], strict=True)]

        def step(carry: tuple[bool, ...]) -> Any:
            body, needed = dce_closed(body_jaxpr, carry, (*[False] * sizes[1], *carry))
            return (body, needed[: sizes[1]], carry), needed[sizes[1] :]

        body, body_consts, carry = fixpoint(step, start)
        cond, cond_needed = dce_closed(cond_jaxpr, (True,), (*[False] * sizes[0], *carry))
        cond_consts = cond_needed[: sizes[0]]
        return eqn.replace(
            invars=pick(eqn.invars, [*cond_consts, *body_consts, *carry]),
            outvars=pick(eqn.outvars, carry),
            params={
                "cond_jaxpr": cond,
                "cond_nconsts": sum(cond_consts),
                "body_jaxpr": body,
                "body_nconsts": sum(body_consts),
            },
        )


# ---- The programs that the rules make -----------------------------------------------------------


@by_program
def _with_arguments(closed: ClosedJaxpr, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """The program with more arguments, which it does not read."""
    return rearranged(closed, [*closed.jaxpr.invars, *map(Var, avals)])


@by_program
def _jvp_body(
    body: ClosedJaxpr, num_consts: int, nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    consts, start = cut(nonzero, num_consts)

    def step(carry: tuple[bool, ...]) -> Any:
        dual, out_nonzero = jvp_jaxpr(body, (*consts, *carry), carry)
        return (dual, out_nonzero), out_nonzero

    dual, out_nonzero = fixpoint(step, start)
    mine, carry, mine_t, carry_t = cut(dual.jaxpr.invars, num_consts, len(start), sum(consts))
    return rearranged(dual, [*mine, *mine_t, *carry, *carry_t]), out_nonzero


@by_program
def _batch_loop(
    body: ClosedJaxpr,
    cond: ClosedJaxpr,
    axis: Axis,
    cond_nconsts: int,
    body_nconsts: int,
    batched: tuple[bool, ...],
) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple[ClosedJaxpr, ClosedJaxpr] | None, tuple[bool, ...]]:
    """Cond and body on batches, and which carry is batched.

    Where each loop of the batch has its own condition, there are a cond and a body beside them
    that carry along which of the loops still go on.
    """
    cond_consts, body_consts, start = cut(batched, cond_nconsts, body_nconsts)

    def step(carry: tuple[bool, ...]) -> Any:
        body_batch, after = batch_jaxpr(body, axis, (*body_consts, *carry), carry)
        cond_batch, (own,) = batch_jaxpr(cond, axis, (*cond_consts, *carry))
        # Loops that end at different turns have different values, whatever they started from.
        return (cond_batch, body_batch, own, carry), (True,) * len(carry) if own else after

    cond_batch, body_batch, own, carry = fixpoint(step, start)
    if not own:
        return cond_batch, body_batch, None, carry
    going_aval = batched_aval(_FLAG, axis.size)

    def any_going(going: Any, *values: Any) -> list[Any]:
        return [reduce_or(going, axes=(0,))]

    def turn(*args: Any) -> list[Any]:
        for_cond, for_body, (going, *values) = cut(args, cond_nconsts, body_nconsts)
        after = eval_jaxpr(body_batch.jaxpr, (), *for_body, *values)
        values = [_select(going, new, old) for new, old in zip(after, values, strict=True)]
        return [*eval_jaxpr(cond_batch.jaxpr, (), *for_cond, *values), *values]

    values = [going_aval, *body_batch.out_avals]
    consts = [*cond_batch.in_avals[:cond_nconsts], *body_batch.in_avals[:body_nconsts]]
    many = program(any_going, values, "cond"), program(turn, [*consts, *values], "body")
    return cond_batch, body_batch, many, carry


def _select(going: Any, new: Any, old: Any) -> Any:
    shape = typeof(new).shape
    if len(shape) > 1:
        going = broadcast_in_dim(going, shape=shape, broadcast_dimensions=(0,))
    return select(going, new, old)


@by_program
def _sequenced_loop(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Cond and body that carry a token, and whether to go on.

    A cond returns nothing but that, so where it has effects the body calls it and hands on both.
    """
    carry = body.out_avals

    def going_on(going: Any, token: Any, *values: Any) -> list[Any]:
        return [going]

    def turn(*args: Any) -> list[Any]:
        for_cond, for_body, (_, token, *values) = cut(args, cond_nconsts, body_nconsts)
        token, *after = eval_jaxpr(sequenced(body).jaxpr, (), token, *for_body, *values)
        token, going = eval_jaxpr(sequenced(cond).jaxpr, (), token, *for_cond, *after)
        return [going, token, *after]

    consts = [*cond.in_avals[:cond_nconsts], *body.in_avals[:body_nconsts]]
    values = [_FLAG, TOKEN, *carry]
    return program(going_on, values, "cond"), program(turn, [*consts, *values], "body")


@by_program
def _split_loop(
    body: ClosedJaxpr,
    cond: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    unknown: tuple[bool, ...],
) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple[bool, ...]]:
    """Cond and body of the known part, and which carry is unknown."""
    cond_consts, body_consts, start = cut(unknown, cond_nconsts, body_nconsts)

    def step(carry: tuple[bool, ...]) -> Any:
        halves = split_jaxpr(body, (*body_consts, *carry), carry)
        ends = split_jaxpr(cond, (*cond_consts, *carry))
        after = (True,) * len(carry) if ends.out_unknown[0] else halves.out_unknown
        return (ends, halves, carry), after

    ends, halves, carry = fixpoint(step, start)
    known = halves.known
    count = carry.count(False)
    used = (*[True] * count, *[False] * (len(known.out_avals) - count))
    smaller, _ = dce_closed(known, used, (True,) * len(known.in_avals))
    return ends.known, smaller, carry


while_p = While()
