"""The binomial distribution whose probability follows a beta distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.functions.gammas import betaln
from perspex.scipy.stats.densities import at, floats, inside


@fused
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`.

    Args:
      k: whole numbers.
      n: the number of trials.
      a: the first shape of the beta distribution.
      b: its second shape.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpmf(1, 5, 2.0, 3.0)), 3)
    -1.435
    """
    k, n, a, b, loc = floats("betabinom.logpmf", k, n, a, b, loc)
    k = k - loc
    possible = ~((k < 0) | (k > n))
    y = at(possible, k, 0)
    ways = -pnp.log1p(n) - betaln(n - y + 1, y + 1)
    value = ways + betaln(y + a, n - y + b) - betaln(a, b)
    value = inside(possible, value, -math.inf)
    return pnp.where((a <= 0) | (b <= 0), math.nan, value)


@fused
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`.

    Args:
      k: whole numbers.
      n: the number of trials.
      a: the first shape of the beta distribution.
      b: its second shape.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pmf(1, 5, 2.0, 3.0)), 3)
    0.238
    """
    return pnp.exp(logpmf(k, n, a, b, loc))
