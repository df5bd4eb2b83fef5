"""The generalized normal distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.ops.special import lgamma
from perspex.scipy.special.gammas import gammaincc
from perspex.scipy.stats.families import Continuous

__all__ = ["cdf", "logpdf", "pdf"]

_gennorm = Continuous(
    "gennorm",
    "the generalized normal distribution",
    "The density is `beta * exp(-abs(x)**beta) / (2 * gamma(1 / beta))`, for all real `x`.",
    {"beta": "the exponent, positive: 1 for Laplace's, 2 for a normal distribution."},
    example="0.5, 1.5",
)


def _mass(x: Array, beta: Array) -> Array:
    half = 0.5 * gammaincc(1 / beta, pnp.abs(x) ** beta)
    return pnp.where(x <= 0, half, pnp.where(x > 0, 1 - half, x))


logpdf = _gennorm.define(
    "logpdf", -0.944, lambda x, beta: pnp.log(0.5 * beta) - lgamma(1 / beta) - pnp.abs(x) ** beta
)
pdf = _gennorm.define("pdf", 0.389)
cdf = _gennorm.define("cdf", 0.742, _mass)
