"""Partial evaluation, and linearization by it.

A `PartialTrace` is current while a function runs on arguments of which some are unknown. What
depends on known values alone goes to the trace below: it is computed now, or staged, as that trace
means it. What depends on an unknown is written down. The known values that it reads are its
*residuals*, the constants of the program written.

Linearization is forward mode at known primals and unknown tangents. The program that remains is
linear in the tangents: what `transpose` turns round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from perspex.base import source
from perspex.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from perspex.ops.structural import broadcast_in_dim
from perspex.tracing.past import Names
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import JaxprTrace, JaxprTracer, eval_jaxpr
from perspex.tracing.trace import typeof, under
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.jvp import jvp
from perspex.transforms.programs import by_program, embed, merge, partition, pick, program


class Rest(NamedTuple):
    """What remains of an equation when its known part has been computed: an equation again.

    `wanted` marks the results of it that were missing; it is not given when all were.
    """

    primitive: Primitive
    operands: Sequence[Any]
    params: dict[str, Any]
    wanted: Sequence[bool] | None = None


class PartialTrace(JaxprTrace):
    """Does what it can now, and writes the rest down.

    With `late_effects` the rest has all effects: what has one is unknown, whatever it reads.
    """

    __slots__ = ("around", "late_effects")
    writes = False

    def __init__(self, name: str, late_effects: bool = False) -> None:
        super().__init__(name)
        self.late_effects = late_effects
        self.around = source.names_here()

    def is_unknown(self, x: Any) -> bool:
        return x.__class__ is JaxprTracer and x._trace is self

    def bind(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        unknown = tuple([x.__class__ is JaxprTracer and x._trace is self for x in args])
        if self.late_effects and primitive.effects(params):
            return super().bind(primitive, args, params)
        if not any(unknown):
            return under(self.parent, self.parent.bind, primitive, args, params)
        if primitive.higher_order and not all(unknown):
            return self._split(primitive, unknown, args, params)
        return super().bind(primitive, args, params)

    def _split(
        self,
        primitive: Primitive,
        unknown: tuple[bool, ...],
        args: tuple[Any, ...],
        params: dict[str, Any],
    ) -> list[Any]:
        rule = functools.partial(primitive.split, unknown, *args, **params)
        outs, rest = under(self.parent, rule)
        if rest is None:
            return outs
        found = super().bind(rest.primitive, tuple(rest.operands), rest.params)
        late = iter(found if rest.wanted is None else pick(found, rest.wanted))
        return [next(late) if y is None else y for y in outs]

    def describe(self, tracer: Any) -> str:
        return "It is a derivative, which is not known before the function has been linearized."

    def remainder(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The program for `outs`, without what they do not need, and its residuals."""
        jaxpr, residuals = self.finish(outs)
        constants = dict(zip(jaxpr.constvars, residuals, strict=True))
        smaller, needed = dce_jaxpr(jaxpr, [True] * len(outs))
        if self.around is not None:
            # Whoever runs the program has names around it, perhaps others.
            inside = self.around.inside
            for eqn in smaller.eqns:
                eqn.source = inside[eqn.source]
        smaller = smaller.replace(invars=jaxpr.invars)
        return smaller, [constants[v] for v in smaller.constvars]


class Linearized(NamedTuple):
    """A function at a point: its results there, and its derivative there as a linear program.

    `jaxpr` takes the tangents of the arguments marked when it was made and returns those of the
    results marked `nonzero`; its constants are `residuals`.
    """

    outs: list[Any]
    nonzero: list[bool]
    jaxpr: Jaxpr
    residuals: list[Any]


def linearize(
    f: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    wanted: Sequence[bool],
    name: str = "",
    is_result: Callable[[int], bool] = lambda i: True,
    arg_names: Names | None = None,
) -> Linearized:
    """Evaluate the flat function `f` at `primals`, and its derivative in the arguments `wanted`.

    Results for which `is_result` is false, asked when `f` has run, are evaluated only. `arg_names`
    tells errors what the user's function and its arguments are called.
    """
    trace = PartialTrace(name or getattr(f, "__name__", "function"))
    try:
        tangents = [
            trace.argument(typeof(x)) if want else None
            for x, want in zip(primals, wanted, strict=True)
        ]
        outs, out_tangents = under(trace, jvp, f, primals, tangents, arg_names)
        # A tangent that depends on no tangent is that of a constant: zero.
        nonzero = [trace.is_unknown(t) and is_result(i) for i, t in enumerate(out_tangents)]
        jaxpr, residuals = trace.remainder(pick(out_tangents, nonzero))
    finally:
        trace.alive = False
    return Linearized(outs, nonzero, jaxpr, residuals)


