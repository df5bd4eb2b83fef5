"""Random bits and uniform floats, which everything else is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import spread_array
from perspex.arguments.dtypes import float_dtype
from perspex.arguments.sharded import OutSharding, lying
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ops.elementwise import add, bitwise_or, max, mul, shift_right_logical, sub
from perspex.ops.keys import random_bits
from perspex.ops.passing import bitcast_convert_type
from perspex.ops.structural import convert, reshape
from perspex.random.arguments import shape_of
from perspex.random.sampling import sampler
from perspex.random.words import document

__all__ = ["bits", "uniform"]


def _unsigned(name: str, dtype: Any) -> Any:
    if dtype is None:
        return dtypes.canonicalize_dtype("uint64")
    dtype = dtypes.check_user_dtype(dtype, name)
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(
            f"dtype argument to `{name}` must be an unsigned int dtype, got {dtype.name}"
        )
    return dtype


@sampler(_unsigned)
def bits(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random bits: unsigned integers, all equally likely.

    Args:
      dtype: an unsigned integer dtype; uint32 by default, uint64 with `enable_x64`.

    Raises:
      TypeError: if `key` is not a key or `shape` is not a sequence of sizes.
      ValueError: if `key` is an array of keys or `dtype` is not an unsigned integer dtype.

    >>> from perspex import random
    >>> random.bits(random.key(42), (3,))
    Array([2098992034, 2919706841, 2646866425], dtype=uint32)
    """
    return random_bits(key, bit_width=8 * dtype.itemsize, shape=shape)


def uniform(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Floats from `minval` below `maxval`, all equally likely: density `1 / (maxval - minval)`.

    Args:
      minval, maxval: numbers or arrays that broadcast to `shape`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or a bound is not an
          array or a number or does not broadcast to `shape`.
      ValueError: if `key` is an array of keys or `dtype` is not a floating dtype.

    >>> from perspex import random
    >>> random.uniform(random.key(42), (3,))
    Array([0.48870957, 0.6797972 , 0.6162715 ], dtype=float32)
    """
    if minval.__class__ is maxval.__class__ is float and minval == 0.0 and maxval == 1.0:
        out = _unit(key, shape, dtype)
    else:
        out = _between(key, shape, dtype, minval, maxval)
    return out if out_sharding is None else lying("uniform", out_sharding, out)


document(uniform, float_dtype, ["minval", "maxval"], united=False)


@sampler(float_dtype, name="uniform")
def _unit(key: Any, shape: Any, dtype: Any) -> Any:
    return unit(key, shape, dtype)


@sampler(float_dtype, name="uniform", fits=False)
def _between(key: Any, shape: Any, dtype: Any, minval: Any, maxval: Any) -> Any:
    return between(key, shape, dtype, minval, maxval)


def unit(key: Any, shape: Shape, dtype: Any) -> Any:
    """Floats from 0 below 1, for a typed key."""
    # Random bits as the mantissa of a number from 1 below 2. A short mantissa takes 8 bits.
    mantissa = dtypes.finfo(dtype).nmant
    width = dtypes.itemsize_bits(dtype)
    drawn = width if mantissa >= 8 else 8
    integer = np.dtype(f"uint{width}")
    one = np.array(1, dtype)
    x = convert(random_bits(key, bit_width=drawn, shape=shape), integer)
    x = shift_right_logical(x, integer.type(drawn - mantissa))
    x = bitwise_or(x, one.view(integer)[()])
    return sub(bitcast_convert_type(x, new_dtype=dtype), one[()])


def between(key: Any, shape: Shape, dtype: Any, minval: Any, maxval: Any) -> Any:
    """Floats from `minval` below `maxval`, which are of the same dtype, for a typed key.

    A scalar has, as in JAX, the axes of a `minval` of size one.
    """
    result = shape_of(minval)
    if not shape and math.prod(result) == math.prod(shape_of(maxval)) == 1:
        minval, maxval = [_scalar(x) for x in (minval, maxval)]
    else:
        minval, maxval = [spread_array(x, shape, TypeError) for x in (minval, maxval)]
        result = shape
    x = add(mul(unit(key, shape, dtype), sub(maxval, minval)), minval)
    # Rounding may have gone below.
    x = max(minval, x)
    return reshape(x, new_sizes=result) if result != shape else x


def _scalar(x: Any) -> Any:
    return reshape(x, new_sizes=()) if shape_of(x) else x
