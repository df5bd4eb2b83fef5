"""Programs without refs: what a program reads from a ref comes in, and what it writes goes out.

    { lambda ; a:Ref{f32[]} b:f32[]. let a[...] <- b in () }
    { lambda ; a:f32[] b:f32[]. let  in (b,) }

The program is run with refs that hold values (`ops.refs`), and what that does is staged. Only the
refs that are written are results. Every program is discharged before it is transformed or lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from perspex.base import effects
from perspex.ir.avals import shaped
from perspex.ir.jaxpr import ClosedJaxpr, map_programs, sub_jaxprs
from perspex.ir.references import AbstractRef, is_ref_type
from perspex.ops.refs import Ref, get, set
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import Reference, Trace, Tracer, bottom, state, under
from perspex.transforms.programs import by_program, cut, pick, program


class StateTrace(Trace):
    """Current while a program runs with refs that hold values; all else is for the trace around."""

    __slots__ = ("parent",)

    def __init__(self) -> None:
        super().__init__()
        self.parent: Trace = state.trace

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return under(self.parent, self.parent.bind, primitive, args, params)


class Discharged(NamedTuple):
    """A program without refs. Its last results are the values of the refs marked `written`."""

    closed: ClosedJaxpr
    written: tuple[bool, ...]


@by_program
def discharge(
    closed: ClosedJaxpr, refs: tuple[bool, ...], wanted: tuple[bool, ...] = ()
) -> Discharged:
    """The program with values in place of the arguments marked `refs`.

    `wanted` are flags of those refs: the values of these are results even if they are not written.
    """
    avals = [
        aval.inner_aval if flag else aval  # type: ignore[attr-defined]
        for aval, flag in zip(closed.in_avals, refs, strict=True)
    ]
    written: tuple[bool, ...] = ()

    def flat(*args: Any) -> list[Any]:
        nonlocal written
        trace = StateTrace()

        def held() -> list[Any]:
            nonlocal written
            given = [
                Ref(AbstractRef(x.aval), x) if f else x for x, f in zip(args, refs, strict=True)
            ]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *given)
            mine = pick(given, refs)
            written = tuple([ref.writes > 0 for ref in mine])
            if wanted:
                written = wanted
            return [*outs, *[ref.held() for ref in pick(mine, written)]]

        try:
            return under(trace, held)
        finally:
            trace.alive = False

    return Discharged(program(flat, avals, closed.jaxpr.name), written)


def has_state(closed: ClosedJaxpr) -> bool:
    """Whether a program reads or writes refs, its own or others."""
    return effects.state in closed.effects


def without_own_refs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program that takes no refs, without those that it makes."""
    if not has_state(closed):
        return closed
    return discharge(closed, (False,) * len(closed.in_avals)).closed


def bind(primitive: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Bind an equation that has programs, where no program is written: without its refs."""
    refs = tuple([isinstance(x, Reference) for x in operands])
    if not any(refs):
        params = map_programs(params, without_own_refs)
        return state.trace.bind(primitive, tuple(operands), params)
    if any(map(_hands_to_rules, sub_jaxprs(params))) and _is_transformed():
        if primitive.is_call:
            return eval_jaxpr(params["jaxpr"].jaxpr, (), *operands)
        raise NotImplementedError(
            f"{primitive} under a transform holds a function with a rule of its own that takes a "
            "ref: the rule would read or write the ref later, once for each step. Call the "
            f"function outside of the {primitive}, or pass arrays."
        )
    return primitive.discharge(operands, refs, params)


def check_apart(name: str, refs: Sequence[Any]) -> None:
    """Raise `ValueError` if a program could reach one ref in two ways."""
    seen = [id(ref if ref.staged is None else ref.staged) for ref in refs]
    for i, ref in enumerate(refs):
        if seen[i] in seen[:i]:
            raise ValueError(
                f"a mutable array reference of type {ref.aval} is passed twice to one {name}, or "
                "is passed and closed over. A function may reach a ref in one way: use one of the "
                "two."
            )


def _is_transformed() -> bool:
    """Whether there is a trace around that runs rules."""
    trace: Any = state.trace
    while trace is not bottom() and not trace.writes:
        if not isinstance(trace, StateTrace):
            return True
        trace = trace.parent
    return False


@by_program
def _hands_to_rules(closed: ClosedJaxpr) -> bool:
    """Whether a function with a rule of its own takes a ref, in the program or in one inside."""
    return any(
        (eqn.primitive.has_rule_of_its_own and any(is_ref_type(v.aval) for v in eqn.invars))
        or any(map(_hands_to_rules, sub_jaxprs(eqn.params)))
        for eqn in closed.eqns
    )


def values(operands: Sequence[Any]) -> list[Any]:
    """The operands with the values of refs in place of the refs."""
    return [get(x) if isinstance(x, Reference) else x for x in operands]


def settle(
    operands: Sequence[Any], refs: Sequence[bool], written: Sequence[bool], outs: Any
) -> Any:
    """Write the last of `outs` into the refs that are `written`; returns the others."""
    count = sum(written)
    results, after = cut(outs, len(outs) - count)
    for ref, value in zip(pick(pick(operands, refs), written), after, strict=True):
        set(ref, None, value)
    return results


def at_operands(refs: Sequence[bool], written: Sequence[bool]) -> list[bool]:
    """For each operand whether it is a ref that is written."""
    flags = iter(written)
    return [flag and next(flags) for flag in refs]


def is_example(operands: Sequence[Any]) -> bool:
    """Whether one of the operands belongs to the current trace."""
    return any(isinstance(x, Tracer) and x._trace is state.trace for x in operands)


class Valued:
    """A flat function with values in place of those of its arguments that are refs and `chosen`.

    Its results are those of `f`, and then the values of the refs that it has written.
    """

    def __init__(
        self, f: Callable[..., Sequence[Any]], args: Sequence[Any], chosen: Sequence[bool]
    ) -> None:
        self.f, self.args = f, args
        self.places = [
            i for i, flag in enumerate(chosen) if flag and isinstance(args[i], Reference)
        ]
        self.values = list(args)
        for i in self.places:
            self.values[i] = get(args[i])
        self.written: list[int] = []
        self.count = 0

    def __call__(self, *values: Any) -> list[Any]:
        given = list(values)
        before = [self.args[i].writes for i in self.places]
        for i in self.places:
            given[i] = Ref(AbstractRef(shaped(given[i])), given[i])
        outs = self.f(*given)
        self.count = len(outs)
        self.written = [i for i in self.places if given[i].writes]
        for i, count in zip(self.places, before, strict=True):
            if count != self.args[i].writes:
                raise ValueError(
                    f"a mutable array reference of type {self.args[i].aval} was both closed over "
                    "and passed as an argument to a function that is transformed, which writes "
                    "it. Use one of the two."
                )
        return [*outs, *[given[i].held() for i in self.written]]