class Split(NamedTuple):
    """A program in two.

    `known` takes the known arguments and returns the known results, then the residuals; `unknown`
    takes the residuals and the unknown arguments and returns the results marked `out_unknown`.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    out_unknown: tuple[bool, ...]


@by_program
def split_jaxpr(
    closed: ClosedJaxpr,
    unknown: tuple[bool, ...],
    instantiate: tuple[bool, ...] | bool = False,
    late_effects: bool = False,
) -> Split:
    """Split a program by which arguments are `unknown`.

    Results marked `instantiate` are left to the unknown part also when they could be computed now.
    Effects of what is known are in the known part, or with `late_effects` in the unknown one.
    """
    outs = len(closed.out_avals)
    wanted = (instantiate,) * outs if isinstance(instantiate, bool) else instantiate
    early_avals, late_avals = partition(closed.in_avals, unknown)
    name = closed.jaxpr.name
    out_unknown: tuple[bool, ...] = ()
    rest: Jaxpr | None = None

    def known_part(*early: Any) -> list[Any]:
        nonlocal out_unknown, rest
        trace = PartialTrace(name, late_effects)
        try:
            late = [trace.argument(aval) for aval in late_avals]
            args = merge(unknown, early, late)
            results = under(trace, eval_jaxpr, closed.jaxpr, closed.consts, *args)
            out_unknown = tuple(
                [want or trace.is_unknown(y) for want, y in zip(wanted, results, strict=True)]
            )
            now, later = partition(results, out_unknown)
            rest, residuals = trace.remainder(later)
        finally:
            trace.alive = False
        return [*now, *residuals]

    known = program(known_part, early_avals, name)
    assert rest is not None
    return Split(*_settle(known.jaxpr, rest, outs - sum(out_unknown)), out_unknown)


def _settle(known: Jaxpr, rest: Jaxpr, results: int) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Decide which residuals are stored, and close both programs over them.

    What costs nothing to make again is made again where it is read, instead of being stored: values
    that depend on no argument, and values spread over a larger shape.
    """
    origin = {v: eqn for eqn in known.eqns for v in eqn.outvars}
    pairs = list(zip(known.outvars[results:], rest.constvars, strict=True))
    # The variables of `rest` for those of `known`, and which of them have been settled.
    here: dict[Any, Var] = {v: var for v, var in pairs if not isinstance(v, Literal)}
    literals = [(var, atom.val) for atom, var in pairs if isinstance(atom, Literal)]
    assert len(here) + len(literals) == len(pairs), "a residual was captured twice"
    settled: set[Any] = set()
    again: list[JaxprEqn] = []
    stored: list[Any] = []

    def settle(atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return atom
        var = here.setdefault(atom, Var(atom.aval))
        if atom not in settled:
            settled.add(atom)
            eqn = origin.get(atom)
            if eqn is not None and _is_free(eqn):
                again.append(eqn.replace(invars=[settle(v) for v in eqn.invars], outvars=[var]))
            else:
                stored.append(atom)
        return var

    for atom, _ in pairs:
        settle(atom)
    needed = known.replace(outvars=[*known.outvars[:results], *stored])
    smaller, _ = dce_jaxpr(needed, [True] * len(needed.outvars))
    rest = embed(rest, literals)
    rest = rest.replace(
        constvars=(),
        invars=[*[here[atom] for atom in stored], *rest.invars],
        eqns=[*again, *rest.eqns],
    )
    return ClosedJaxpr(smaller.replace(invars=known.invars)), ClosedJaxpr(rest)


def _is_free(eqn: JaxprEqn) -> bool:
    primitive = eqn.primitive
    if primitive.multiple_results or eqn.effects:
        return False
    return primitive is broadcast_in_dim or all(v.__class__ is Literal for v in eqn.invars)
