"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from perspex import numpy as pnp
from perspex.scipy.stats.families import Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_cauchy = Continuous(
    "cauchy",
    "Cauchy's distribution",
    "The density is `1 / (pi * scale * (1 + y**2))` with `y = (x - loc) / scale`, for all real "
    "`x`. There is no mean and no variance.",
    {"loc": "the median.", "scale": "the distance of the quartiles from the median, positive."},
    example="0.5",
    bounded=True,
)

logpdf = _cauchy.define("logpdf", -1.368, lambda y: -(math.log(math.pi) + pnp.log1p(y * y)))
pdf = _cauchy.define("pdf", 0.255)
cdf = _cauchy.define("cdf", 0.648, lambda y: pnp.arctan2(1, -y) / math.pi)
logcdf = _cauchy.define("logcdf", -0.435)
sf = _cauchy.define("sf", 0.352, lambda y: pnp.arctan2(1, y) / math.pi)
logsf = _cauchy.define("logsf", -1.043)
ppf = _cauchy.define("ppf", -1.0, lambda q: _quantile(q))
isf = _cauchy.define("isf", 1.0, lambda q: -_quantile(q))


def _quantile(q: Any) -> Any:
    """`tan(pi (q - 1/2))`; in the tails `1 / tan(pi (1 - q))` and `-1 / tan(pi q)`, which lose no
    digits there."""
    side = pnp.where(q > 0.5, 1.0, -1.0)
    is_tail = abs(q - 0.5) > 0.25
    tail = side / pnp.tan(math.pi * pnp.where(is_tail, pnp.minimum(abs(q), 1 - q), 0.25))
    return pnp.where(is_tail, tail, pnp.tan(math.pi * pnp.where(is_tail, 0.0, q - 0.5)))
