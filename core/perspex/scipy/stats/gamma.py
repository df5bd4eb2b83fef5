"""The gamma distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.ops.special import lgamma
from perspex.scipy.functions.gammas import gammainc, gammaincc
from perspex.scipy.special import xlogy
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      a: the shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, 2.0)), 3)
    -1.193
    """
    x, a, loc, scale = floats("gamma.logpdf", x, a, loc, scale)
    y = (x - loc) / scale
    above = ~(y < 0)
    safe = at(above, y, 1)
    value = xlogy(a - 1, safe) - safe - lgamma(a) - pnp.log(scale)
    return inside(above, value, -math.inf)


@fused
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      a: the shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, 2.0)), 3)
    0.303
    """
    return pnp.exp(logpdf(x, a, loc, scale))


@fused
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      a: the shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, 2.0)), 3)
    0.09
    """
    x, a, loc, scale = floats("gamma.cdf", x, a, loc, scale)
    y = (x - loc) / scale
    above = ~(y <= 0)
    return inside(above, gammainc(a, at(above, y, 1)), 0.0)


@fused
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Args:
      x: real numbers.
      a: the shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logcdf(0.5, 2.0)), 3)
    -2.406
    """
    return pnp.log(cdf(x, a, loc, scale))


@fused
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function: the mass above `x`.

    Args:
      x: real numbers.
      a: the shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(sf(0.5, 2.0)), 3)
    0.91
    """
    x, a, loc, scale = floats("gamma.sf", x, a, loc, scale)
    y = (x - loc) / scale
    above = ~(y <= 0)
    return inside(above, gammaincc(a, at(above, y, 1)), 1.0)


@fused
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass above `x`.

    Args:
      x: real numbers.
      a: the shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logsf(0.5, 2.0)), 3)
    -0.095
    """
    return pnp.log(sf(x, a, loc, scale))
