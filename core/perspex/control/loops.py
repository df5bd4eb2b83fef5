"""`while`: a loop that ends when the carried values say so.

    (cond consts, carry) -> bool           goes on while it is true
    (body consts, carry) -> carry          the program of one turn

The number of turns is not known before, so nothing can be stacked: forward mode and batching work,
reverse mode does not. A batch of loops runs until the last of them is done; those that are done
before keep what they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.base import source
from perspex.base.effects import is_io
from perspex.hlo.placed import carried
from perspex.hlo.watched import COUNT, has_number, is_watched, next_turn, number_in, unless_stopped
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from perspex.ops.arithmetic import add, bitwise_and, lt
from perspex.ops.elementwise import select
from perspex.ops.reductions import reduce_or
from perspex.ops.structural import broadcast_in_dim, to_front
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import state, typeof
from perspex.transforms import discharge
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed, without_effects
from perspex.transforms.expansion import Carried, Expand, Expanding, flattened
from perspex.transforms.higher_order import (
    Turns,
    batch_in_front,
    check_operands,
    fixpoint,
    rearranged,
)
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, merge, partition, pick, program
from perspex.transforms.sequence import TOKEN, sequenced
from perspex.transforms.vmap import batch_jaxpr, batched_aval

_FLAG = ShapedArray((), np.dtype("bool"))
_ZERO, _ONE = np.int32(0), np.int32(1)
# The name of the cond of loops that each have their own, as one loop.
_ANY_GOING = "any_going"


class Params(NamedTuple):
    """The params of a loop, by their names in the equation.

    The first `cond_nconsts` operands are consts of `cond_jaxpr`, the next `body_nconsts` those of
    `body_jaxpr`; the rest is the carry.
    """

    cond_jaxpr: ClosedJaxpr
    cond_nconsts: int
    body_jaxpr: ClosedJaxpr
    body_nconsts: int

    @property
    def sizes(self) -> tuple[int, int]:
        """How many operands are consts of `cond`, and how many of `body`."""
        return self.cond_nconsts, self.body_nconsts


def _moving(loop: Params) -> int | None:
    """A value of the carry that each turn computes anew, and that has a number to look at."""
    body = loop.body_jaxpr.jaxpr
    _, carry = cut(body.invars, loop.body_nconsts)
    made = {v for eqn in body.eqns for v in eqn.outvars}
    fitting = [
        i
        for i, v in enumerate(body.outvars)
        if v.__class__ is Var and v in made and v is not carry[i] and has_number(v.aval)
    ]
    return min(fitting, key=lambda i: body.outvars[i].aval.size, default=None)


class While(Expanding):
    """The loop as an equation; its params are those of `Params`."""

    name = "while"
    is_loop = True
    shares_refs = True

    def may_take_long(self, params: dict[str, Any]) -> bool:
        return True

    def type(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        loop = Params(**params)
        cond_consts, body_consts, init = cut(avals, *loop.sizes)
        check_operands("while: cond", [*cond_consts, *init], loop.cond_jaxpr.in_avals)
        check_operands("while: body", [*body_consts, *init], loop.body_jaxpr.in_avals)
        check_operands("while: the carry after a turn", loop.body_jaxpr.out_avals, init)
        check_operands("while: the result of cond", loop.cond_jaxpr.out_avals, [_FLAG])
        return tuple(loop.body_jaxpr.out_avals)

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        loop = Params(**params)
        cond_consts, body_consts, init = cut(values, *loop.sizes)
        avals = loop.body_jaxpr.out_avals
        # A fixed place of the page would be read once, before the loop, by XLA or by LLVM.
        place = _moving(loop) if is_watched(b) else None
        turns = [COUNT] * (is_watched(b) and place is None)
        start = [*[b.constant(0, COUNT) for _ in turns], *init]
        made = b.ops("stablehlo.while", start, [*turns, *avals], regions=2)
        cond, body = made.regions
        with b.block(cond, [*turns, *avals]) as (inner, values):
            turn, carry = cut(values, len(turns))
            (going,) = inner.inline(loop.cond_jaxpr.jaxpr, [*cond_consts, *carry])
            if is_watched(b):
                if place is not None:
                    turn = [number_in(inner, carry[place], avals[place])]
                going = unless_stopped(inner, going, *turn)
            inner.terminate("stablehlo.return", [going])
        with b.block(body, [*turns, *avals]) as (inner, values):
            turn, carry = cut(values, len(turns))
            carry = carried(inner, carry, avals)
            outs = inner.inline(loop.body_jaxpr.jaxpr, [*body_consts, *carry])
            following = [next_turn(inner, number) for number in turn]
            inner.terminate("stablehlo.return", [*following, *outs])
        return list(made.results)[len(turns) :]

    def in_turns(self, params: dict[str, Any]) -> Turns | None:
        loop = Params(**params)
        if loop.cond_jaxpr.effects:
            return None  # it is asked once more where a loop is entered again
        fixed, carry = sum(loop.sizes), len(loop.body_jaxpr.out_avals)
        init = list(map(Var, loop.body_jaxpr.in_avals[loop.body_nconsts :]))
        operands = [*map(Var, [*loop.cond_jaxpr.in_avals[: loop.cond_nconsts]])]
        operands += [*map(Var, [*loop.body_jaxpr.in_avals[: loop.body_nconsts]]), *init]
        begin = ClosedJaxpr(Jaxpr((), operands, init, (), "begin"))
        flags = (True,) * fixed + (False,) * carry
        return Turns(flags, begin, _advance(loop.body_jaxpr, loop.cond_jaxpr, *loop.sizes))

    def checked(self, checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        loop = Params(**params)
        cond, turn = _turn(loop.body_jaxpr, loop.cond_jaxpr, *loop.sizes)
        if not checks.enter(turn):
            return self(*operands, **params)
        if loop.cond_jaxpr.jaxpr.name == _ANY_GOING:
            raise ValueError(
                "Checkify does not support batched while-loops (checkify-of-vmap-of-while). "
                "\nHint: if possible, move the vmap to the outer level to get "
                "vmap-of-checkify-of-while. The loop goes on for the examples that are done, and "
                f"they would be checked. It is at {source.summary(state.source)}."
            )
        cond_consts, body_consts, init = cut(operands, *loop.sizes)
        (going,) = checks.inline(loop.cond_jaxpr, [*cond_consts, *init])
        failed = checks.values
        body = checks.program(turn, sum(loop.sizes))
        whole = Params(_after(cond, tuple(map(typeof, failed))), 0, body, sum(loop.sizes))
        outs = self(*cond_consts, *body_consts, *failed, going, *init, **whole._asdict())
        return checks.leave(outs)[1:]

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        loop = Params(**params)
        cond_consts, body_consts, _ = cut(operands, *loop.sizes)
        # A ref of `cond` that `body` has too is one of the carry there.
        same = tuple(
            [
                next((j for j, y in enumerate(body_consts) if x is y), None) if flag else None
                for x, flag in zip(cond_consts, refs, strict=False)
            ]
        )
        pure, carried, written = _discharged_loop(
            loop.body_jaxpr, loop.cond_jaxpr, *loop.sizes, refs, same
        )
        cond_values, body_values, init = cut(discharge.values(operands), *loop.sizes)
        fixed, mine = partition(body_values, carried)
        outs = self(*cond_values, *fixed, *mine, *init, **pure._asdict())
        after, results = cut(outs, len(mine))
        mine_refs = refs[loop.cond_nconsts :]
        return discharge.settle(
            operands[loop.cond_nconsts :], mine_refs, written, [*results, *after]
        )

    def expanded(
        self, expand: Expand, primals: Sequence[Any], carried: Carried, **params: Any
    ) -> tuple[list[Any], list[list[Any] | None]]:
        loop = Params(**params)
        cond_consts, body_consts, init = cut(primals, *loop.sizes)
        _, of_consts, of_init = cut(carried, *loop.sizes)
        nonzero = tuple([t is not None for t in (*of_consts, *of_init)])
        body, found = _expanded_body(loop.body_jaxpr, loop.body_nconsts, expand, nonzero)
        consts_more = flattened(of_consts)
        init_more = expand.filled(of_init, init, found)
        dual = loop._replace(
            cond_jaxpr=_with_arguments(loop.cond_jaxpr, tuple(map(typeof, init_more))),
            body_jaxpr=body,
            body_nconsts=loop.body_nconsts + len(consts_more),
        )
        given = [*cond_consts, *body_consts, *consts_more, *init, *init_more]
        return expand.apart(self(*given, **dual._asdict()), found)

    def batch(
        self, axis: Axis, operands: Sequence[Any], axes: Sequence[int | None], **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        loop = Params(**params)
        cond_jaxpr, body_jaxpr, sizes = loop.cond_jaxpr, loop.body_jaxpr, loop.sizes
        batched = tuple([at is not None for at in axes])
        cond, body, many, carry_batched = _batch_loop(body_jaxpr, cond_jaxpr, axis, *sizes, batched)
        cond_consts, body_consts, init = cut(operands, *sizes)
        cond_at, body_at, init_at = cut(axes, *sizes)
        cond_consts = batch_in_front(cond_consts, cond_at)
        body_consts = batch_in_front(body_consts, body_at)
        init = [
            to_front(x, at, axis) if flag else x
            for x, at, flag in zip(init, init_at, carry_batched, strict=True)
        ]
        out_axes = [0 if flag else None for flag in carry_batched]
        if many is None:
            both = loop._replace(cond_jaxpr=cond, body_jaxpr=body)
            return self(*cond_consts, *body_consts, *init, **both._asdict()), out_axes
        if is_io(cond_jaxpr.effects | body_jaxpr.effects):
            raise NotImplementedError(
                "IO effects are not supported in a while_loop whose predicate differs among the "
                "examples of a vmap: the loop runs for all of them until the last one is done. "
                "Use debug.callback, or call io_callback outside the loop."
            )
        going = eval_jaxpr(cond.jaxpr, (), *cond_consts, *init)
        each = Params(many[0], 0, many[1], sum(sizes))
        outs = self(*cond_consts, *body_consts, *going, *init, **each._asdict())
        return outs[1:], out_axes

    def sequence(self, token: Any, *operands: Any, **params: Any) -> tuple[Any, list[Any]]:
        loop = Params(**params)
        cond_consts, body_consts, init = cut(operands, *loop.sizes)
        cond, body = _sequenced_loop(loop.body_jaxpr, loop.cond_jaxpr, *loop.sizes)
        token, going = eval_jaxpr(sequenced(loop.cond_jaxpr).jaxpr, (), token, *cond_consts, *init)
        whole = Params(cond, 0, body, sum(loop.sizes))
        given = [*cond_consts, *body_consts, going, token, *init]
        _, token, *outs = self(*given, **whole._asdict())
        return token, outs

    def split(
        self, unknown: Sequence[bool], *operands: Any, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        loop = Params(**params)
        cond, body, carry = _split_loop(
            loop.body_jaxpr, loop.cond_jaxpr, *loop.sizes, tuple(unknown)
        )
        if all(carry):
            return [None] * len(carry), Rest(self, operands, params)
        flags = (*unknown[: sum(loop.sizes)], *carry)
        counts = [mine.count(False) for mine in cut(flags, *loop.sizes)]
        known = Params(cond, counts[0], body, counts[1])
        outs = self(*partition(operands, flags)[0], **known._asdict())
        results = merge(carry, outs, [None] * sum(carry))
        if not any(carry):
            return results, None
        # The unknown part repeats the whole loop: how often, only the loop knows. Effects have
        # happened in the known part.
        rest = loop._replace(
            cond_jaxpr=without_effects(loop.cond_jaxpr), body_jaxpr=without_effects(loop.body_jaxpr)
        )._asdict()
        if self.effects(rest):
            raise NotImplementedError(
                "linearize: an io_callback with results in a while_loop would be called twice, "
                "because the derivative runs the loop again; use lax.scan, or pure_callback"
            )
        return results, Rest(self, operands, rest, carry)

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> Any:
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop, nor for lax.fori_loop "
            "whose bounds are traced: the number of turns, and so of values to keep for the "
            "backward pass, is not known in advance. Use lax.scan, or lax.fori_loop with bounds "
            "that are Python integers (static under jit); or differentiate in forward mode "
            f"(jvp, jacfwd). The loop is at {source.summary(state.source)}."
        )

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        loop = Params(**eqn.params)
        for_cond, for_body = loop.sizes
        _, read = dce_closed(loop.cond_jaxpr, (True,))
        start = [a or b for a, b in zip(used, read[for_cond:], strict=True)]

        def step(carry: tuple[bool, ...]) -> Any:
            body, needed = dce_closed(loop.body_jaxpr, carry, (*[False] * for_body, *carry))
            return (body, needed[:for_body], carry), needed[for_body:]

        body, body_consts, carry = fixpoint(step, start)
        cond, needed = dce_closed(loop.cond_jaxpr, (True,), (*[False] * for_cond, *carry))
        cond_consts = needed[:for_cond]
        return eqn.replace(
            invars=pick(eqn.invars, [*cond_consts, *body_consts, *carry]),
            outvars=pick(eqn.outvars, carry),
            params=Params(cond, sum(cond_consts), body, sum(body_consts))._asdict(),
        )


# ---- The programs that the rules make -----------------------------------------------------------


@by_program
def _with_arguments(closed: ClosedJaxpr, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """The program with more arguments, which it does not read."""
    return rearranged(closed, [*closed.jaxpr.invars, *map(Var, avals)])


@by_program
def _turn(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Cond and body that carry whether to go on: the body computes it after each turn."""
    carry = body.out_avals

    def going_on(going: Any, *values: Any) -> list[Any]:
        return [going]

    def turn(*args: Any) -> list[Any]:
        for_cond, for_body, (_, *values) = cut(args, cond_nconsts, body_nconsts)
        after = eval_jaxpr(body.jaxpr, (), *for_body, *values)
        return [*eval_jaxpr(cond.jaxpr, (), *for_cond, *after), *after]

    consts = [*cond.in_avals[:cond_nconsts], *body.in_avals[:body_nconsts]]
    values = [_FLAG, *carry]
    return program(going_on, values, "cond"), program(turn, [*consts, *values], "body")


