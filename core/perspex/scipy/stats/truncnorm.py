"""The normal distribution between bounds."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.functions.normal import log_ndtr, ndtr
from perspex.scipy.stats.densities import HALF_LOG_TWO_PI, at, floats


def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the normal mass between two bounds."""
    # By symmetry the bounds are led to the left, where tails keep their digits.
    right = a > 0
    low, high = pnp.where(right, -b, a), pnp.where(right, -a, b)
    across = high > 0
    left = at(~across, high, -1)
    start = pnp.where(across, -2, low)
    tail = log_ndtr(left) + pnp.log(-pnp.expm1(log_ndtr(start) - log_ndtr(left)))
    return pnp.where(across, pnp.log1p(-ndtr(low) - ndtr(-high)), tail)


@fused
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      a: the lower bound, in standard deviations from `loc`.
      b: the upper bound, likewise.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, -1.0, 2.0)), 3)
    -0.844
    """
    x, a, b, loc, scale = floats("truncnorm.logpdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    value = -0.5 * y * y - HALF_LOG_TWO_PI - pnp.log(scale) - _log_mass(a, b)
    value = pnp.where((y < a) | (y > b), -math.inf, value)
    return pnp.where(a >= b, math.nan, value)


@fused
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      a: the lower bound, in standard deviations from `loc`.
      b: the upper bound, likewise.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, -1.0, 2.0)), 3)
    0.43
    """
    return pnp.exp(logpdf(x, a, b, loc, scale))


@fused
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the mass up to `x`.

    Args:
      x: real numbers.
      a: the lower bound, in standard deviations from `loc`.
      b: the upper bound, likewise.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logcdf(0.5, -1.0, 2.0)), 3)
    -0.429
    """
    x, a, b, loc, scale = floats("truncnorm.logcdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    y = pnp.clip(y, a, b)
    value = _log_mass(a, y) - _log_mass(a, b)
    return pnp.where(a >= b, math.nan, value)


@fused
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the mass above `x`.

    Args:
      x: real numbers.
      a: the lower bound, in standard deviations from `loc`.
      b: the upper bound, likewise.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logsf(0.5, -1.0, 2.0)), 3)
    -1.052
    """
    x, a, b, loc, scale = floats("truncnorm.logsf", x, a, b, loc, scale)
    y = (x - loc) / scale
    y = pnp.clip(y, a, b)
    value = _log_mass(y, b) - _log_mass(a, b)
    return pnp.where(a >= b, math.nan, value)


@fused
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      a: the lower bound, in standard deviations from `loc`.
      b: the upper bound, likewise.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, -1.0, 2.0)), 3)
    0.651
    """
    return pnp.exp(logcdf(x, a, b, loc, scale))


@fused
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function: the mass above `x`.

    Args:
      x: real numbers.
      a: the lower bound, in standard deviations from `loc`.
      b: the upper bound, likewise.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(sf(0.5, -1.0, 2.0)), 3)
    0.349
    """
    return pnp.exp(logsf(x, a, b, loc, scale))
