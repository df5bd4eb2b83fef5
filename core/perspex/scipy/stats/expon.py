"""The exponential distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -0.5
    """
    x, loc, scale = floats("expon.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return inside(~(y < 0), -y - pnp.log(scale), -math.inf)


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.607
    """
    return pnp.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.393
    """
    x, loc, scale = floats("expon.cdf", x, loc, scale)
    y = (x - loc) / scale
    return -pnp.expm1(-pnp.maximum(y, 0))


@fused
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Args:
      x: real numbers.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logcdf(0.5)), 3)
    -0.933
    """
    x, loc, scale = floats("expon.logcdf", x, loc, scale)
    y = (x - loc) / scale
    above = ~(y <= 0)
    return inside(above, pnp.log(-pnp.expm1(-at(above, y, 1))), -math.inf)


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function: the mass above `x`.

    Args:
      x: real numbers.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(sf(0.5)), 3)
    0.607
    """
    return pnp.exp(logsf(x, loc, scale))


@fused
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass above `x`.

    Args:
      x: real numbers.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logsf(0.5)), 3)
    -0.5
    """
    x, loc, scale = floats("expon.logsf", x, loc, scale)
    y = (x - loc) / scale
    return -pnp.maximum(y, 0)


@fused
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile function: where the mass up to there is `q`.

    Args:
      q: probabilities, from 0 to 1.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(ppf(0.25)), 3)
    0.288
    """
    q, loc, scale = floats("expon.ppf", q, loc, scale)
    possible = (q >= 0) & (q <= 1)
    return pnp.where(possible, loc - pnp.log1p(-at(possible, q, 0.5)) * scale, math.nan)
