"""Dead code: the part of a program that some of its results need.

This goes into bodies: a loop loses the carry that nobody reads, a call the results that nobody asks
for.
"""

from __future__ import annotations

from collections.abc import Sequence

from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, map_programs
from perspex.transforms.programs import by_program, pick


def dce_jaxpr(jaxpr: Jaxpr, used: Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
    """The program of the results marked `used`, and which arguments it still takes."""
    outvars = pick(jaxpr.outvars, used)
    live = {v for v in outvars if v.__class__ is not Literal}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        reads = [v in live for v in eqn.outvars]
        primitive = eqn.primitive
        if not (any(reads) or eqn.effects):
            continue
        if primitive.higher_order:
            eqn = primitive.dce(eqn, reads)
        eqns.append(eqn)
        live.update([v for v in eqn.invars if v.__class__ is not Literal])
    needed = [v in live for v in jaxpr.invars]
    constvars = [v for v in jaxpr.constvars if v in live]
    smaller = jaxpr.replace(
        constvars=constvars, invars=pick(jaxpr.invars, needed), outvars=outvars, eqns=eqns[::-1]
    )
    return smaller, needed


@by_program
def dce_closed(
    closed: ClosedJaxpr, used: tuple[bool, ...], keep: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """`dce_jaxpr` for a program without constants; arguments marked `keep` stay in any case."""
    jaxpr, needed = dce_jaxpr(closed.jaxpr, used)
    if keep is not None:
        needed = [need or kept for need, kept in zip(needed, keep, strict=True)]
        jaxpr = jaxpr.replace(invars=pick(closed.jaxpr.invars, needed))
    return ClosedJaxpr(jaxpr), tuple(needed)


@by_program
def without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program, of the same type, without the effects that give no results."""
    jaxpr = closed.jaxpr
    eqns = [
        eqn.replace(params=map_programs(eqn.params, without_effects)) if eqn.effects else eqn
        for eqn in jaxpr.eqns
        if eqn.outvars or not eqn.effects
    ]
    return ClosedJaxpr(jaxpr.replace(eqns=eqns))
