"""Cauchy's distribution, wrapped around a circle."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.stats.families import Continuous

__all__ = ["logpdf", "pdf"]

_wrapcauchy = Continuous(
    "wrapcauchy",
    "the wrapped Cauchy distribution",
    "The density is `(1 - c**2) / (2 * pi * (1 + c**2 - 2 * c * cos(x)))` for `0 <= x <= 2 * pi`, "
    "and 0 elsewhere.",
    {
        "x": "angles in radians.",
        "c": "the concentration around 0, between 0 and 1; the density is NaN for others.",
    },
    example="0.5, 0.3",
    support=lambda x, c: (x >= 0) & (x <= 2 * math.pi),
    invalid=lambda c: ~((c > 0) & (c < 1)),
)


def _log_density(x: Array, c: Array) -> Array:
    return pnp.log(1 - c * c) - math.log(2 * math.pi) - pnp.log(1 + c * c - 2 * c * pnp.cos(x))


logpdf = _wrapcauchy.define("logpdf", -1.359, _log_density)
pdf = _wrapcauchy.define("pdf", 0.257)
