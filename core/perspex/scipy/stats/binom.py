"""The binomial distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.special.gammas import betaln
from perspex.scipy.stats.families import Discrete

__all__ = ["logpmf", "pmf"]

_binom = Discrete(
    "binom",
    "the binomial distribution",
    "The probability is `comb(n, y) * p**y * (1 - p)**(n - y)` with `y = k - loc`, for `0 <= y < n "
    "+ 1`, and 0 elsewhere: of `y` successes in `n` trials.",
    {
        "n": "the number of trials.",
        "p": "the probability of a success.",
        "loc": "the smallest value.",
    },
    example="1, 5, 0.3",
    support=lambda k, n, p: ~((k < 0) | (k >= n + 1)),
    safe=0,
)


def _log_probability(k: Array, n: Array, p: Array) -> Array:
    ways = -betaln(n - k + 1, k + 1) - pnp.log1p(n)
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


logpmf = _binom.define("logpmf", -1.021, _log_probability)
pmf = _binom.define("pmf", 0.36)
