"""Results that lie on a mesh as their types say, in a module for one with explicit axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import JaxprEqn
from perspex.layout.named import pending, written


def as_typed(b: Any, eqn: JaxprEqn, out: Any) -> Any:
    """The results of an equation, each constrained to lie as its type says."""
    if all([v.aval.cut is None for v in (*eqn.invars, *eqn.outvars)]):
        return out  # nothing is cut, or it is in a region where the compiler decides
    into = eqn.params.get("dst_sharding")
    if into is not None and not into.mesh.explicit_axes:
        return out  # from here on the compiler decides
    if eqn.primitive.multiple_results:
        pairs = zip(out, eqn.outvars, strict=True)
        return [constrained(b, x, v.aval) for x, v in pairs]
    return constrained(b, out, eqn.outvars[0].aval)


def constrained(b: Any, value: Any, aval: ShapedArray) -> Any:
    """The value of type `aval`, which lies along explicit axes as that says."""
    mesh, manual = b.module.explicit, b.module.manual
    free = frozenset() if manual is None else manual.names
    if mesh is None or aval.is_float0 or free >= frozenset(mesh.axis_names):
        return value
    names = () if aval.cut is None else tuple(aval.cut.spec.names())
    names += ((),) * (aval.physical().ndim - len(names))
    sums = "" if aval.cut is None else pending(mesh, aval.cut.spec, free)
    text = written(mesh, names, sums, is_open=bool(mesh.auto_axes))
    placed = types.attribute(f"#sdy.sharding{text}")
    return b.op("sdy.sharding_constraint", value, attributes={"sharding": placed}, aval=aval)


def carried(b: Any, values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """What goes around a loop: its parts of sums are said to be such, at the start of each turn.

    XLA would add them up in each turn, and again after the last.
    """
    return [
        v if aval.cut is None or not aval.cut.spec.unreduced else constrained(b, v, aval)
        for v, aval in zip(values, avals, strict=True)
    ]
