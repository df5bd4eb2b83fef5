"""Student's distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.arguments.types import Array
from perspex.scipy.special.gammas import betaln
from perspex.scipy.stats.families import Continuous

__all__ = ["logpdf", "pdf"]

_t = Continuous(
    "t",
    "Student's distribution",
    "The density is `(1 + y**2 / df)**(-(df + 1) / 2) / (sqrt(df) * beta(df / 2, 1 / 2) * scale)` "
    "with `y = (x - loc) / scale`, for all real `x`.",
    {
        "df": "the degrees of freedom, positive.",
        "loc": "the median.",
        "scale": "the scale, positive.",
    },
    example="0.5, 3.0",
)


def _log_density(y: Array, df: Array) -> Array:
    kernel = 0.5 * (df + 1) * pnp.log1p(y * y / df)
    return -(kernel + 0.5 * pnp.log(df) + betaln(0.5 * df, 0.5))


logpdf = _t.define("logpdf", -1.161, _log_density)
pdf = _t.define("pdf", 0.313)
