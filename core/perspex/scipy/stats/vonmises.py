"""The distribution of von Mises, of angles."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.ops.bessel import bessel_i0e
from perspex.scipy.stats.densities import floats


@fused
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      kappa: the concentration, not negative.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, 2.0)), 3)
    -0.907
    """
    x, kappa = floats("vonmises.logpdf", x, kappa)
    return kappa * (pnp.cos(x) - 1) - pnp.log(2 * math.pi * bessel_i0e(kappa))


@fused
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      kappa: the concentration, not negative.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, 2.0)), 3)
    0.404
    """
    return pnp.exp(logpdf(x, kappa))
