"""The beta distribution, on `[loc, loc + scale]`."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.functions.gammas import betainc, betaln
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      a: the first shape, positive.
      b: the second shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, 2.0, 3.0)), 3)
    0.405
    """
    x, a, b, loc, scale = floats("beta.logpdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    within = ~((y < 0) | (y > 1))
    safe = at(within, y, 0.5)
    value = xlogy(a - 1, safe) + xlog1py(b - 1, -safe) - betaln(a, b) - pnp.log(scale)
    return inside(within, value, -math.inf)


@fused
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      a: the first shape, positive.
      b: the second shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, 2.0, 3.0)), 3)
    1.5
    """
    return pnp.exp(logpdf(x, a, b, loc, scale))


@fused
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      a: the first shape, positive.
      b: the second shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, 2.0, 3.0)), 3)
    0.688
    """
    x, a, b, loc, scale = floats("beta.cdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    return betainc(a, b, pnp.clip(y, 0, 1))


@fused
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the mass up to `x`.

    Args:
      x: real numbers.
      a: the first shape, positive.
      b: the second shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logcdf(0.5, 2.0, 3.0)), 3)
    -0.375
    """
    return pnp.log(cdf(x, a, b, loc, scale))


@fused
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function: the mass above `x`.

    Args:
      x: real numbers.
      a: the first shape, positive.
      b: the second shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(sf(0.5, 2.0, 3.0)), 3)
    0.312
    """
    x, a, b, loc, scale = floats("beta.sf", x, a, b, loc, scale)
    y = (x - loc) / scale
    return betainc(b, a, 1 - pnp.clip(y, 0, 1))


@fused
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the mass above `x`.

    Args:
      x: real numbers.
      a: the first shape, positive.
      b: the second shape, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logsf(0.5, 2.0, 3.0)), 3)
    -1.163
    """
    return pnp.log(sf(x, a, b, loc, scale))
