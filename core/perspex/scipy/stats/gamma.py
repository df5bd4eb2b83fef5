"""The gamma distribution."""

from __future__ import annotations

import math

from perspex.arguments.types import Array
from perspex.ops.special import lgamma
from perspex.scipy.special import xlogy
from perspex.scipy.special.gammas import gammainc, gammaincc
from perspex.scipy.stats.families import Continuous, at

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_gamma = Continuous(
    "gamma",
    "the gamma distribution",
    "The density is `y**(a - 1) * exp(-y) / (gamma(a) * scale)` with `y = (x - loc) / scale`, for "
    "`x >= loc`, and 0 below.",
    {
        "a": "the shape, positive.",
        "loc": "the lower bound.",
        "scale": "the scale, positive: the inverse of the rate; the mean is `loc + a * scale`.",
    },
    example="0.5, 2.0",
    support=lambda y, a: ~(y < 0),
    safe=1,
    invalid_scale=lambda scale: scale < 0,
)


def _mass(y: Array, a: Array) -> Array:
    above = ~(y <= 0)
    value = at(above, gammainc(a, at(above, y, 1)), 0.0)
    return at(a > 0, value, math.nan)


def _tail(y: Array, a: Array) -> Array:
    above = ~(y <= 0)
    value = at(above, gammaincc(a, at(above, y, 1)), 1.0)
    return at((a > 0) | (y != 0), value, math.nan)


logpdf = _gamma.define("logpdf", -1.193, lambda y, a: xlogy(a - 1, y) - y - lgamma(a))
pdf = _gamma.define("pdf", 0.303)
cdf = _gamma.define("cdf", 0.09, _mass)
logcdf = _gamma.define("logcdf", -2.406)
sf = _gamma.define("sf", 0.91, _tail)
logsf = _gamma.define("logsf", -0.095)
