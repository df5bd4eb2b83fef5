"""Gumbel's distribution of the smallest of many values."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.stats.families import Continuous, at

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_gumbel_l = Continuous(
    "gumbel_l",
    "Gumbel's distribution of minima",
    "The density is `exp(y - exp(y)) / scale` with `y = (x - loc) / scale`, for all real `x`.",
    {
        "loc": "the mode; the mean is less.",
        "scale": "the scale, positive; the standard deviation is `pi / sqrt(6)` times as large.",
    },
    example="0.5",
    invalid_scale_mass=lambda scale: scale <= 0,
    probability="p",
)


def log_density(y: Array) -> Array:
    """That of the standard distribution at `y`."""
    inside = y != math.inf  # where it is infinity minus infinity
    y = at(inside, y, 0)
    return at(inside, y - pnp.exp(y), -math.inf)


logpdf = _gumbel_l.define("logpdf", -1.149, log_density)
pdf = _gumbel_l.define("pdf", 0.317)
logsf = _gumbel_l.define("logsf", -1.649, lambda y: -pnp.exp(y))
sf = _gumbel_l.define("sf", 0.192)
cdf = _gumbel_l.define("cdf", 0.808)
logcdf = _gumbel_l.define("logcdf", -0.214)
ppf = _gumbel_l.define("ppf", -1.246, lambda q: pnp.log(-pnp.log1p(-q)))
