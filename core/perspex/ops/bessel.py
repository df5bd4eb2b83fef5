"""Modified Bessel functions of the first kind, as they are and divided by exp(|x|).

Near zero by the power series, whose terms are all positive; far away by the asymptotic expansion,
as soon as its smallest term, about exp(-2 x), is below what the dtype resolves. Equations are those
of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ops
from perspex.ops.families import FLOAT, Elementwise, unary
from perspex.ops.infix import Formula, emit, exp, horner, sign, sqrt, where
from perspex.ops.structural import weak_like

# By dtype: where the expansion takes over, and the numbers of terms.
_SINGLE, _DOUBLE = (9.0, 26, 8), (20.0, 58, 28)


def _power_series(order: int, terms: int) -> list[float]:
    """10.25.2: coefficients of (x^2 / 4)^k, without the factor (x / 2)^order."""
    return [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(terms)]


def _expansion(order: int, terms: int) -> list[float]:
    """10.40.1: coefficients of 1 / x^k in I(x) exp(-x) sqrt(2 pi x)."""
    found, term = [], 1.0
    for k in range(terms):
        found.append(term)
        term *= ((2 * k + 1) ** 2 - 4 * order**2) / (8 * (k + 1))
    return found


def _scaled(order: int) -> Callable[..., Any]:
    """The lower rule of `I_order(x) exp(-|x|)`, for order 0 or 1."""

    def lower(b: Any, x: Any) -> Any:
        (out,) = b.out_avals
        double = out.dtype == np.dtype("float64")
        bound, near_terms, far_terms = _DOUBLE if double else _SINGLE
        dtype = np.dtype("float64" if double else "float32")

        def formula(x: Formula) -> Formula:
            size = abs(x)
            small = where(size < bound, size, bound)
            near = horner(_power_series(order, near_terms), 0.25 * small * small) * exp(-small)
            large = where(size < bound, bound, size)
            inverse = 1.0 / large
            far = (
                horner(_expansion(order, far_terms), inverse) / sqrt(large) / math.sqrt(2 * math.pi)
            )
            if order:
                near = near * (0.5 * small)
            y = where(size < bound, near, far)
            y = where(x.equals(x), y, x)
            return sign(x) * y if order else y

        wide = ShapedArray(out.shape, dtype)
        if out.dtype == dtype:
            return emit(b, formula, [x], [wide])[0]
        return b.convert(emit(b, formula, [b.convert(x, wide)], [wide])[0], out)

    return lower


def _slope_of_i1e(t: Any, x: Any, y: Any) -> Any:
    # i0e(x) - (sign(x) + 1/x) i1e(x), and 1/2 at 0.
    zero, one = ops.eq(x, weak_like(x, 0)), weak_like(x, 1)
    inverse = ops.div(one, ops.select(zero, one, x))
    slope = ops.sub(bessel_i0e(x), ops.mul(y, ops.add(ops.sign(x), inverse)))
    return ops.mul(t, ops.select(zero, weak_like(x, 0.5), slope))


bessel_i0e: Elementwise = unary(
    "bessel_i0e",
    _scaled(0),
    FLOAT,
    lambda t, x, y: ops.mul(t, ops.sub(bessel_i1e(x), ops.mul(ops.sign(x), y))),
)
bessel_i0e.says(
    "The modified Bessel function I_0(x), divided by `exp(abs(x))`.",
    "round(float(bessel_i0e(1.0)), 4) -> 0.4658",
    "https://dlmf.nist.gov/10.25",
)
bessel_i1e: Elementwise = unary("bessel_i1e", _scaled(1), FLOAT, _slope_of_i1e)
bessel_i1e.says(
    "The modified Bessel function I_1(x), divided by `exp(abs(x))`.",
    "round(float(bessel_i1e(1.0)), 4) -> 0.2079",
    "https://dlmf.nist.gov/10.25",
)


# ---- Not divided ---------------------------------------------------------------------------------

# From here on the function overflows, whatever its order.
_OVERFLOWS = {"float32": 200.0, "float64": 1500.0}


def _far_from(order: int, double: bool) -> float:
    """Where the expansion takes over; its terms fall fast from about order^2 / 2 on."""
    return max(20.0 if double else 9.0, 0.6 * order**2)


def _near_terms(order: int, x: float, eps: float) -> int:
    """How many terms of the power series matter at x, of which all are positive."""
    quarter, term, total, k = 0.25 * x * x, 1.0, 1.0, 0
    while term > eps * total:
        k += 1
        term *= quarter / (k * (k + order))
        total += term
    return k


def _far_terms(order: int, x: float, eps: float) -> list[float]:
    """The coefficients of the expansion that matter at x."""
    terms = _expansion(order, 60)
    for k in range(1, len(terms)):
        if abs(terms[k]) < eps * x**k:
            return terms[: k + 1]
    return terms


def _modified(b: Any, x: Any, *, order: int) -> Any:
    """10.25.2 and 10.40.1, with exp(x) in two factors: it overflows where the result does not."""
    (out,) = b.out_avals
    double = out.dtype == np.dtype("float64")
    dtype = np.dtype("float64" if double else "float32")
    bound, eps = _far_from(order, double), float(np.finfo(dtype).eps) / 4
    terms, expansion = _near_terms(order, bound, eps), _far_terms(order, bound, eps)

    def formula(x: Formula) -> Formula:
        size = abs(x)
        small = where(size < bound, size, bound)
        # The series from its end: its coefficients alone are too small for float32.
        near: Any = 1.0
        quarter = 0.25 * small * small
        for k in range(terms, 0, -1):
            near = quarter * (1 / (k * (k + order))) * near + 1.0
        for k in range(1, order + 1):
            near = near * (small * (0.5 / k))
        most = _OVERFLOWS[dtype.name]
        large = where(size < bound, bound, where(size < most, size, most))
        half = exp(0.5 * large)
        far = horner(expansion, 1.0 / large) / sqrt(large)
        far = half * (half * (far / math.sqrt(2 * math.pi)))
        y = where(size < bound, near, far)
        y = where(x.equals(x), y, x)
        return sign(x) * y if order % 2 else y

    wide = ShapedArray(out.shape, dtype)
    if out.dtype == dtype:
        return emit(b, formula, [x], [wide])[0]
    return b.convert(emit(b, formula, [b.convert(x, wide)], [wide])[0], out)


def _modified_jvp(t: Any, x: Any, y: Any, *, order: int) -> Any:
    """10.29.1: half the sum of the neighbours, which loses no digits near 0."""
    above = bessel_i(x, order=order + 1)
    if order == 0:
        return ops.mul(t, above)
    slope = ops.add(bessel_i(x, order=order - 1), above)
    return ops.mul(t, ops.mul(weak_like(x, 0.5), slope))


# I_order(x), for an order from 0 on.
bessel_i: Elementwise = unary("bessel_i", _modified, FLOAT, _modified_jvp)
