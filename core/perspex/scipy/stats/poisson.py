"""Poisson's distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.ops.special import lgamma
from perspex.scipy.special import xlogy
from perspex.scipy.special.gammas import gammaincc
from perspex.scipy.stats.families import HALF_LOG_TWO_PI, Discrete, at, floats
from perspex.tracing.trace import typeof

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

_poisson = Discrete(
    "poisson",
    "Poisson's distribution",
    "The probability is `mu**y * exp(-mu) / y!` with `y = k - loc`, for whole `y >= 0`, and 0 "
    "elsewhere.",
    {
        "k": "real numbers.",
        "mu": "the mean less `loc`, not negative.",
        "loc": "the smallest value.",
    },
    example="1, 2.0",
    support=lambda k, mu: ~((k < 0) | (pnp.floor(k) != k)),
    safe=0,
)


def _mass(k: Array, mu: Array) -> Array:
    possible = ~(k < 0)
    return at(possible, gammaincc(pnp.floor(at(possible, k, 0)) + 1, mu), 0.0)


logpmf = _poisson.define("logpmf", -1.307, lambda k, mu: xlogy(k, mu) - lgamma(k + 1) - mu)
pmf = _poisson.define("pmf", 0.271)
cdf = _poisson.define("cdf", 0.406, _mass)


@fused
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Entropy of Poisson's distribution, in nats: the sum of `-p * log(p)`.

    Args:
      mu: the mean less `loc`; NaN for negative numbers.
      loc: the smallest value, which does not change the entropy.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    Raises:
      TypeError: for an argument that is not an array or a number, or is complex.

    >>> from perspex.scipy import stats
    >>> round(float(stats.poisson.entropy(2.0)), 3)
    1.705
    """
    mu, loc = floats("poisson.entropy", mu, loc)
    # The sum for small means, an expansion in powers of 1 / mu for others.
    large = mu > 40
    small = at((mu > 0) & ~large, mu, 1)[..., None]
    k = pnp.arange(128, dtype=typeof(mu).dtype)
    log_p = xlogy(k, small) - lgamma(k + 1) - small
    summed = -pnp.sum(pnp.exp(log_p) * log_p, -1)
    inverse = 1 / at(large, mu, 1)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * 19 / 360))
    expanded = 0.5 + HALF_LOG_TWO_PI - 0.5 * pnp.log(inverse) - series
    value = pnp.where(large, expanded, pnp.where(mu == 0, 0, summed))
    return pnp.where(mu >= 0, value, math.nan)
