"""Parts of sums inside `shard_map`, and their cotangents: what types call unreduced or reduced.

A value that differs among the devices along an axis of a mesh may stand for the sum of what they
hold: it is *unreduced* along that axis, and `unreduced_psum` adds up. Parts of maxima and minima
have `unreduced_pmax` and `unreduced_pmin`. The cotangent of parts of a sum is the same on all
devices, which is what an invarying value has; but it is *reduced*: the cotangent of a reduced value
is unreduced, so that no sum is taken until somebody asks for it. Casts between these types move no
numbers:

    varying   -> unreduced   `vary_unreduced_cast`   its transpose is `reduced_vary_cast`
    invarying -> reduced     `preduced`              its transpose is `unreduced_psum`
    reduced   -> varying     `reduced_vary_cast`     its transpose is `vary_unreduced_cast`

In a type these axes stand where those do along which explicit axes of a mesh leave sums pending
(`ShapedArray.cut`), so that all other operations have one rule for both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

from perspex.hlo.manual import bare
from perspex.ir.avals import NOWHERE, ShapedArray
from perspex.layout.abstract import UnreducedKind
from perspex.ops.families import NUMBER, ORDERED, check_dtype
from perspex.ops.manual import emit_reduction
from perspex.ops.structural import Structural
from perspex.tracing import cuts
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Primitive

Name = Hashable
Names = tuple[Hashable, ...]


class Named(Primitive):
    """An operation along named axes."""

    takes_axis = True

    def axis_names(self, params: dict[str, Any]) -> Iterable[Name]:
        name = params["axis_name"]
        return [bare(n) for n in (name if type(name) is tuple else (name,))]


def check_state(what: str, x: ShapedArray, axes: Sequence[Name], state: str) -> None:
    """Raise `ValueError` unless `x` is `state` along all axes: `"varying"`, `"unreduced"` ..."""
    found = state_of(what, x, axes)
    if found != state:
        raise ValueError(
            f"{what} takes a value that is {state} along {tuple(axes)}, got {found} in type "
            f"{x.str_short()}; lax.pcast turns one into another"
        )


def state_of(what: str, x: ShapedArray, axes: Sequence[Name]) -> str:
    """What the type of `x` says of all these axes; `ValueError` if it says several things.

    That is `"varying"`, `"unreduced"`, `"reduced"` or `"invarying"`.
    """
    sums = cuts.sums(x)
    sets = {"varying": x.vma, "unreduced": sums.unreduced, "reduced": sums.reduced}
    found = {next((s for s, names in sets.items() if n in names), "invarying"): n for n in axes}
    if len(found) > 1:
        given = " and ".join([f"{state} along {n!r}" for state, n in found.items()])
        raise ValueError(
            f"{what} takes a value that is of one kind along all of {tuple(axes)}, got type "
            f"{x.str_short()}, which is {given}; name these axes in calls of their own"
        )
    return next(iter(found))


class Turned(Named, Structural):
    """Another type along `axes`, which are `before` in the operand and `after` in the result."""

    lowers_keys = True
    quiet: ClassVar[dict[str, Any]] = {"mesh": ...}

    def __init__(self, name: str, before: str, after: str) -> None:
        super().__init__()
        self.name, self.before, self.after = name, before, after

    def axis_names(self, params: dict[str, Any]) -> Iterable[Name]:
        found: Names = params["axes"]
        return found

    def type(self, x: ShapedArray, *, axes: Names, mesh: Any) -> ShapedArray:
        return x

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> ShapedArray:
        (x,), axes = avals, frozenset(params["axes"])
        check_state(self.name, x, params["axes"], self.before)
        return turned(x, params["mesh"], cuts.parts(x), axes, self.before, self.after)

    def lower(self, b: Any, x: Any, *, axes: Names, mesh: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any, *, axes: Names, mesh: Any) -> list[Any]:
        if self.after == "reduced":
            return [unreduced_psum(ct, axes=axes)]
        back = reduced_vary_cast if self.after == "unreduced" else vary_unreduced_cast
        return [back(ct, axes=axes, mesh=mesh)]

    def batch(
        self, axis: Axis, operands: Sequence[Any], at: Sequence[int | None], **params: Any
    ) -> tuple[Any, int | None]:
        return self(*operands, **params), at[0]


class Combined(Named):
    """What the parts that devices along `axes` hold stand for: the same on each of them."""

    # What the parts stand for, the operation that combines two of them, and the allowed dtypes.
    parts = UnreducedKind.sum
    combiner = "stablehlo.add"
    kind = NUMBER

    def axis_names(self, params: dict[str, Any]) -> Iterable[Name]:
        found: Names = params["axes"]
        return found

    def type(self, x: ShapedArray, *, axes: Names) -> ShapedArray:
        check_dtype(self.name, x.dtype, self.kind)
        return x.strip_weak_type()

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> ShapedArray:
        (x,), axes = avals, params["axes"]
        out = self.type(x, axes=axes)
        check_parts(self.name, x, axes, self.parts)
        mesh = None if x.cut is None else x.cut.mesh
        return turned(out, mesh, cuts.parts(x), frozenset(axes), "unreduced", "invarying")

    def lower(self, b: Any, x: Any, *, axes: Names) -> Any:
        return emit_reduction(b, self.name, x, axes, self.combiner)

    def batch(
        self, axis: Axis, operands: Sequence[Any], at: Sequence[int | None], *, axes: Names
    ) -> tuple[Any, int | None]:
        return self(*operands, axes=axes), at[0]


class UnreducedPsum(Combined, Structural):
    """The sum of the parts that devices along `axes` hold: the same on each of them."""

    name = "unreduced_psum"
    only_moves = False
    makes_nan = True

    def transpose(self, ct: Any, x: Any, *, axes: Names) -> list[Any]:
        return [preduced(ct, axes=axes, mesh=x.aval.cut.mesh)]


class UnreducedExtremum(Combined):
    """The greatest or the least of the parts that devices along `axes` hold."""

    kind = ORDERED

    def __init__(self, name: str, parts: UnreducedKind, combiner: str) -> None:
        super().__init__()
        self.name, self.parts, self.combiner = name, parts, combiner

    def jvp(self, primals: Any, tangents: Any, *, axes: Names) -> Any:
        if tangents[0] is None:
            return self(*primals, axes=axes), None
        raise NotImplementedError(
            f"{self.name} along {axes} has no derivative: a part does not tell whether it is the "
            "one that counts; use lax.pmax or lax.pmin of values that vary"
        )


def check_parts(
    what: str, x: ShapedArray, axes: Sequence[Name], wanted: UnreducedKind = UnreducedKind.sum
) -> None:
    """Raise `ValueError` unless `x` is parts of this kind along all axes."""
    check_state(what, x, axes, "unreduced")
    kind = cuts.sums(x).kind
    if kind is not wanted:
        raise ValueError(
            f"{what} combines parts of kind `{wanted.name}`, got type {x.str_short()} of kind "
            f"`{kind.name if kind else None}`; use lax.psum, lax.pmax or lax.pmin as the kind says"
        )


def turned(
    aval: ShapedArray, mesh: Any, parts: cuts.Parts, axes: frozenset[Any], before: str, after: str
) -> ShapedArray:
    """The type with `axes` taken from one set and put into another."""
    sums = cuts.sums(aval)
    sets = {"varying": aval.vma, "unreduced": sums.unreduced, "reduced": sums.reduced}
    sets["invarying"] = NOWHERE
    sets[before] = sets[before] - axes
    sets[after] = sets[after] | axes
    kind = (sums.kind or UnreducedKind.sum) if sets["unreduced"] else None
    left = cuts.Sums(sets["unreduced"], sets["reduced"], kind)
    return cuts.with_sums(aval.update(vma=sets["varying"]), mesh, parts, left)


vary_unreduced_cast = Turned("vary_unreduced_cast", "varying", "unreduced")
reduced_vary_cast = Turned("reduced_vary_cast", "reduced", "varying")
preduced = Turned("preduced", "invarying", "reduced")
unreduced_psum = UnreducedPsum()
unreduced_pmax = UnreducedExtremum("unreduced_pmax", UnreducedKind.max, "stablehlo.maximum")
unreduced_pmin = UnreducedExtremum("unreduced_pmin", UnreducedKind.min, "stablehlo.minimum")
