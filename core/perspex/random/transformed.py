"""Continuous distributions that are simple functions of uniform and normal variates."""

from __future__ import annotations

from typing import Any

from perspex import numpy as pnp
from perspex.numpy.promotion import check_arraylike
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
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
from perspex.random.gammas import check_parameters, filled, random_signs
from perspex.random.normals import real_normal
from perspex.random.uniforms import unit


def _exponential(key: Any, shape: Shape, dtype: Any) -> Any:
    return -pnp.log1p(-unit(key, shape, dtype))


def lognormal(
    key: Any,
    sigma: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """`exp(sigma * x)` of standard normal samples `x`.

    Args:
      key: one key, typed or raw.
      sigma: the standard deviation of the logarithm, numbers that broadcast to `shape`.
      shape: the shape of the result; by default that of `sigma`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors:
      `ValueError` for another dtype, a shape that does not fit and an array of keys; `TypeError`
      for what is no key, shape or array.

    >>> from perspex import random
    >>> bool(random.lognormal(random.key(0)) > 0)
    True
    """
    no_sharding("lognormal", out_sharding)
    dtype = float_dtype("lognormal", dtype)
    return _lognormal(key, sigma, check_parameters("lognormal", shape, sigma), dtype)


@on_key("lognormal", static=2)
def _lognormal(key: Any, sigma: Any, shape: Shape, dtype: Any) -> Any:
    sigma = spread("lognormal", as_dtype(sigma, dtype), shape)
    return pnp.exp(real_normal(key, shape, dtype) * sigma)


def pareto(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples with density `b / x**(b + 1)` for `x >= 1`.

    Args:
      key: one key, typed or raw.
      b: positive numbers that broadcast to `shape`.
      shape: the shape of the result; by default that of `b`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> bool(random.pareto(random.key(0), 2.0) >= 1)
    True
    """
    no_sharding("pareto", out_sharding)
    dtype = float_dtype("pareto", dtype)
    return _pareto(key, b, check_parameters("pareto", shape, b), dtype)


@on_key("pareto", static=2)
def _pareto(key: Any, b: Any, shape: Shape, dtype: Any) -> Any:
    return pnp.exp(_exponential(key, shape, dtype) / spread("pareto", as_dtype(b, dtype), shape))


def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Lengths of plane vectors whose components are normal with standard deviation `scale`.

    Args:
      key: one key, typed or raw.
      scale: positive numbers that broadcast to `shape`.
      shape: the shape of the result; by default that of `scale`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> bool(random.rayleigh(random.key(0), 2.0) > 0)
    True
    """
    no_sharding("rayleigh", out_sharding)
    dtype = float_dtype("rayleigh", dtype)
    return _rayleigh(key, scale, check_parameters("rayleigh", shape, scale), dtype)


@on_key("rayleigh", static=2)
def _rayleigh(key: Any, scale: Any, shape: Shape, dtype: Any) -> Any:
    root = pnp.sqrt(pnp.log(unit(key, shape, dtype)) * dtype.type(-2))
    return spread("rayleigh", as_dtype(scale, dtype), shape) * root


def wald(
    key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Inverse Gaussian samples of the given mean and shape parameter 1.

    By Michael, Schucany and Haas, "Generating random variates using transformations with multiple
    roots" (The American Statistician 30, 1976).

    Args:
      key: one key, typed or raw.
      mean: positive numbers that broadcast to `shape`.
      shape: the shape of the result; by default that of `mean`.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> bool(random.wald(random.key(0), 2.0) > 0)
    True
    """
    no_sharding("wald", out_sharding)
    dtype = float_dtype("wald", dtype)
    return _wald(key, mean, check_parameters("wald", shape, mean), dtype)


@on_key("wald", static=2)
def _wald(key: Any, mean: Any, shape: Shape, dtype: Any) -> Any:
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    mean = filled("wald", as_dtype(mean, dtype), shape)
    v = pnp.square(real_normal(first, shape, dtype))
    z = unit(second, shape, dtype)
    # The smaller root; mean**2 over it is the other.
    square = mean * mean
    root = pnp.sqrt(4 * mean * v + square * (v * v))
    w = mean + square * v / 2 - mean / 2 * root
    return pnp.where(z <= mean / (mean + w), w, square / w)


def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Any:
    """Samples with distribution function `1 - exp(-(x / scale)**concentration)`.

    Args:
      key: one key, typed or raw.
      scale, concentration: positive numbers, or arrays that broadcast with `shape`.
      shape: the shape of the underlying uniform samples: arrays of parameters share them.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.

    Returns:
      An array of the shape to which everything broadcasts.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> bool(random.weibull_min(random.key(0), 2.0, 3.0) > 0)
    True
    """
    dtype = float_dtype("weibull_min", dtype)
    check_arraylike("weibull_min", scale, concentration)
    return _weibull_min(key, scale, concentration, as_shape("weibull_min", shape), dtype)


@on_key("weibull_min", static=2)
def _weibull_min(key: Any, scale: Any, concentration: Any, shape: Shape, dtype: Any) -> Any:
    power = dtype.type(1) / as_dtype(concentration, dtype)
    return pnp.power(_exponential(key, shape, dtype), power) * as_dtype(scale, dtype)


def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Lengths of vectors in space whose components are standard normal.

    Args:
      key: one key, typed or raw.
      shape: the shape of the result.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> bool(random.maxwell(random.key(0)) > 0)
    True
    """
    no_sharding("maxwell", out_sharding)
    dtype = float_dtype("maxwell", dtype)
    return _maxwell(key, as_shape("maxwell", shape), dtype)


@on_key("maxwell", static=2)
def _maxwell(key: Any, shape: Shape, dtype: Any) -> Any:
    return _lengths(key, shape, dtype)


def _lengths(key: Any, shape: Shape, dtype: Any) -> Any:
    return pnp.sqrt(pnp.sum(pnp.square(real_normal(key, (*shape, 3), dtype)), -1))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """`loc` plus `scale` times a Maxwell variate of random sign.

    Args:
      key: one key, typed or raw.
      loc, scale: numbers, or arrays of one shape.
      shape: the shape of the batch of samples; by default that of the parameters.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.

    Returns:
      An array whose last axes are those of the parameters, after those of `shape`.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,)).shape
    (2,)
    """
    dtype = float_dtype("double_sided_maxwell", dtype)
    check_arraylike("double_sided_maxwell", loc, scale)
    shape = as_shape("double_sided_maxwell", shape)
    batch = common_shape("double_sided_maxwell", None, shape_of(loc), shape_of(scale))
    return _double_sided_maxwell(key, loc, scale, (*(shape or batch), *batch), dtype)


@on_key("double_sided_maxwell", static=2)
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Shape, dtype: Any) -> Any:
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    loc, scale = [spread("double_sided_maxwell", as_dtype(x, dtype), shape) for x in (loc, scale)]
    x = random_signs(second, shape, dtype) * _lengths(first, shape, dtype)
    return x * scale + loc


def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples whose density rises linearly from `left` to `mode` and falls linearly to `right`.

    Args:
      key: one key, typed or raw.
      left, mode, right: numbers in rising order, or arrays that broadcast to `shape`.
      shape: the shape of the result; by default that to which they broadcast.
      dtype: a floating dtype; float32 by default, float64 with `enable_x64`.
      out_sharding: must be `None`.

    Returns:
      An array of the given shape and dtype.

    Errors: as `lognormal`.

    >>> from perspex import random
    >>> bool(random.triangular(random.key(0), 0.0, 1.0, 2.0) < 2)
    True
    """
    no_sharding("triangular", out_sharding)
    dtype = float_dtype("triangular", dtype)
    shape = check_parameters("triangular", shape, left, mode, right)
    return _triangular(key, left, mode, right, shape, dtype)


@on_key("triangular", static=2)
def _triangular(key: Any, left: Any, mode: Any, right: Any, shape: Shape, dtype: Any) -> Any:
    left, mode, right = [
        filled("triangular", as_dtype(x, dtype), shape) for x in (left, mode, right)
    ]
    width = right - left
    u = unit(key, shape, dtype)
    rising = left + pnp.sqrt(u * width * (mode - left))
    falling = right - pnp.sqrt((1 - u) * width * (right - mode))
    return pnp.where(u < (mode - left) / width, rising, falling)
