"""`shard_map`: a function of one device, which all devices of a mesh run on their parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar, overload

from perspex import config, tree
from perspex.api.calls import Call
from perspex.base.tree_paths import PyTree
from perspex.control.shard_map import Regions, Specs, names_in, shard_map_p, spread_results
from perspex.jitted.signature import function_name, name_after
from perspex.layout.context import context_mesh, get_abstract_mesh
from perspex.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from perspex.tracing import cuts
from perspex.tracing.staging import stage_closed
from perspex.tracing.trace import Reference, typeof

F = TypeVar("F", bound=Callable[..., Any])


class Infer:
    """Stands for `in_specs` that the arguments tell: each is cut as it lies."""

    def __repr__(self) -> str:
        return "Infer"


INFER = Infer()


@overload
def shard_map(
    f: F,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = ...,
    mesh: Mesh | None = None,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> F: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = ...,
    mesh: Mesh | None = None,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Callable[[F], F]: ...


def shard_map(
    f: Any = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = INFER,
    mesh: Mesh | None = None,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Run a function on each device of a mesh, on its part of the arguments.

    Args:
      f: a function of pytrees of arrays: of what one device has. Collectives such as
        `lax.psum(x, "i")` exchange values with the other devices along an axis of the mesh.
      out_specs: how the results of the devices make up the whole: a `PartitionSpec` for each
        result, or a prefix of their tree. Along axes of the mesh that it does not name, all devices
        must have the same.
      in_specs: how each positional argument is cut: a `PartitionSpec`, or a prefix of the tree of
        the arguments, a tuple with an entry for each. Left out, arguments are cut as they lie.
      mesh: the mesh; that of `set_mesh` or `with mesh:` if not given.
      axis_names: the axes of the mesh to map over, all of them if empty. Along the others the
        compiler divides the work.
      check_vma: have types say along which axes of the mesh values differ, check `out_specs` by
        that, and use it for derivatives.

    Returns:
      A function of whole arrays. Without `f`, a decorator.

    Raises:
      ValueError: if there is no mesh or another one is in use, a spec names an axis that the mesh
        does not have or that is not mapped over, an array cannot be cut, or a result may differ
        where its spec says that it does not.
      TypeError: if `f` is not a function.

    The mathematics of derivatives through it is that of Xu et al., "GSPMD" (2021), and of JAX's
    `shard_map`, whose rules for types are the same.

    >>> import perspex, perspex.numpy as pnp
    >>> from perspex import lax
    >>> mesh = perspex.make_mesh((1,), ("i",))
    >>> P = perspex.sharding.PartitionSpec
    >>> @shard_map(mesh=mesh, in_specs=P("i"), out_specs=P())
    ... def mean(part):
    ...     return lax.pmean(part.mean(), "i")
    >>> mean(pnp.arange(4.0))
    Array(1.5, dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    if not callable(f):
        raise TypeError(f"shard_map takes a function, got {f!r} of type {type(f).__name__}")

    def mapped(*args: Any) -> Any:
        around = get_abstract_mesh()
        found: Any = mesh or context_mesh() or around
        if found.empty:
            raise ValueError(
                "shard_map needs a mesh: pass `mesh=`, or call it inside `with set_mesh(mesh):`"
            )
        if not around.empty and found.abstract_mesh.shape_tuple != around.shape_tuple:
            raise ValueError(
                f"shard_map of {function_name(f)} over {found.abstract_mesh}, where the mesh is "
                f"{around}: that of set_mesh, or of a shard_map or pmap around this one. Leave "
                "`mesh=` out, or map over the axes of one mesh with `axis_names=`"
            )
        return _Mapped(f, found, axis_names, check_vma).call(args, in_specs, out_specs)

    name_after(mapped, f)
    return mapped


def _refuse_refs(operands: Sequence[Any]) -> None:
    if any(isinstance(x, Reference) for x in operands):
        shard_map_p.discharge(operands, (), {})  # raises: it has no rule for refs


class _Mapped:
    """One function on its way over the devices of one mesh."""

    def __init__(self, f: Any, mesh: Mesh, axis_names: Set[str], is_tracked: bool) -> None:
        around = {axis.name for axis in config.axis_env.value if axis.is_device}
        free = [name for name in mesh.axis_names if name not in around]
        if not free:
            raise ValueError(
                f"shard_map: the axes {mesh.axis_names} of the mesh are all mapped over already, "
                "by a shard_map or pmap around this one"
            )
        unknown = [name for name in axis_names if name not in free]
        if unknown:
            raise ValueError(
                f"shard_map: axis_names has {unknown[0]!r}, but the axes of the mesh that can be "
                f"mapped over are {tuple(free)}"
            )
        if around.intersection(mesh.axis_names):
            # As types outside see it: what is mapped over already is manual there.
            mapped = [n for n in mesh.axis_names if n in around]
            types = mesh.abstract_mesh.update_axis_types(dict.fromkeys(mapped, AxisType.Manual))
            mesh = mesh.update(axis_types=types.axis_types)
        self.f, self.mesh, self.name = f, mesh, function_name(f)
        self.regions = Regions(mesh, frozenset(axis_names or free), is_tracked)

    def call(self, args: tuple[Any, ...], in_specs: Any, out_specs: Any) -> Any:
        call = Call("shard_map", self.f, args)
        avals = call.avals
        _refuse_refs(call.leaves)
        if in_specs is INFER:
            specs = tuple([self._as_it_lies(x) for x in call.leaves])
        else:
            specs = self._specs("in_specs", in_specs, args)
        for i, (aval, spec) in enumerate(zip(avals, specs, strict=True)):
            self._check_cut(aval, spec, f"{call.path(i)} of {self.name}")
        # Along axes that are mapped over, arguments are cut as their specs say.
        pairs = list(zip(avals, specs, strict=True))
        parts = [self.regions.part(self.regions.given(*pair), pair[1]) for pair in pairs]
        with self.regions.inside():
            body, consts = stage_closed(call, parts, self.name)
        _refuse_refs(consts)
        for x in consts:
            if typeof(x).cut is not None:
                raise NotImplementedError(
                    f"shard_map: {self.name} closes over an array of type {typeof(x)}, which is "
                    "cut along explicit axes of a mesh; pass it as an argument"
                )
        given = tree.unflatten(call.out_tree, body.out_avals)
        results = tuple(self._specs("out_specs", out_specs, given))
        paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(given)]
        for path, aval, spec in zip(paths, body.out_avals, results, strict=True):
            self._check_result(path, aval, spec)
        body = spread_results(body, self.regions, results)
        specs = (*[PartitionSpec()] * len(consts), *specs)
        found = shard_map_p(
            *self.regions.cut([*consts, *call.leaves], body, specs),
            jaxpr=body,
            mesh=self.mesh,
            in_specs=specs,
            out_specs=results,
            newly_manual_axes=self.regions.axes,
            check_vma=self.regions.is_tracked,
        )
        return tree.unflatten(call.out_tree, found)

    def _specs(self, what: str, given: Any, whole: Any) -> Specs:
        """The spec of each leaf."""
        found = tree.broadcast_prefix(
            given, whole, lambda x: x is None or isinstance(x, PartitionSpec), f"shard_map {what}"
        )
        specs = tuple([PartitionSpec() if spec is None else spec for spec in found])
        for spec in specs:
            if not isinstance(spec, PartitionSpec):
                raise TypeError(
                    f"shard_map: {what} holds a PartitionSpec for each array, got {spec!r} of type "
                    f"{type(spec).__name__}"
                )
            spec.check_cuts()
            for name in sorted(names_in(spec) | spec.unreduced | spec.reduced):
                if name not in self.regions.axes:
                    raise ValueError(
                        f"shard_map {what} must refer to axes that it maps over, "
                        f"{tuple(sorted(self.regions.axes))}, but {spec} names {name!r}"
                    )
            automatic = sorted((spec.unreduced | spec.reduced).intersection(self.mesh.auto_axes))
            if automatic:
                raise ValueError(
                    f"shard_map {what}: values can be unreduced and reduced along mesh axes of "
                    f"type Explicit, but {spec} names {automatic[0]!r} of the mesh "
                    f"{self.mesh.abstract_mesh}; make the mesh with AxisType.Explicit"
                )
        return specs

    def _as_it_lies(self, x: Any) -> PartitionSpec:
        aval = typeof(x)
        if aval.cut is not None:
            mine = [
                tuple([n for n in names if n in self.regions.axes]) for names in cuts.parts(aval)
            ]
            sums = cuts.sums(aval)
            unreduced = sums.unreduced & self.regions.axes
            return PartitionSpec(
                *mine,
                unreduced=unreduced,
                reduced=sums.reduced & self.regions.axes,
                unreduced_kind=sums.kind if unreduced else None,
            )
        sharding = getattr(x, "sharding", None)
        if not isinstance(sharding, NamedSharding) or sharding.mesh != self.mesh:
            return PartitionSpec()
        return sharding.spec

    def _pending(self, aval: Any) -> tuple[Any, ...]:
        """Along which axes that are mapped over a value is unreduced, and reduced, and how."""
        sums = cuts.sums(aval)
        unreduced, reduced = sums.unreduced & self.regions.axes, sums.reduced & self.regions.axes
        return unreduced, reduced, sums.kind if unreduced else None

    def _check_cut(self, aval: Any, spec: PartitionSpec, what: str) -> None:
        if len(spec) > aval.ndim:
            raise ValueError(
                f"shard_map: {spec} cuts {len(spec)} axes, but the {what} has type {aval}; name at "
                "most as many as it has"
            )
        given = self._pending(aval)
        if given != (spec.unreduced, spec.reduced, spec.unreduced_kind):
            raise ValueError(
                f"shard_map: {spec} must name the axes along which the {what} is unreduced and "
                f"reduced, but it has type {aval}; leave in_specs out, or reshard the argument"
            )
        tiles = self.regions.tiles(spec, aval.ndim)
        for axis, (n, count) in enumerate(zip(aval.shape, tiles, strict=True)):
            if n % count:
                raise ValueError(
                    f"shard_map was given an array whose axis sizes are not evenly divisible by "
                    f"the mesh axis sizes: the {what} has type {aval}, and {spec} cuts axis {axis} "
                    f"of size {n} into {count} parts; pad it, or cut another axis"
                )

    def _check_result(self, path: str, aval: Any, spec: PartitionSpec) -> None:
        what = f"the result{path} of {self.name}"
        if len(spec) > aval.ndim:
            raise ValueError(
                f"shard_map: out_specs has an entry which is too long for {what}: {spec} cuts "
                f"{len(spec)} axes, but it has type {aval.str_short(short_dtypes=False)}; return "
                "an array with more axes, or shorten the spec"
            )
        given = self._pending(aval)
        if self.regions.is_tracked and given != (
            spec.unreduced, spec.reduced, spec.unreduced_kind,
        ):  # fmt: skip
            raise ValueError(
                f"shard_map was given out_specs that do not name the axes along which {what} is "
                f"unreduced and reduced: {spec} for type {aval.str_short(short_dtypes=False)}. "
                "Add up with lax.psum, or name these axes in `unreduced=` and `reduced=`"
            )
        differs = sorted((aval.vma & self.regions.axes) - names_in(spec))
        if differs:
            names = ", ".join(map(repr, differs))
            raise ValueError(
                f"shard_map was given out_specs which require replication which can't be "
                f"statically inferred: {spec} says that {what} is the same on all devices along "
                f"{names}, but its type is {aval.str_short(short_dtypes=False)}. Name these axes "
                "in out_specs, combine the values with lax.psum or another collective, or pass "
                "check_vma=False if you know that they are equal."
            )


def smap(f: Any = None, /, *, in_axes: PyTree = 0, out_axes: PyTree, axis_name: str) -> Any:
    """Map a function over one axis of the mesh that `set_mesh` has set.

    Args:
      f: a function of pytrees of arrays: of what one device has.
      in_axes: which axis of each positional argument is cut: an integer, `None` for what all
        devices have whole, or a tuple with an entry for each argument, which may be a tree.
      out_axes: along which axis the results are put together; `None` where all are the same.
      axis_name: the axis of the mesh.

    Returns:
      A function of whole arrays. Without `f`, a decorator.

    Raises:
      TypeError: if `axis_name` is not a string.
      ValueError: as `shard_map`.

    >>> import perspex, perspex.numpy as pnp
    >>> with perspex.set_mesh(perspex.make_mesh((1,), ("i",))):
    ...     smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="i")(pnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if not isinstance(axis_name, str):
        raise TypeError(f"smap: axis_name must be a string, got {axis_name!r}")

    def spec(axis: int | None) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def is_axis(x: Any) -> bool:
        return x is None

    return shard_map(
        f,
        in_specs=tree.map(spec, in_axes, is_leaf=is_axis),
        out_specs=tree.map(spec, out_axes, is_leaf=is_axis),
        axis_names={axis_name},
    )
