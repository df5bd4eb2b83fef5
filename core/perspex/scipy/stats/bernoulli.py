"""The distribution of one trial: 0 or 1."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.stats.densities import floats


@fused
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`.

    Args:
      k: whole numbers.
      p: the probability of 1.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpmf(1, 0.3)), 3)
    -1.204
    """
    k, p, loc = floats("bernoulli.logpmf", k, p, loc)
    k = k - loc
    value = xlogy(k, p) + xlog1py(1 - k, -p)
    value = pnp.where((k == 0) | (k == 1), value, -math.inf)
    return pnp.where((p < 0) | (p > 1), math.nan, value)


@fused
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`.

    Args:
      k: whole numbers.
      p: the probability of 1.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pmf(1, 0.3)), 3)
    0.3
    """
    return pnp.exp(logpmf(k, p, loc))


@fused
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The distribution function: the mass up to `k`.

    Args:
      k: whole numbers.
      p: the probability of 1.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, 0.3)), 3)
    0.7
    """
    k, p = floats("bernoulli.cdf", k, p)
    value = pnp.where(k < 0, 0, pnp.where(k < 1, 1 - p, 1))
    return pnp.where((p < 0) | (p > 1) | (k != k), math.nan, value)


@fused
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantile function: where the mass up to there is `q`.

    Args:
      q: probabilities, from 0 to 1.
      p: the probability of 1.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(ppf(0.25, 0.3)), 3)
    0.0
    """
    q, p = floats("bernoulli.ppf", q, p)
    possible = (p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)
    value = pnp.where(q == 0, -1, pnp.where(q <= 1 - p, 0, 1))
    return pnp.where(possible, value, math.nan)
