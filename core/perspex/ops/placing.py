"""What a program says about where its arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.base import xla
from perspex.hlo import types
from perspex.hlo.placed import constrained
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import Jaxpr, Var
from perspex.layout import memories
from perspex.layout.abstract import UnreducedKind
from perspex.layout.spec import UNCONSTRAINED
from perspex.ops.memory import DevicePut, device_put, in_memory
from perspex.ops.structural import Structural
from perspex.sharding import Mesh, NamedSharding, PartitionSpec
from perspex.tracing import cuts
from perspex.tracing.axes import Axis
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof


class OnMesh(Primitive):
    """An operation that names the mesh whose devices run its program."""

    # Whether any program has one: where none has, nobody looks for the meshes that they name.
    is_used: ClassVar[bool] = False

    def use(self) -> None:
        """Note that a program has one."""
        OnMesh.is_used = True

    def mesh(self, params: dict[str, Any]) -> Mesh | None:
        """The mesh that an equation with these params names, if it names one with devices."""
        raise self.missing("mesh")

    def lies(self, params: dict[str, Any]) -> Sequence[NamedSharding | None]:
        """How each result lies on it; `None` where the compiler decides."""
        raise self.missing("lies")


class ShardingConstraint(OnMesh, Structural):
    """The operand, cut over the devices of a mesh as `sharding` says."""

    name = "sharding_constraint"
    memory = None
    takes_axis = True
    keeps_elements = True
    printed: ClassVar[dict[str, Any]] = {
        "context_mesh": None,
        "layout": None,
        "unconstrained_dims": frozenset(),
    }

    def mesh(self, params: dict[str, Any]) -> Mesh:
        found: Mesh = params["sharding"].mesh
        return found

    def lies(self, params: dict[str, Any]) -> Sequence[NamedSharding | None]:
        return [params["sharding"]]

    def type(self, x: ShapedArray, *, sharding: NamedSharding) -> ShapedArray:
        sharding.check(x.shape, "the operand of sharding_constraint")
        self.use()
        if sharding.asked_kind is None:
            return x
        DevicePut.is_used = True
        return x.update(memory_space=memories.space_of(sharding))

    def asked(self, params: dict[str, Any]) -> None:
        # It is for automatic axes, and types have none of those.
        return None

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def lower(self, b: Any, x: Any, *, sharding: NamedSharding) -> Any:
        (out,) = b.out_avals
        placed = types.attribute(f"#sdy.sharding{sharding.in_program(out.physical().ndim)}")
        x = b.op("sdy.sharding_constraint", x, attributes={"sharding": placed}, aval=out)
        kind = sharding.asked_kind
        return x if kind is None else in_memory(b, x, kind)

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, sharding: NamedSharding) -> Any:
        return [self(ct, sharding=sharding)]

    def batch(self, axis: Axis, operands: Any, axes: Any, *, sharding: NamedSharding) -> Any:
        (x,), (at,) = operands, axes
        spec = [*sharding.spec, *[None] * (at - len(sharding.spec))]
        used = {name for part in sharding.axes(x.ndim - 1) for name in part}
        if used.intersection(axis.spmd):
            raise ValueError(
                f"vmap spmd_axis_name {axis.spmd} cannot appear in with_sharding_constraint spec, "
                f"but got spec {sharding.spec}"
            )
        spec.insert(at, axis.spmd or UNCONSTRAINED)
        batched = NamedSharding(sharding.mesh, PartitionSpec(*spec), sharding.asked_kind)
        return self(x, sharding=batched), at


sharding_constraint = ShardingConstraint()


class Reshard(OnMesh, Structural):
    """The operand, cut as the type `dst_sharding` says.

    `concrete_mesh` is the mesh where the user gave one with devices. Into a mesh whose axes are
    automatic (`auto_axes`) nothing moves: from there on the compiler decides.
    """

    name = "reshard"
    memory = None
    takes_axis = True
    quiet: ClassVar[dict[str, Any]] = {"dst_sharding": ..., "concrete_mesh": ...}

    def mesh(self, params: dict[str, Any]) -> Mesh | None:
        found: Mesh | None = params["concrete_mesh"]
        return found

    def lies(self, params: dict[str, Any]) -> Sequence[NamedSharding | None]:
        return [None]

    def type(
        self, x: ShapedArray, *, dst_sharding: NamedSharding, concrete_mesh: Mesh | None
    ) -> ShapedArray:
        if concrete_mesh is not None:
            self.use()
        return x

    def asked(self, params: dict[str, Any]) -> NamedSharding:
        found: NamedSharding = params["dst_sharding"]
        return found

    def check_asked(
        self, asked: NamedSharding, avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> None:
        given, wanted = cuts.sums(avals[0]), asked.spec
        if not (given.unreduced and wanted.unreduced):
            more = wanted.unreduced and wanted.unreduced_kind is not UnreducedKind.sum
        else:
            more = given.kind is not wanted.unreduced_kind
        if more:
            raise ValueError(
                "reshard: out_shardings cannot be more unreduced than the operand, nor of another "
                f"kind, got {wanted} for an operand of type {avals[0].str_short()}"
            )

    def cut_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> ShapedArray:
        # Between meshes whose axes have other types, too.
        (x,), asked = avals, self.asked(params)
        self.check_asked(asked, avals, params)
        return self.type(x, **params).update(sharding=asked)

    def lower(self, b: Any, x: Any, *, dst_sharding: NamedSharding, concrete_mesh: Any) -> Any:
        (out,) = b.out_avals
        return constrained(b, x, out) if dst_sharding.mesh.explicit_axes else x

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, concrete_mesh: Any, **params: Any) -> Any:
        return [resharded(ct, x.aval.cotangent().sharding, concrete_mesh)]

    def batch(
        self, axis: Axis, operands: Any, axes: Any, *, dst_sharding: NamedSharding, **params: Any
    ) -> Any:
        (x,), (at,) = operands, axes
        names = () if axis.cut is None else axis.cut.spec.names()[0] or ()
        if names and set(names) <= set(dst_sharding.mesh.explicit_axes):
            # It may come from where the compiler decides.
            asked = cuts.batched(dst_sharding, names, at)
        else:
            asked = cuts.batched(dst_sharding, cuts.parts(typeof(x))[at], at)
        return self(x, dst_sharding=asked, **params), at


reshard = Reshard()


def resharded(x: Any, sharding: NamedSharding, concrete_mesh: Mesh | None = None) -> Any:
    """`x` with the type that `sharding` says; no operation where it has that already."""
    aval = typeof(x)
    if aval.update(sharding=sharding) is aval:
        return x
    return reshard(x, dst_sharding=sharding, concrete_mesh=concrete_mesh)


def _on_mesh(x: Any, sharding: NamedSharding) -> Any:
    """`x` cut as `sharding` says: by its type along explicit axes, by a constraint along others."""
    mesh = sharding.mesh
    if mesh.abstract_mesh.are_all_axes_explicit and sharding.asked_kind is None:
        concrete = mesh if isinstance(mesh, Mesh) else None
        return reshard(
            x, dst_sharding=NamedSharding(mesh.abstract_mesh, sharding.spec), concrete_mesh=concrete
        )
    return sharding_constraint(x, sharding=sharding)


def in_program(x: Any, sharding: Any) -> Any:
    """A value of a traced function, placed as a sharding says."""
    if sharding.__class__ is NamedSharding:
        return _on_mesh(x, sharding)
    if sharding is None or sharding.asked_kind is None:
        return x
    return device_put(x, devices=(sharding,), copy_semantics=(xla.REUSE_INPUT,))


def results_in_memory(jaxpr: Jaxpr) -> list[str | None]:
    """For each result of a program the memory that the program puts it in itself."""
    if not (DevicePut.is_used or ShapedArray.are_spaces_used):
        return [None] * len(jaxpr.outvars)
    kinds: dict[Any, str | None] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is device_put:
            kinds[eqn.outvars[0]] = memories.kind_of(eqn.params["devices"][0])
        elif eqn.primitive is sharding_constraint:
            kinds[eqn.outvars[0]] = eqn.params["sharding"].asked_kind
    return [kinds.get(v, in_types(v.aval)) if isinstance(v, Var) else None for v in jaxpr.outvars]


def in_types(aval: ShapedArray) -> str | None:
    """The memory that a type names; `None` for the usual one."""
    space = aval.memory_space
    return None if space in (None, memories.MemorySpace.Device) else memories.kind_of(space)
