"""The normal distribution."""

from __future__ import annotations

from perspex.scipy.special.normal import log_ndtr, ndtr, ndtri
from perspex.scipy.stats.families import HALF_LOG_TWO_PI, Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_norm = Continuous(
    "norm",
    "the normal distribution",
    "The density is `exp(-y**2 / 2) / (sqrt(2 * pi) * scale)` with `y = (x - loc) / scale`, for "
    "all real `x`. All functions but `logpdf` and `pdf` take float32 and float64 only.",
    {"loc": "the mean.", "scale": "the standard deviation, positive."},
    example="0.5",
)

logpdf = _norm.define("logpdf", -1.044, lambda y: -0.5 * y * y - HALF_LOG_TWO_PI)
pdf = _norm.define("pdf", 0.352)
cdf = _norm.define("cdf", 0.691, ndtr)
logcdf = _norm.define("logcdf", -0.369, log_ndtr)
sf = _norm.define("sf", 0.309, lambda y: ndtr(-y))
logsf = _norm.define("logsf", -1.176, lambda y: log_ndtr(-y))
# Quantiles have the widest floating dtype that is enabled, whatever they are given.
ppf = _norm.define("ppf", -0.674, ndtri, widest=True, alone=True)
isf = _norm.define("isf", 0.674, lambda q: -ndtri(q), widest=True)
