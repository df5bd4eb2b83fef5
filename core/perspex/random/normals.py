"""The normal distribution, by the inverse of its distribution function.

For `u` uniform in (-1, 1), `sqrt(2) erf_inv(u)` is normal; a smaller interval gives the truncated
distribution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex.numpy.promotion import check_arraylike
from perspex.ops.elementwise import add, div, max, min, mul, nextafter
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
from perspex.ops.special import erf, erf_inv
from perspex.ops.structural import convert
from perspex.random.arguments import (
    Shape,
    as_dtype,
    as_shape,
    common_shape,
    float_dtype,
    no_sharding,
    on_key,
    shape_of,
    spread,
)
from perspex.random.uniforms import between


def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard normal samples: mean 0, variance 1.

    A complex sample has independent real and imaginary parts of variance 1/2 each.

    Args:
      key: one key, typed or raw.
      shape: the shape of the result.
      dtype: a floating or complex dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors:
      `ValueError` for another dtype or an array of keys, `TypeError` for what is no key or shape.

    >>> from perspex import random
    >>> random.normal(random.key(42), (3,))
    Array([-0.02830462,  0.46713185,  0.29570296], dtype=float32)
    """
    no_sharding("normal", out_sharding)
    dtype = float_dtype("normal", dtype, np.inexact)
    return _normal(key, as_shape("normal", shape), dtype)


@on_key("normal", static=2)
def _normal(key: Any, shape: Shape, dtype: Any) -> Any:
    if dtype.kind != "c":
        return real_normal(key, shape, dtype)
    part = np.zeros((), dtype).real.dtype
    keys = unstack(random_split(key, shape=(2,)), axis=0)
    re, im = [convert(real_normal(k, shape, part), dtype) for k in keys]
    return div(add(re, mul(dtype.type(1j), im)), dtype.type(math.sqrt(2)))


def real_normal(key: Any, shape: Shape, dtype: Any) -> Any:
    """Standard normal samples of a floating dtype, for a typed key."""
    above = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    x = between(key, shape, dtype, above, dtype.type(1))
    return mul(dtype.type(math.sqrt(2)), erf_inv(x))


def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Standard normal samples, those among them that are between `lower` and `upper`.

    Args:
      key: one key, typed or raw.
      lower, upper: numbers or arrays that broadcast to `shape`.
      shape: the shape of the result; by default that to which the bounds broadcast.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype, with samples inside the open interval.

    Errors:
      `ValueError` for another dtype, for bounds that do not broadcast and for an array of keys;
      `TypeError` for what is no key, no shape or no array.

    >>> from perspex import random
    >>> samples = random.truncated_normal(random.key(0), -1.0, 1.0, (1000,))
    >>> bool(abs(samples).max() < 1)
    True
    """
    no_sharding("truncated_normal", out_sharding)
    dtype = float_dtype("truncated_normal", dtype)
    check_arraylike("truncated_normal", lower, upper)
    shape = None if shape is None else as_shape("truncated_normal", shape)
    shape = common_shape("truncated_normal", shape, shape_of(lower), shape_of(upper))
    return _truncated_normal(key, lower, upper, shape, dtype)


@on_key("truncated_normal", static=2)
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape, dtype: Any) -> Any:
    lower, upper = as_dtype(lower, dtype), as_dtype(upper, dtype)
    root = dtype.type(math.sqrt(2))
    x = between(key, shape, dtype, erf(div(lower, root)), erf(div(upper, root)))
    x = mul(root, erf_inv(x))
    # Rounding may have gone outside.
    least = spread("truncated_normal", nextafter(lower, dtype.type(math.inf)), shape)
    most = spread("truncated_normal", nextafter(upper, dtype.type(-math.inf)), shape)
    return min(most, max(least, x))
