"""Products of numbers of a few bits with a scale for each block, and how floats become such.

Formats: MXFP8 and MXFP4 have blocks of 32 numbers whose scale is a power of two; NVFP4 has blocks
of 16 with a scale of 8 bits, and one scale for the whole array.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import aval_of
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.lax.linear import DotDimensionNumbers, dimensions, dot_general
from perspex.lax.values import optimization_barrier
from perspex.ops import scaled as ops
from perspex.ops.linear import Dimensions, in_order, layout
from perspex.rules.custom_vjp import custom_vjp
from perspex.tracing.trace import typeof

__all__ = ["get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]

FLOAT32 = np.dtype("float32")


@dataclasses.dataclass
class BlockScaleConfig:
    """How an array becomes numbers of a few bits with scales.

    Args:
      mode: the format: `"mxfp8"`, `"mxfp4"` or `"nvfp4"`.
      block_size: how many numbers share a scale.
      data_type, scale_type: the dtypes of numbers and scales.
      global_scale: the scale of the whole array, float32 of shape `(1,)` or `()`; for NVFP4 alone.
      infer_only: kept for whoever reads it.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8", "mxfp4"], global_scale: Any = None
) -> BlockScaleConfig:
    """The block-scaled format of a name, for `scaled_dot_general`.

    Args:
      mode: `"mxfp8"`, `"mxfp4"` or `"nvfp4"`.
      global_scale: float32 of shape `(1,)` or `()`, for `"nvfp4"` alone; 1 if not given.

    Returns:
      A `BlockScaleConfig`.

    Raises:
      ValueError: for another mode, and a `global_scale` that the format has not.

    References:
      Open Compute Project, "OCP Microscaling Formats (MX) Specification", 2023.

    >>> from perspex import nn
    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = pnp.ones((1,), FLOAT32) if global_scale is None else global_scale
        return BlockScaleConfig(
            mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, scale, False
        )
    if mode not in ("mxfp8", "mxfp4"):
        raise ValueError(f"the mode is 'nvfp4', 'mxfp8' or 'mxfp4', got {mode!r}")
    if mode == "mxfp4" and global_scale is not None:
        raise ValueError("mxfp4 has no global_scale: the scales of its blocks cover the range")
    numbers = ml_dtypes.float8_e4m3fn if mode == "mxfp8" else ml_dtypes.float4_e2m1fn
    return BlockScaleConfig(mode, 32, numbers, ml_dtypes.float8_e8m0fnu, None, False)


# ---- From floats to blocks and back -------------------------------------------------------------


def _power_of_two(x: Any) -> Any:
    """The exponents of the least powers of two that are not less than `x`, in E8M0."""
    bits = x.view(np.uint32)
    exponent, mantissa = bits >> 23, bits & 0x7FFFFF
    # Denormals have half the range of the smallest scale.
    is_above = (mantissa > 0) & (exponent != 0xFE) & ~((exponent == 0) & (mantissa <= 0x400000))
    return pnp.where(is_above, exponent + 1, exponent).astype(np.uint8)


def _value_of(exponents: Any) -> Any:
    """The powers of two as float32."""
    powers = (exponents.astype(np.uint32) << 23).view(FLOAT32)
    return pnp.where(powers == 0, np.float32(2.0**-127), powers)


def quantized(x: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """The numbers and the scales for the last axis of `x`, of three axes."""
    size = config.block_size
    if not x.shape[-1] or x.shape[-1] % size:
        raise ValueError(
            f"scaled_dot_general: {config.mode} has blocks of {size} numbers, so the product of "
            f"the contracted sizes must be a multiple of that; got {x.shape[-1]}"
        )
    shape, dtype = x.shape, x.dtype
    greatest = np.float32(dtypes.finfo(config.data_type).max)
    x = x.reshape(*shape[:-1], shape[-1] // size, size)
    if config.mode == "nvfp4":
        x = x / config.global_scale
    # In float32, whatever `x` is: as a product with a rounded reciprocal it would be too large.
    needed = pnp.max(pnp.abs(x), axis=-1, keepdims=True).astype(FLOAT32) / greatest
    if config.mode == "nvfp4":
        limit = dtype.type(dtypes.finfo(config.scale_type).max)
        scales = optimization_barrier(pnp.clip(needed, 0, limit).astype(config.scale_type))
        parts = x / scales.astype(FLOAT32)
        scales = scales[..., 0]
    else:
        exponents = _power_of_two(needed)
        parts = x.astype(FLOAT32) / _value_of(exponents)
        scales = exponents[..., 0].view(config.scale_type)
    numbers = pnp.clip(parts, -greatest, greatest).astype(config.data_type).reshape(shape)
    # XLA would take a conversion there and back for none at all.
    return tuple(optimization_barrier((numbers, scales)))  # type: ignore[return-value]


# ---- Products -----------------------------------------------------------------------------------


def scaled_matmul(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    rhs_scales: Array,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Products of matrices of block-scaled numbers, the second one transposed.

    Args:
      lhs: an array of shape `(b, m, k)`.
      rhs: an array of shape `(b, n, k)`.
      lhs_scales: an array of shape `(b, m, k // size)`: the scales of blocks of `size` columns.
      rhs_scales: an array of shape `(b, n, k // size)`.
      preferred_element_type: the dtype of the result.

    Returns:
      An array of shape `(b, m, n)`. It has no derivative; `scaled_dot_general` has one.

    Raises:
      ValueError: for shapes that do not fit.

    >>> import perspex.numpy as pnp
    >>> from perspex import nn
    >>> x, scales = pnp.ones((1, 1, 4)), pnp.full((1, 1, 2), 2.0)
    >>> nn.scaled_matmul(x, x, scales, scales)
    Array([[[16.]]], dtype=float32)
    """
    values = (lhs, rhs, lhs_scales, rhs_scales)
    x, y, xs, ys = [aval_of("scaled_matmul", v).shape for v in values]
    shapes = f"got {x} and {y} with scales {xs} and {ys}"
    if not all(len(shape) == 3 for shape in (x, y, xs, ys)):
        raise ValueError(f"scaled_matmul takes four arrays of three axes, {shapes}")
    if x[0] != y[0] or x[2] != y[2]:
        raise ValueError(f"scaled_matmul: the first and last sizes must be the same, {shapes}")
    if xs[:2] != x[:2] or ys[:2] != y[:2] or xs[2] != ys[2]:
        raise ValueError(
            f"scaled_matmul: scales have as many rows as their operand and as many columns as each "
            f"other, {shapes}"
        )
    if not xs[2] or x[2] % xs[2]:
        raise ValueError(f"scaled_matmul: {xs[2]} scales do not divide {x[2]} columns, {shapes}")
    primitive: Any = ops.scaled_matmul
    dtype = dtypes.check_user_dtype(preferred_element_type)
    out: Array = primitive(*values, preferred_element_type=dtype)
    return out


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """Sums of products as `lax.dot_general`, of operands rounded to block-scaled numbers.

    The derivative is that of the product: it is computed in the third format, with NVFP4 in floats,
    and is zero where an operand was too large for its format.

    Args:
      lhs, rhs: arrays of floats.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
      configs: the formats of `lhs`, of `rhs` and of the cotangent, by
        `get_scaled_dot_general_config`. Without them the product is that of `lax.dot_general`.
      implementation: ignored; the platform decides.

    Returns:
      An array with the batch axes, the other axes of `lhs`, and those of `rhs`.

    Raises:
      TypeError: for another dtype, and axes that do not match.
      ValueError: where blocks do not fill the contracted axes.

    >>> import perspex.numpy as pnp
    >>> from perspex import nn
    >>> x = pnp.linspace(-1, 1, 64).reshape(2, 32)
    >>> formats = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=formats).shape
    (2, 2)
    """
    if configs is None:
        return dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type
        )
    dtype = np.dtype(preferred_element_type)
    if dtype.name not in ("float32", "bfloat16", "float16"):
        raise TypeError(
            "scaled_dot_general: preferred_element_type must be float32, bfloat16 or float16, got "
            f"{dtype.name}"
        )
    of_lhs, of_rhs, of_ct = configs
    numbers = dimensions(dimension_numbers)
    aval_of("scaled_dot_general", lhs), aval_of("scaled_dot_general", rhs)

    @custom_vjp
    def product(x: Any, y: Any) -> Any:
        return _product(x, y, numbers, dtype, of_lhs, of_rhs)

    def forward(x: Any, y: Any) -> Any:
        return product(x, y), (x, y)

    def backward(residuals: Any, ct: Any) -> Any:
        x, y = residuals
        by_x = _adjoint(ct, y, numbers, x, dtype, of_ct, of_rhs, True)
        by_y = _adjoint(ct, x, numbers, y, dtype, of_ct, of_lhs, False)
        if of_ct.mode == "nvfp4":
            by_x, by_y = _where_it_fits(by_x, x, of_lhs), _where_it_fits(by_y, y, of_rhs)
        return by_x.astype(x.dtype), by_y.astype(y.dtype)

    product.defvjp(forward, backward)
    out: Array = product(pnp.asarray(lhs), pnp.asarray(rhs))
    return out


