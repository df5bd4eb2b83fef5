"""Laplace's distribution."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.stats.families import Continuous, at

__all__ = ["cdf", "logpdf", "pdf"]

_laplace = Continuous(
    "laplace",
    "Laplace's distribution",
    "The density is `exp(-abs(y)) / (2 * scale)` with `y = (x - loc) / scale`, for all real `x`.",
    {"loc": "the mean.", "scale": "the mean distance from `loc`, positive."},
    example="0.5",
)


def _mass(y: Array) -> Array:
    left = y < 0
    below = 0.5 * pnp.exp(at(left, y, 0))
    return pnp.where(left, below, 1 - 0.5 * pnp.exp(-at(~left, y, 0)))


logpdf = _laplace.define("logpdf", -1.193, lambda y: -pnp.abs(y) - math.log(2))
pdf = _laplace.define("pdf", 0.303)
cdf = _laplace.define("cdf", 0.697, _mass)
