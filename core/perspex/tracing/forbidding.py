"""`no_collectives`: programs in which devices exchange no numbers along some axes of a mesh.

That is seen from types: an axis that cuts an operand, or along which it is unreduced, must not be
gone from the results. It is looked for when equations have been written, so that writing one costs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perspex.errors import ForbiddenCollectiveError
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import JaxprEqn
from perspex.tracing import cuts


def check_moves(eqns: Iterable[JaxprEqn], forbidden: frozenset[str]) -> None:
    """Raise `ForbiddenCollectiveError` if an equation moves numbers along a forbidden axis."""
    for eqn in eqns:
        given = [v.aval for v in eqn.invars if v.aval.cut is not None]
        for name in sorted(forbidden) if given else ():
            why = _moved(eqn, given, [v.aval for v in eqn.outvars], name)
            if why:
                types = ", ".join([aval.str_short() for aval in given])
                raise ForbiddenCollectiveError(
                    f"Collective across axis {name!r} is forbidden by `no_collectives`, but "
                    f"`{eqn.primitive}` of operands of types {types} {why}"
                )


def _moved(
    eqn: JaxprEqn, given: Sequence[ShapedArray], out: Sequence[ShapedArray], name: str
) -> str:
    """How an equation moves numbers along an axis of the mesh; nothing if it does not."""
    kept = any([name in cuts.sums(aval).unreduced for aval in out])
    if any([name in cuts.sums(aval).unreduced for aval in given]) and not kept:
        return "consumes that axis unreduced without keeping it unreduced in the result"
    before = {i for aval in given for i, names in enumerate(cuts.parts(aval)) if name in names}
    after = {i for aval in out for i, names in enumerate(cuts.parts(aval)) if name in names}
    if before and not after and not kept:
        return "loses that sharding axis in the result without marking it unreduced"
    if eqn.primitive.name == "reshard" and before and after and before != after:
        return "changes the dimension that the axis cuts"
    if "out_sharding" in eqn.params and "dimension_numbers" in eqn.params and not kept:
        contracted, _ = eqn.params["dimension_numbers"]
        for v, axes in zip(eqn.invars, contracted, strict=True):
            if any([name in cuts.parts(v.aval)[i] for i in axes]):
                return "contracts over that axis without marking it unreduced in the result"
    return ""