def _where_it_fits(ct: Any, x: Any, config: BlockScaleConfig) -> Any:
    numbers, scales = [
        x.dtype.type(dtypes.finfo(d).max) for d in (config.data_type, config.scale_type)
    ]
    return pnp.where(pnp.abs(x) <= config.global_scale * numbers * scales, ct, 0)


def _matrices(x: Any, batch: Sequence[int], kept: Sequence[int], contract: Sequence[int]) -> Any:
    """`x` as batches of matrices: rows are the kept axes, columns those that are contracted."""
    groups = [sorted(axes) for axes in (batch, kept, contract)]
    sizes = [int(np.prod([x.shape[i] for i in axes], dtype=int)) for axes in groups]
    return pnp.transpose(x, [i for axes in groups for i in axes]).reshape(sizes)


def _product(
    x: Any, y: Any, numbers: Dimensions, dtype: Any, of_x: BlockScaleConfig, of_y: BlockScaleConfig
) -> Any:
    r = layout(numbers, x.ndim, y.ndim)
    left, left_scales = quantized(_matrices(x, r.lhs_batch, r.lhs_kept, r.lhs_contract), of_x)
    right, right_scales = quantized(_matrices(y, r.rhs_batch, r.rhs_kept, r.rhs_contract), of_y)
    is_nvfp4 = of_x.mode == "nvfp4"
    out = scaled_matmul(left, right, left_scales, right_scales, FLOAT32 if is_nvfp4 else dtype)
    if is_nvfp4:
        out = (out * (of_x.global_scale * of_y.global_scale)).astype(dtype)
    shape = [x.shape[i] for i in (*sorted(r.lhs_batch), *r.lhs_kept)]
    return out.reshape(*shape, *[y.shape[i] for i in r.rhs_kept])


