"""Products of block-scaled numbers: each block of an operand comes with a number to multiply it by.

`scaled_dot` is the operation of XLA that takes any axes; `scaled_matmul` is what Nvidia's libraries
call it, for batches of matrices whose last axes are contracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.elementwise import mul
from perspex.ops.linear import Dimensions, check_dimensions, dot_general, layout, shifted
from perspex.ops.lowering import expand
from perspex.ops.structural import broadcast_in_dim, convert, reshape, to_front
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def rescaled(x: Any, scale: Any, axes: Sequence[int], dtype: Any) -> Any:
    """`x` times its scales, of which one counts for a block along each of `axes`."""
    shape, blocks, spread = [], [], []
    for i, n in enumerate(x.shape):
        count = scale.shape[i] if i in axes else n
        shape += [count, n // count] if i in axes else [n]
        blocks += [count, 1] if i in axes else [n]
        spread.append(len(shape) - (2 if i in axes else 1))
    x, scale = convert(x, dtype), convert(scale, dtype)
    parts = reshape(x, new_sizes=tuple(shape))
    many = broadcast_in_dim(scale, shape=tuple(shape), broadcast_dimensions=tuple(spread))
    return reshape(mul(parts, many), new_sizes=x.shape)


def _product(x: Any, y: Any, dimension_numbers: Any, dtype: Any) -> Any:
    return dot_general(
        x,
        y,
        dimension_numbers=Dimensions(dimension_numbers),
        precision=None,
        preferred_element_type=dtype,
    )


class ScaledDot(Primitive):
    """Operands and scales -> sums of products over the contracting axes."""

    name = "scaled_dot"

    def type(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        lhs_scale: ShapedArray,
        rhs_scale: ShapedArray,
        *,
        dimension_numbers: Any,
        preferred_element_type: np.dtype | None,
    ) -> ShapedArray:
        ranks = [x.ndim for x in (lhs, rhs, lhs_scale, rhs_scale)]
        if len(set(ranks)) > 1:
            raise TypeError(
                "scaled_dot takes operands and scales of as many axes each; lhs, rhs and their "
                f"scales have {ranks}"
            )
        check_dimensions(lhs, rhs, dimension_numbers, self.name)
        (lhs_contract, rhs_contract), _ = dimension_numbers
        _check_scale("lhs", lhs, lhs_scale, lhs_contract)
        _check_scale("rhs", rhs, rhs_scale, rhs_contract)
        axes = layout(dimension_numbers, lhs.ndim, rhs.ndim)
        shape = [
            *[lhs.shape[i] for i in (*axes.lhs_batch, *axes.lhs_kept)],
            *[rhs.shape[i] for i in axes.rhs_kept],
        ]
        return ShapedArray(shape, preferred_element_type or BFLOAT16)

    def lower(
        self, b: Any, *values: Any, dimension_numbers: Any, preferred_element_type: Any
    ) -> Any:
        (lhs_contract, rhs_contract), _ = dimension_numbers

        def decomposed(x: Any, y: Any, x_scale: Any, y_scale: Any) -> list[Any]:
            x = rescaled(x, x_scale, lhs_contract, BFLOAT16)
            y = rescaled(y, y_scale, rhs_contract, BFLOAT16)
            return [_product(x, y, dimension_numbers, preferred_element_type)]

        jaxpr, consts = stage(decomposed, b.in_avals, "xla.scaled_dot")
        assert not consts, "a lower rule closes over numbers only"
        attributes = {"dimension_numbers": types.attribute_of(dimension_numbers)}
        if preferred_element_type is not None:
            attributes["preferred_element_type"] = types.attribute_of(preferred_element_type)
        (out,) = b.composite(ClosedJaxpr(jaxpr), values, "xla.scaled_dot", attributes)
        return out

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, dimension_numbers: Any, **params: Any
    ) -> Any:
        moved = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        contract = shifted(lhs_contract, 0), shifted(rhs_contract, 0)
        batch = (0, *shifted(lhs_batch, 0)), (0, *shifted(rhs_batch, 0))
        return self(*moved, dimension_numbers=Dimensions((contract, batch)), **params), 0


def _check_scale(side: str, x: ShapedArray, scale: ShapedArray, contract: Sequence[int]) -> None:
    for i, (n, m) in enumerate(zip(x.shape, scale.shape, strict=True)):
        if n != m if i not in contract else n % m or n // m < 2:
            wanted = f"{n}" if i not in contract else f"a divisor of {n}, other than {n} itself"
            raise TypeError(
                f"scaled_dot: axis {i} of the scale of {side} must have size {wanted}, since "
                f"{side} has shape {x.shape}; got a scale of shape {scale.shape}"
            )


class ScaledMatmul(Primitive):
    """`(b, m, k)` and `(b, n, k)` with scales of fewer columns -> `(b, m, n)`."""

    name = "scaled_matmul"

    def type(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        lhs_scales: ShapedArray,
        rhs_scales: ShapedArray,
        *,
        preferred_element_type: np.dtype,
    ) -> ShapedArray:
        return ShapedArray((*lhs.shape[:2], rhs.shape[1]), preferred_element_type)

    def lower(self, b: Any, *values: Any, preferred_element_type: np.dtype) -> Any:
        (out,) = b.out_avals
        if b.platform == "cuda" and out.dtype.name in _BACKEND_TYPES:
            return b.op(
                "stablehlo.custom_call", *values, attributes=_block_scaled_dot(b.in_avals, out)
            )

        def composed(x: Any, y: Any, x_scales: Any, y_scales: Any) -> Any:
            x = rescaled(x, x_scales, (2,), preferred_element_type)
            y = rescaled(y, y_scales, (2,), preferred_element_type)
            return _product(x, y, (((2,), (2,)), ((0,), (0,))), preferred_element_type)

        return expand(b, composed, *values)[0]

    def batch(self, axis_size: int, operands: Any, axes: Any, **params: Any) -> Any:
        moved = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        shapes = [typeof(x).shape for x in moved]
        flat = [
            reshape(x, new_sizes=(math.prod(shape[:2]), *shape[2:]))
            for x, shape in zip(moved, shapes, strict=True)
        ]
        out = self(*flat, **params)
        return reshape(out, new_sizes=(*shapes[0][:2], *out.shape[1:])), 0


_BACKEND_TYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


def _block_scaled_dot(operands: Sequence[ShapedArray], out: ShapedArray) -> dict[str, Any]:
    """The attributes of XLA's call of Nvidia's library."""
    config = (
        '{"scaled_dot_backend_config": {"lhs_batch_dimensions": [0], "rhs_batch_dimensions": [0], '
        f'"dequantize_type": "{_BACKEND_TYPES[out.dtype.name]}"}}}}'
    )
    return {
        "call_target_name": types.string("__op$block_scaled_dot"),
        "api_version": types.integer(2, 32),
        "backend_config": types.string(config),
        "operand_layouts": types.layouts(tuple([(aval.ndim, 0) for aval in operands])),
        "result_layouts": types.layouts(((out.ndim, 0),)),
    }


scaled_dot = ScaledDot()
scaled_matmul = ScaledMatmul()
