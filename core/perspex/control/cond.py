"""`cond`: one of several programs, chosen by an index while the program runs.

    index, operands -> results of branches[index](operands)

All branches take the same operands and give results of the same types. Transforming a branch may
give it another signature (which results have a tangent, which residuals there are), so the rules
agree on one for all branches and transform each to it. If the index differs from example to example
of a batch, all branches run and a selection chooses.

With `branches_platforms`, the platform chooses: the index is then a `platform_index`, and only the
branch of the platform that a program is lowered for is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.base import xla
from perspex.base.effects import is_io
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from perspex.ops.elementwise import eq, select, select_n, stop_gradient
from perspex.ops.reductions import reduce_or
from perspex.ops.structural import broadcast_in_dim, is_linear, to_front, zeros
from perspex.runtime import client
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms import discharge
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed
from perspex.transforms.expansion import Carried, Expand, Expanding, flattened
from perspex.transforms.higher_order import (
    Residuals,
    batch_in_front,
    check_operands,
    place_residuals,
    rearranged,
)
from perspex.transforms.jvp import is_differentiable
from perspex.transforms.linearize import Rest, split_jaxpr
from perspex.transforms.programs import by_program, cut, merge, partition, pick, program, with_gaps
from perspex.transforms.sequence import sequenced
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.vmap import batch_jaxpr

Branches = tuple[ClosedJaxpr, ...]
# The platforms that each branch is for; `None` for the branch for all others.
Platforms = tuple[tuple[str, ...] | None, ...]
_INDEX = ShapedArray((), np.dtype("int32"))


class Cond(Expanding):
    """The choice as an equation; the first operand is the int32 index into `branches`."""

    name = "cond"

    def alternatives(self, params: dict[str, Any]) -> Branches:
        branches: Branches = params["branches"]
        return branches

    def type(
        self, *avals: ShapedArray, branches: Branches, branches_platforms: Platforms | None = None
    ) -> tuple[ShapedArray, ...]:
        first = branches[0]
        for i, branch in enumerate(branches):
            check_operands(f"cond: branch {i}", avals, [_INDEX, *branch.in_avals])
            check_operands(f"cond: results of branch {i}", branch.out_avals, first.out_avals)
        # Where branches differ in weak type, the first one counts, as in JAX.
        return tuple(
            [
                outs[0].update(vma=avals[0].vma.union(*[aval.vma for aval in outs]))
                for outs in zip(*[branch.out_avals for branch in branches], strict=True)
            ]
        )

    def total(self, parts: Sequence[float | None], params: dict[str, Any]) -> float | None:
        # Which branch is run is not known; where they take the same it does not matter.
        return parts[0] if len(set(parts)) == 1 else None

    def lower(
        self,
        b: Any,
        index: Any,
        *values: Any,
        branches: Branches,
        branches_platforms: Platforms | None = None,
    ) -> list[Any]:
        if branches_platforms is not None:
            chosen = branches[branch_for(b.platform, branches_platforms)]
            return list(b.inline(chosen.jaxpr, values))
        choice = b.ops("stablehlo.case", [index], b.out_avals, regions=len(branches))
        for region, branch in zip(choice.regions, branches, strict=True):
            with b.block(region, []) as (inner, _):
                inner.terminate("stablehlo.return", inner.inline(branch.jaxpr, values))
        return list(choice.results)

    def checked(
        self, checks: Checks, index: Any, *values: Any, branches: Branches, **choice: Any
    ) -> list[Any]:
        if not checks.enter(*branches):
            return self(index, *values, branches=branches, **choice)
        bodies = tuple([checks.program(branch) for branch in branches])
        return checks.leave(self(index, *checks.values, *values, branches=bodies, **choice))

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        branches: Branches = params["branches"]
        found = [discharge.discharge(branch, refs[1:]) for branch in branches]
        written = _any_of([pure.written for pure in found])
        pure = tuple([discharge.discharge(branch, refs[1:], written).closed for branch in branches])
        outs = self(*discharge.values(operands), **{**params, "branches": pure})
        return discharge.settle(operands, refs, written, outs)

    def expanded(
        self,
        expand: Expand,
        primals: Sequence[Any],
        carried: Carried,
        *,
        branches: Branches,
        **choice: Any,
    ) -> tuple[list[Any], list[list[Any] | None]]:
        given = carried[1:]
        nonzero = tuple([t is not None for t in given])
        found = _any_of([expand.program(branch, nonzero)[1] for branch in branches])
        duals = tuple([expand.program(branch, nonzero, found)[0] for branch in branches])
        outs = self(*primals, *flattened(given), branches=duals, **choice)
        return expand.apart(outs, found)

    def batch(
        self,
        axis: Axis,
        operands: Sequence[Any],
        axes: Sequence[int | None],
        *,
        branches: Branches,
        **choice: Any,
    ) -> tuple[list[Any], list[int | None]]:
        index, *values = batch_in_front(operands, axes)
        batched = tuple([at is not None for at in axes[1:]])
        out_batched = _any_of([batch_jaxpr(branch, axis, batched)[1] for branch in branches])
        if axes[0] is None:
            many = tuple(
                [batch_jaxpr(branch, axis, batched, out_batched)[0] for branch in branches]
            )
            outs = self(index, *values, branches=many, **choice)
            return outs, [0 if flag else None for flag in out_batched]
        if any(is_io(branch.effects) for branch in branches):
            raise NotImplementedError(
                "IO effect not supported in vmap-of-cond: the choice differs among the examples, "
                "so all branches would run for all of them. Call io_callback outside the "
                "branches, with the predicate as an argument."
            )
        cases = []
        for i, branch in enumerate(branches):
            one, found = batch_jaxpr(branch, axis, batched)
            outs = eval_jaxpr(one.jaxpr, (), *_guarded(index, i, values, batched))
            cases.append(
                [
                    y if flag else to_front(y, None, axis)
                    for y, flag in zip(outs, found, strict=True)
                ]
            )
        chosen = [_select(index, column) for column in zip(*cases, strict=True)]
        return chosen, [0] * len(chosen)

    def sequence(
        self, token: Any, index: Any, *values: Any, branches: Branches, **choice: Any
    ) -> tuple[Any, list[Any]]:
        ordered = tuple([sequenced(branch) for branch in branches])
        token, *outs = self(index, token, *values, branches=ordered, **choice)
        return token, outs

    def split(
        self, unknown: Sequence[bool], index: Any, *values: Any, branches: Branches, **choice: Any
    ) -> tuple[list[Any], Rest | None]:
        if unknown[0]:
            count = len(branches[0].out_avals)
            return [None] * count, Rest(self, (index, *values), {"branches": branches, **choice})
        parts = _split_branches(branches[0], branches[1:], tuple(unknown[1:]))
        early, late = partition(values, unknown[1:])
        idle = all(branch.is_idle for branch in parts.known)
        outs = [] if idle else self(index, *early, branches=parts.known, **choice)
        now = outs[: parts.out_unknown.count(False)]
        results = merge(parts.out_unknown, now, [None] * sum(parts.out_unknown))
        if not any(parts.out_unknown):
            return results, None
        residuals = [early[i] if given else outs[i] for given, i in parts.places]
        return results, Rest(self, (index, *residuals, *late), {"branches": parts.rest, **choice})

    def transpose(
        self, cts: Sequence[Any], index: Any, *values: Any, branches: Branches, **choice: Any
    ) -> list[Any]:
        linear = tuple([is_linear(x) for x in values])
        nonzero = tuple([ct is not None for ct in cts])
        given = pick(cts, nonzero)
        weak = tuple([typeof(ct).weak_type for ct in given])
        flags = _any_of(
            [transpose_jaxpr(branch, linear, nonzero, False, weak)[1] for branch in branches]
        )
        backward = tuple(
            [transpose_jaxpr(branch, linear, nonzero, flags, weak)[0] for branch in branches]
        )
        found: list[Any] = []
        if any(flags):
            coefficients = partition(values, linear)[0]
            found = self(index, *coefficients, *given, branches=backward, **choice)
        return [None, *merge(linear, [None] * linear.count(False), with_gaps(found, flags))]

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        branches, wanted = eqn.params["branches"], tuple(used)
        needed = _any_of([dce_closed(branch, wanted)[1] for branch in branches])
        smaller = tuple([dce_closed(branch, wanted, needed)[0] for branch in branches])
        return eqn.replace(
            invars=pick(eqn.invars, [True, *needed]),
            outvars=pick(eqn.outvars, used),
            params={**eqn.params, "branches": smaller},
        )


def _any_of(flags: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    """What is marked for at least one branch is marked for all."""
    return tuple([any(column) for column in zip(*flags, strict=True)])


def _guarded(index: Any, branch: int, values: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """The operands of a branch that runs for all examples, but was chosen for some of them only.

    They are the same numbers, but where the branch was not chosen no derivative flows: the
    cotangent is zero there, and zero times an infinite derivative would be NaN.
    """
    chosen = eq(index, _INDEX.dtype.type(branch))
    found = []
    for x, many in zip(values, batched, strict=True):
        aval = typeof(x)
        if is_differentiable(aval):
            where = _spread(chosen, aval.shape) if many else reduce_or(chosen, axes=(0,))
            x = select(where, x, stop_gradient(x))
        found.append(x)
    return found


def _select(index: Any, cases: Sequence[Any]) -> Any:
    return select_n(_spread(index, typeof(cases[0]).shape), *cases)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """One value for each example, at the shape of a batch of arrays."""
    if len(shape) == 1:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=(0,))


class _Parts(NamedTuple):
    """Branches in two. `places` says where the residuals are: operands or results of `known`."""

    known: Branches
    rest: Branches
    out_unknown: tuple[bool, ...]
    places: list[tuple[bool, int]]


@by_program
def _split_branches(first: ClosedJaxpr, others: Branches, unknown: tuple[bool, ...]) -> _Parts:
    branches = (first, *others)
    out_unknown = _any_of([split_jaxpr(branch, unknown).out_unknown for branch in branches])
    halves = [split_jaxpr(branch, unknown, out_unknown) for branch in branches]
    results = out_unknown.count(False)
    found = [place_residuals(half.known, results) for half in halves]
    # Residuals of different branches share a slot if their types allow it.
    slots: list[ShapedArray] = []
    assigned = [_assign(one, results, slots) for one in found]
    known = tuple(
        [_fill(one, results, slots, mine) for one, mine in zip(found, assigned, strict=True)]
    )
    places = sorted({place for mine in assigned for place in mine})
    avals = [known[0].in_avals[i] if given else known[0].out_avals[i] for given, i in places]
    rest = []
    for half, mine in zip(halves, assigned, strict=True):
        residuals, late = cut(half.unknown.jaxpr.invars, len(mine))
        here = dict(zip(mine, residuals, strict=True))
        invars = [here.get(p) or Var(aval) for p, aval in zip(places, avals, strict=True)]
        rest.append(rearranged(half.unknown, [*invars, *late]))
    return _Parts(known, tuple(rest), out_unknown, places)


def _assign(residuals: Residuals, results: int, slots: list[ShapedArray]) -> list[tuple[bool, int]]:
    """The places of a branch's residuals, those that it computes in slots; adds slots as needed."""
    free = list(range(len(slots)))
    places = []
    for given, i in residuals.places:
        if given or i < results:
            places.append((given, i))
            continue
        aval = residuals.known.out_avals[i].strip_weak_type()
        slot = next((s for s in free if slots[s] is aval), None)
        if slot is None:
            slot = len(slots)
            slots.append(aval)
        else:
            free.remove(slot)
        places.append((False, results + slot))
    return places


