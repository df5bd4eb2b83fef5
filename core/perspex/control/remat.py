"""`checkpoint`: a call whose residuals are computed again instead of being stored.

Differentiated, split and transposed it is a call like any other, but for one step. When it is split
into what is known now and what is not, the known half returns its results and only those values
that a *policy* wants stored; the other half starts by computing the residuals again from these and
from the operands. So what lives between the forward and the backward pass are the operands.

For the compiler both halves compute the same values from the same operands, and it would merge them
and store what they share. A barrier before the second half hides that its operands are the same,
and lets it start only when the cotangents are there (`prevent_cse`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from perspex.base import effects, source
from perspex.base.xla import ALWAYS_COPY
from perspex.control.scan import Sizes, scan_p
from perspex.control.scan_lowering import stacked
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, map_programs
from perspex.jitted.call import jit_p
from perspex.layout.memories import space_of
from perspex.ops.memory import DevicePut, device_put
from perspex.ops.names import name_p
from perspex.ops.structural import is_linear
from perspex.tracing.axes import Axis
from perspex.tracing.staging import are_mixed, bind_wide, number
from perspex.tracing.trace import state, typeof
from perspex.transforms import discharge
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed, dce_jaxpr, without_effects
from perspex.transforms.expansion import Carried, Expand, Expanding
from perspex.transforms.higher_order import (
    Residuals,
    batch_in_front,
    check_operands,
    place_residuals,
)
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, merge, partition, pick, program, with_gaps
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import batch_jaxpr

Policy = Callable[..., Any]


class Verdict:
    """What a policy says of a value; `True` and `False` say the first two as well."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


Saveable = Verdict("Saveable")
Recompute = Verdict("Recompute")


class Offloadable(NamedTuple):
    """To be stored in another memory than it is in, named `dst`, and brought back to `src`."""

    src: Any
    dst: Any


def is_saved(policy: Policy | None, eqn: JaxprEqn) -> bool | Offloadable:
    """Whether the results of an equation are stored, and in which memory if it is another one.

    What the world sees happens only once, so its results are stored.
    """
    if effects.is_io(eqn.effects):
        return True
    if policy is None:
        return False
    found = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(found, Verdict):
        return found is Saveable
    if isinstance(found, Offloadable):
        return found
    if found is True or found is False:
        return found
    raise TypeError(
        "a policy of checkpoint returns a bool, ad_checkpoint.Saveable, ad_checkpoint.Recompute or "
        f"ad_checkpoint.Offloadable(...), got {found!r} of type {type(found)} for "
        f"`{eqn.primitive}`"
    )


