"""The binomial distribution with a probability from a beta distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.numpy.promotion import strong
from perspex.scipy.special.gammas import betaln
from perspex.scipy.stats.families import Discrete

__all__ = ["logpmf", "pmf"]

_betabinom = Discrete(
    "betabinom",
    "the beta-binomial distribution",
    "The probability is `comb(n, y) * beta(y + a, n - y + b) / beta(a, b)` with `y = k - loc`, "
    "rounded down, for `0 <= y <= n`, and 0 elsewhere. Values are NaN where `a` or `b` is not "
    "positive, or `n` is negative.",
    {
        "n": "the number of trials.",
        "a": "the first shape of the beta distribution, positive.",
        "b": "its second shape, positive.",
        "loc": "the smallest value.",
    },
    example="1, 5, 2.0, 3.0",
    support=lambda k, n, a, b: ~((k < 0) | (pnp.floor(k) > n)),
    safe=0,
    invalid=lambda n, a, b: (n < 0) | (a <= 0) | (b <= 0),
)


def _log_probability(k: Array, n: Array, a: Array, b: Array) -> Array:
    k = strong(pnp.floor(k))
    ways = -pnp.log1p(n) - betaln(n - k + 1, k + 1)
    return ways + betaln(k + a, n - k + b) - betaln(a, b)


logpmf = _betabinom.define("logpmf", -1.435, _log_probability)
pmf = _betabinom.define("pmf", 0.238)
