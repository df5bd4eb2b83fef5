"""The error function, and the gamma function with its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops.elementwise import abs, add, exp, min, mul, neg, square
from perspex.ops.families import FLOAT, Elementwise, Rule, binary, unary
from perspex.ops.structural import scalar_like
from perspex.tracing.trace import typeof

_DOUBLE = np.dtype("float64")


def _in_double(op: str) -> Rule:
    """The lower rule of a chlo operation that is computed in double precision."""

    # XLA's series lose digits near the zeros: in float32 lgamma is off by 0.7 % at 1.99975, digamma
    # by 0.4 % at 1.4617. A double has digits to lose: rounded, its result is exact.
    def lower(b: Any, *values: Any) -> Any:
        (out,) = b.out_avals
        if out.dtype == _DOUBLE:
            return b.op(op, *values)
        wide = ShapedArray(out.shape, _DOUBLE)
        return b.convert(b.op(op, *[b.convert(v, wide) for v in values], aval=wide), out)

    return lower


def _lower_digamma(b: Any, x: Any) -> Any:
    """With -1/x at 0: infinite, as the function is on either side."""
    (out,) = b.out_avals
    zero = b.compare("EQ", x, b.constant(0, out), out)
    pole = b.op("stablehlo.divide", b.constant(-1, out), x)
    return b.op("stablehlo.select", zero, pole, _in_double("chlo.digamma")(b, x))


def _bell(t: Any, x: Any, factor: float) -> Any:
    """`t factor exp(-x^2)`: how error functions change.

    Where `x` is so large that the exponential is zero, its slope is zero too, also at infinity.
    """
    near = min(abs(x), scalar_like(x, 28 if typeof(x).dtype == _DOUBLE else 11))
    return mul(mul(t, typeof(t).dtype.type(factor)), exp(neg(square(near))))


def unknown(name: str, operand: str, kind: type[Exception] = NotImplementedError) -> Rule:
    """The derivative with respect to an operand without a formula: an error of the kind JAX has."""

    def rule(*_: Any) -> Any:
        raise kind(
            f"{name} has no derivative with respect to `{operand}`; "
            f"keep {operand} constant with stop_gradient"
        )

    return rule


# ---- The error function: erf(x) = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x -------

_SLOPE = 2 / np.sqrt(np.pi)

erf = unary("erf", "chlo.erf", FLOAT, lambda t, x, y: _bell(t, x, _SLOPE))
erf.says(
    "The error function, `2 / sqrt(pi)` times the integral of `exp(-t**2)` from 0 to `x`.",
    "round(float(erf(1.0)), 4) -> 0.8427",
    "https://dlmf.nist.gov/7.2.E1",
)
erfc = unary("erfc", "chlo.erfc", FLOAT, lambda t, x, y: _bell(t, x, -_SLOPE))
erfc.says(
    "The complementary error function `1 - erf(x)`, with all digits for large `x`.",
    "round(float(erfc(1.0)), 4) -> 0.1573",
    "https://dlmf.nist.gov/7.2.E2",
)
erf_inv = unary(
    "erf_inv",
    "chlo.erf_inv",
    FLOAT,
    lambda t, x, y: mul(mul(t, scalar_like(t, 1 / _SLOPE)), exp(square(y))),
)
erf_inv.says(
    "The number whose error function is `x`, for `x` between -1 and 1.",
    "round(float(erf_inv(0.5)), 4) -> 0.4769",
    "https://dlmf.nist.gov/7.17.E1",
)

# ---- The gamma function: polygamma(m, x) is derivative m + 1 of lgamma(x) = log |gamma(x)| -------

lgamma: Elementwise = unary(
    "lgamma", _in_double("chlo.lgamma"), FLOAT, lambda t, x, y: mul(t, digamma(x))
)
lgamma.says(
    "The logarithm of the absolute value of the gamma function.",
    "round(float(lgamma(5.0)), 4)  # log(4!) -> 3.1781",
    "https://dlmf.nist.gov/5.2.E1",
)
digamma: Elementwise = unary(
    "digamma",
    _lower_digamma,
    FLOAT,
    lambda t, x, y: mul(t, polygamma(scalar_like(x, 1), x)),
)
digamma.says(
    "The digamma function, the derivative of the logarithm of the gamma function.",
    "round(float(digamma(1.0)), 4)  # minus Euler's constant -> -0.5772",
    "https://dlmf.nist.gov/5.2.E2",
)
polygamma: Elementwise = binary(
    "polygamma",
    _in_double("chlo.polygamma"),
    FLOAT,
    unknown("polygamma", "m", ValueError),
    lambda t, m, x, y: mul(t, polygamma(add(m, scalar_like(m, 1)), x)),
)
# zeta(x, q) is the sum of (q + k)^-x over k = 0, 1, 2, ...
zeta: Elementwise = binary(
    "zeta",
    "chlo.zeta",
    FLOAT,
    unknown("zeta", "x"),
    lambda t, x, q, y: mul(t, mul(neg(x), zeta(add(x, scalar_like(x, 1)), q))),
)
