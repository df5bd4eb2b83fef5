"""Random bits and uniform floats, which everything else is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.numpy.promotion import check_arraylike
from perspex.ops.elementwise import add, bitwise_or, max, mul, shift_right_logical, sub
from perspex.ops.keys import random_bits
from perspex.ops.shape import bitcast_convert_type
from perspex.ops.structural import convert
from perspex.random.arguments import (
    Shape,
    as_dtype,
    as_shape,
    float_dtype,
    no_sharding,
    on_key,
    spread,
)


def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Random bits: unsigned integers, all equally likely.

    Args:
      key: one key, typed or raw.
      shape: the shape of the result.
      dtype: an unsigned integer dtype; uint32 by default, uint64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors:
      `ValueError` for another dtype or an array of keys, `TypeError` for what is no key or shape.

    >>> from perspex import random
    >>> random.bits(random.key(42), (3,))
    Array([2098992034, 2919706841, 2646866425], dtype=uint32)
    """
    no_sharding("bits", out_sharding)
    dtype = (
        dtypes.canonicalize_dtype("uint64")
        if dtype is None
        else dtypes.check_user_dtype(dtype, "bits")
    )
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {dtype.name}"
        )
    return _bits(key, 8 * dtype.itemsize, as_shape("bits", shape))


@on_key("bits", static=2)
def _bits(key: Any, bit_width: int, shape: Shape) -> Any:
    return random_bits(key, bit_width=bit_width, shape=shape)


def uniform(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Any:
    """Floats from `minval` below `maxval`, all equally likely.

    Args:
      key: one key, typed or raw.
      shape: the shape of the result.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      minval, maxval: numbers or arrays that broadcast to `shape`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors:
      `ValueError` for another dtype or an array of keys; `TypeError` for what is no key, no shape
      or no array, and for bounds that do not broadcast.

    >>> from perspex import random
    >>> random.uniform(random.key(42), (3,))
    Array([0.48870957, 0.6797972 , 0.6162715 ], dtype=float32)
    """
    no_sharding("uniform", out_sharding)
    dtype = float_dtype("uniform", dtype)
    shape = as_shape("uniform", shape)
    if minval.__class__ is maxval.__class__ is float and minval == 0.0 and maxval == 1.0:
        return _unit(key, shape, dtype)
    check_arraylike("uniform", minval, maxval)
    return _uniform(key, minval, maxval, shape, dtype)


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
    """Floats from `minval` below `maxval`, which are of the same dtype, for a typed key."""
    minval, maxval = [spread("uniform", x, shape) for x in (minval, maxval)]
    x = add(mul(unit(key, shape, dtype), sub(maxval, minval)), minval)
    # Rounding may have gone below.
    return max(minval, x)


@on_key("uniform", static=2)
def _unit(key: Any, shape: Shape, dtype: Any) -> Any:
    return unit(key, shape, dtype)


@on_key("uniform", static=2)
def _uniform(key: Any, minval: Any, maxval: Any, shape: Shape, dtype: Any) -> Any:
    return between(key, shape, dtype, as_dtype(minval, dtype), as_dtype(maxval, dtype))
