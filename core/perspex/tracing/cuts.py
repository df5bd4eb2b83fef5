"""How results are cut, given how operands are: what the `cut` rules of primitives are made of.

`Parts` are, for each axis of an array, the explicit axes of a mesh that cut it; `()` for one that
is whole. A rule gives those of its results, or raises `ShardingTypeError` where it would have to
guess, or to exchange numbers that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex.errors import ShardingTypeError
from perspex.ir.avals import NOWHERE, ShapedArray
from perspex.layout.abstract import UnreducedKind
from perspex.layout.named import NamedSharding
from perspex.layout.spec import PartitionSpec
from perspex.layout.types import count

Names = tuple[str, ...]
Parts = tuple[Names, ...]


class Sums(NamedTuple):
    """Along which axes results are unreduced, and reduced."""

    unreduced: frozenset[str] = NOWHERE
    reduced: frozenset[str] = NOWHERE
    kind: UnreducedKind | None = None


NO_SUMS = Sums()


def parts(aval: ShapedArray) -> Parts:
    """How an operand is cut."""
    if aval.cut is None:
        return ((),) * aval.ndim
    return tuple([names or () for names in aval.cut.spec.names()])


def sums(aval: ShapedArray) -> Sums:
    """Along which axes an operand is unreduced, and reduced."""
    if aval.cut is None:
        return NO_SUMS
    spec = aval.cut.spec
    return Sums(spec.unreduced, spec.reduced, spec.unreduced_kind)


def mesh_of(name: str, avals: Sequence[ShapedArray], asked: NamedSharding | None) -> Any:
    """The mesh that the types of operands refer to; `ShardingTypeError` if there are several."""
    found = {aval.cut.mesh: None for aval in avals if aval.cut is not None}
    if asked is not None:
        found[asked.mesh.abstract_mesh] = None
    if len(found) > 1:
        meshes = " and ".join(map(str, found))
        raise ShardingTypeError(
            f"{name}: the operands must be cut over one mesh, got {meshes}; move them to one with "
            "device_put"
        )
    return next(iter(found))


def shown(given: Parts) -> str:
    """Parts in an error: `('x', None)`."""
    return str(tuple([names[0] if len(names) == 1 else names or None for names in given]))


def with_sums(aval: ShapedArray, mesh: Any, cut: Parts, pending: Sums) -> ShapedArray:
    """The type that is cut so, unreduced and reduced so; for none of that no mesh is needed."""
    if not any(cut) and not pending.unreduced and not pending.reduced:
        return aval.uncut()
    spec = PartitionSpec(
        *cut,
        unreduced=pending.unreduced,
        reduced=pending.reduced,
        unreduced_kind=pending.kind if pending.unreduced else None,
    )
    return aval.update(sharding=NamedSharding(mesh, spec))


def made(
    name: str, mesh: Any, avals: Sequence[ShapedArray], out: ShapedArray, cut: Parts, pending: Sums
) -> ShapedArray:
    """The type of a result that is cut in this way; an error where an axis cuts it twice."""
    used = [n for names in cut for n in names]
    if len(set(used)) != len(used):
        given = ", ".join([aval.str_short() for aval in avals])
        sizes = [
            f"{n}@{','.join(names)}" if names else str(n)
            for n, names in zip(out.shape, cut, strict=True)
        ]
        raise ShardingTypeError(
            f"{name} operation with inputs: {given} produces an illegally sharded result: "
            f"[{','.join(sizes)}], where an axis of the mesh cuts two axes of the array; reshard "
            "one of the operands"
        )
    return with_sums(out, mesh, cut, pending)


def with_axis(
    aval: ShapedArray, size: int, at: int = 0, cut: NamedSharding | None = None
) -> ShapedArray:
    """The type with one more axis, which is cut as the only one of `cut`."""
    shape = (*aval.shape[:at], size, *aval.shape[at:])
    given = cut if aval.cut is None else aval.cut
    if given is None:
        return aval.update(shape=shape)
    names = None if cut is None else cut.spec.partitions[0]
    spec = PartitionSpec(*[None] * aval.ndim) if aval.cut is None else given.spec
    inner = [*spec.partitions[:at], names, *spec.partitions[at:]]
    try:
        return aval.update(shape=shape, sharding=given.update(spec=spec.update(partitions=inner)))
    except ValueError as error:
        raise ShardingTypeError(
            f"the batch of values of type {aval.str_short()}: {error}"
        ) from None


def without_axis(aval: ShapedArray, at: int) -> ShapedArray:
    """The type without an axis, however that is cut."""
    shape = (*aval.shape[:at], *aval.shape[at + 1 :])
    if aval.cut is None:
        return aval.update(shape=shape)
    spec = aval.cut.spec
    inner = [*spec.partitions[:at], *spec.partitions[at + 1 :]]
    return aval.update(shape=shape, sharding=aval.cut.update(spec=spec.update(partitions=inner)))


def axis_cut(avals: Sequence[ShapedArray], axes: Sequence[int | None]) -> NamedSharding | None:
    """How the axis is cut along which arrays are mapped; `ValueError` if they differ in that."""
    mapped = [(aval, at) for aval, at in zip(avals, axes, strict=True) if at is not None]
    ways = {parts(aval)[at] for aval, at in mapped}
    if len(ways) > 1:
        types = ", ".join([f"axis {at} of {aval.str_short()}" for aval, at in mapped])
        raise ValueError(
            "vmap: the axes that are mapped over should be sharded the same, but the arguments "
            f"have {types}; reshard some of them"
        )
    names = next(iter(ways), ())
    mesh = next((aval.cut.mesh for aval, _ in mapped if aval.cut is not None), None)
    return NamedSharding(mesh, PartitionSpec(names)) if names and mesh is not None else None


def batched(asked: NamedSharding, names: Names, place: int) -> NamedSharding:
    """How a batch of results lies, whose axis `place` is cut along the axes `names` of the mesh."""
    spec = asked.spec
    inner = [*spec.partitions, *[None] * (place - len(spec))]
    inner.insert(place, names)
    return asked.update(spec=spec.update(partitions=inner))


# ---- Rules that several operations share -----------------------------------------------------


def merged(name: str, avals: Sequence[ShapedArray]) -> Parts:
    """Operands of one rank, some of them scalars: each axis as the operands that cut it say.

    An operand that is whole has what is needed on every device.
    """
    return _joined(name, [parts(aval) for aval in avals if aval.shape])


def _joined(name: str, given: Sequence[Parts]) -> Parts:
    found = []
    for axis in zip(*given, strict=True):
        ways = {names for names in axis if names}
        if len(ways) > 1:
            shapes = ", ".join([shown(p) for p in given])
            raise ShardingTypeError(
                f"{name} got incompatible shardings for broadcasting: {shapes}. Reshard one of the "
                "operands with jax.sharding.reshard"
            )
        found.append(next(iter(ways), ()))
    return tuple(found)


def resized(name: str, x: ShapedArray, out: ShapedArray) -> Parts:
    """An operand of which axes get other sizes: they stay cut if the parts have one size."""
    if all(n == 1 for n in out.shape):
        return ((),) * out.ndim
    given = parts(x)
    for n, m, names in zip(x.shape, out.shape, given, strict=True):
        if n != m and names and m % count(x.sharding.mesh, names):
            raise ShardingTypeError(
                f"{name} on sharded dims where out dim ({m}) is not divisible by mesh axes "
                f"({count(x.sharding.mesh, names)}) with spec {shown((names,))} is not "
                f"implemented: the operand has type {x.str_short()}, the result shape {out.shape}; "
                "reshard the operand first"
            )
    return given


def without(given: Parts, axes: Sequence[int]) -> Parts:
    """The parts of an array without some axes."""
    return tuple([names for i, names in enumerate(given) if i not in axes])


def uncut(name: str, what: str, aval: ShapedArray, axes: Sequence[int]) -> None:
    """Raise `ShardingTypeError` if one of these axes is cut."""
    given = parts(aval)
    for axis in axes:
        if given[axis]:
            raise ShardingTypeError(
                f"{name}: {what} must be unsharded along axis {axis}, got type "
                f"{aval.str_short()}; reshard it first"
            )


def in_batches(name: str, avals: Sequence[ShapedArray], ranks: Sequence[int]) -> Parts:
    """Operands of which only the axes before the last `rank` are cut."""
    ways = []
    for i, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
        first = aval.ndim - rank
        given = parts(aval)
        if any(given[first:]):
            raise ShardingTypeError(
                f"Input {i} to {name} must be unsharded on non-batch dimensions, but got type "
                f"{aval.str_short()}; reshard it first"
            )
        ways.append(given[:first])
    return _joined(name, ways)


def padded(given: Parts, ndim: int) -> Parts:
    """Parts, and whole axes behind them."""
    return (*given, *[()] * (ndim - len(given)))


# ---- Reshaping ---------------------------------------------------------------------------------


def reshaped(x: ShapedArray, shape: Sequence[int]) -> Parts:
    """Elements in another shape: at most one axis may be split, or several ones merged into one.

    Axes of size one may come and go.
    """
    given = parts(x)
    if not any(given):
        return ((),) * len(shape)
    old = [(n, names) for n, names in zip(x.shape, given, strict=True) if n != 1]
    groups = _aligned([n for n, _ in old], [n for n in shape if n != 1])
    found: list[Names] | None = None if groups is None else []
    for before, after in groups or ():
        names = [old[i][1] for i in before]
        sizes = [n for n in shape if n != 1][after.start : after.stop]
        cut = [names[0]] if len(before) == len(after) == 1 else _divided(x, names, sizes)
        if cut is None or found is None:
            found = None
            break
        found += cut
    if found is None:
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the "
            "`out_sharding` argument of jax.lax.reshape. Got operand type: "
            f"{x.str_short(short_dtypes=False)}, new sizes: {tuple(shape)}"
        )
    rest = iter(found)
    return tuple([() if n == 1 else next(rest) for n in shape])


def _aligned(old: Sequence[int], new: Sequence[int]) -> list[tuple[range, range]] | None:
    """Which axes become which, if at most one is split or is what others are merged into."""
    groups, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        m, n, first = old[i], new[j], (i, j)
        while m != n:
            if m < n:
                i += 1
                m *= old[i]
            else:
                j += 1
                n *= new[j]
        i, j = i + 1, j + 1
        groups.append((range(first[0], i), range(first[1], j)))
    changed = [(len(a), len(b)) for a, b in groups if len(a) != 1 or len(b) != 1]
    if i < len(old) or j < len(new) or len(changed) > 1 or any(1 not in c for c in changed):
        return None
    return groups


def _divided(x: ShapedArray, given: Sequence[Names], sizes: Sequence[int]) -> list[Names] | None:
    """The axes of a mesh that cut the axes `given`, as those of axes of these sizes."""
    kept = list(given)
    while kept and not kept[-1]:
        kept.pop()
    if not all(kept):
        return None  # a whole axis comes before one that is cut
    names, found = [n for part in kept for n in part], []
    for size in sizes:
        taken = []
        while size > 1 and names:
            size, rest = divmod(size, x.sharding.mesh.shape[names[0]])
            if rest:
                return None
            taken.append(names.pop(0))
        found.append(tuple(taken))
    return None if names else found


# ---- Parts of sums -----------------------------------------------------------------------------

# What an operation does to operands that are unreduced: of one operand, or of all together, a
# linear one; of one at a time; of the first alone; none.
LINEAR, BILINEAR, LINEAR_IN_FIRST, NOT_LINEAR = "linear", "bilinear", "linear in first", ""


def joined(name: str, avals: Sequence[ShapedArray], kind: str) -> Sums:
    """Operands of an elementwise operation."""
    if all([aval.cut is None or aval.cut.spec.is_plain for aval in avals]):
        return NO_SUMS
    given = [sums(aval) for aval in avals]
    types = ", ".join([aval.str_short() for aval in avals])
    reduced = {g.reduced for g in given if g.reduced}
    if len(reduced) > 1:
        raise ShardingTypeError(
            f"All inputs should be reduced across the same mesh axes, but {name} got {types}"
        )
    (shared,) = reduced or {NOWHERE}
    unreduced = [g.unreduced for g in given]
    for aval, g in zip(avals, given, strict=True):
        free = set(aval.cut.mesh.axis_names if aval.cut else shared)
        free -= g.reduced | g.unreduced | {n for names in parts(aval) for n in names}
        used = {n for names in parts(aval) for n in names}
        if aval.shape and shared & (free | used):
            raise ShardingTypeError(
                "Inputs cannot be replicated or sharded on the same axes that another input is "
                f"reduced on, but {name} got {types}; reshard one of them"
            )
    if not any(unreduced):
        return Sums(NOWHERE, shared)
    sums_alone = all(g.kind in (None, UnreducedKind.sum) for g in given)
    if kind == LINEAR and len(set(unreduced)) == 1 and sums_alone:
        return Sums(unreduced[0], shared, given[0].kind)
    if kind in (BILINEAR, LINEAR_IN_FIRST) and sum(map(bool, unreduced)) == 1 and sums_alone:
        i = next(i for i, axes in enumerate(unreduced) if axes)
        if given[1 - i].reduced == unreduced[i] and (kind == BILINEAR or i == 0):
            return Sums(unreduced[i], NOWHERE, given[i].kind)
    raise ShardingTypeError(
        f"{name} cannot accept operands that are unreduced as these are, got {types}: it is not "
        "linear in them together, or would have to add up; reduce them with "
        "jax.sharding.reshard, or make the other operand reduced along the same axes"
    )


def beside(name: str, x: ShapedArray, axes: Any) -> Sums:
    """The operand of a collective along other axes than those of its sums.

    Raises `ValueError` if it is unreduced or reduced along one of `axes`.
    """
    found = sums(x)
    both = (found.unreduced | found.reduced).intersection(axes)
    if both:
        raise ValueError(
            f"{name} takes no operand that is unreduced or reduced along {sorted(both)}, which it "
            f"runs along, got type {x.str_short()}; add up with lax.psum or lax.psum_scatter, or "
            "turn what is reduced into varying with lax.pcast"
        )
    return found


def only_sums(name: str, asked: NamedSharding) -> None:
    """Raise `ValueError` if a result is asked to be unreduced as something else than a sum."""
    kind = asked.spec.unreduced_kind
    if kind is not None and kind is not UnreducedKind.sum:
        raise ValueError(
            f"{name}: out_sharding can only be unreduced of kind `sum`, got {asked.spec}"
        )


def check_summed(
    name: str, asked: NamedSharding, x: ShapedArray, axes: Sequence[int], kind: UnreducedKind | None
) -> None:
    """Raise if a reduction over `axes` of `x` gives no parts of this kind, unreduced as asked."""
    if asked.spec.reduced:
        raise ValueError(f"{name}: out_sharding cannot be reduced, got {asked.spec}")
    if asked.spec.unreduced and asked.spec.unreduced_kind is not kind:
        raise ShardingTypeError(
            f"{name} requires the unreduced_kind of out_sharding to be {kind}, got {asked.spec}"
        )
    summed = {n for i, names in enumerate(parts(x)) if i in axes for n in names}
    if not asked.spec.unreduced <= summed | sums(x).unreduced:
        raise ShardingTypeError(
            f"{name}: the result can be unreduced along axes of the mesh that cut what is summed "
            f"over, axes {tuple(axes)} of {x.str_short()}, got out_sharding {asked.spec}"
        )


def check_kept(name: str, asked: NamedSharding, x: ShapedArray) -> None:
    """Raise `ValueError` if a result is not asked to be unreduced and reduced as `x` is."""
    spec = asked.spec
    if Sums(spec.unreduced, spec.reduced, spec.unreduced_kind) != sums(x):
        raise ValueError(
            f"{name}: out_sharding must be unreduced and reduced over the same mesh axes as the "
            f"operand, got {spec} and an operand of type {x.str_short()}"
        )
