"""Continuous distributions that are simple functions of uniform and normal variates."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.arguments.arrays import spread, spread_array
from perspex.arguments.dtypes import float_dtype
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
from perspex.random.arguments import drawn_shape, shape_of
from perspex.random.continuous import exponential
from perspex.random.gammas import random_signs
from perspex.random.normals import real_normal
from perspex.random.sampling import sampler
from perspex.random.uniforms import unit

__all__ = [
    "double_sided_maxwell",
    "lognormal",
    "maxwell",
    "pareto",
    "rayleigh",
    "triangular",
    "wald",
    "weibull_min",
]


@sampler(float_dtype)
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples `exp(sigma * z)` of a standard normal `z`.

    The density is `exp(-log(x)**2 / (2 * sigma**2)) / (x * sigma * sqrt(2 * pi))` for `x > 0`.

    Args:
      sigma: the standard deviation of the logarithm, numbers that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.lognormal(random.key(0)) > 0)
    True
    """
    return pnp.exp(real_normal(key, shape, dtype) * spread_array(sigma, shape))


@sampler(float_dtype)
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `b / x**(b + 1)` for `x >= 1`.

    Args:
      b: the tail exponent, positive numbers that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.pareto(random.key(0), 2.0) >= 1)
    True
    """
    return pnp.exp(exponential(key, shape, dtype) / spread_array(b, shape))


@sampler(float_dtype)
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `x / scale**2 * exp(-x**2 / (2 * scale**2))` for `x >= 0`.

    They are the lengths of plane vectors with normal components of standard deviation `scale`.

    Args:
      scale: positive numbers that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.rayleigh(random.key(0), 2.0) > 0)
    True
    """
    root = pnp.sqrt(pnp.log(unit(key, shape, dtype)) * dtype.type(-2))
    return spread_array(scale, shape) * root


@sampler(float_dtype)
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Inverse Gaussian samples of the given mean and shape parameter 1.

    The density is `exp(-(x - mean)**2 / (2 * mean**2 * x)) / sqrt(2 * pi * x**3)` for `x > 0`.

    Args:
      mean: positive numbers that broadcast to `shape`.

    References:
      J. R. Michael, W. R. Schucany, R. W. Haas, "Generating random variates using transformations
      with multiple roots", The American Statistician 30 (1976).

    >>> from perspex import random
    >>> bool(random.wald(random.key(0), 2.0) > 0)
    True
    """
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    mean = spread(mean, shape)
    v = pnp.square(real_normal(first, shape, dtype))
    z = unit(second, shape, dtype)
    # The smaller root; mean**2 over it is the other.
    square = mean * mean
    root = pnp.sqrt(4 * mean * v + square * (v * v))
    w = mean + square * v / 2 - mean / 2 * root
    return pnp.where(z <= mean / (mean + w), w, square / w)


@sampler(float_dtype, fits=False)
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples with distribution function `1 - exp(-(x / scale)**concentration)` for `x >= 0`.

    With `c = concentration` the density is `c / scale * (x / scale)**(c - 1)` times
    `exp(-(x / scale)**c)`.

    Args:
      scale, concentration: positive numbers, or arrays that broadcast with `shape`.
      shape: the shape of the underlying uniform samples: arrays of parameters share them.

    Returns:
      An array of dtype `dtype` and the shape to which `shape` and the parameters broadcast.

    >>> from perspex import random
    >>> bool(random.weibull_min(random.key(0), 2.0, 3.0) > 0)
    True
    """
    power = dtype.type(1) / concentration
    return pnp.power(exponential(key, shape, dtype), power) * scale


@sampler(float_dtype)
def maxwell(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples with density `sqrt(2 / pi) * x**2 * exp(-x**2 / 2)` for `x >= 0`.

    They are the lengths of vectors in space whose components are standard normal.

    >>> from perspex import random
    >>> bool(random.maxwell(random.key(0)) > 0)
    True
    """
    return pnp.sqrt(pnp.sum(pnp.square(real_normal(key, (*shape, 3), dtype)), -1))


@sampler(float_dtype, fits=False)
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples `loc + scale * x` of a Maxwell variate `x` with a random sign.

    With `z = (x - loc) / scale` the density is `z**2 * exp(-z**2 / 2) / (scale * sqrt(2 * pi))`.

    Args:
      loc, scale: numbers, or arrays that broadcast with each other.
      shape: the shape of the batch of samples; by default that of the parameters.

    Returns:
      An array of dtype `dtype` whose last axes are those of the parameters, after those of `shape`.

    >>> from perspex import random
    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,)).shape
    (2,)
    """
    batch = drawn_shape("double_sided_maxwell", None, shape_of(loc), shape_of(scale))
    shape = (*(shape or batch), *batch)
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    loc, scale = spread_array(loc, shape), spread_array(scale, shape)
    return random_signs(second, shape, dtype) * maxwell(first, shape, dtype) * scale + loc


@sampler(float_dtype)
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples whose density rises linearly from `left` to `mode` and falls linearly to `right`.

    Args:
      left, mode, right: numbers in rising order, or arrays that broadcast to `shape`.

    >>> from perspex import random
    >>> bool(random.triangular(random.key(0), 0.0, 1.0, 2.0) < 2)
    True
    """
    left, mode, right = [spread(x, shape) for x in (left, mode, right)]
    width = right - left
    u = unit(key, shape, dtype)
    rising = left + pnp.sqrt(u * width * (mode - left))
    falling = right - pnp.sqrt((1 - u) * width * (right - mode))
    return pnp.where(u < (mode - left) / width, rising, falling)
