"""The geometric distribution: the trials up to the first success."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.scipy.special import xlog1py
from perspex.scipy.stats.families import Discrete

__all__ = ["logpmf", "pmf"]

_geom = Discrete(
    "geom",
    "the geometric distribution",
    "The probability is `p * (1 - p)**(y - 1)` with `y = k - loc`, for `y >= 1`, and 0 below: of "
    "the first success in trial `y`.",
    {"p": "the probability of a success.", "loc": "the smallest value, less 1."},
    example="2, 0.4",
    support=lambda k, p: ~(k <= 0),
    safe=1,
)

logpmf = _geom.define("logpmf", -1.427, lambda k, p: xlog1py(k - 1, -p) + pnp.log(p))
pmf = _geom.define("pmf", 0.24)
