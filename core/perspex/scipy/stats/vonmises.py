"""Von Mises' distribution of angles."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.ops.bessel import bessel_i0e
from perspex.scipy.stats.families import Continuous, at

__all__ = ["logpdf", "pdf"]

_vonmises = Continuous(
    "vonmises",
    "von Mises' distribution",
    "The density is `exp(kappa * cos(x)) / (2 * pi * i0(kappa))`, on a circle: it has period `2 * "
    "pi`, with integral 1 over a period.",
    {"x": "angles in radians.", "kappa": "the concentration around 0, not negative."},
    example="0.5, 2.0",
    invalid=lambda kappa: kappa < 0,
)


def _log_density(x: Array, kappa: Array) -> Array:
    # The last term is 0, and its slope at 0 is 1: that of `log(bessel_i0e)` is -1 to the right of 0
    # and counts as 0.
    value = kappa * (pnp.cos(x) - 1) - pnp.log(2 * math.pi * bessel_i0e(kappa))
    return value + at(kappa <= 0, kappa, 0)


logpdf = _vonmises.define("logpdf", -0.907, _log_density)
pdf = _vonmises.define("pdf", 0.404)
