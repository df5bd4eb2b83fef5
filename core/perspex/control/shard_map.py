"""`shard_map`: the program of one device, which all devices of a mesh run on their parts.

Params: `jaxpr`, the program for the parts; `mesh`; `in_specs` and `out_specs`, a `PartitionSpec`
for each operand and result; `newly_manual_axes`, the axes of the mesh along which the parts are
those of a device; `check_vma`: whether types say which values differ from device to device.

Where types do (`ShapedArray.vma`), a derivative is right by itself: what all devices share is
spread by `pvary`, whose transpose adds up. Where they do not, each device counts its own cotangent
of what all share: one that comes in is divided among them, and one that goes out is added up.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import config
from perspex.hlo.manual import Manual, computation
from perspex.ir.avals import NOWHERE, ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.layout.context import use_abstract_mesh
from perspex.layout.named import pending
from perspex.ops.collectives import psum
from perspex.ops.elementwise import div
from perspex.ops.placing import OnMesh, resharded
from perspex.ops.structural import is_linear, reshape, scalar_like
from perspex.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from perspex.tracing import cuts
from perspex.tracing.axes import Axis
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import typeof
from perspex.transforms.checks import Checks
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import (
    HigherOrder,
    Residuals,
    batch_in_front,
    check_operands,
    place_residuals,
)
from perspex.transforms.jvp import is_differentiable, jvp_jaxpr
from perspex.transforms.linearize import Rest, Split, split_jaxpr
from perspex.transforms.programs import by_program, cut, merge, partition, pick, program, with_gaps
from perspex.transforms.sequence import sequenced
from perspex.transforms.transpose import transpose_jaxpr
from perspex.transforms.varying import leveled
from perspex.transforms.vmap import batch_jaxpr

Specs = tuple[PartitionSpec, ...]


class Regions(NamedTuple):
    """What all rules need of the params: the mesh, the axes mapped over, and `check_vma`."""

    mesh: Mesh
    axes: frozenset[str]
    is_tracked: bool

    @classmethod
    def of(cls, params: dict[str, Any]) -> Regions:
        """That of an equation with these params."""
        return cls(params["mesh"], params["newly_manual_axes"], params["check_vma"])

    def tiles(self, spec: PartitionSpec, ndim: int) -> list[int]:
        """Into how many parts each axis of an array is cut."""
        shape = self.mesh.shape
        cuts = [math.prod([shape[name] for name in names or ()]) for names in spec.names()]
        return cuts + [1] * (ndim - len(cuts))

    def part(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of what one device has of a value."""
        tiles = self.tiles(spec, aval.ndim)
        shape = tuple([n // k for n, k in zip(aval.shape, tiles, strict=True)])
        named = names_in(spec)
        if config.remove_size_one_mesh_axis_from_type.value:
            named = frozenset([n for n in named if self.mesh.shape[n] != 1])
        vma = aval.vma | named if self.is_tracked else aval.vma
        part = aval.update(shape=shape, vma=vma)
        sums = self._sums(spec if self.is_tracked else PartitionSpec(), aval)
        return cuts.with_sums(part, self.inner, self._left(aval), sums)

    @property
    def inner(self) -> AbstractMesh:
        """The mesh that types refer to in the program for the parts."""
        return self.mesh.abstract_mesh.update_axis_types(dict.fromkeys(self.axes, AxisType.Manual))

    def whole(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of the value of which each device has a part of type `aval`."""
        tiles = self.tiles(spec, aval.ndim)
        shape = tuple([n * k for n, k in zip(aval.shape, tiles, strict=True)])
        # A type with another shape is cut nowhere, and keeps its sums.
        bare = aval.cut and aval.cut.update(spec=aval.cut.spec.update(partitions=()))
        whole = aval.update(shape=shape, vma=aval.vma - self.axes, sharding=bare)
        return self._placed(whole, spec, cuts.parts(aval))

    def given(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of an operand that is cut, along axes that are mapped over, as its spec says."""
        return self._placed(aval, spec, self._left(aval))

    def _sums(self, spec: PartitionSpec, aval: ShapedArray) -> cuts.Sums:
        """Those of a spec, and those of a value along axes that are not mapped over."""
        given = cuts.sums(aval)
        unreduced, reduced = given.unreduced - self.axes, given.reduced - self.axes
        kind = spec.unreduced_kind or (given.kind if unreduced else None)
        return cuts.Sums(spec.unreduced | unreduced, spec.reduced | reduced, kind)

    def _left(self, aval: ShapedArray) -> cuts.Parts:
        """How a value is cut along axes that are not mapped over."""
        return tuple(
            [tuple([n for n in names if n not in self.axes]) for names in cuts.parts(aval)]
        )

    def _placed(self, aval: ShapedArray, spec: PartitionSpec, left: cuts.Parts) -> ShapedArray:
        """The type with the cuts of a spec, and those that are `left` for types."""
        sums = self._sums(spec, aval)
        if not self.mesh.explicit_axes:
            return cuts.with_sums(aval, self.inner, ((),) * aval.ndim, sums)
        named = [given or () for given in spec.names()] + [()] * (aval.ndim - len(spec))
        together = [(*n, *m) for n, m in zip(named, left, strict=True)]
        return cuts.with_sums(aval, self.mesh, tuple(together), sums)

    def cut(self, operands: Sequence[Any], body: ClosedJaxpr, specs: Sequence[Any]) -> list[Any]:
        """The operands of `body`, cut as their specs and their types in it say."""
        if not self.mesh.explicit_axes:
            return list(operands)
        found = []
        for x, aval, spec in zip(operands, body.in_avals, specs, strict=True):
            whole = self.whole(aval, spec)
            place = NamedSharding(self.mesh.abstract_mesh, PartitionSpec())
            devices = self.mesh if isinstance(self.mesh, Mesh) else None
            found.append(resharded(x, place if whole.cut is None else whole.cut, devices))
        return found

    def residual(self, aval: ShapedArray) -> PartitionSpec:
        """How a residual is kept: the parts of all devices one behind the other."""
        axes = aval.vma & self.axes if self.is_tracked else self.axes
        names = tuple([name for name in self.mesh.axis_names if name in axes])
        sums = cuts.sums(aval) if self.is_tracked else cuts.NO_SUMS
        unreduced, reduced = sums.unreduced & self.axes, sums.reduced & self.axes
        kind = sums.kind if unreduced else None
        parts = [names] if names else []
        return PartitionSpec(*parts, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Trace, or run rules of users, where the axes that are mapped over have their names."""
        sizes = self.mesh.shape
        axes = [Axis(sizes[n], n, self.is_tracked, True) for n in sorted(self.axes)]
        entered = self.mesh if isinstance(self.mesh, Mesh) else contextlib.nullcontext()
        around = config.axis_env((*config.axis_env.value, *axes))
        with entered, use_abstract_mesh(self.inner), around:
            yield

    def spread(self, axis: Axis, specs: Sequence[PartitionSpec]) -> tuple[str, ...] | None:
        """The axes that `vmap(spmd_axis_name=)` cuts the axis of examples along, if any.

        Raises `ValueError` if a spec has one of them, or if they do not divide the examples.
        """
        names = tuple([str(name) for name in axis.spmd])
        if not names or not self.axes.issuperset(names):
            return None
        for spec in specs:
            if names_in(spec).intersection(names):
                raise ValueError(
                    f"vmap spmd_axis_name {names} cannot appear in the specs of a shard_map inside "
                    f"it, got {spec}; cut the axis of examples along another axis of the mesh"
                )
        (count,) = self.tiles(PartitionSpec(names), 1)
        if axis.size % count:
            raise ValueError(
                f"vmap of {axis.size} examples cannot be cut along spmd_axis_name {names}, which "
                f"has {count} devices; map over a multiple of that"
            )
        return names

    def others(self, spec: PartitionSpec) -> tuple[str, ...]:
        """The axes along which all devices have the same part."""
        named = names_in(spec) | spec.unreduced
        return tuple([n for n in self.mesh.axis_names if n in self.axes and n not in named])


def names_in(spec: PartitionSpec) -> frozenset[str]:
    """The axes of the mesh that a spec names."""
    return frozenset([name for names in spec.names() for name in names or ()])


class ShardMap(OnMesh, HigherOrder):
    """The devices of a mesh as an equation."""

    name = "shard_map"

    def axis_names(self, params: dict[str, Any]) -> frozenset[Any]:
        return super().axis_names(params) - params["newly_manual_axes"]

    def mesh(self, params: dict[str, Any]) -> Mesh | None:
        mesh = params["mesh"]
        return mesh if isinstance(mesh, Mesh) else None

    def lies(self, params: dict[str, Any]) -> Sequence[NamedSharding | None]:
        mesh, specs = params["mesh"], params["out_specs"]
        # The compiler may cut the results along axes that are not mapped over.
        known = params["newly_manual_axes"] == frozenset(mesh.axis_names)
        return [NamedSharding(mesh, spec) if known else None for spec in specs]

    def type(
        self,
        *avals: ShapedArray,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> tuple[ShapedArray, ...]:
        self.use()
        regions = Regions.of(params)
        parts = [regions.part(aval, spec) for aval, spec in zip(avals, in_specs, strict=True)]
        check_operands("shard_map", parts, jaxpr.in_avals)
        pairs = zip(jaxpr.out_avals, out_specs, strict=True)
        return tuple([regions.whole(aval, spec) for aval, spec in pairs])

    def total(self, parts: Sequence[float | None], params: dict[str, Any]) -> float | None:
        (one,) = parts
        return None if one is None else one * params["mesh"].size

    def lower(
        self,
        b: Any,
        *values: Any,
        jaxpr: ClosedJaxpr,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        newly_manual_axes: frozenset[str],
        **params: Any,
    ) -> list[Any]:
        outer = b.module.manual
        axes = newly_manual_axes | (outer.names if outer is not None else frozenset())
        sizes, out_avals = dict(mesh.shape), list(b.out_avals)
        is_whole = axes == frozenset(sizes)
        indices = {} if outer is None else dict(outer.indices)
        if all(sizes[name] == 1 for name in newly_manual_axes):
            # Nothing is cut. XLA runs no partitioner for one device, which leaves parts of a
            # `manual_computation` in a program that calls Python.
            b.module.manual = Manual(sizes, axes, indices)
            try:
                return list(b.inline(jaxpr.jaxpr, values))
            finally:
                b.module.manual = outer
        pairs = [*zip(b.in_avals, in_specs, strict=True), *zip(out_avals, out_specs, strict=True)]
        where, there = cut([_in_program(mesh, *pair, is_whole) for pair in pairs], len(in_specs))
        avals, given = list(jaxpr.in_avals), list(values)
        hidden = []
        if not is_whole:
            # Each device is told where it is: the compiler's own operation does not know.
            hidden = [name for name in mesh.axis_names if name in newly_manual_axes]
            for name in hidden:
                aval = ShapedArray((sizes[name],), np.dtype("int32"))
                given.append(b.constant(np.arange(sizes[name], dtype=np.int32), aval))
                avals.append(aval.update(shape=(1,)))
                where.append(f'[{{"{name}"}}]')
        names = [name for name in mesh.axis_names if name in newly_manual_axes]
        made = computation(b, given, out_avals, names, mesh.in_program, where, there)
        with b.block(made.regions[0], avals) as (inner, args):
            mine, places = cut(args, len(values))
            scalar = ShapedArray((), np.dtype("int32"))
            here = [inner.reshape(x, scalar) for x in places]
            indices.update(zip(hidden, here, strict=True))
            b.module.manual = Manual(sizes, axes, indices)
            try:
                inner.terminate("sdy.return", inner.inline(jaxpr.jaxpr, mine))
            finally:
                b.module.manual = outer
        return list(made.results)

    def checked(
        self,
        checks: Checks,
        *operands: Any,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> list[Any]:
        # Each device has errors of its own, which come out one behind the other.
        if not checks.finds(jaxpr):
            return self.on_parts(operands, jaxpr, in_specs, out_specs, params)
        checks.reduce()
        failed = checks.values
        found = checks.of_program(jaxpr)
        count = len(found.avals)
        regions = Regions.of(params)
        everywhere = tuple([n for n in regions.mesh.axis_names if n in regions.axes])
        size = math.prod([regions.mesh.shape[name] for name in everywhere])
        outs = self.on_parts(
            [*failed, *operands],
            _one_behind_the_other(found.closed, count),
            (*[PartitionSpec()] * len(failed), *in_specs),
            (*[PartitionSpec(everywhere)] * count, *out_specs),
            params,
        )
        checks.spread(outs[:count], found.layout, size)
        return outs[count:]

    def jvp(
        self,
        primals: Any,
        tangents: Any,
        *,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        nonzero = tuple([t is not None for t in tangents])
        with Regions.of(params).inside():
            body, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
        outs = self.on_parts(
            [*primals, *pick(tangents, nonzero)],
            body,
            (*in_specs, *pick(in_specs, nonzero)),
            (*out_specs, *pick(out_specs, out_nonzero)),
            params,
        )
        results, found = cut(outs, len(out_nonzero))
        return results, with_gaps(found, out_nonzero)

    def on_parts(
        self,
        operands: Sequence[Any],
        jaxpr: ClosedJaxpr,
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec],
        params: dict[str, Any],
    ) -> list[Any]:
        """Run another program on the same mesh."""
        outs = tuple(out_specs)
        jaxpr = spread_results(jaxpr, Regions.of(params), outs)
        given = Regions.of(params).cut(operands, jaxpr, in_specs)
        found: list[Any] = self(
            *given, jaxpr=jaxpr, in_specs=tuple(in_specs), out_specs=outs, **params
        )
        return found

    def batch(
        self,
        axis: Axis,
        operands: Any,
        axes: Any,
        *,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        batched = tuple([at is not None for at in axes])
        regions = Regions.of(params)
        if axis.cut is not None and not axis.spmd:
            # Examples that are cut along axes that are mapped over stay so.
            axis = axis._replace(spmd=axis.cut.spec.names()[0] or ())
        spmd = regions.spread(axis, (*in_specs, *out_specs))
        if spmd is not None:
            # Each device along these axes has a part of the examples.
            count = regions.tiles(PartitionSpec(spmd), 1)[0]
            axis = axis._replace(size=axis.size // count, cut=None)
            if regions.is_tracked:
                more = [frozenset(spmd) if flag else NOWHERE for flag in batched]
                jaxpr = leveled(jaxpr, tuple(more), (NOWHERE,) * len(jaxpr.out_avals))
        with regions.inside():
            body, out_batched = batch_jaxpr(jaxpr, axis, batched)
        outs = self.on_parts(
            batch_in_front(operands, axes),
            body,
            _batched(in_specs, batched, spmd),
            _batched(out_specs, out_batched, spmd),
            params,
        )
        return outs, [0 if flag else None for flag in out_batched]

    def split(
        self,
        unknown: Sequence[bool],
        *operands: Any,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> tuple[list[Any], Rest | None]:
        with Regions.of(params).inside():
            halves = _split_body(jaxpr, tuple(unknown), Regions.of(params))
        early, late = partition(operands, unknown)
        early_specs, late_specs = partition(in_specs, unknown)
        now, later = partition(out_specs, halves.parts.out_unknown)
        specs = (*now, *halves.specs)
        known = halves.residuals.known
        results = [] if known.is_idle else self.on_parts(early, known, early_specs, specs, params)
        outs = merge(halves.parts.out_unknown, results[: len(now)], [None] * len(later))
        if halves.rest.is_idle:
            return outs, None
        rest = [*halves.residuals.collect(early, results), *late]
        in_rest = tuple([*halves.residuals.collect(early_specs, specs), *late_specs])
        body = spread_results(halves.rest, Regions.of(params), tuple(later))
        given = {"jaxpr": body, "in_specs": in_rest, "out_specs": tuple(later)}
        return outs, Rest(self, rest, {**params, **given})

    def sequence(self, token: Any, *operands: Any, **params: Any) -> Any:
        if params["mesh"].size > 1:
            raise NotImplementedError(
                "ordered effects, such as debug.print(ordered=True), cannot stand inside shard_map "
                "over several devices: these run at the same time; leave out `ordered`"
            )
        with Regions.of(params).inside():
            body = sequenced(params["jaxpr"])
        specs = {name: (PartitionSpec(), *params[name]) for name in ("in_specs", "out_specs")}
        token, *outs = self(token, *operands, **{**params, **specs, "jaxpr": body})
        return token, outs

    def transpose(
        self,
        cts: Any,
        *operands: Any,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> list[Any]:
        linear = tuple([is_linear(x) for x in operands])
        nonzero = tuple([ct is not None for ct in cts])
        regions = Regions.of(params)
        residual_specs, linear_specs = partition(in_specs, linear)
        ct_specs = _of_cotangents(pick(out_specs, nonzero))
        with regions.inside():
            body, out_nonzero = transpose_jaxpr(jaxpr, linear, nonzero)
        found_specs = _of_cotangents(pick(linear_specs, out_nonzero))
        if not regions.is_tracked:
            shared = tuple([regions.others(spec) for spec in (*ct_specs, *found_specs)])
            body = _shared_cotangents(body, regions, shared)
        given = [*partition(operands, linear)[0], *pick(cts, nonzero)]
        specs = [*residual_specs, *ct_specs]
        found = self.on_parts(given, body, specs, found_specs, params) if body.out_avals else []
        return merge(linear, [None] * linear.count(False), with_gaps(found, out_nonzero))

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        params = eqn.params
        jaxpr, needed = dce_closed(params["jaxpr"], tuple(used))
        return eqn.replace(
            invars=pick(eqn.invars, needed),
            outvars=pick(eqn.outvars, used),
            params={
                **params,
                "jaxpr": jaxpr,
                "in_specs": tuple(pick(params["in_specs"], needed)),
                "out_specs": tuple(pick(params["out_specs"], used)),
            },
        )


shard_map_p = ShardMap()


def _in_program(mesh: Mesh, aval: ShapedArray, spec: PartitionSpec, is_whole: bool) -> str:
    """How a value is cut; where the mapping is not over all of the mesh, maybe further."""
    names = [given or () for given in spec.names()]
    names += [()] * (aval.physical().ndim - len(names))
    rest = [] if is_whole else ["?"]
    parts = ["{" + ", ".join([*[f'"{n}"' for n in given], *rest]) + "}" for given in names]
    return f"[{', '.join(parts)}]{pending(mesh, spec)}"


def _batched(specs: Sequence[PartitionSpec], batched: Sequence[bool], cut: Any) -> Specs:
    """The specs of examples, whose axis is in front and cut so."""
    wider = [s.update(partitions=(cut, *s.partitions)) for s in specs]
    return tuple([w if b else s for s, w, b in zip(specs, wider, batched, strict=True)])


def _of_cotangents(specs: Sequence[PartitionSpec]) -> list[PartitionSpec]:
    """How cotangents of values with these specs lie."""
    return [
        s if s.is_plain else s.update(unreduced=s.reduced, reduced=s.unreduced, unreduced_kind=None)
        for s in specs
    ]


def spread_results(closed: ClosedJaxpr, regions: Regions, specs: Specs) -> ClosedJaxpr:
    """The program whose results vary along all axes that cut them, where types tell."""
    avals = closed.out_avals
    wanted = tuple([names_in(spec) if regions.is_tracked else NOWHERE for spec in specs])
    if all(vma <= aval.vma for aval, vma in zip(avals, wanted, strict=True)):
        return closed
    return leveled(closed, (NOWHERE,) * len(closed.in_avals), wanted)


def _reshaped(xs: Sequence[Any], flags: Sequence[bool], shape: tuple[int, ...]) -> list[Any]:
    return [reshape(x, new_sizes=shape) if f else x for x, f in zip(xs, flags, strict=True)]


@by_program
def _one_behind_the_other(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """The program whose first results get an axis of length one in front."""

    def run(*args: Any) -> list[Any]:
        first, rest = cut(eval_jaxpr(closed.jaxpr, (), *args), count)
        return [*[reshape(x, new_sizes=(1, *typeof(x).shape)) for x in first], *rest]

    return program(run, closed.in_avals, closed.jaxpr.name)


class _Halves(NamedTuple):
    """A program in two, for parts: a residual that is a number is an array of one on each device.

    `specs` say how the residuals that are computed are cut; `rest` takes them as they are kept.
    """

    parts: Split
    residuals: Residuals
    specs: Specs
    rest: ClosedJaxpr


@by_program
def _split_body(closed: ClosedJaxpr, unknown: tuple[bool, ...], regions: Regions) -> _Halves:
    parts = split_jaxpr(closed, unknown)
    count = parts.out_unknown.count(False)
    residuals = place_residuals(parts.known, count)
    computed = residuals.known.out_avals[count:]
    specs = tuple([regions.residual(aval) for aval in computed])
    lonely = [not aval.shape and bool(s.names()) for aval, s in zip(computed, specs, strict=True)]
    rest = parts.unknown
    if any(lonely):
        known = residuals.known
        stacked = [False] * count + lonely
        kept = [not given and stacked[i] for given, i in residuals.places]
        kept += [False] * (len(rest.in_avals) - len(kept))

        def keep(*args: Any) -> list[Any]:
            return _reshaped(eval_jaxpr(known.jaxpr, (), *args), stacked, (1,))

        def use(*args: Any) -> list[Any]:
            return eval_jaxpr(parts.unknown.jaxpr, (), *_reshaped(args, kept, ()))

        avals = [a.update(shape=(1,)) if k else a for a, k in zip(rest.in_avals, kept, strict=True)]
        residuals = Residuals(program(keep, known.in_avals, known.jaxpr.name), residuals.places)
        rest = program(use, avals, rest.jaxpr.name)
    return _Halves(parts, residuals, specs, rest)


@by_program
def _shared_cotangents(
    closed: ClosedJaxpr, regions: Regions, shared: tuple[tuple[str, ...], ...]
) -> ClosedJaxpr:
    """The transposed program, for cotangents of what all devices along axes `shared` have.

    There is one entry for each cotangent that it takes, its last arguments, and for each result.
    """
    taken = len(shared) - len(closed.out_avals)
    first = len(closed.in_avals) - taken

    def divide(ct: Any, names: tuple[str, ...]) -> Any:
        if not names or not is_differentiable(typeof(ct)):
            return ct
        return div(ct, scalar_like(ct, math.prod([regions.mesh.shape[n] for n in names])))

    def run(*args: Any) -> list[Any]:
        residuals, cts = cut(args, first)
        cts = [divide(ct, names) for ct, names in zip(cts, shared[:taken], strict=True)]
        outs = eval_jaxpr(closed.jaxpr, (), *residuals, *cts)
        return [
            psum(y, axes=names) if names and is_differentiable(typeof(y)) else y
            for y, names in zip(outs, shared[taken:], strict=True)
        ]

    return program(run, closed.in_avals, closed.jaxpr.name)
