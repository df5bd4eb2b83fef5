"""The normal distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.functions.normal import log_ndtr, ndtr, ndtri
from perspex.scipy.stats.densities import HALF_LOG_TWO_PI, floats


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
    -1.044
    """
    x, loc, scale = floats("norm.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -0.5 * y * y - HALF_LOG_TWO_PI - pnp.log(scale)


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
    0.352
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
    0.691
    """
    x, loc, scale = floats("norm.cdf", x, loc, scale)
    y = (x - loc) / scale
    return ndtr(y)


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
    -0.369
    """
    x, loc, scale = floats("norm.logcdf", x, loc, scale)
    y = (x - loc) / scale
    return log_ndtr(y)


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
    0.309
    """
    x, loc, scale = floats("norm.sf", x, loc, scale)
    y = (x - loc) / scale
    return ndtr(-y)


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
    -1.176
    """
    x, loc, scale = floats("norm.logsf", x, loc, scale)
    y = (x - loc) / scale
    return log_ndtr(-y)


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
    -0.674
    """
    q, loc, scale = floats("norm.ppf", q, loc, scale)
    return ndtri(q) * scale + loc


@fused
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Where the mass above is `q`.

    Args:
      q: probabilities, from 0 to 1.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(isf(0.25)), 3)
    0.674
    """
    q, loc, scale = floats("norm.isf", q, loc, scale)
    return loc - ndtri(q) * scale
