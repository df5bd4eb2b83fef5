"""Operations that pass bits on: read as another dtype, or not before others are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops.structural import is_linear, move_axis
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive


class BitcastConvertType(Primitive):
    """The bits of the operand read as another dtype.

    A narrower dtype adds a last axis for the pieces of an element, a wider one takes it away.
    """

    name = "bitcast_convert_type"
    only_moves = True

    def type(self, x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
        for dtype in (x.dtype, new_dtype):
            if dtype.kind == "b" or dtypes.issubdtype(dtype, dtypes.extended):
                raise TypeError(
                    f"bitcast_convert_type: cannot read {x.dtype.name} as {new_dtype.name}; "
                    "convert_element_type converts values"
                )
        if (x.dtype.kind == "c") != (new_dtype.kind == "c"):
            raise TypeError(
                f"bitcast_convert_type: {x.dtype.name} and {new_dtype.name} must both be complex "
                "or neither; use `real` and `imag`"
            )
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if old == new:
            return ShapedArray(x.shape, new_dtype)
        if old > new:
            return ShapedArray((*x.shape, old // new), new_dtype)
        if not x.shape or x.shape[-1] != new // old:
            raise ValueError(
                f"bitcast_convert_type: reading {x.dtype.name} as {new_dtype.name} takes a last "
                f"axis of size {new // old}, got shape {x.shape}"
            )
        return ShapedArray(x.shape[:-1], new_dtype)

    def cut(self, out: ShapedArray, x: ShapedArray, **params: Any) -> cuts.Parts:
        return cuts.padded(cuts.parts(x)[: out.ndim], out.ndim)

    def lower(self, b: Any, x: Any, *, new_dtype: np.dtype) -> Any:
        return b.op("stablehlo.bitcast_convert", x)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        # Locally constant in its operand, wherever it is not discontinuous.
        return self(*primals, **params), None

    def batch(self, axis_size: int, operands: Any, axes: Any, *, new_dtype: np.dtype) -> Any:
        return self(move_axis(operands[0], axes[0], 0), new_dtype=new_dtype), 0


class OptimizationBarrier(Primitive):
    """The operands, none of them available before all are, and nothing moved across."""

    name = "optimization_barrier"
    degree = 1
    only_moves = True
    multiple_results = True
    memory = None

    def type(self, *avals: ShapedArray) -> Any:
        return avals

    def cut(self, out: Any, *avals: ShapedArray) -> list[cuts.Parts]:
        return [cuts.parts(aval) for aval in avals]

    def lower(self, b: Any, *xs: Any) -> Any:
        return list(b.ops("stablehlo.optimization_barrier", xs, b.out_avals).results)

    def physical(self, in_avals: Any, out_avals: Any, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def jvp(self, primals: Any, tangents: Any) -> Any:
        out = self(*primals)
        live = [t for t in tangents if t is not None]
        moved = iter(self(*live)) if live else iter(())
        return out, [None if t is None else next(moved) for t in tangents]

    def transpose(self, ct: Any, *operands: Any) -> Any:
        wanted = [c is not None and is_linear(x) for c, x in zip(ct, operands, strict=True)]
        live = [c for c, keep in zip(ct, wanted, strict=True) if keep]
        moved = iter(self(*live)) if live else iter(())
        return [next(moved) if keep else None for keep in wanted]

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        return self(*operands), list(axes)


bitcast_convert_type = BitcastConvertType()
optimization_barrier = OptimizationBarrier()
