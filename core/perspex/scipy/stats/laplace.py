"""The distribution of Laplace."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
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
    -1.193
    """
    x, loc, scale = floats("laplace.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -pnp.abs(y) - pnp.log(2 * scale)


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
    0.303
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
    0.697
    """
    x, loc, scale = floats("laplace.cdf", x, loc, scale)
    y = (x - loc) / scale
    half = 0.5 * pnp.exp(-pnp.abs(y))
    return pnp.where(y <= 0, half, 1 - half)
