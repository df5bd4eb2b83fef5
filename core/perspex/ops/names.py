"""A name for a value: the identity, by which policies of `checkpoint` tell values apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.ir.avals import ShapedArray
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive


class Name(Primitive):
    """The operand, named `name`. Only the value has the name: tangents pass by."""

    name = "name"
    only_moves = True

    def type(self, x: ShapedArray, *, name: str) -> ShapedArray:
        return x

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, name: str) -> Any:
        return x

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
        return self(*primals, name=name), tangents[0]

    def transpose(self, ct: Any, x: Any, *, name: str) -> list[Any]:
        return [ct]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, name: str) -> Any:
        return self(*operands, name=name), axes[0]


name_p = Name()
