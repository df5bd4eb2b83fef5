"""The generalized normal distribution, `exp(-abs(x)**beta)`."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.ops.special import lgamma
from perspex.scipy.functions.gammas import gammaincc
from perspex.scipy.stats.densities import floats


@fused
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      beta: the exponent, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, 1.5)), 3)
    -0.944
    """
    x, beta = floats("gennorm.logpdf", x, beta)
    return pnp.log(0.5 * beta) - lgamma(1 / beta) - pnp.abs(x) ** beta


@fused
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      beta: the exponent, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, 1.5)), 3)
    0.389
    """
    return pnp.exp(logpdf(x, beta))


@fused
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      beta: the exponent, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, 1.5)), 3)
    0.742
    """
    x, beta = floats("gennorm.cdf", x, beta)
    half = 0.5 * gammaincc(1 / beta, pnp.abs(x) ** beta)
    return pnp.where(x <= 0, half, 1 - half)