def _fill(
    residuals: Residuals,
    results: int,
    slots: Sequence[ShapedArray],
    places: Sequence[tuple[bool, int]],
) -> ClosedJaxpr:
    """The known part of a branch, with zeros in the slots that only other branches use."""
    jaxpr = residuals.known.jaxpr
    source = {
        place[1] - results: i
        for place, (given, i) in zip(places, residuals.places, strict=True)
        if not given and i >= results
    }

    def whole(*args: Any) -> list[Any]:
        outs = eval_jaxpr(jaxpr, (), *args)
        filled = [outs[source[s]] if s in source else zeros(aval) for s, aval in enumerate(slots)]
        return [*outs[:results], *filled]

    return program(whole, residuals.known.in_avals, jaxpr.name)


def branch_for(platform: str, platforms: Platforms) -> int:
    """The branch for a platform. Raises `NotImplementedError` if there is none."""
    others = None
    for i, names in enumerate(platforms):
        if names is None:
            others = i
        elif platform in names:
            return i
    if others is None:
        known = sorted([name for names in platforms for name in names or ()])
        raise NotImplementedError(
            f"lax.platform_dependent: there is no function for the platform {platform!r} among "
            f"{known}; add one, or a default"
        )
    return others


class PlatformIndex(Primitive):
    """The index of the branch for the platform that a program is lowered for."""

    name = "platform_index"
    on_host = True

    def type(self, *, platforms: Platforms) -> ShapedArray:
        return _INDEX

    def evaluate(self, *, platforms: Platforms) -> Any:
        platform = xla.platform_of(client.default_device().client)
        return _INDEX.dtype.type(branch_for(platform, platforms))

    def lower(self, b: Any, *, platforms: Platforms) -> Any:
        return b.constant(branch_for(b.platform, platforms), _INDEX)


cond_p = Cond()
platform_index_p = PlatformIndex()
