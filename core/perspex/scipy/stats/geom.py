"""The geometric distribution: trials up to the first success."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.special import xlog1py
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`.

    Args:
      k: whole numbers.
      p: the probability of success.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpmf(2, 0.4)), 3)
    -1.427
    """
    k, p, loc = floats("geom.logpmf", k, p, loc)
    k = k - loc
    possible = ~(k <= 0)
    k = at(possible, k, 1)
    return inside(possible, xlog1py(k - 1, -p) + pnp.log(p), -math.inf)


@fused
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`.

    Args:
      k: whole numbers.
      p: the probability of success.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pmf(2, 0.4)), 3)
    0.24
    """
    return pnp.exp(logpmf(k, p, loc))
