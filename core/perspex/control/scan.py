"""`scan`: a loop of known length that carries values along and collects a result of each step.

    (consts, carry, x) -> (carry, y)         the program of one step
    consts, init, xs   -> (last carry, ys)   operands and results of the loop

`xs` are cut along their first axis, `ys` are stacked along it; what the body closed over became
`consts`. The loop is differentiable in both directions: its derivative is a scan of the derivative,
its known part a scan that stacks the residuals, its transpose a scan that runs the other way. What
depends on the consts alone is computed once, before the loop, and never stacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from perspex.control.scan_lowering import Loop, is_long, stacked
from perspex.control.scan_turns import turns_of
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from perspex.ops.families import add_any
from perspex.ops.structural import is_linear, move_axis, to_front, zeros
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms import discharge
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed
from perspex.transforms.expansion import Carried, Expand, Expanding
from perspex.transforms.higher_order import (
    Residuals,
    Turns,
    batch_in_front,
    check_operands,
    fixpoint,
    place_residuals,
    rearranged,
)
from perspex.transforms.jvp import cotangent_aval
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, merge, partition, pick, with_gaps
from perspex.transforms.sequence import sequenced
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import batch_jaxpr


class Sizes(NamedTuple):
    """How many arguments of a step are consts, and how many the carry; the rest are xs."""

    consts: int
    carry: int

    @classmethod
    def of(cls, params: dict[str, Any]) -> Sizes:
        """Those of an equation with these params."""
        return cls(params["num_consts"], params["num_carry"])

    def params(self, params: dict[str, Any], step: ClosedJaxpr) -> dict[str, Any]:
        """The params of the same loop over another step, which has these sizes."""
        mine = {"jaxpr": step, "num_consts": self.consts, "num_carry": self.carry}
        return {**params, **mine}


class Scan(Expanding):
    """The loop as an equation.

    Params: `jaxpr` of one step, of whose arguments the first `num_consts` are consts and the next
    `num_carry` the carry; `length`; `reverse`: from the last step to the first; `unroll`: how many
    steps one turn of the compiled loop makes.
    """

    name = "scan"
    is_loop = True
    # JAX prints which operands are what as trees, `ft_in` and `ft_out`; the order says enough.
    quiet: ClassVar[dict[str, Any]] = {"num_consts": ..., "num_carry": ...}

    def type(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        sizes, step, length = Sizes.of(params), params["jaxpr"], params["length"]
        consts, carry, xs = cut(step.in_avals, *sizes)
        check_operands("scan", avals, [*consts, *carry, *[stacked(x, length) for x in xs]])
        after, ys = cut(step.out_avals, sizes.carry)
        check_operands("scan: the carry after a step", after, carry)
        return (*after, *[stacked(y, length) for y in ys])

    def total(self, parts: Sequence[float | None], params: dict[str, Any]) -> float | None:
        (step,) = parts
        return None if step is None else params["length"] * step

    def may_take_long(self, params: dict[str, Any]) -> bool:
        return is_long(params["jaxpr"], params["length"]) or super().may_take_long(params)

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        return Loop(b, values, **params).emit()

    def in_turns(self, params: dict[str, Any]) -> Turns | None:
        return turns_of(self, **params)

    def checked(self, checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        if not checks.enter(params["jaxpr"]):
            return self(*operands, **params)
        sizes, failed = Sizes.of(params), checks.values
        body = checks.program(params["jaxpr"], sizes.consts)
        whole = Sizes(sizes.consts, sizes.carry + len(failed))
        consts, rest = cut(operands, sizes.consts)
        return checks.leave(self(*consts, *failed, *rest, **whole.params(params, body)))

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        sizes = Sizes.of(params)
        found = _discharged_body(params["jaxpr"], sizes, refs)
        consts, rest = cut(discharge.values(operands), sizes.consts)
        given = [*partition(consts, found.carried)[0], *pick(consts, found.carried), *rest]
        outs = self(*given, **found.sizes.params(params, found.body))
        after, outs = cut(outs, sum(found.carried))
        results, rows = cut(outs, len(params["jaxpr"].out_avals))
        return discharge.settle(operands, refs, found.written, [*results, *after, *rows])

    def expanded(
        self, expand: Expand, primals: Sequence[Any], carried: Carried, **params: Any
    ) -> tuple[list[Any], list[list[Any] | None]]:
        sizes = Sizes.of(params)
        nonzero = tuple([t is not None for t in carried])
        body, in_nonzero, out_nonzero = _expanded_body(params["jaxpr"], sizes, expand, nonzero)
        extra = Sizes(*_extra(expand, in_nonzero, sizes))
        given = expand.filled(carried, primals, in_nonzero)
        groups = zip(cut(primals, *sizes), cut(given, *extra), strict=True)
        whole = Sizes(sizes.consts + extra.consts, sizes.carry + extra.carry)
        operands = [x for primal, more in groups for x in (*primal, *more)]
        outs = self(*operands, **whole.params(params, body))
        count = len(out_nonzero) - sizes.carry
        carry, carry_more, ys, ys_more = cut(outs, sizes.carry, extra.carry, count)
        return expand.apart([*carry, *ys, *carry_more, *ys_more], out_nonzero)

    def batch(
        self, axis: Axis, operands: Sequence[Any], axes: Sequence[int | None], **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        sizes = Sizes.of(params)
        batched = tuple([at is not None for at in axes])
        body, out_batched = _batch_body(params["jaxpr"], sizes, axis, batched)
        consts, init, xs = cut(operands, *sizes)
        consts_at, init_at, xs_at = cut(axes, *sizes)
        carry_batched, ys_batched = cut(out_batched, sizes.carry)
        init = [
            to_front(x, at, axis) if flag else x
            for x, at, flag in zip(init, init_at, carry_batched, strict=True)
        ]
        # The first axis is that of the steps, and one step has the batch axis in front.
        xs = [x if at is None else move_axis(x, at, 1) for x, at in zip(xs, xs_at, strict=True)]
        given = [*batch_in_front(consts, consts_at), *init, *xs]
        outs = self(*given, **sizes.params(params, body))
        places = [0] * sizes.carry + [1] * len(ys_batched)
        return outs, [at if flag else None for at, flag in zip(places, out_batched, strict=True)]

    def sequence(self, token: Any, *operands: Any, **params: Any) -> tuple[Any, list[Any]]:
        sizes = Sizes.of(params)
        consts, rest = cut(operands, sizes.consts)
        body = _sequenced_body(params["jaxpr"], sizes.consts)
        whole = Sizes(sizes.consts, sizes.carry + 1)
        token, *outs = self(*consts, token, *rest, **whole.params(params, body))
        return token, outs

    def split(
        self, unknown: Sequence[bool], *operands: Any, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        parts = _split_body(params["jaxpr"], Sizes.of(params), tuple(unknown))
        early, late = partition(operands, parts.in_unknown)
        early_consts, init, xs = cut(early, *parts.early)
        once = eval_jaxpr(parts.once.known.jaxpr, (), *early_consts)
        consts = parts.once.collect(early_consts, once)
        known = parts.loop.known
        outs: list[Any] = []
        if not known.is_idle:
            mine = Sizes(len(consts), len(init))
            outs = self(*consts, *init, *xs, **mine.params(params, known))
        now = outs[: parts.out_unknown.count(False)]
        results = merge(parts.out_unknown, now, [None] * sum(parts.out_unknown))
        if not any(parts.out_unknown):
            return results, None
        varying = parts.loop.collect([*consts, *init, *xs], outs)
        mine = Sizes(parts.fixed + parts.late.consts, parts.late.carry)
        given = [*once[: parts.fixed], *late, *varying]
        return results, Rest(self, given, mine.params(params, parts.rest))

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        sizes = Sizes.of(params)
        consts, init, xs = cut(operands, *sizes)
        # The carry is linear, also where it starts from a known value: that of a tangent zero.
        linear_consts, linear_xs = map(is_linear, consts), map(is_linear, xs)
        linear = (*linear_consts, *[True] * sizes.carry, *linear_xs)
        nonzero = tuple([ct is not None for ct in cts])
        body, ct_nonzero, out_nonzero = _transpose_body(params["jaxpr"], sizes, linear, nonzero)
        const_flags, _, x_flags = cut(linear, *sizes)
        coefficients, my_consts = partition(consts, const_flags)
        residuals, _ = partition(xs, x_flags)
        const_nonzero, carry_nonzero, _ = cut(out_nonzero, len(my_consts), sizes.carry)
        sums = [zeros(cotangent_aval(x.aval)) for x in pick(my_consts, const_nonzero)]
        ct_carry, ct_ys = cut(cts, sizes.carry)
        ct_carry = [
            zeros(cotangent_aval(typeof(x))) if ct is None else ct
            for ct, x in zip(pick(ct_carry, carry_nonzero), pick(init, carry_nonzero), strict=True)
        ]
        ct_ys = pick(ct_ys, ct_nonzero[sizes.carry :])
        back = Sizes(len(coefficients), len(sums) + len(ct_carry)).params(params, body)
        back["reverse"] = not params["reverse"]
        outs = self(*coefficients, *sums, *ct_carry, *ct_ys, *residuals, **back)
        found = with_gaps(outs, out_nonzero)
        return merge(linear, [None] * linear.count(False), found)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        params = eqn.params
        sizes = Sizes.of(params)
        used_carry, used_ys = cut(used, sizes.carry)
        xs = len(eqn.invars) - sum(sizes)

        def step(carry: tuple[bool, ...]) -> Any:
            keep = (*[False] * sizes.consts, *carry, *[False] * xs)
            body, needed = dce_closed(params["jaxpr"], (*carry, *used_ys), keep)
            return (body, needed, carry), cut(needed, *sizes)[1]

        body, needed, carry = fixpoint(step, used_carry)
        smaller = Sizes(sum(needed[: sizes.consts]), sum(carry))
        return eqn.replace(
            invars=pick(eqn.invars, needed),
            outvars=pick(eqn.outvars, [*carry, *used_ys]),
            params=smaller.params(params, body),
        )


# ---- The steps that the rules make of a step ----------------------------------------------------


class _Discharged(NamedTuple):
    """A step without refs; those of the consts that are `carried` are the first of its carry."""

    body: ClosedJaxpr
    sizes: Sizes
    carried: list[bool]
    written: tuple[bool, ...]


@by_program
def _discharged_body(jaxpr: ClosedJaxpr, sizes: Sizes, refs: tuple[bool, ...]) -> _Discharged:
    """The step with values in place of refs: one among the xs is cut, and stacked again."""
    pure = discharge.discharge(jaxpr, refs)
    carried = discharge.at_operands(refs, pure.written)[: sizes.consts]
    consts, rest = cut(pure.closed.jaxpr.invars, sizes.consts)
    fixed, mine = partition(consts, carried)
    outs, after, rows = cut(pure.closed.jaxpr.outvars, len(jaxpr.out_avals), len(mine))
    body = rearranged(pure.closed, [*fixed, *mine, *rest], [*after, *outs, *rows])
    return _Discharged(body, Sizes(len(fixed), len(mine) + sizes.carry), carried, pure.written)


def _extra(expand: Expand, nonzero: Sequence[bool], sizes: Sizes) -> list[int]:
    """How many arrays the consts carry along, and how many the carry."""
    return [expand.width * sum(flags) for flags in cut(nonzero, *sizes)[:2]]


@by_program
def _expanded_body(
    jaxpr: ClosedJaxpr, sizes: Sizes, expand: Expand, nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...], tuple[bool, ...]]:
    """The step on values that carry something along, and which arguments and results do."""
    consts, start, xs = cut(nonzero, *sizes)
    ys = len(jaxpr.out_avals) - sizes.carry

    def step(carry: tuple[bool, ...]) -> Any:
        full = (*consts, *carry, *xs)
        body, out_nonzero = expand.program(jaxpr, full, (*carry, *[False] * ys))
        return (body, full, out_nonzero), out_nonzero[: sizes.carry]

    body, full, out_nonzero = fixpoint(step, start)
    counts = _extra(expand, full, sizes)
    primals, more = cut(body.jaxpr.invars, len(full))
    groups = zip(cut(primals, *sizes), cut(more, *counts), strict=True)
    outs = cut(body.jaxpr.outvars, sizes.carry, ys, counts[1])
    body = rearranged(
        body,
        [v for primal, mine in groups for v in (*primal, *mine)],
        [*outs[0], *outs[2], *outs[1], *outs[3]],
    )
    return body, full, out_nonzero


@by_program
def _batch_body(
    jaxpr: ClosedJaxpr, sizes: Sizes, axis: Axis, batched: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The step on batches, and which results are batched; the carry goes in as it comes out."""
    consts, start, xs = cut(batched, *sizes)
    ys = len(jaxpr.out_avals) - sizes.carry

    def step(carry: tuple[bool, ...]) -> Any:
        full, wanted = (*consts, *carry, *xs), (*carry, *[False] * ys)
        found = batch_jaxpr(jaxpr, axis, full, wanted)
        return found, found[1][: sizes.carry]

    return fixpoint(step, start)


