"""`dce_sink`: what keeps a value in its program although nobody reads it."""

from __future__ import annotations

from typing import Any

from perspex.base import effects
from perspex.base.effects import Effects
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.tracing.primitive import Primitive


class DceSink(Primitive):
    """Takes a value for nothing; with `prevent_mlir_dce` the compiler computes it too."""

    name = "dce_sink"
    multiple_results = True
    only_moves = True

    def type(self, x: ShapedArray, *, prevent_mlir_dce: bool) -> tuple[()]:
        return ()

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([effects.kept])

    def lower(self, b: Any, x: Any, *, prevent_mlir_dce: bool) -> list[Any]:
        if prevent_mlir_dce:
            attributes = {
                "call_target_name": types.string("dce_sink"),
                "api_version": types.integer(4, 32),
                "has_side_effect": types.boolean(True),
                "backend_config": types.dictionary({}),
                "operand_layouts": types.layouts(((b.in_avals[0].ndim, 0),)),
                "result_layouts": types.array([]),
            }
            b.ops("stablehlo.custom_call", [x], [], attributes)
        return []

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        return self(*primals, **params), []

    def transpose(self, cts: Any, x: Any, **params: Any) -> list[Any]:
        return [None]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **params), []


dce_sink = DceSink()
