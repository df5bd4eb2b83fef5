"""The exponential distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.stats.families import Continuous, at

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_expon = Continuous(
    "expon",
    "the exponential distribution",
    "The density is `exp(-y) / scale` with `y = (x - loc) / scale`, for `x >= loc`, and 0 below.",
    {
        "loc": "the lower bound.",
        "scale": "the mean distance from `loc`, positive: the inverse of the rate.",
    },
    example="0.5",
    support=lambda y: ~(y < 0),
    invalid_scale=lambda scale: scale < 0,
    invalid_scale_mass=lambda scale: scale < 0,
    bounded=True,
)


def _log_mass(y: Array) -> Array:
    above = ~(y < 0)
    return at(above, pnp.log(-pnp.expm1(-at(above, y, 1))), -math.inf)


logpdf = _expon.define("logpdf", -0.5, lambda y: -y)
pdf = _expon.define("pdf", 0.607)
cdf = _expon.define("cdf", 0.393, lambda y: -pnp.expm1(-at(~(y < 0), y, 0)))
logcdf = _expon.define("logcdf", -0.933, _log_mass)
logsf = _expon.define("logsf", -0.5, lambda y: -at(~(y < 0), y, 0))
sf = _expon.define("sf", 0.607)
ppf = _expon.define("ppf", 0.288, lambda q: -pnp.log1p(-q))
