"""The binomial distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.functions.gammas import betaln
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`.

    Args:
      k: whole numbers.
      n: the number of trials.
      p: the probability of success.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpmf(1, 5, 0.3)), 3)
    -1.021
    """
    k, n, p, loc = floats("binom.logpmf", k, n, p, loc)
    k = k - loc
    possible = ~((k < 0) | (k > n))
    k = at(possible, k, 0)
    ways = -betaln(n - k + 1, k + 1) - pnp.log1p(n)
    return inside(possible, ways + xlogy(k, p) + xlog1py(n - k, -p), -math.inf)


@fused
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`.

    Args:
      k: whole numbers.
      n: the number of trials.
      p: the probability of success.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pmf(1, 5, 0.3)), 3)
    0.36
    """
    return pnp.exp(logpmf(k, n, p, loc))
