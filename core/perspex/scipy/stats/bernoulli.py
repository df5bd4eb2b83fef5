"""Bernoulli's distribution of one trial: 0 or 1."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.arrays import like
from perspex.arguments.types import Array
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.stats.families import Discrete

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

_bernoulli = Discrete(
    "bernoulli",
    "Bernoulli's distribution",
    "The probability is `p` for `loc + 1`, `1 - p` for `loc`, and 0 for others. Values are NaN "
    "where `p` is not between 0 and 1. Only `logpmf` and `pmf` take `loc`.",
    {"k": "real numbers.", "p": "the probability of 1.", "loc": "the smaller value."},
    example="0, 0.3",
    support=lambda k, p: (k == 0) | (k == 1) | (k != k),
    safe=0,
    invalid=lambda p: ~((p >= 0) & (p <= 1)),
)


def _mass(k: Array, p: Array) -> Array:
    value = pnp.where(k < 0, 0, pnp.where(k < 1, 1 - p, 1))
    return pnp.where(k != k, math.nan, value)


def _quantile(q: Array, p: Array) -> Array:
    possible = (p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)
    value = pnp.where(q == 0, like(q, -1), pnp.where(q <= 1 - p, like(q, 0), like(q, 1)))
    return pnp.where(possible, value, like(q, math.nan))


logpmf = _bernoulli.define("logpmf", -0.357, lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p))
pmf = _bernoulli.define("pmf", 0.7)
cdf = _bernoulli.define("cdf", 0.7, _mass, loc=False)
ppf = _bernoulli.define("ppf", 0.0, _quantile, loc=False)
