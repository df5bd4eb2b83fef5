"""Pareto's distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.stats.families import Continuous, at

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_pareto = Continuous(
    "pareto",
    "Pareto's distribution",
    "The density is `b / (scale * y**(b + 1))` with `y = (x - loc) / scale`, for `y >= 1`, and 0 "
    "below.",
    {
        "b": "the exponent of the tail, positive.",
        "loc": "the lower bound, less `scale`.",
        "scale": "the distance of the lower bound from `loc`, positive.",
    },
    example="1.5, 2.0",
    support=lambda y, b: ~(y < 1),
    safe=1,
    bounded=True,
)


def _log_tail(y: Array, b: Array) -> Array:
    above = ~(y < 1)
    return at(above, -b * pnp.log(at(above, y, 1)), 0.0)


def _log_mass(y: Array, b: Array) -> Array:
    above = ~(y < 1)
    return at(above, pnp.log(-pnp.expm1(-b * pnp.log(at(above, y, 2)))), -math.inf)


logpdf = _pareto.define("logpdf", -0.523, lambda y, b: pnp.log(b) - (b + 1) * pnp.log(y))
pdf = _pareto.define("pdf", 0.593)
logsf = _pareto.define("logsf", -0.811, _log_tail)
sf = _pareto.define("sf", 0.444)
cdf = _pareto.define("cdf", 0.556)
logcdf = _pareto.define("logcdf", -0.588, _log_mass)
ppf = _pareto.define("ppf", 1.155, lambda q, b: pnp.exp(-pnp.log1p(-q) / b))