class Remat(Expanding):
    """The call as an equation; `differentiated` marks the half that computes residuals again."""

    name = "remat2"
    opens_on_host = True

    def alternatives(self, params: dict[str, Any]) -> Sequence[ClosedJaxpr]:
        return (params["jaxpr"],)

    def type(self, *avals: ShapedArray, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        check_operands("checkpoint", avals, jaxpr.in_avals)
        return tuple(jaxpr.out_avals)

    def lower(
        self,
        b: Any,
        *values: Any,
        jaxpr: ClosedJaxpr,
        prevent_cse: bool,
        differentiated: bool,
        policy: Policy | None,
    ) -> list[Any]:
        given: Sequence[Any] = values
        if differentiated and prevent_cse and values:
            given = b.ops("stablehlo.optimization_barrier", values, b.in_avals).results
        return b.inline(jaxpr.jaxpr, list(given))

    def checked(
        self, checks: Checks, *operands: Any, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        return checks.called(jaxpr, operands, lambda c, xs: self(*xs, jaxpr=c, **params))

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        pure = discharge.discharge(params["jaxpr"], refs)
        outs = self(*discharge.values(operands), **{**params, "jaxpr": pure.closed})
        return discharge.settle(operands, refs, pure.written, outs)

    def expanded(
        self, expand: Expand, primals: Any, carried: Carried, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], list[list[Any] | None]]:
        return expand.call(jaxpr, primals, carried, lambda c, xs: self(*xs, jaxpr=c, **params))

    def batch(
        self, axis: Axis, operands: Any, axes: Any, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        batched = tuple([at is not None for at in axes])
        body, out_batched = batch_jaxpr(jaxpr, axis, batched)
        outs = self(*batch_in_front(operands, axes), jaxpr=body, **params)
        return outs, [0 if flag else None for flag in out_batched]

    def split(
        self,
        unknown: Sequence[bool],
        *operands: Any,
        jaxpr: ClosedJaxpr,
        policy: Policy | None,
        **params: Any,
    ) -> tuple[list[Any], Rest | None]:
        parts = _split_call(jaxpr, tuple(unknown), policy)
        early, late = partition(operands, unknown)
        known = parts.residuals.known
        params["policy"] = policy
        results = [] if known.is_idle else self(*early, jaxpr=known, **params)
        count = parts.out_unknown.count(False)
        outs = merge(parts.out_unknown, results[:count], [None] * sum(parts.out_unknown))
        if not any(parts.out_unknown):
            return outs, None
        if count:
            # The known half has run: what follows runs a second time.
            params["differentiated"] = True
        rest = [*pick(early, parts.given), *parts.residuals.collect(early, results), *late]
        return outs, Rest(self, rest, {**params, "jaxpr": parts.rest})

    def transpose(
        self, cts: Any, *operands: Any, jaxpr: ClosedJaxpr, differentiated: bool, **params: Any
    ) -> list[Any]:
        linear = tuple([is_linear(x) for x in operands])
        nonzero = tuple([ct is not None for ct in cts])
        given = pick(cts, nonzero)
        weak = tuple([typeof(ct).weak_type for ct in given])
        body, out_nonzero = transpose_jaxpr(jaxpr, linear, nonzero, False, weak)
        given = [*partition(operands, linear)[0], *given]
        found: list[Any] = []
        if body.out_avals:
            found = self(*given, jaxpr=body, differentiated=True, **params)
        return merge(linear, [None] * linear.count(False), with_gaps(found, out_nonzero))

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        jaxpr, needed = dce_closed(eqn.params["jaxpr"], tuple(used))
        return eqn.replace(
            invars=pick(eqn.invars, needed),
            outvars=pick(eqn.outvars, used),
            params={**eqn.params, "jaxpr": jaxpr},
        )


remat_p = Remat()


# ---- The two halves of a call -------------------------------------------------------------------


class _Parts(NamedTuple):
    """A call in two. `rest` takes the known operands marked `given`, what was stored, and the
    unknown operands; `residuals` says where what is stored is when its known half has run."""

    out_unknown: tuple[bool, ...]
    residuals: Residuals
    given: tuple[bool, ...]
    rest: ClosedJaxpr


@by_program
def _split_call(jaxpr: ClosedJaxpr, unknown: tuple[bool, ...], policy: Policy | None) -> _Parts:
    halves = split_jaxpr(jaxpr, unknown)
    results = halves.out_unknown.count(False)
    # A policy is asked about each operation, also in calls.
    known = (halves.known if policy is None else _expanded(halves.known)).jaxpr
    plan = _plan(known, known.outvars[results:], policy)
    forward = plan.known.replace(outvars=[*known.outvars[:results], *plan.stored])
    forward, _ = dce_jaxpr(forward, [True] * len(forward.outvars))
    # The known arguments stand for the rest, whether they are needed or not.
    forward = forward.replace(invars=known.invars)
    residuals = place_residuals(ClosedJaxpr(forward), results)

    late = halves.unknown.jaxpr
    mine, others = cut(late.invars, len(known.outvars) - results)
    atoms = [plan.read(v) for v in known.outvars[results:]]
    here: dict[Any, Atom] = dict(zip(mine, atoms, strict=True))
    needed = {v for eqn in plan.again for v in eqn.invars} | set(atoms)
    given = tuple([v in needed for v in known.invars])
    rest = late.replace(
        invars=[*pick(known.invars, given), *plan.stored, *others],
        eqns=[*plan.again, *[_renamed(eqn, here) for eqn in late.eqns]],
        outvars=[here.get(v, v) for v in late.outvars],
    )
    return _Parts(halves.out_unknown, residuals, given, ClosedJaxpr(rest))


class _Plan(NamedTuple):
    """How residuals come about a second time: from the `stored` variables, by equations `again`.

    `known` is the program that computes them the first time. `saved` are the variables whose values
    are stored, `stored` the same or what they are in another memory. `same[v]` is the variable that
    stands for `v`, before or behind its name.
    """

    known: Jaxpr
    again: list[JaxprEqn]
    saved: list[Var]
    stored: list[Var]
    same: dict[Any, Atom]

    def read(self, atom: Any) -> Any:
        while atom in self.same:
            atom = self.same[atom]
        return atom


def _plan(known: Jaxpr, residuals: Sequence[Atom], policy: Policy | None) -> _Plan:
    plan = _Plan(known.replace(), [], [], [], {})
    stored = {id(eqn): is_saved(policy, eqn) for eqn in known.eqns}
    named: set[Any] = set()
    for eqn in known.eqns:
        if eqn.primitive is name_p:
            (before,), (behind,) = eqn.invars, eqn.outvars
            # A rule may have read the value before it got its name: it is stored all the same.
            if not stored[id(eqn)]:
                plan.same[behind] = before
            else:
                named.add(behind)
                if before.__class__ is not Literal and before not in known.invars:
                    plan.same.setdefault(plan.read(before), behind)
    needed: set[Atom] = set()

    def need(atoms: Iterable[Any]) -> None:
        # What has a name may be read by equations before the one that gives the name.
        plan.saved.extend([v for v in dict.fromkeys(atoms) if v in named and v not in plan.saved])
        needed.update(atoms)

    need([plan.read(v) for v in residuals])
    for i, eqn in reversed(list(enumerate(known.eqns))):
        mine = [v for v in eqn.outvars if v in needed and v not in named]
        if not mine:
            continue
        if stored[id(eqn)]:
            plan.saved.extend(mine)
            continue
        again: JaxprEqn | None = eqn
        if eqn.primitive is scan_p and policy is not None:
            loop = _loop(eqn, [v in needed for v in eqn.outvars], policy)
            if loop is not None:
                plan.known.eqns[i] = loop.first
                plan.saved.extend(loop.saved)
                again = loop.again
        if again is not None:
            if again.effects:  # what there is to see has been seen the first time
                again = again.replace(params=map_programs(again.params, without_effects))
            again = _renamed(again, {v: plan.read(v) for v in again.invars})
            plan.again.append(again)
            need(again.invars)
    plan.again.reverse()
    places = {v: stored[id(eqn)] for eqn in known.eqns for v in eqn.outvars}
    for v in plan.saved:
        place = places.get(v)
        plan.stored.append(_moved(plan, v, place) if isinstance(place, Offloadable) else v)
    return plan


def _moved(plan: _Plan, v: Var, place: Offloadable) -> Var:
    """The value of `v` in another memory, moved there and back by the two programs of a plan."""
    away = Var(v.aval.update(memory_space=space_of(place.dst)))
    eqns = plan.known.eqns
    at = next(i for i, eqn in enumerate(eqns) if v in eqn.outvars)
    eqns.insert(at + 1, _put(v, away, eqns[at]))
    first = next((i for i, eqn in enumerate(plan.again) if v in eqn.invars), len(plan.again))
    plan.again.insert(first, _put(away, v, eqns[at]))
    return away


def _put(x: Var, y: Var, like: JaxprEqn) -> JaxprEqn:
    params = {"devices": (y.aval.memory_space,), "copy_semantics": (ALWAYS_COPY,)}
    DevicePut.is_used = True
    return JaxprEqn(device_put, [x], [y], params, like.source)


class _Loop(NamedTuple):
    """A loop that stores values of each step, and the loop that needs only these to run again."""

    first: JaxprEqn
    again: JaxprEqn | None
    saved: list[Var]


def _loop(eqn: JaxprEqn, used: Sequence[bool], policy: Policy) -> _Loop | None:
    """Ask the policy about the operations of a step; `None` if it stores none of them."""
    params = eqn.params
    sizes = Sizes.of(params)
    step = _expanded(params["jaxpr"]).jaxpr
    made = {v for e in step.eqns if is_saved(policy, e) for v in e.outvars}
    # What a step gives out and is stored anyway need not be given out again.
    direct = [
        i >= sizes.carry and use and y in made
        for i, (use, y) in enumerate(zip(used, step.outvars, strict=True))
    ]
    wanted = [use and not own for use, own in zip(used, direct, strict=True)]
    saved = list(pick(eqn.outvars, direct))
    first, again = eqn, None
    if any(wanted):
        smaller = scan_p.dce(eqn, wanted)
        keep = [v in smaller.outvars for v in eqn.outvars]
        plan = _plan(step, pick(step.outvars, keep), policy)
        stacks = [Var(stacked(v.aval, params["length"])) for v in plan.stored]
        saved += stacks
        body = plan.known.replace(outvars=[*step.outvars, *plan.stored])
        first = eqn.replace(
            outvars=[*eqn.outvars, *stacks], params=sizes.params(params, ClosedJaxpr(body))
        )
        consts, carry, xs = cut(step.invars, *sizes)
        of_consts, of_carry, of_xs = cut(eqn.invars, *sizes)
        mine = keep[: sizes.carry]
        body = step.replace(
            invars=[*consts, *pick(carry, mine), *xs, *plan.stored],
            eqns=plan.again,
            outvars=[plan.read(v) for v in pick(step.outvars, keep)],
        )
        again = eqn.replace(
            invars=[*of_consts, *pick(of_carry, mine), *of_xs, *stacks],
            outvars=pick(eqn.outvars, keep),
            params=Sizes(sizes.consts, sum(mine)).params(params, ClosedJaxpr(body)),
        )
        again = scan_p.dce(again, [True] * len(again.outvars))
    return _Loop(first, again, saved) if saved else None


def _renamed(eqn: JaxprEqn, names: dict[Any, Any]) -> JaxprEqn:
    if not any(v in names for v in eqn.invars):
        return eqn
    return eqn.replace(invars=[names.get(v, v) for v in eqn.invars])


@by_program
def _expanded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what it calls written out."""
    if not any(eqn.primitive in (jit_p, remat_p) for eqn in closed.eqns):
        return ClosedJaxpr(closed.jaxpr)

    def whole(*args: Any) -> list[Any]:
        return _evaluate(closed.jaxpr, args)

    return program(whole, closed.in_avals, closed.jaxpr.name)


def _evaluate(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    outer, names, mixed = state.source, source.names_here(), are_mixed()
    try:
        for eqn in jaxpr.eqns:
            operands = [number(v) if v.__class__ is Literal else env[v] for v in eqn.invars]
            state.source = eqn.source if names is None else names[eqn.source]
            if eqn.primitive in (jit_p, remat_p):
                outs = _evaluate(eqn.params["jaxpr"].jaxpr, operands)
            else:
                wide = mixed and eqn.is_wide
                found = bind_wide(eqn, operands) if wide else eqn.primitive(*operands, **eqn.params)
                outs = found if eqn.primitive.multiple_results else [found]
            env.update(zip(eqn.outvars, outs, strict=True))
    finally:
        state.source = outer
    return [number(v) if v.__class__ is Literal else env[v] for v in jaxpr.outvars]
