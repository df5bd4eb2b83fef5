"""The distribution of Poisson."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.ops.special import lgamma
from perspex.scipy.functions.gammas import gammaincc
from perspex.scipy.special import xlogy
from perspex.scipy.stats.densities import HALF_LOG_TWO_PI, at, floats, inside
from perspex.tracing.trace import typeof


@fused
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`.

    Args:
      k: whole numbers.
      mu: the mean, not negative.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpmf(1, 1.5)), 3)
    -1.095
    """
    k, mu, loc = floats("poisson.logpmf", k, mu, loc)
    k = k - loc
    possible = ~((k < 0) | (pnp.floor(k) != k))
    k = at(possible, k, 0)
    return inside(possible, xlogy(k, mu) - lgamma(k + 1) - mu, -math.inf)


@fused
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`.

    Args:
      k: whole numbers.
      mu: the mean, not negative.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pmf(1, 1.5)), 3)
    0.335
    """
    return pnp.exp(logpmf(k, mu, loc))


@fused
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The distribution function: the mass up to `k`.

    Args:
      k: whole numbers.
      mu: the mean, not negative.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, 1.5)), 3)
    0.223
    """
    k, mu, loc = floats("poisson.cdf", k, mu, loc)
    k = k - loc
    possible = ~(k < 0)
    return inside(possible, gammaincc(pnp.floor(at(possible, k, 0)) + 1, mu), 0.0)


@fused
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of the distribution, in nats.

    Args:
      mu: the mean, not negative.
      loc: the start, or the centre, of the distribution.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(entropy(1.5)), 3)
    1.539
    """
    mu, loc = floats("poisson.entropy", mu, loc)
    large = mu > 40
    small = at((mu > 0) & ~large, mu, 1)[..., None]
    k = pnp.arange(128, dtype=typeof(mu).dtype)
    log_p = xlogy(k, small) - lgamma(k + 1) - small
    summed = -pnp.sum(pnp.exp(log_p) * log_p, -1)
    # Evans, Boersma, Blachman and Jagers, "The entropy of a Poisson distribution" (SIAM Review 30,
    # 1988).
    inverse = 1 / at(large, mu, 1)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * 19 / 360))
    expanded = 0.5 + HALF_LOG_TWO_PI - 0.5 * pnp.log(inverse) - series
    value = pnp.where(large, expanded, pnp.where(mu == 0, 0, summed))
    return pnp.where(mu < 0, math.nan, value)