@by_program
def _sequenced_body(jaxpr: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """The step with the token as the first of the carry."""
    body = sequenced(jaxpr)
    token, consts, rest = cut(body.jaxpr.invars, 1, num_consts)
    return rearranged(body, [*consts, *token, *rest])


class _Parts(NamedTuple):
    """A step in three: what is computed once, what in a known loop, what in the unknown one.

    `once` takes the known consts; its first `fixed` results are residuals of the unknown loop, and
    it says where the consts of the known loop are. `loop` is the known loop; `rest` the step of the
    unknown one, whose consts start with the fixed residuals and whose xs end with the varying ones.
    """

    in_unknown: tuple[bool, ...]
    out_unknown: tuple[bool, ...]
    once: Residuals
    fixed: int
    loop: Residuals
    rest: ClosedJaxpr
    early: Sizes
    late: Sizes


@by_program
def _split_body(jaxpr: ClosedJaxpr, sizes: Sizes, unknown: tuple[bool, ...]) -> _Parts:
    consts, start, xs = cut(unknown, *sizes)
    ys = len(jaxpr.out_avals) - sizes.carry

    def step(carry: tuple[bool, ...]) -> Any:
        full = (*consts, *carry, *xs)
        halves = split_jaxpr(jaxpr, full, (*carry, *[False] * ys))
        return (full, halves), halves.out_unknown[: sizes.carry]

    full, halves = fixpoint(step, start)
    late = Sizes(sum(consts), sum(cut(full, *sizes)[1]))
    early = Sizes(sizes.consts - late.consts, sizes.carry - late.carry)
    results = halves.out_unknown.count(False)

    # The known step again in two: by the consts, and by what changes from step to step.
    known = halves.known
    steps = len(known.in_avals) - early.consts
    count = len(known.out_avals) - results
    inner = split_jaxpr(
        known,
        (*[False] * early.consts, *[True] * steps),
        (*[True] * results, *[False] * count),
        True,
    )
    varies = inner.out_unknown[results:]
    fixed = varies.count(False)
    once = place_residuals(inner.known, fixed)
    # A residual may be one of the xs, which are stacked already, but not the carry of one step.
    given = len(inner.unknown.in_avals) - steps + early.carry
    at_hand = [i >= given for i in range(len(inner.unknown.in_avals))]
    loop = place_residuals(inner.unknown, results, at_hand, first=early.carry)

    residuals, others = cut(halves.unknown.jaxpr.invars, count)
    steady, varying = partition(residuals, varies)
    rest = rearranged(halves.unknown, [*steady, *others, *varying])
    return _Parts(full, halves.out_unknown, once, fixed, loop, rest, early, late)


@by_program
def _transpose_body(
    jaxpr: ClosedJaxpr, sizes: Sizes, linear: tuple[bool, ...], nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...], tuple[bool, ...]]:
    """The step backwards, which cotangents it takes, and which linear arguments it gives one for.

    It takes the coefficients among the consts; sums of the cotangents of the linear consts and the
    cotangents of the carry, which it carries; the cotangents of ys, and the coefficients among xs.
    """
    consts, _, xs = cut(linear, *sizes)
    my_consts, my_xs = sum(consts), sum(xs)
    start, ct_ys = cut(nonzero, sizes.carry)
    # Cotangents of the carry are typed as its results, since it may start weakly typed.
    constant, _, each = cut(jaxpr.in_avals, *sizes)
    like = tuple(pick([*constant, *jaxpr.out_avals[: sizes.carry], *each], linear))

    def step(carry: tuple[bool, ...]) -> Any:
        full = (*carry, *ct_ys)
        wanted = (*[False] * my_consts, *carry, *[False] * my_xs)
        body, found = transpose_jaxpr(jaxpr, linear, full, wanted, None, like)
        return (body, full, found), found[my_consts : my_consts + sizes.carry]

    body, full, found = fixpoint(step, start)
    coefficients, residuals, ct_carry, ct_y = cut(
        body.jaxpr.invars, sizes.consts - my_consts, len(xs) - my_xs, sum(full[: sizes.carry])
    )
    ct_consts, rest = cut(body.jaxpr.outvars, sum(found[:my_consts]))
    sums = [Var(ct.aval) for ct in ct_consts]
    after = [Var(ct.aval) for ct in ct_consts]
    additions = [
        JaxprEqn(add_any, [total, ct], [new], {})
        for total, ct, new in zip(sums, ct_consts, after, strict=True)
    ]
    whole = body.jaxpr.replace(
        invars=[*coefficients, *sums, *ct_carry, *ct_y, *residuals],
        outvars=[*after, *rest],
        eqns=[*body.jaxpr.eqns, *additions],
    )
    return ClosedJaxpr(whole), full, found


scan_p = Scan()
