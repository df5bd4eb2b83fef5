"""Von Mises' distribution of angles."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.ops.bessel import bessel_i0e
from perspex.scipy.stats.families import Continuous

__all__ = ["logpdf", "pdf"]

_vonmises = Continuous(
    "vonmises",
    "von Mises' distribution",
    "The density is `exp(kappa * cos(x)) / (2 * pi * i0(kappa))`, on a circle: it has period `2 * "
    "pi`, with integral 1 over a period.",
    {"x": "angles in radians.", "kappa": "the concentration around 0, not negative."},
    example="0.5, 2.0",
)

logpdf = _vonmises.define(
    "logpdf",
    -0.907,
    lambda x, kappa: kappa * (pnp.cos(x) - 1) - pnp.log(2 * math.pi * bessel_i0e(kappa)),
)
pdf = _vonmises.define("pdf", 0.404)
