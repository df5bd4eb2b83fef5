"""The uniform distribution on an interval."""

from __future__ import annotations

import math

from perspex import numpy as pnp
from perspex.scipy.stats.families import Continuous

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

_uniform = Continuous(
    "uniform",
    "the uniform distribution",
    "The density is `1 / scale` for `loc <= x <= loc + scale`, and 0 elsewhere.",
    {"loc": "the lower bound.", "scale": "the width of the interval, positive."},
    example="0.5, 0.0, 2.0",
    support=lambda y: ~((y < 0) | (y > 1)),
    bounded=True,
)

# -0.0 - log(scale) is -log(scale), even for a scale of 1, where it is a negative zero.
logpdf = _uniform.define("logpdf", -0.693, lambda y: pnp.where(y != y, math.nan, -0.0))
pdf = _uniform.define("pdf", 0.5)
cdf = _uniform.define("cdf", 0.25, lambda y: pnp.clip(y, 0, 1))
ppf = _uniform.define("ppf", 0.5, lambda q: q)
