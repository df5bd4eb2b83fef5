"""The error function, and the gamma function with its derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops.elementwise import abs, add, div, exp, gt, log, min, mul, neg, select, square, sub
from perspex.ops.families import FLOAT, Elementwise, Rule, binary, unary
from perspex.ops.structural import convert, scalar_like
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
    "digamma", _lower_digamma, FLOAT, lambda t, x, y: mul(t, polygamma(scalar_like(x, 1), x))
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
# B(2j) / (2j)!, of Bernoulli's numbers.
_BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000]
_TERMS = 12
_SINGLE = np.dtype("float32")


def _zeta_slope(x: Any, q: Any, y: Any) -> Any:
    """How zeta changes with its exponent: the sum of Euler and Maclaurin (25.11.28), derived.

    It is NaN where zeta is.
    """
    dtype = typeof(x).dtype
    if dtype.itemsize < 4:  # a half does not hold what the products grow to
        wide = [convert(v, _SINGLE) for v in (x, q, y)]
        return convert(_zeta_slope(*wide), dtype)
    one = scalar_like(x, 1)
    total = mul(min(abs(y), one), scalar_like(x, 0))
    for k in range(_TERMS):
        log_base = log(add(q, scalar_like(q, k)))
        total = sub(total, mul(log_base, exp(neg(mul(x, log_base)))))
    a = add(q, scalar_like(q, _TERMS))
    log_a, above_1 = log(a), sub(x, one)
    power = exp(neg(mul(x, log_a)))
    rest = add(mul(div(a, above_1), add(log_a, div(one, above_1))), mul(log_a, scalar_like(a, 0.5)))
    total = sub(total, mul(power, rest))
    # The product x (x + 1) ... (x + 2j - 2), and the sum of the reciprocals of its factors.
    product, slopes, power = x, div(one, x), div(power, a)
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        term = mul(mul(product, power), sub(slopes, log_a))
        total = add(total, mul(term, scalar_like(x, bernoulli)))
        for factor in (add(x, scalar_like(x, 2 * j - 1)), add(x, scalar_like(x, 2 * j))):
            product, slopes, power = (
                mul(product, factor),
                add(slopes, div(one, factor)),
                div(power, a),
            )
    return total


def _zeta_change(x: Any, q: Any) -> Any:
    """How zeta changes with `q` (25.11.17), and NaN where the sum has no value."""
    one = scalar_like(x, 1)
    # A factor, so that what is derived from this has no value there either.
    factor = select(gt(x, one), neg(x), scalar_like(x, math.nan))
    return mul(factor, zeta(add(x, one), q))


# zeta(x, q) is the sum of (q + k)^-x over k = 0, 1, 2, ...
zeta: Elementwise = binary(
    "zeta",
    "chlo.zeta",
    FLOAT,
    lambda t, x, q, y: mul(t, _zeta_slope(x, q, y)),
    lambda t, x, q, y: mul(t, _zeta_change(x, q)),
)
