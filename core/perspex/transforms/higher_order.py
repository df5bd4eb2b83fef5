"""What calls, loops and branches have in common: primitives that hold programs among their params.

Their rules transform those programs, and bind themselves again with what comes out. All such steps
are remembered by program (`transforms.programs.by_program`), so that a rule which is applied twice
to one program gives one program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

from perspex.base.effects import Effects, no_effects
from perspex.base.effects import state as stateful
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var, sub_jaxprs
from perspex.ops.structural import move_axis, zeros
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import Reference, state, typeof
from perspex.transforms import discharge
from perspex.transforms.jvp import tangent_aval
from perspex.transforms.programs import by_program, pick
from perspex.transforms.sequence import sequenced

T = TypeVar("T")


class HigherOrder(Primitive):
    """A primitive with programs among its params."""

    multiple_results = True
    higher_order = True
    takes_axis = True
    lowers_keys = True
    takes_refs = True
    memory = None
    # Whether it repeats a program, so that its results are what the last turn left.
    is_loop = False
    # Two of its programs may have the same ref, each as an operand.
    shares_refs = False

    def __call__(self, *args: Any, **params: Any) -> Any:
        trace = state.trace
        refs = [x for x in args if isinstance(x, Reference)]
        if len(refs) > 1 and not self.shares_refs:
            discharge.check_apart(self.name, refs)
        if not trace.writes and (refs or stateful in self.effects(params)):
            return discharge.bind(self, args, params)
        return trace.bind(self, args, params)

    bind = __call__

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        """Bind the equation without its refs, which are the operands so marked, and write them."""
        raise NotImplementedError(
            f"{self.name} takes no refs: its program would run more than once at a time. Read the "
            "value before with `ref[...]`, and return what is to be written."
        )

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep every program alive.
        return self.type(*avals, **params)

    def effects(self, params: dict[str, Any]) -> Effects:
        return no_effects.union(*[closed.effects for closed in sub_jaxprs(params)])

    def sequence(self, token: Any, *operands: Any, **params: Any) -> tuple[Any, list[Any]]:
        """What is a call once it is lowered, written out. Loops and branches have their own."""
        closed, given = self.called(operands, params)
        token, *outs = eval_jaxpr(sequenced(closed).jaxpr, (), token, *given)
        return token, outs

    def flops(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: dict[str, Any],
    ) -> float | None:
        """That of the programs, by `total`."""
        return self.total([program_work(closed).flops for closed in sub_jaxprs(params)], params)

    def traffic(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: dict[str, Any],
    ) -> float | None:
        """That of the programs, by `total`."""
        return self.total([program_work(closed).traffic for closed in sub_jaxprs(params)], params)

    def total(self, parts: Sequence[float | None], params: dict[str, Any]) -> float | None:
        """What a run takes if one run of each program takes `parts`: known for a call of one."""
        return parts[0] if len(parts) == 1 else None

    def may_take_long(self, params: dict[str, Any]) -> bool:
        """Whether it has a loop that may run so long that somebody wants to stop it."""
        return any(holds_long_loop(closed) for closed in sub_jaxprs(params))

    def called(
        self, operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[ClosedJaxpr, Sequence[Any]]:
        """The program that is called, and with what: the first one that takes the operands."""
        count = len(operands)
        return next(c for c in sub_jaxprs(params) if len(c.in_avals) == count), operands

    def alternatives(self, params: dict[str, Any]) -> Sequence[ClosedJaxpr]:
        """The programs of which one runs once, on the last operands, and gives the results."""
        return ()

    def in_turns(self, params: dict[str, Any]) -> Turns | None:
        """A loop as a program that makes some of its turns; `None` for what is no such loop."""
        return None

    def axis_names(self, params: dict[str, Any]) -> frozenset[Hashable]:
        return frozenset().union(*map(program_axis_names, sub_jaxprs(params)))


class Turns(NamedTuple):
    """A loop as a program that makes some turns, and goes on from what it gave.

        begin(*operands) -> (*state)
        advance(*fixed, *state, limit) -> (*state, made)

    `fixed` marks the operands that each turn reads. `made` is less than `limit`, a scalar of int32,
    where the loop has ended. The results of the loop are the last ones of the state. A turn makes
    `steps` steps of the user's loop, and `begin` the first `left`; `length` is how many it has, if
    that is known.
    """

    fixed: tuple[bool, ...]
    begin: ClosedJaxpr
    advance: ClosedJaxpr
    steps: int = 1
    left: int = 0
    length: int | None = None


class Work(NamedTuple):
    """Operations of arithmetic and bytes moved, as by `Primitive.flops` and `traffic`."""

    flops: float | None
    traffic: float | None


def equation_work(eqn: JaxprEqn) -> Work:
    """What one run of an equation takes."""
    operands = [v.aval for v in eqn.invars]
    results = [v.aval for v in eqn.outvars]
    given = operands, results, eqn.params
    return Work(eqn.primitive.flops(*given), eqn.primitive.traffic(*given))


@by_program
def program_work(closed: ClosedJaxpr) -> Work:
    """What one run of a program takes; `None` where that of an equation is not known."""
    parts = [equation_work(eqn) for eqn in closed.eqns]
    return Work(_sum([part.flops for part in parts]), _sum([part.traffic for part in parts]))


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


@by_program
def holds_long_loop(closed: ClosedJaxpr) -> bool:
    """Whether a program has a loop that is worth watching, in its bodies too."""
    return has_long_loop(closed.jaxpr)


def has_long_loop(jaxpr: Jaxpr) -> bool:
    """Whether a loop among the equations, or in one of them, is worth watching."""
    return any(
        isinstance(eqn.primitive, HigherOrder) and eqn.primitive.may_take_long(eqn.params)
        for eqn in jaxpr.eqns
    )


@by_program
def program_axis_names(closed: ClosedJaxpr) -> frozenset[Hashable]:
    """The named axes that a program runs along, in its bodies too."""
    return frozenset().union(*[eqn.primitive.axis_names(eqn.params) for eqn in closed.eqns])


def check_operands(name: str, avals: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> None:
    """Raise `TypeError` unless operands have the shapes and dtypes that a program takes."""
    if len(avals) != len(wanted):
        raise TypeError(f"{name} takes {len(wanted)} operands, got {len(avals)}")
    for i, (aval, want) in enumerate(zip(avals, wanted, strict=True)):
        same = aval.shape == want.shape and aval.dtype == want.dtype and aval.cut == want.cut
        if not same or aval.memory_space is not want.memory_space:
            raise TypeError(
                f"{name}: operand {i} has type {aval.str_short(short_dtypes=False)}, "
                f"but its program takes {want.str_short(short_dtypes=False)}; convert it"
            )


def instantiated(
    tangents: Sequence[Any], primals: Sequence[Any], wanted: Sequence[bool]
) -> list[Any]:
    """The tangents of `primals` marked `wanted`, as arrays also where they are zero."""
    return [
        zeros(tangent_aval(typeof(x))) if t is None else t
        for t, x in zip(pick(tangents, wanted), pick(primals, wanted), strict=True)
    ]


def batch_in_front(operands: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """The operands with their batch axes in front."""
    return [x if at is None else move_axis(x, at, 0) for x, at in zip(operands, axes, strict=True)]


def rearranged(
    closed: ClosedJaxpr, invars: Sequence[Var], outvars: Sequence[Atom] | None = None
) -> ClosedJaxpr:
    """The program with its arguments, and its results if given, in another order."""
    jaxpr = closed.jaxpr
    outvars = jaxpr.outvars if outvars is None else outvars
    return ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars))


def fixpoint(
    step: Callable[[tuple[bool, ...]], tuple[T, Sequence[bool]]], flags: Sequence[bool]
) -> T:
    """The first value of `step(flags)` for the least flags to which its second adds nothing.

    What a loop carries is marked (as having a tangent, being batched, unknown, needed) if it is so
    at the start or after a step in which the marked ones were so.
    """
    while True:
        found, after = step(tuple(flags))
        joined = [old or new for old, new in zip(flags, after, strict=True)]
        if joined == list(flags):
            return found
        flags = joined


class Residuals(NamedTuple):
    """Where the residuals of a split program are when its known part has run.

    `known` returns the known results, and those residuals that have to be computed. A place is
    true and the number of an operand, or false and the number of a result.
    """

    known: ClosedJaxpr
    places: tuple[tuple[bool, int], ...]

    def collect(self, operands: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals, given what the known part took and returned."""
        return [operands[i] if given else results[i] for given, i in self.places]


def place_residuals(
    known: ClosedJaxpr, results: int, at_hand: Sequence[bool] | None = None, first: int = 0
) -> Residuals:
    """Find the residuals that need not be computed: operands, and results that are there anyway.

    `known` returns so many `results` and then the residuals. A residual may be any operand that is
    marked `at_hand` (all of them if not given), or any result but those before `first`.
    """
    jaxpr = known.jaxpr
    outvars = list(jaxpr.outvars[:results])
    place = {v: (False, i) for i, v in enumerate(outvars) if i >= first and isinstance(v, Var)}
    for i, v in enumerate(jaxpr.invars):
        if at_hand is None or at_hand[i]:
            place[v] = (True, i)
    places = []
    for residual in jaxpr.outvars[results:]:
        assert isinstance(residual, Var), "a literal is not stored"
        if residual not in place:
            place[residual] = (False, len(outvars))
            outvars.append(residual)
        places.append(place[residual])
    return Residuals(ClosedJaxpr(jaxpr.replace(outvars=outvars)), tuple(places))
