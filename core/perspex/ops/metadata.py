"""A value whose operation has attributes for XLA: the identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.hlo import frontend
from perspex.ir.avals import ShapedArray
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive


class MetadataValue(Primitive):
    """The operand, made by an operation with the attributes; tangents pass by."""

    name = "xla_metadata_value"

    def type(self, x: ShapedArray, *, xla_metadata_kvs: Any) -> ShapedArray:
        return x

    def cut(self, out: Any, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.parts(x)

    def pending(self, x: ShapedArray, **params: Any) -> cuts.Sums:
        return cuts.sums(x)

    def lower(self, b: Any, x: Any, *, xla_metadata_kvs: Any) -> Any:
        # An argument of the program has no operation.
        if hasattr(x.owner, "attributes"):
            frontend.mark(x.owner, dict(xla_metadata_kvs))
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self(*primals, **params), tangents[0]

    def transpose(self, ct: Any, x: Any, **params: Any) -> list[Any]:
        return [ct]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        return self(*operands, **params), axes[0]


xla_metadata_value_p = MetadataValue()
