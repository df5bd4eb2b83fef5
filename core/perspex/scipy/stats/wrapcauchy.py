"""The distribution of Cauchy, wrapped around a circle: angles from 0 to 2 pi."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.stats.densities import floats, inside


@fused
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      c: the concentration, between 0 and 1.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, 0.3)), 3)
    -1.359
    """
    x, c = floats("wrapcauchy.logpdf", x, c)
    within = (x >= 0) & (x <= 2 * math.pi) & (c > 0) & (c < 1)
    value = pnp.log(1 - c * c) - math.log(2 * math.pi) - pnp.log(1 + c * c - 2 * c * pnp.cos(x))
    return inside(within, value, -math.inf)


@fused
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      c: the concentration, between 0 and 1.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, 0.3)), 3)
    0.257
    """
    return pnp.exp(logpdf(x, c))
