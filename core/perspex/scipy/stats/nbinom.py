"""The negative binomial distribution: failures before the `n`-th success."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.ops.special import lgamma
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`.

    Args:
      k: whole numbers.
      n: the number of successes, positive.
      p: the probability of success.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpmf(1, 3, 0.4)), 3)
    -2.161
    """
    k, n, p, loc = floats("nbinom.logpmf", k, n, p, loc)
    k = k - loc
    possible = ~(k < 0)
    k = at(possible, k, 0)
    ways = lgamma(k + n) - lgamma(k + 1) - lgamma(n)
    return inside(possible, ways + xlogy(n, p) + xlog1py(k, -p), -math.inf)


@fused
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`.

    Args:
      k: whole numbers.
      n: the number of successes, positive.
      p: the probability of success.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pmf(1, 3, 0.4)), 3)
    0.115
    """
    return pnp.exp(logpmf(k, n, p, loc))
