"""The logistic distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.ops.elementwise import logistic as expit
from perspex.scipy.stats.families import Continuous

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]

_logistic = Continuous(
    "logistic",
    "the logistic distribution",
    "The density is `exp(-y) / (scale * (1 + exp(-y))**2)` with `y = (x - loc) / scale`, for all "
    "real `x`.",
    {
        "loc": "the mean.",
        "scale": "the scale, positive; the standard deviation is `pi / sqrt(3)` times as large.",
    },
    example="0.5",
    probability="x",
)

logpdf = _logistic.define("logpdf", -1.448, lambda y: -2 * pnp.logaddexp(y / 2, -y / 2))
pdf = _logistic.define("pdf", 0.235)
cdf = _logistic.define("cdf", 0.622, expit)
sf = _logistic.define("sf", 0.378, lambda y: expit(-y))
ppf = _logistic.define("ppf", -1.099, lambda q: pnp.log(q) - pnp.log1p(-q))
isf = _logistic.define("isf", 1.099, lambda q: pnp.log1p(-q) - pnp.log(q))
