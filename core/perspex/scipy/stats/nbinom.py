"""The negative binomial distribution."""

from __future__ import annotations

from perspex.arguments.types import Array
from perspex.ops.special import lgamma
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.stats.families import Discrete

__all__ = ["logpmf", "pmf"]

_nbinom = Discrete(
    "nbinom",
    "the negative binomial distribution",
    "The probability is `comb(y + n - 1, y) * p**n * (1 - p)**y` with `y = k - loc`, for `y >= "
    "0`, and 0 below: of `y` failures before the success number `n`.",
    {
        "n": "the number of successes, positive; fractions are allowed.",
        "p": "the probability of a success.",
        "loc": "the smallest value.",
    },
    example="1, 3.0, 0.4",
    support=lambda k, n, p: ~(k < 0),
    safe=0,
)


def _log_probability(k: Array, n: Array, p: Array) -> Array:
    ways = lgamma(k + n) - lgamma(k + 1) - lgamma(n)
    return ways + xlogy(n, p) + xlog1py(k, -p)


logpmf = _nbinom.define("logpmf", -2.161, _log_probability)
pmf = _nbinom.define("pmf", 0.115)
