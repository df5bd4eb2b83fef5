"""The chi-squared distribution: of a sum of squares of independent standard normal variates."""

from __future__ import annotations

import math

from perspex.arguments.types import Array
from perspex.scipy.stats import gamma
from perspex.scipy.stats.families import Continuous, at

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_chi2 = Continuous(
    "chi2",
    "the chi-squared distribution",
    "The density is `(y / 2)**(df / 2 - 1) * exp(-y / 2) / (2 * gamma(df / 2) * scale)` with `y = "
    "(x - loc) / scale`, for `x >= loc`, and 0 below.",
    {
        "df": "the degrees of freedom, positive.",
        "loc": "the lower bound.",
        "scale": "the variance of the variates that are squared, positive.",
    },
    example="0.5, 3.0",
    support=lambda y, df: ~(y < 0),
    safe=1,
    invalid_scale=lambda scale: scale < 0,
)


def _tail(y: Array, df: Array) -> Array:
    return at((df > 0) | (y > 0), gamma.sf(0.5 * y, 0.5 * df), math.nan)


logpdf = _chi2.define("logpdf", -1.516, lambda y, df: gamma.logpdf(0.5 * y, 0.5 * df) - math.log(2))
pdf = _chi2.define("pdf", 0.22)
cdf = _chi2.define("cdf", 0.081, lambda y, df: gamma.cdf(0.5 * y, 0.5 * df))
logcdf = _chi2.define("logcdf", -2.512)
sf = _chi2.define("sf", 0.919, _tail)
logsf = _chi2.define("logsf", -0.085)
