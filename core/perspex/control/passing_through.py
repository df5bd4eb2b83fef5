"""What a loop or a choice leaves as it is need not go through it.

A carry that the body returns unchanged becomes one of the consts, one of the `ys` that is one of
the `xs` is those `xs`, and a result that is the same operand in every branch is that operand. Each
function returns `None` where there is nothing of the kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from perspex.ir.jaxpr import ClosedJaxpr, Literal
from perspex.transforms.higher_order import rearranged
from perspex.transforms.programs import by_program, cut, partition, pick


class ScanForwarding(NamedTuple):
    """The step of a scan without what it leaves alone.

    The carry marked `fixed` comes after the consts. `from_xs[i]` is the number of the xs that the
    result `i` of a step is, if it is one.
    """

    closed: ClosedJaxpr
    fixed: tuple[bool, ...]
    from_xs: tuple[int | None, ...]


@by_program
def forward_scan(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> ScanForwarding | None:
    consts, carry, xs = cut(closed.jaxpr.invars, num_consts, num_carry)
    after, ys = cut(closed.jaxpr.outvars, num_carry)
    fixed = tuple([new is old for new, old in zip(after, carry, strict=True)])
    number = {x: i for i, x in enumerate(xs)}
    from_xs = tuple([number.get(y) for y in ys])
    stays = [i is None for i in from_xs]
    if not any(fixed) and all(stays):
        return None
    moving, still = partition(carry, fixed)
    outvars = [*partition(after, fixed)[0], *pick(ys, stays)]
    smaller = rearranged(closed, [*consts, *still, *moving, *xs], outvars)
    return ScanForwarding(smaller, fixed, from_xs)


class WhileForwarding(NamedTuple):
    """Body and cond of a loop without the carry marked `fixed`, which follows the body's consts."""

    body: ClosedJaxpr
    cond: ClosedJaxpr
    fixed: tuple[bool, ...]


@by_program
def forward_while(
    body: ClosedJaxpr, cond: ClosedJaxpr, body_nconsts: int, cond_nconsts: int
) -> WhileForwarding | None:
    consts, carry = cut(body.jaxpr.invars, body_nconsts)
    cond_consts, in_cond = cut(cond.jaxpr.invars, cond_nconsts)
    read = {v for eqn in cond.jaxpr.eqns for v in eqn.invars if v.__class__ is not Literal}
    read.update([v for v in cond.jaxpr.outvars if v.__class__ is not Literal])
    fixed = tuple(
        [
            new is old and var not in read
            for new, old, var in zip(body.jaxpr.outvars, carry, in_cond, strict=True)
        ]
    )
    if not any(fixed):
        return None
    moving, still = partition(carry, fixed)
    outvars = partition(body.jaxpr.outvars, fixed)[0]
    return WhileForwarding(
        rearranged(body, [*consts, *still, *moving], outvars),
        rearranged(cond, [*cond_consts, *partition(in_cond, fixed)[0]]),
        fixed,
    )


class CondForwarding(NamedTuple):
    """Branches without the results that are an operand in all of them.

    `from_operand[i]` is the number of the operand that the result `i` is, if it is one.
    """

    branches: tuple[ClosedJaxpr, ...]
    from_operand: tuple[int | None, ...]


@by_program
def forward_cond(first: ClosedJaxpr, others: tuple[ClosedJaxpr, ...]) -> CondForwarding | None:
    branches = (first, *others)
    found = []
    for branch in branches:
        number: dict[Any, int] = {v: i for i, v in enumerate(branch.jaxpr.invars)}
        found.append([number.get(v) for v in branch.jaxpr.outvars])
    from_operand = tuple(
        [column[0] if len(set(column)) == 1 else None for column in zip(*found, strict=True)]
    )
    stays = [i is None for i in from_operand]
    if all(stays):
        return None
    smaller = tuple(
        [
            rearranged(branch, branch.jaxpr.invars, pick(branch.jaxpr.outvars, stays))
            for branch in branches
        ]
    )
    return CondForwarding(smaller, from_operand)
