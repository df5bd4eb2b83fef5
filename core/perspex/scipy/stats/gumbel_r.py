"""Gumbel's distribution of the largest of many values."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.scipy.stats.families import Continuous
from perspex.scipy.stats.gumbel_l import log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_gumbel_r = Continuous(
    "gumbel_r",
    "Gumbel's distribution of maxima",
    "The density is `exp(-y - exp(-y)) / scale` with `y = (x - loc) / scale`, for all real `x`.",
    {
        "loc": "the mode; the mean is greater.",
        "scale": "the scale, positive; the standard deviation is `pi / sqrt(6)` times as large.",
    },
    example="0.5",
    invalid_scale_mass=lambda scale: scale <= 0,
    probability="p",
)

logpdf = _gumbel_r.define("logpdf", -1.107, lambda y: log_density(-y))
pdf = _gumbel_r.define("pdf", 0.331)
logcdf = _gumbel_r.define("logcdf", -0.607, lambda y: -pnp.exp(-y))
cdf = _gumbel_r.define("cdf", 0.545)
sf = _gumbel_r.define("sf", 0.455)
logsf = _gumbel_r.define("logsf", -0.788)
ppf = _gumbel_r.define("ppf", -0.327, lambda q: -pnp.log(-pnp.log(q)))