def _adjoint(
    ct: Any,
    other: Any,
    numbers: Dimensions,
    x: Any,
    dtype: Any,
    of_ct: BlockScaleConfig,
    of_other: BlockScaleConfig,
    of_lhs: bool,
) -> Any:
    """The cotangent of the operand `x`, given the other one."""
    pair = (x, other) if of_lhs else (other, x)
    r = layout(numbers, pair[0].ndim, pair[1].ndim)
    at = len(r.lhs_batch), len(r.lhs_batch) + len(r.lhs_kept)
    batch, left, right = [range(*ends) for ends in ((0, at[0]), at, (at[1], ct.ndim))]
    if of_lhs:
        kept, contracted, mine = left, right, (r.lhs_batch, r.lhs_kept, r.lhs_contract)
        theirs = (r.rhs_batch, r.rhs_contract, r.rhs_kept)
    else:
        kept, contracted, mine = right, left, (r.rhs_batch, r.rhs_kept, r.rhs_contract)
        theirs = (r.lhs_batch, r.lhs_contract, r.lhs_kept)
    rows = _matrices(ct, batch, kept, contracted)
    columns = _matrices(other, *theirs)
    if of_ct.mode == "nvfp4":
        out = pnp.matmul(rows, columns.transpose(0, 2, 1), preferred_element_type=dtype)
    else:
        (one, one_scales), (two, two_scales) = quantized(rows, of_ct), quantized(columns, of_other)
        out = scaled_matmul(one, two, one_scales, two_scales, dtype)
    sizes = [ct.shape[i] for i in (*batch, *kept)]
    out = out.reshape(*sizes, *[other.shape[i] for i in sorted(theirs[1])])
    # The axes of the other operand come in ascending order, and mine with them.
    order = [mine[2][i] for i in np.argsort(theirs[1])]
    return in_order(out, (*mine[0], *mine[1], *order), typeof(out))
