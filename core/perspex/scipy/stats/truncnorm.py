"""The normal distribution between bounds."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.special.normal import log_ndtr, ndtr
from perspex.scipy.stats.families import HALF_LOG_TWO_PI, Continuous, at

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_truncnorm = Continuous(
    "truncnorm",
    "the truncated normal distribution",
    "The density is that of `norm` divided by `ndtr(b) - ndtr(a)`, for `a <= (x - loc) / scale <= "
    "b`, and 0 elsewhere. Values are NaN where `a >= b`. Takes float32 and float64 only.",
    {
        "a": "the lower bound, in units of `scale` from `loc`.",
        "b": "the upper bound, in units of `scale` from `loc`.",
        "loc": "the mean before the truncation.",
        "scale": "the standard deviation before the truncation, positive.",
    },
    example="0.5, -1.0, 2.0",
    support=lambda y, a, b: ~((y < a) | (y > b)),
    invalid=lambda a, b: ~(a < b),
)


def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the normal mass between two bounds."""
    # Mirror bounds above 0 to the left, where tails keep their digits.
    right = a > 0
    low, high = pnp.where(right, -b, a), pnp.where(right, -a, b)
    across = high > 0
    left = at(~across, high, -1)
    start = pnp.where(across, -2, low)
    tail = log_ndtr(left) + pnp.log(-pnp.expm1(log_ndtr(start) - log_ndtr(left)))
    return pnp.where(across, pnp.log1p(-ndtr(low) - ndtr(-high)), tail)


def _log_below(y: Array, a: Array, b: Array) -> Array:
    inside, y, a, b = _inside(y, a, b)
    return pnp.where(inside, _log_mass(a, y) - _log_mass(a, b), pnp.where(y < 0, -math.inf, 0))


def _log_above(y: Array, a: Array, b: Array) -> Array:
    inside, y, a, b = _inside(y, a, b)
    return pnp.where(inside, _log_mass(y, b) - _log_mass(a, b), pnp.where(y < 0, 0, -math.inf))


def _inside(y: Array, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """Whether `y` lies between `a` and `b`, and the three numbers; constants where it does not.

    The masses are constant there. The constant for `y` is negative below the bounds.
    """
    inside = ~((y <= a) | (y >= b))
    elsewhere = pnp.where(y <= a, -0.5, 0.5)
    return inside, pnp.where(inside, y, elsewhere), at(inside, a, -1), at(inside, b, 1)


logpdf = _truncnorm.define(
    "logpdf", -0.844, lambda y, a, b: -0.5 * y * y - HALF_LOG_TWO_PI - _log_mass(a, b)
)
pdf = _truncnorm.define("pdf", 0.43)
logcdf = _truncnorm.define("logcdf", -0.429, _log_below)
logsf = _truncnorm.define("logsf", -1.052, _log_above)
cdf = _truncnorm.define("cdf", 0.651)
sf = _truncnorm.define("sf", 0.349)
