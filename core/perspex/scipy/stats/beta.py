"""The beta distribution."""

from __future__ import annotations

from perspex.arguments.arrays import like
from perspex.arguments.types import Array
from perspex.ops import elementwise as ops
from perspex.scipy.special import xlog1py, xlogy
from perspex.scipy.special.gammas import betainc, betaln
from perspex.scipy.stats.families import Continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_beta = Continuous(
    "beta",
    "the beta distribution",
    "The density is `y**(a - 1) * (1 - y)**(b - 1) / (beta(a, b) * scale)` with `y = (x - loc) / "
    "scale`, for `loc <= x <= loc + scale`, and 0 elsewhere. Values are NaN where `a` or `b` is "
    "negative. Where one of them is 0, all of the mass is at a bound, and densities are NaN.",
    {
        "a": "the first shape, positive: the exponent at the lower bound, plus 1.",
        "b": "the second shape, positive: the exponent at the upper bound, plus 1.",
        "loc": "the lower bound.",
        "scale": "the width of the interval, positive.",
    },
    example="0.5, 2.0, 3.0",
    support=lambda y, a, b: ~((y < 0) | (y > 1)),
    invalid=lambda a, b: (a <= 0) | (b <= 0),
    invalid_scale=lambda scale: scale <= 0,
    invalid_mass=lambda a, b: (a < 0) | (b < 0) | ((a == 0) & (b == 0)),
)


def _between_bounds(y: Array) -> Array:
    # Unlike `clip`, it has no slope at the bounds, where that of `betainc` may be infinite.
    return ops.clamp(like(y, 0), y, like(y, 1))


logpdf = _beta.define(
    "logpdf", 0.405, lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)
)
pdf = _beta.define("pdf", 1.5)
cdf = _beta.define("cdf", 0.688, lambda y, a, b: betainc(a, b, _between_bounds(y)))
logcdf = _beta.define("logcdf", -0.375)
sf = _beta.define("sf", 0.312, lambda y, a, b: betainc(b, a, 1 - _between_bounds(y)))
logsf = _beta.define("logsf", -1.163)
