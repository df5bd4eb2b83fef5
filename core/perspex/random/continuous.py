"""Continuous distributions whose distribution functions have simple inverses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.dtypes import float_dtype
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ops.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    clz,
    eq,
    ge,
    log,
    log1p,
    lt,
    mul,
    neg,
    select,
    shift_left,
    shift_right_logical,
    sign,
    sub,
    tan,
)
from perspex.ops.keys import random_bits
from perspex.ops.passing import bitcast_convert_type
from perspex.ops.shape import unstack
from perspex.ops.structural import convert
from perspex.random.sampling import sampler
from perspex.random.uniforms import between, unit

__all__ = ["cauchy", "exponential", "gumbel", "laplace", "logistic"]

GUMBEL_MODES = "low", "high", "highest"


@sampler(float_dtype)
def exponential(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `exp(-x)` for `x >= 0`: mean 1, variance 1.

    >>> from perspex import random
    >>> bool((random.exponential(random.key(0), (100,)) >= 0).all())
    True
    """
    return neg(log1p(neg(unit(key, shape, dtype))))


@sampler(float_dtype)
def laplace(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `exp(-abs(x)) / 2`: mean 0, variance 2.

    >>> from perspex import random
    >>> random.laplace(random.key(0), (2, 3)).shape
    (2, 3)
    """
    least = dtype.type(-1 + float(dtypes.finfo(dtype).epsneg))
    x = between(key, shape, dtype, least, dtype.type(1))
    return mul(sign(x), log1p(neg(abs(x))))


@sampler(float_dtype)
def logistic(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `exp(-x) / (1 + exp(-x))**2`: mean 0, variance `pi**2 / 3`.

    >>> from perspex import random
    >>> random.logistic(random.key(0), (2, 3)).shape
    (2, 3)
    """
    x = _positive(key, shape, dtype, dtypes.finfo(dtype).tiny)
    return sub(log(x), log1p(neg(x)))


@sampler(float_dtype)
def cauchy(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `1 / (pi * (1 + x**2))`, which have no mean.

    >>> from perspex import random
    >>> random.cauchy(random.key(0), (2, 3)).shape
    (2, 3)
    """
    x = _positive(key, shape, dtype, dtypes.finfo(dtype).eps)
    return tan(mul(dtype.type(math.pi), sub(x, dtype.type(0.5))))


def _positive(key: Any, shape: Shape, dtype: Any, least: Any) -> Any:
    """Floats from the smallest that the inverse can take, below 1."""
    return between(key, shape, dtype, dtype.type(least), dtype.type(1))


@sampler(float_dtype, static=("mode",))
def gumbel(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `exp(-x - exp(-x))` and distribution function `exp(-exp(-x))`.

    The index of the largest of `logits + gumbel` is a sample of the categories with these logits.

    Args:
      mode: how many bits each sample is made of. `"low"`, the default: those of one uniform number,
        so that in float32 samples end at 16.6, an event of probability 6e-8. `"high"`: twice as
        many. `"highest"`: 64, where the dtype is float32.

    >>> from perspex import random
    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return gumbel_samples(key, shape, dtype, gumbel_mode(mode))


def gumbel_mode(mode: str | None) -> str:
    """The mode of sampling that a user names."""
    mode = "low" if mode is None else mode
    if mode not in GUMBEL_MODES:
        raise ValueError(f"gumbel: mode must be one of {GUMBEL_MODES}, got {mode!r}")
    return mode


def gumbel_samples(key: Any, shape: Shape, dtype: Any, mode: str) -> Any:
    """`gumbel` for a typed key and checked arguments."""
    info = dtypes.finfo(dtype)
    if mode == "low":
        return _double_log(log(_positive(key, shape, dtype, info.tiny)))
    if mode == "highest" and dtype == np.dtype("float32"):
        return _gumbel_of_64_bits(key, shape)
    # A uniform number below 1/2 gets the bits of a second one after its own; they would be lost in
    # a larger one. The constant keeps it from zero, whose logarithm is infinite.
    high, low = unstack(unit(key, (2, *shape), dtype), axis=0)
    least = max(2.0 ** -(2 * info.nmant + 1), float(info.tiny))
    fine = add(high, mul(dtype.type(2.0**-info.nmant), low))
    x = select(ge(high, dtype.type(0.5)), high, add(fine, dtype.type(least)))
    return _double_log(log1p(neg(x)))


def _double_log(log_x: Any) -> Any:
    """`-log(-log_x)`."""
    return neg(log(neg(log_x)))


def _gumbel_of_64_bits(key: Any, shape: Shape) -> Any:
    high, low = unstack(random_bits(key, bit_width=32, shape=(2, *shape)), axis=0)
    below = lt(high, np.uint32(2**31))
    # The 64 bits are a fraction u. Where it is below 1/2, a float32 tells it from 0 precisely;
    # elsewhere one tells 1 - u, which is the two's complement.
    ones = bitwise_not(low)
    carry = convert(eq(ones, np.uint32(2**32 - 1)), np.dtype("uint32"))
    x = _fraction(
        select(below, high, add(bitwise_not(high), carry)),
        select(below, low, add(ones, np.uint32(1))),
    )
    return select(below, _double_log(log1p(neg(x))), _double_log(log(x)))


def _fraction(high: Any, low: Any) -> Any:
    """The float32 next below the fraction whose 64 bits are given, `0 <= x < 1`."""
    word, mantissa_bits = np.uint32(32), 23
    zeros, zeros_low = clz(high), clz(low)
    none = eq(zeros, word)
    # The bits from the first one on, which the mantissa leaves out.
    rest = select(none, shift_left(low, zeros_low), shift_right_logical(low, sub(word, zeros)))
    mantissa = shift_right_logical(bitwise_or(shift_left(high, zeros), rest), np.uint32(8))
    mantissa = bitwise_and(mantissa, np.uint32(2**mantissa_bits - 1))
    zeros = select(none, add(word, zeros_low), zeros)
    exponent = shift_left(sub(np.uint32(126), zeros), np.uint32(mantissa_bits))
    exponent = bitwise_and(exponent, np.uint32(0x3FC00000))
    return bitcast_convert_type(bitwise_or(exponent, mantissa), new_dtype=np.dtype("float32"))
