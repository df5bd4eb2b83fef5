"""The logistic distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.nn import softplus
from perspex.numpy.promotion import Array, ArrayLike
from perspex.ops.elementwise import logistic as expit
from perspex.scipy.stats.densities import floats


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
    -1.448
    """
    x, loc, scale = floats("logistic.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -y - 2 * softplus(-y) - pnp.log(scale)


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
    0.235
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
    0.622
    """
    x, loc, scale = floats("logistic.cdf", x, loc, scale)
    y = (x - loc) / scale
    return expit(y)


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
    0.378
    """
    x, loc, scale = floats("logistic.sf", x, loc, scale)
    y = (x - loc) / scale
    return expit(-y)


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
    -1.099
    """
    q, loc, scale = floats("logistic.ppf", q, loc, scale)
    return (pnp.log(q) - pnp.log1p(-q)) * scale + loc


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
    1.099
    """
    q, loc, scale = floats("logistic.isf", q, loc, scale)
    return (pnp.log1p(-q) - pnp.log(q)) * scale + loc
