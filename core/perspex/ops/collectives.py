"""Operations along a named axis: what the examples of a batch tell each other.

`vmap(f, axis_name="i")` gives the axis of its examples a name, and a collective inside `f` names
it: `psum` adds up over all examples, `all_gather` gives each of them the values of all. The name
stands in the params. A program may hold collectives along axes that are not mapped yet (the body of
a loop inside a `vmap` does), so types, derivatives and transposes know nothing of batches: they are
those of linear maps between the values of all examples. Only the `batch` rule of the batch that has
the name sees the examples as one array, and there every collective moves or adds up its rows.

Each example has a cotangent of its own result, and the loss is the sum of what they stand for: the
transpose of `psum` is `psum`, that of `all_gather` is `reduce_scatter`.

Inside `shard_map` a name is that of an axis of a mesh, and the collective that is left in the
program is what the devices along it do (`ops.manual`). Types may say there which values differ
among the devices (`ShapedArray.vma`). A value that does not is made one that does by `pvary`, whose
transpose adds up the cotangents of all devices: `psum_invariant`, whose result is the same on each.

A collective that is compiled outside has lost its axis, which is an error that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from perspex.hlo.manual import bare
from perspex.ir.avals import ShapedArray
from perspex.ops import structural
from perspex.ops.casts import Name, Named, Names, reduced_vary_cast
from perspex.ops.dynamic import dynamic_slice
from perspex.ops.elementwise import div, eq, mul, select
from perspex.ops.families import NUMBER, ORDERED, check_dtype
from perspex.ops.indexing import gather
from perspex.ops.lowering import expand
from perspex.ops.manual import (
    axis_length,
    emit_all_to_all,
    emit_gather,
    emit_index,
    emit_permutation,
    emit_reduction,
    emit_scatter,
)
from perspex.ops.reductions import reduce_max, reduce_min
from perspex.ops.shape import iota, part
from perspex.ops.structural import (
    Structural,
    broadcast_in_dim,
    convert,
    inserted,
    move_axis,
    reduce_sum,
    scalar_like,
    squeeze,
    to_front,
    transpose,
)
from perspex.ops.windows import CLIP, FILL_OR_DROP, ZERO, GatherDimensionNumbers
from perspex.tracing import cuts
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import JaxprTrace
from perspex.tracing.trace import typeof


class Collective(Named, Structural):
    """Linear in its operand, along the axis that the param `axis_name` names."""

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.resized(self.name, x, out)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.beside(self.name, x, self.axis_names(params))

    def batch(
        self, axis: Axis, operands: Sequence[Any], at: Sequence[int | None], **params: Any
    ) -> tuple[Any, int | None]:
        (x,), (where,) = operands, at
        if axis.name in self.axis_names(params):
            return self.along(x, where, axis.size, **params)
        return self.shifted(move_axis(x, where, 0), **params), 0  # type: ignore[arg-type]

    def along(self, *args: Any, **params: Any) -> tuple[Any, int | None]:
        """The operation along the batch axis of `x` at `at`: `along(x, at, size, **params)`.

        Where `at` is `None`, all examples have the same `x`. Returns the result and its batch axis.
        """
        raise self.missing("along")

    def shifted(self, *args: Any, **params: Any) -> Any:
        """The operation along another axis, on an array with one more axis in front."""
        raise self.missing("shifted")


def _stacked(x: Any, at: int | None, size: int, where: int) -> Any:
    """The values of all examples, stacked along the axis `where`."""
    if at is not None:
        return move_axis(x, at, where)
    shape = inserted(typeof(x).shape, where, size)
    dims = tuple([i for i in range(len(shape)) if i != where])
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


# ---- Sums and extremes --------------------------------------------------------------------------


class Across(Named):
    """A reduction over the named `axes`: every example gets the same."""

    printed: ClassVar[dict[str, Any]] = {"axis_index_groups": None}
    kind: str
    # The operation of StableHLO that combines the values of two devices.
    combiner: str

    def axis_names(self, params: dict[str, Any]) -> Iterable[Name]:
        return [bare(name) for name in params["axes"]]

    def type(self, x: ShapedArray, *, axes: Names) -> ShapedArray:
        check_dtype(self.name, x.dtype, self.kind)
        return x.strip_weak_type()

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.beside(self.name, x, self.axis_names(params))

    def varies(self, vma: frozenset[str], params: dict[str, Any]) -> frozenset[str]:
        return vma - set(params["axes"])

    def lower(self, b: Any, x: Any, *, axes: Names) -> Any:
        return emit_reduction(b, self.name, x, axes, self.combiner)

    def batch(
        self, axis: Axis, operands: Sequence[Any], at: Sequence[int | None], *, axes: Names
    ) -> tuple[Any, int | None]:
        (x,), (where,) = operands, at
        if axis.name not in axes:
            return self(x, axes=axes), where
        others = tuple([name for name in axes if name != axis.name])
        y = self.combined(x, where, axis.size)
        return self(y, axes=others) if others else y, None

    def combined(self, x: Any, at: int | None, size: int) -> Any:
        """The reduction of the values of all examples."""
        raise self.missing("combined")


class Psum(Across, Structural):
    """The sum over all examples."""

    name = "psum"
    only_moves = False
    makes_nan = True
    kind = NUMBER
    combiner = "stablehlo.add"

    def combined(self, x: Any, at: int | None, size: int) -> Any:
        if at is not None:
            return reduce_sum(x, axes=(at,))
        aval = typeof(x)
        return convert(mul(x, scalar_like(x, size)), aval.dtype, aval.weak_type)

    def transpose(self, ct: Any, x: Any, *, axes: Names) -> list[Any]:
        return [self(ct, axes=axes)]


class PsumInvariant(Psum):
    """The sum over the devices among which the operand differs: the same on all of them."""

    name = "psum_invariant"
    printed: ClassVar[dict[str, Any]] = {}

    def transpose(self, ct: Any, x: Any, *, axes: Names) -> list[Any]:
        return [pvary(ct, axes=axes)]


class Pvary(Named, Structural):
    """The operand, which is the same on all devices along `axes`, as a value of each of them."""

    name = "pvary"
    lowers_keys = True

    def axis_names(self, params: dict[str, Any]) -> Iterable[Name]:
        found: Names = params["axes"]
        return found

    def type(self, x: ShapedArray, *, axes: Names) -> ShapedArray:
        return x

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> ShapedArray:
        (x,) = avals
        cuts.beside(self.name, x, params["axes"])
        return x.update(vma=x.vma.union(params["axes"]))

    def lower(self, b: Any, x: Any, *, axes: Names) -> Any:
        return x

    def transpose(self, ct: Any, x: Any, *, axes: Names) -> list[Any]:
        # In a program that was made for values that vary more, it may have nothing to do.
        spread = tuple([name for name in axes if name not in x.aval.vma])
        return [psum_invariant(ct, axes=spread) if spread else ct]

    def batch(
        self, axis: Axis, operands: Sequence[Any], at: Sequence[int | None], *, axes: Names
    ) -> tuple[Any, int | None]:
        return self(*operands, axes=axes), at[0]


def varying(x: Any, vma: frozenset[str]) -> Any:
    """`x`, varying along all of `vma` too."""
    aval = typeof(x)
    missing = vma - aval.vma
    if not missing:
        return x
    axes = tuple(sorted(missing))
    if aval.cut is not None and cuts.sums(aval).reduced == missing:
        return reduced_vary_cast(x, axes=axes, mesh=aval.cut.mesh)
    return pvary(x, axes=axes)


class Pextremum(Across):
    """The greatest or the least value among all examples. Those that tie share the derivative."""

    kind = ORDERED

    def __init__(self, name: str, reduction: Primitive, combiner: str) -> None:
        super().__init__()
        self.name = name
        self.reduction = reduction
        self.combiner = combiner

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return Primitive.pending(self, x)  # the maximum of parts is not a part of the maximum

    def combined(self, x: Any, at: int | None, size: int) -> Any:
        return x if at is None else self.reduction(x, axes=(at,))

    def jvp(self, primals: Any, tangents: Any, *, axes: Names) -> Any:
        (x,), (t,) = primals, tangents
        out = self(x, axes=axes)
        if t is None:
            return out, None
        reached, zero = eq(x, out), scalar_like(x, 0)
        total = psum_invariant if typeof(x).vma.issuperset(axes) else psum
        count = total(select(reached, scalar_like(x, 1), zero), axes=axes)
        return out, div(total(select(reached, t, zero), axes=axes), count)


# ---- Gathering and scattering -------------------------------------------------------------------


class AllGather(Collective):
    """The values of all examples, along a new axis, or one after another if `tiled`."""

    name = "all_gather"
    printed: ClassVar[dict[str, Any]] = {"axis_index_groups": None}

    def type(
        self,
        x: ShapedArray,
        *,
        axis_name: Names,
        axis_size: int,
        all_gather_dimension: int,
        tiled: bool,
    ) -> ShapedArray:
        d = all_gather_dimension
        if tiled:
            return x.update(shape=(*x.shape[:d], x.shape[d] * axis_size, *x.shape[d + 1 :]))
        return x.update(shape=inserted(x.shape, d, axis_size))

    def along(
        self,
        x: Any,
        at: int | None,
        size: int,
        *,
        all_gather_dimension: int,
        tiled: bool,
        **params: Any,
    ) -> tuple[Any, int | None]:
        whole = _stacked(x, at, size, all_gather_dimension)
        if tiled:
            whole = structural.merge_axis(whole, all_gather_dimension, all_gather_dimension)
        return whole, None

    def shifted(self, x: Any, *, all_gather_dimension: int, **params: Any) -> Any:
        return self(x, all_gather_dimension=all_gather_dimension + 1, **params)

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        given, at = cuts.parts(x), params["all_gather_dimension"]
        return given if out.ndim == x.ndim else inserted(given, at, ())

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        axis_name: Names,
        axis_size: int,
        all_gather_dimension: int,
        tiled: bool,
    ) -> Any:
        return emit_gather(b, x, axis_name[0], all_gather_dimension, tiled)

    def transpose(self, ct: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> list[Any]:
        return [reduce_scatter(ct, scatter_dimension=all_gather_dimension, **params)]


class AllGatherInvariant(AllGather):
    """The values of all devices among which the operand differs: the same on all of them."""

    name = "all_gather_invariant"
    printed: ClassVar[dict[str, Any]] = {}

    def varies(self, vma: frozenset[str], params: dict[str, Any]) -> frozenset[str]:
        return vma.difference(params["axis_name"])

    def transpose(self, ct: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> list[Any]:
        # Each device has the part of its own of what all have.
        at, (name,) = all_gather_dimension, params["axis_name"]
        rows = varying(ct, frozenset([name]))
        if params["tiled"]:
            rows = structural.split_axis(rows, at, params["axis_size"])
        here = axis_index(axis_name=name, is_tracked=True)
        shape = typeof(rows).shape
        starts = [here if i == at else np.int32(0) for i in range(len(shape))]
        sizes = tuple([1 if i == at else n for i, n in enumerate(shape)])
        return [squeeze(dynamic_slice(rows, *starts, slice_sizes=sizes), dimensions=(at,))]


class ReduceScatter(Collective):
    """The sum over all examples, of which each gets the part that is its own."""

    name = "reduce_scatter"
    only_moves = False
    printed: ClassVar[dict[str, Any]] = {"axis_index_groups": None}

    def type(
        self,
        x: ShapedArray,
        *,
        axis_name: Names,
        axis_size: int,
        scatter_dimension: int,
        tiled: bool,
    ) -> ShapedArray:
        check_dtype(self.name, x.dtype, NUMBER)
        d = scatter_dimension
        if tiled:
            return x.update(shape=(*x.shape[:d], x.shape[d] // axis_size, *x.shape[d + 1 :]))
        return x.update(shape=(*x.shape[:d], *x.shape[d + 1 :]))

    def along(
        self,
        x: Any,
        at: int | None,
        size: int,
        *,
        scatter_dimension: int,
        tiled: bool,
        **params: Any,
    ) -> tuple[Any, int | None]:
        total = psum.combined(x, at, size)
        if tiled:
            total = structural.split_axis(total, scatter_dimension, size)
        return total, scatter_dimension

    def shifted(self, x: Any, *, scatter_dimension: int, **params: Any) -> Any:
        return self(x, scatter_dimension=scatter_dimension + 1, **params)

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        given, at = cuts.parts(x), params["scatter_dimension"]
        cuts.uncut(self.name, "the operand", x, (at,))
        return given if out.ndim == x.ndim else cuts.without(given, (at,))

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        axis_name: Names,
        axis_size: int,
        scatter_dimension: int,
        tiled: bool,
    ) -> Any:
        return emit_scatter(b, x, axis_name[0], axis_size, scatter_dimension, tiled)

    def transpose(self, ct: Any, x: Any, *, scatter_dimension: int, **params: Any) -> list[Any]:
        return [all_gather(ct, all_gather_dimension=scatter_dimension, **params)]


# ---- Exchange -----------------------------------------------------------------------------------


class AllToAll(Collective):
    """Example `j` gets part `j` of each: what was cut along `split_axis` arrives by `concat_axis`.

    Without `tiled` the parts are single elements of the split axis, which is replaced.
    """

    name = "all_to_all"
    printed: ClassVar[dict[str, Any]] = {"axis_index_groups": None}
    quiet: ClassVar[dict[str, Any]] = {"axis_size": ...}

    def type(
        self,
        x: ShapedArray,
        *,
        axis_name: Name,
        axis_size: int,
        split_axis: int,
        concat_axis: int,
        tiled: bool,
    ) -> ShapedArray:
        shape = list(x.shape)
        if tiled:
            shape[split_axis] //= axis_size
            shape[concat_axis] *= axis_size
        else:
            shape.insert(concat_axis, shape.pop(split_axis))
        return x.update(shape=tuple(shape), weak_type=False)

    def along(
        self,
        x: Any,
        at: int | None,
        size: int,
        *,
        split_axis: int,
        concat_axis: int,
        tiled: bool,
        **params: Any,
    ) -> tuple[Any, int | None]:
        whole = to_front(x, at, size)
        if tiled:
            whole = structural.split_axis(whole, split_axis + 1, size)
        # The examples that send are the axis 0, those that receive the split axis.
        kept = [i for i in range(1, typeof(whole).ndim) if i != split_axis + 1]
        kept.insert(concat_axis, 0)
        whole = transpose(whole, permutation=(split_axis + 1, *kept))
        return structural.merge_axis(whole, concat_axis + 1, concat_axis + 1) if tiled else whole, 0

    def shifted(self, x: Any, *, split_axis: int, concat_axis: int, **params: Any) -> Any:
        return self(x, split_axis=split_axis + 1, concat_axis=concat_axis + 1, **params)

    def lower(
        self,
        b: Any,
        x: Any,
        *,
        axis_name: Name,
        axis_size: int,
        split_axis: int,
        concat_axis: int,
        tiled: bool,
    ) -> Any:
        return emit_all_to_all(b, x, axis_name, axis_size, split_axis, concat_axis, tiled)

    def transpose(
        self, ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any
    ) -> list[Any]:
        return [self(ct, split_axis=concat_axis, concat_axis=split_axis, **params)]


class Ppermute(Collective):
    """Example `dst` gets the value of `src`, for the pairs in `perm`; zeros if it is in none."""

    name = "ppermute"

    def type(
        self, x: ShapedArray, *, axis_name: Names, perm: tuple[tuple[int, int], ...]
    ) -> ShapedArray:
        return x

    def along(
        self,
        x: Any,
        at: int | None,
        size: int,
        *,
        axis_name: Names,
        perm: tuple[tuple[int, int], ...],
    ) -> tuple[Any, int | None]:
        if len(axis_name) > 1:
            raise NotImplementedError(
                "ppermute runs along several axes of a mesh, and a vmap has given one of "
                f"{axis_name}; map over one axis of the product of their sizes"
            )
        if at is None and len(perm) == size:
            return x, None
        # An index out of range reads zeros.
        sources = np.full((size, 1), size, np.int32)
        for src, dst in perm:
            sources[dst] = src
        whole = to_front(x, at, size)
        shape = typeof(whole).shape
        rows = gather(
            whole,
            sources,
            dimension_numbers=GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,)),
            slice_sizes=(1, *shape[1:]),
            unique_indices=False,
            indices_are_sorted=False,
            mode=CLIP if len(perm) == size else FILL_OR_DROP,
            fill_value=None if len(perm) == size else ZERO,
        )
        return rows, 0

    def shifted(self, x: Any, **params: Any) -> Any:
        return self(x, **params)

    def lower(self, b: Any, x: Any, *, axis_name: Names, perm: Any) -> Any:
        return emit_permutation(b, x, axis_name, perm)

    def transpose(self, ct: Any, x: Any, *, perm: Any, **params: Any) -> list[Any]:
        return [self(ct, perm=tuple([(dst, src) for src, dst in perm]), **params)]


class Pbroadcast(Collective):
    """Every example gets the value of the example `source`."""

    name = "pbroadcast"

    def type(self, x: ShapedArray, *, axis_name: Name, source: int) -> ShapedArray:
        return x

    def along(
        self, x: Any, at: int | None, size: int, *, source: int, **params: Any
    ) -> tuple[Any, int | None]:
        if at is None:
            return x, None
        row = part(x, source, source + 1, at, typeof(x).shape)
        return squeeze(row, dimensions=(at,)), None

    def shifted(self, x: Any, **params: Any) -> Any:
        return self(x, **params)

    def lower(self, b: Any, x: Any, *, axis_name: Name, source: int) -> Any:
        shape, size = b.in_avals[0].shape, axis_length(b, self.name, axis_name)

        def from_source(x: Any) -> Any:
            whole = all_gather(
                x, axis_name=(axis_name,), axis_size=size, all_gather_dimension=0, tiled=False
            )
            return squeeze(part(whole, source, source + 1, 0, (size, *shape)), dimensions=(0,))

        return expand(b, from_source, x)[0]

    def transpose(self, ct: Any, x: Any, *, axis_name: Name, source: int) -> list[Any]:
        mine = eq(axis_index(axis_name=axis_name), np.int32(source))
        return [select(mine, psum(ct, axes=(axis_name,)), scalar_like(ct, 0))]


class AxisIndex(Named):
    """The number of the example along the named axis."""

    name = "axis_index"
    quiet: ClassVar[dict[str, Any]] = {"is_tracked": ...}

    def type(self, *, axis_name: Name, is_tracked: bool = False) -> ShapedArray:
        aval = ShapedArray((), np.dtype("int32"))
        return aval.update(vma=frozenset([axis_name])) if is_tracked else aval

    def lower(self, b: Any, *, axis_name: Name, is_tracked: bool = False) -> Any:
        return emit_index(b, axis_name)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return self(**params), None

    def batch(self, axis: Axis, operands: Any, at: Any, **params: Any) -> tuple[Any, int]:
        return iota(dtype=np.dtype("int32"), shape=(axis.size,), dimension=0), 0


psum = Psum()
psum_invariant = PsumInvariant()
all_gather_invariant = AllGatherInvariant()
pvary = Pvary()
JaxprTrace.varying = staticmethod(varying)
pmax = Pextremum("pmax", reduce_max, "stablehlo.maximum")
pmin = Pextremum("pmin", reduce_min, "stablehlo.minimum")
all_gather = AllGather()
reduce_scatter = ReduceScatter()
all_to_all = AllToAll()
ppermute = Ppermute()
pbroadcast = Pbroadcast()
axis_index = AxisIndex()
