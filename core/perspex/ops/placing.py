"""What a program says about where its arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.base import xla
from perspex.hlo import foreign, types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import Jaxpr, Var
from perspex.layout import memories
from perspex.ops.structural import Structural
from perspex.sharding import UNCONSTRAINED, Mesh, NamedSharding, PartitionSpec
from perspex.tracing.primitive import Primitive


class OnMesh(Primitive):
    """An operation that names the mesh whose devices run its program."""

    # Whether any program has one: where none has, nobody looks for the meshes that they name.
    is_used: ClassVar[bool] = False

    def use(self) -> None:
        """Note that a program has one."""
        OnMesh.is_used = True

    def mesh(self, params: dict[str, Any]) -> Mesh:
        """The mesh that an equation with these params names."""
        raise self.missing("mesh")

    def lies(self, params: dict[str, Any]) -> Sequence[NamedSharding | None]:
        """How each result lies on it; `None` where the compiler decides."""
        raise self.missing("lies")


class ShardingConstraint(OnMesh, Structural):
    """The operand, cut over the devices of a mesh as `sharding` says."""

    name = "sharding_constraint"
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
        if sharding._memory_kind is not None:
            DevicePut.is_used = True
        return x

    def lower(self, b: Any, x: Any, *, sharding: NamedSharding) -> Any:
        (out,) = b.out_avals
        placed = types.attribute(f"#sdy.sharding{sharding.in_program(out.physical().ndim)}")
        x = b.op("sdy.sharding_constraint", x, attributes={"sharding": placed}, aval=out)
        kind = sharding._memory_kind
        return x if kind is None else _in_memory(b, x, kind)

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, sharding: NamedSharding) -> Any:
        return [self(ct, sharding=sharding)]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, sharding: NamedSharding) -> Any:
        (x,), (at,) = operands, axes
        spec = [*sharding.spec, *[None] * (at - len(sharding.spec))]
        spec.insert(at, UNCONSTRAINED)
        batched = NamedSharding(sharding.mesh, PartitionSpec(*spec), sharding._memory_kind)
        return self(x, sharding=batched), at


def _in_memory(b: Any, x: Any, kind: str) -> Any:
    """Emit what puts a value into a memory. A processor has one, whatever its name."""
    if b.platform == "cpu":
        return x
    placement = types.dictionary({"_xla_buffer_placement": types.string(kind)})
    (out,) = b.out_avals
    return foreign.custom_call(
        "annotate_device_placement",
        [x],
        [types.tensor_type(out)],
        has_side_effect=True,
        api_version=1,
        extra_attributes={"mhlo.frontend_attributes": placement},
        ip=b.ip,
        loc=b.loc,
    ).result


class DevicePut(Structural):
    """The operand, in a memory of its device: `devices` has one space or sharding that says which.

    What is computed with it lies in the usual memory again.
    """

    name = "device_put"
    printed: ClassVar[dict[str, Any]] = {
        "copy_semantics": (xla.REUSE_INPUT,),
        "srcs": (None,),
    }
    # Whether any program has one: where none has, nobody looks for them.
    is_used: ClassVar[bool] = False

    def type(self, x: ShapedArray, *, devices: tuple[Any]) -> ShapedArray:
        memories.kind_of(devices[0])
        DevicePut.is_used = True
        return x

    def lower(self, b: Any, x: Any, *, devices: tuple[Any]) -> Any:
        return _in_memory(b, x, memories.kind_of(devices[0]))

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, devices: tuple[Any]) -> Any:
        return [ct]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, devices: tuple[Any]) -> Any:
        return self(operands[0], devices=devices), axes[0]


sharding_constraint = ShardingConstraint()
device_put = DevicePut()


def in_program(x: Any, sharding: Any) -> Any:
    """A value of a traced function, placed as a sharding says."""
    if sharding.__class__ is NamedSharding:
        return sharding_constraint(x, sharding=sharding)
    if sharding is None or sharding._memory_kind is None:
        return x
    return device_put(x, devices=(sharding,))


def results_in_memory(jaxpr: Jaxpr) -> list[str | None]:
    """For each result of a program the memory that the program puts it in itself."""
    if not DevicePut.is_used:
        return [None] * len(jaxpr.outvars)
    kinds: dict[Any, str | None] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is device_put:
            kinds[eqn.outvars[0]] = memories.kind_of(eqn.params["devices"][0])
        elif eqn.primitive is sharding_constraint:
            kinds[eqn.outvars[0]] = eqn.params["sharding"]._memory_kind
    return [kinds.get(v) if isinstance(v, Var) else None for v in jaxpr.outvars]
