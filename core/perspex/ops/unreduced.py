"""Gathering to values that are reduced, and scattering of parts of sums (`ops.casts`).

They are each other's transposes: what all devices gather of their weights is reduced, so that its
cotangent is parts of a sum, and each device needs only its own piece of that sum.
"""

from __future__ import annotations

from typing import Any, ClassVar

from perspex.ir.avals import ShapedArray
from perspex.ops.casts import check_parts, check_state, turned
from perspex.ops.collectives import AllGather, ReduceScatter


class AllGatherReduced(AllGather):
    """The values of all devices among which the operand differs, reduced along their axis."""

    name = "all_gather_reduced"
    printed: ClassVar[dict[str, Any]] = {}
    quiet: ClassVar[dict[str, Any]] = {"mesh": ...}

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> ShapedArray:
        (x,), names = avals, params["axis_name"]
        check_state(self.name, x, names, "varying")
        given = {key: value for key, value in params.items() if key != "mesh"}
        out = self.type(x, **given)
        cut = self.cut(out, x, **given)
        # A type with another shape has lost its sums.
        out = x.update(shape=out.shape, sharding=x.cut and x.cut.update(spec=_sums_of(x)))
        return turned(out, params["mesh"], cut, frozenset(names), "varying", "reduced")

    def lower(self, b: Any, x: Any, *, mesh: Any = None, **params: Any) -> Any:
        return super().lower(b, x, **params)

    def transpose(
        self, ct: Any, x: Any, *, all_gather_dimension: int, mesh: Any = None, **params: Any
    ) -> list[Any]:
        return [unreduced_reduce_scatter(ct, scatter_dimension=all_gather_dimension, **params)]


class UnreducedReduceScatter(ReduceScatter):
    """The sum of the parts that devices hold; each device gets its own piece of it."""

    name = "unreduced_reduce_scatter"
    printed: ClassVar[dict[str, Any]] = {}

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> ShapedArray:
        (x,), names = avals, params["axis_name"]
        check_parts(self.name, x, names)
        out = self.type(x, **params)
        cut = self.cut(out, x, **params)
        mesh = None if x.cut is None else x.cut.mesh
        out = x.update(shape=out.shape, sharding=x.cut and x.cut.update(spec=_sums_of(x)))
        return turned(out, mesh, cut, frozenset(names), "unreduced", "varying")

    def transpose(self, ct: Any, x: Any, *, scatter_dimension: int, **params: Any) -> list[Any]:
        mesh = x.aval.cut.mesh
        return [all_gather_reduced(ct, all_gather_dimension=scatter_dimension, mesh=mesh, **params)]


def _sums_of(x: ShapedArray) -> Any:
    """The spec of `x` without its partitions."""
    return None if x.cut is None else x.cut.spec.update(partitions=())


all_gather_reduced = AllGatherReduced()
unreduced_reduce_scatter = UnreducedReduceScatter()
