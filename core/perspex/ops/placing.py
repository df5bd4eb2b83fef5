"""What a program says about where its arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
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
        return x

    def lower(self, b: Any, x: Any, *, sharding: NamedSharding) -> Any:
        (out,) = b.out_avals
        placed = types.attribute(f"#sdy.sharding{sharding.in_program(out.physical().ndim)}")
        return b.op("sdy.sharding_constraint", x, attributes={"sharding": placed}, aval=out)

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def transpose(self, ct: Any, x: Any, *, sharding: NamedSharding) -> Any:
        return [self(ct, sharding=sharding)]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, sharding: NamedSharding) -> Any:
        (x,), (at,) = operands, axes
        spec = [*sharding.spec, *[None] * (at - len(sharding.spec))]
        spec.insert(at, UNCONSTRAINED)
        batched = NamedSharding(sharding.mesh, PartitionSpec(*spec))
        return self(x, sharding=batched), at


sharding_constraint = ShardingConstraint()
