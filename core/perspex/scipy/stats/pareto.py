"""The distribution of Pareto, on `[loc + scale, inf)`."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(1.5, 2.0)), 3)
    -0.523
    """
    x, b, loc, scale = floats("pareto.logpdf", x, b, loc, scale)
    y = (x - loc) / scale
    above = ~(y < 1)
    value = pnp.log(b / scale) - (b + 1) * pnp.log(at(above, y, 1))
    return inside(above, value, -math.inf)


@fused
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(1.5, 2.0)), 3)
    0.593
    """
    return pnp.exp(logpdf(x, b, loc, scale))


@fused
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass above `x`.

    Args:
      x: real numbers.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logsf(1.5, 2.0)), 3)
    -0.811
    """
    x, b, loc, scale = floats("pareto.logsf", x, b, loc, scale)
    y = (x - loc) / scale
    return -b * pnp.log(pnp.maximum(y, 1))


@fused
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function: the mass above `x`.

    Args:
      x: real numbers.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(sf(1.5, 2.0)), 3)
    0.444
    """
    return pnp.exp(logsf(x, b, loc, scale))


@fused
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(1.5, 2.0)), 3)
    0.556
    """
    return -pnp.expm1(logsf(x, b, loc, scale))


@fused
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Args:
      x: real numbers.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logcdf(1.5, 2.0)), 3)
    -0.588
    """
    return pnp.log(cdf(x, b, loc, scale))


@fused
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile function: where the mass up to there is `q`.

    Args:
      q: probabilities, from 0 to 1.
      b: the exponent, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(ppf(0.25, 2.0)), 3)
    1.155
    """
    q, b, loc, scale = floats("pareto.ppf", q, b, loc, scale)
    return loc + scale * pnp.exp(-pnp.log1p(-q) / b)
