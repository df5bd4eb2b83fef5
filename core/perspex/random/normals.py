"""The normal distribution, by the inverse of its distribution function.

For `u` uniform in (-1, 1), `sqrt(2) erf_inv(u)` is normal; a smaller interval gives the truncated
distribution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex.arguments.arrays import spread_array
from perspex.arguments.dtypes import float_dtype, inexact_dtype
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ops.elementwise import add, div, max, min, mul, nextafter
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
from perspex.ops.special import erf, erf_inv
from perspex.ops.structural import convert
from perspex.random.sampling import sampler
from perspex.random.uniforms import between

__all__ = ["normal", "truncated_normal"]


@sampler(inexact_dtype)
def normal(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Standard normal samples: density `exp(-x**2 / 2) / sqrt(2 pi)`, mean 0, variance 1.

    A complex sample has independent real and imaginary parts of variance 1/2 each.

    >>> from perspex import random
    >>> random.normal(random.key(42), (3,))
    Array([-0.02830462,  0.46713185,  0.29570296], dtype=float32)
    """
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


@sampler(float_dtype)
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density proportional to `exp(-x**2 / 2)` for `lower < x < upper`.

    Args:
      lower, upper: numbers or arrays that broadcast to `shape`; samples lie between them.

    >>> from perspex import random
    >>> samples = random.truncated_normal(random.key(0), -1.0, 1.0, (1000,))
    >>> bool(abs(samples).max() < 1)
    True
    """
    root = dtype.type(math.sqrt(2))
    x = between(key, shape, dtype, erf(div(lower, root)), erf(div(upper, root)))
    x = mul(root, erf_inv(x))
    # Rounding may have gone outside.
    least = spread_array(nextafter(lower, dtype.type(math.inf)), shape)
    most = spread_array(nextafter(upper, dtype.type(-math.inf)), shape)
    return min(most, max(least, x))
