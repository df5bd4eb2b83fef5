"""Jitted functions that read and write refs: the values go in beside the arrays, and come out.

The executable is that of the program without its refs (`transforms.discharge`). A call gives it the
values of the refs among the arguments and of those that the function closes over, and writes what
comes out. The memory of a value that is written is donated, so a ref is updated in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ir.references import is_ref_type
from perspex.jitted.call import hoisted
from perspex.jitted.signature import Call
from perspex.ops.refs import Ref
from perspex.tracing.trace import Reference, leaked
from perspex.transforms.discharge import Discharged, at_operands, discharge, has_state
from perspex.transforms.programs import cut, partition, pick


class Pure(NamedTuple):
    """A program without its refs.

    Its last arguments are the values of the refs `captured`; the arguments marked `written` are
    those of refs whose values are its last results.
    """

    closed: ClosedJaxpr
    captured: list[Ref]
    written: list[bool]

    def lowered(self, call: Call) -> Call:
        """A call as the program without refs is lowered for it, with values or types in place."""
        operands = [*call.leaves, *self.captured]
        leaves = [x.held() if isinstance(x, Ref) else x for x in operands]
        return call._replace(leaves=leaves, donated=self.donated(call))

    def donated(self, call: Call) -> tuple[bool, ...]:
        """Which arguments are donated: the values that are written, and what the user donates."""
        given = [*call.donated, *[False] * (len(self.written) - len(call.donated))]
        types = [*[is_ref_type(aval) for aval in call.signature.avals]]
        types += [True] * len(self.captured)
        return tuple(
            [
                written or (flag and not is_ref)
                for written, flag, is_ref in zip(self.written, given, types, strict=True)
            ]
        )


def purified(closed: ClosedJaxpr) -> Pure | None:
    """The program without its refs; `None` if it has none."""
    of_consts = [isinstance(const, Reference) for const in closed.consts]
    of_arguments = [is_ref_type(aval) for aval in closed.in_avals]
    if not (any(of_consts) or any(of_arguments) or has_state(closed)):
        return None
    refs = (*of_consts, *of_arguments)
    pure: Discharged = discharge(hoisted(closed)[0], refs)
    jaxpr = pure.closed.jaxpr
    vars_of_consts, arguments = cut(jaxpr.invars, len(of_consts))
    constvars, held = partition(vars_of_consts, of_consts)
    written_consts, written = cut(at_operands(refs, pure.written), len(of_consts))
    # The results that are written come in the order of the operands: those of consts first.
    count = len(jaxpr.outvars) - sum(pure.written)
    outs, of_held, rest = cut(jaxpr.outvars, count, sum(written_consts))
    whole = jaxpr.replace(
        constvars=constvars, invars=[*arguments, *held], outvars=[*outs, *rest, *of_held]
    )
    consts, captured = partition(closed.consts, of_consts)
    return Pure(ClosedJaxpr(whole, consts), captured, [*written, *pick(written_consts, of_consts)])


class Held(NamedTuple):
    """A call with the values of its refs, and the refs that it writes."""

    call: Call
    written: list[Ref]

    def settle(self, outs: Sequence[Any]) -> list[Any]:
        """Write the last of the results into the refs; returns the others."""
        results, values = cut(outs, len(outs) - len(self.written))
        for ref, value in zip(self.written, values, strict=True):
            ref.hold(value)
        return results


def hold(pure: Pure, call: Call) -> Held:
    """A call of a program with refs as one of the program without."""
    operands = [*call.leaves, *pure.captured]
    leaves = []
    for x, written in zip(operands, pure.written, strict=True):
        if isinstance(x, Ref):
            if x.staged is not None:
                raise leaked(x.staged)
            leaves.append(x.lend() if written else x.held())
        else:
            leaves.append(x)
    donated = pure.donated(call)
    return Held(call._replace(leaves=leaves, donated=donated), pick(operands, pure.written))


def check_aliases(
    name: str, closed: ClosedJaxpr, leaves: Sequence[Any], names: Sequence[str]
) -> None:
    """Raise `ValueError` if a function could reach one ref in two ways."""
    seen = {_identity(c): "closed over" for c in closed.consts if isinstance(c, Reference)}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, Reference):
            continue
        before = seen.get(_identity(leaf))
        if before == "closed over":
            raise ValueError(
                f"when tracing `{name}`, a mutable array reference of type {leaf.aval} was both "
                f"closed over and passed as the argument {names[i]}. Use one of the two."
            )
        if before is not None:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a "
                f"function, but when tracing `{name}` the mutable array reference of type "
                f"{leaf.aval} appeared at both {before} and {names[i]}. Pass it once."
            )
        seen[_identity(leaf)] = names[i]


def _identity(ref: Any) -> int:
    return id(ref) if ref.staged is None else id(ref.staged)