@by_program
def _advance(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> ClosedJaxpr:
    """The program of at most so many turns, as in `Turns`."""
    carry = body.out_avals

    def going(limit: Any, *args: Any) -> list[Any]:
        for_cond, (made, *values) = cut(args, cond_nconsts)
        (goes_on,) = eval_jaxpr(cond.jaxpr, (), *for_cond, *values)
        return [bitwise_and(goes_on, lt(made, limit))]

    def turn(*args: Any) -> list[Any]:
        for_body, (made, *values) = cut(args, body_nconsts)
        return [add(made, _ONE), *eval_jaxpr(body.jaxpr, (), *for_body, *values)]

    def advance(*args: Any) -> list[Any]:
        for_cond, for_body, (*values, limit) = cut(args, cond_nconsts, body_nconsts)
        given = [limit, *for_cond, *for_body, _ZERO, *values]
        made, *after = while_p(*given, **loop._asdict())
        return [*after, made]

    for_cond, for_body = cond.in_avals[:cond_nconsts], body.in_avals[:body_nconsts]
    loop = Params(
        program(going, [COUNT, *for_cond, COUNT, *carry], "cond"),
        1 + cond_nconsts,
        program(turn, [*for_body, COUNT, *carry], "body"),
        body_nconsts,
    )
    return program(advance, [*for_cond, *for_body, *carry, COUNT], "advance")


@by_program
def _after(closed: ClosedJaxpr, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """The program with arguments before its own, which it does not read."""
    return rearranged(closed, [*map(Var, avals), *closed.jaxpr.invars])


@by_program
def _expanded_body(
    body: ClosedJaxpr, num_consts: int, expand: Expand, nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    consts, start = cut(nonzero, num_consts)

    def step(carry: tuple[bool, ...]) -> Any:
        dual, out_nonzero = expand.program(body, (*consts, *carry), carry)
        return (dual, out_nonzero), out_nonzero

    dual, out_nonzero = fixpoint(step, start)
    counts = num_consts, len(start), expand.width * sum(consts)
    mine, carry, mine_more, carry_more = cut(dual.jaxpr.invars, *counts)
    return rearranged(dual, [*mine, *mine_more, *carry, *carry_more]), out_nonzero


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
    going_aval = batched_aval(_FLAG, axis)

    def any_going(going: Any, *values: Any) -> list[Any]:
        return [reduce_or(going, axes=(0,))]

    def turn(*args: Any) -> list[Any]:
        for_cond, for_body, (going, *values) = cut(args, cond_nconsts, body_nconsts)
        after = eval_jaxpr(body_batch.jaxpr, (), *for_body, *values)
        values = [_select(going, new, old) for new, old in zip(after, values, strict=True)]
        return [*eval_jaxpr(cond_batch.jaxpr, (), *for_cond, *values), *values]

    values = [going_aval, *body_batch.out_avals]
    consts = [*cond_batch.in_avals[:cond_nconsts], *body_batch.in_avals[:body_nconsts]]
    many = program(any_going, values, _ANY_GOING), program(turn, [*consts, *values], "body")
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


@by_program
def _discharged_loop(
    body_jaxpr: ClosedJaxpr,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    refs: tuple[bool, ...],
    same: tuple[int | None, ...],
) -> tuple[Params, list[bool], tuple[bool, ...]]:
    """The loop without refs; which consts of `body` it carries first, and which refs are written.

    `same` says of each const of `cond` which const of `body` is the same ref.
    """
    cond_refs, body_refs = refs[:cond_nconsts], refs[cond_nconsts:]
    carry = len(body_jaxpr.out_avals)
    cond = discharge.discharge(cond_jaxpr, (*cond_refs, *[False] * carry))
    if any(cond.written):
        raise NotImplementedError(
            "while_loop: the condition writes into a ref, but it may only read. Write in the body."
        )
    body = discharge.discharge(body_jaxpr, body_refs)
    carried = discharge.at_operands(body_refs, body.written)[:body_nconsts]
    consts, rest = cut(body.closed.jaxpr.invars, body_nconsts)
    fixed, mine = partition(consts, carried)
    outs, after = cut(body.closed.jaxpr.outvars, carry)
    step = rearranged(body.closed, [*fixed, *mine, *rest], [*after, *outs])
    cond_consts, cond_rest = cut(cond.closed.jaxpr.invars, cond_nconsts)
    state_vars = [Var(v.aval) for v in mine]
    numbers = [j for j, flag in enumerate(carried) if flag]
    renamed = {
        v: state_vars[numbers.index(j)]
        for v, j in zip(cond_consts, same, strict=True)
        if j is not None and j in numbers
    }
    # The const stays an argument, which nothing reads.
    consts_now = [Var(v.aval) if v in renamed else v for v in cond_consts]
    test = cond.closed.jaxpr
    test = test.replace(
        invars=[*consts_now, *state_vars, *cond_rest],
        eqns=[eqn.replace(invars=[renamed.get(v, v) for v in eqn.invars]) for eqn in test.eqns],
        outvars=[renamed.get(v, v) for v in test.outvars],
    )
    return Params(ClosedJaxpr(test), cond_nconsts, step, len(fixed)), carried, body.written


while_p = While()
