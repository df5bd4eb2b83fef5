"""Modified Bessel functions of the first kind, as they are and divided by exp(|x|).

Near zero by the power series, whose terms are all positive; far away by the asymptotic expansion,
as soon as its smallest term, about exp(-2 x), is below what the dtype resolves. Equations are those
of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ops
from perspex.ops.families import FLOAT, Elementwise, unary
from perspex.ops.infix import Formula, emit, exp, horner, sign, sqrt, where
from perspex.ops.structural import weak_like

# Beyond this, I_n(x) overflows for every order n.
_OVERFLOWS = {"float32": 200.0, "float64": 1500.0}


def _far_from(order: int, double: bool) -> float:
    """Where the expansion takes over; its terms fall fast from about order^2 / 2 on."""
    return max(20.0 if double else 9.0, 0.6 * order**2)


def _near_terms(order: int, x: float, eps: float) -> int:
    """10.25.2: how many terms of the power series matter at x."""
    quarter, term, total, k = 0.25 * x * x, 1.0, 1.0, 0
    while term > eps * total:
        k += 1
        term *= quarter / (k * (k + order))
        total += term
    return k


def _far_terms(order: int, x: float, eps: float) -> list[float]:
    """10.40.1: the coefficients of 1 / x^k in I(x) exp(-x) sqrt(2 pi x) that matter at x."""
    found, term = [1.0], 1.0
    for k in range(60):
        term *= ((2 * k + 1) ** 2 - 4 * order**2) / (8 * (k + 1))
        found.append(term)
        if abs(term) < eps * x ** (k + 1):
            break
    return found


def _emit(b: Any, x: Any, *, order: int, scaled: bool) -> Any:
    """Write I_order(x), `scaled` by exp(-|x|) or not."""
    (out,) = b.out_avals
    double = out.dtype == np.dtype("float64")
    dtype = np.dtype("float64" if double else "float32")
    bound, eps = _far_from(order, double), float(np.finfo(dtype).eps) / 4
    terms, expansion = _near_terms(order, bound, eps), _far_terms(order, bound, eps)

    def formula(x: Formula) -> Formula:
        size = abs(x)
        small, large = where(size < bound, size, bound), where(size < bound, bound, size)
        # The series from its end: its coefficients alone are too small for float32.
        near: Any = 1.0
        quarter = 0.25 * small * small
        for k in range(terms, 0, -1):
            near = quarter * (1 / (k * (k + order))) * near + 1.0
        for k in range(1, order + 1):
            near = near * (small * (0.5 / k))
        if scaled:
            near = near * exp(-small)
        else:
            most = _OVERFLOWS[dtype.name]
            large = where(large < most, large, most)
        far = horner(expansion, 1.0 / large) / sqrt(large) / math.sqrt(2 * math.pi)
        if not scaled:  # exp(x) in two factors: it overflows where the result does not
            half = exp(0.5 * large)
            far = half * (half * far)
        y = where(size < bound, near, far)
        y = where(x.equals(x), y, x)
        return sign(x) * y if order % 2 else y

    wide = ShapedArray(out.shape, dtype)
    if out.dtype == dtype:
        return emit(b, formula, [x], [wide])[0]
    return b.convert(emit(b, formula, [b.convert(x, wide)], [wide])[0], out)


def _slope_of_i1e(t: Any, x: Any, y: Any) -> Any:
    # i0e(x) - (sign(x) + 1/x) i1e(x), and 1/2 at 0.
    zero, one = ops.eq(x, weak_like(x, 0)), weak_like(x, 1)
    inverse = ops.div(one, ops.select(zero, one, x))
    slope = ops.sub(bessel_i0e(x), ops.mul(y, ops.add(ops.sign(x), inverse)))
    return ops.mul(t, ops.select(zero, weak_like(x, 0.5), slope))


bessel_i0e: Elementwise = unary(
    "bessel_i0e",
    partial(_emit, order=0, scaled=True),
    FLOAT,
    lambda t, x, y: ops.mul(t, ops.sub(bessel_i1e(x), ops.mul(ops.sign(x), y))),
)
bessel_i0e.says(
    "The modified Bessel function I_0(x), divided by `exp(abs(x))`.",
    "round(float(bessel_i0e(1.0)), 4) -> 0.4658",
    "https://dlmf.nist.gov/10.25",
)
bessel_i1e: Elementwise = unary(
    "bessel_i1e", partial(_emit, order=1, scaled=True), FLOAT, _slope_of_i1e
)
bessel_i1e.says(
    "The modified Bessel function I_1(x), divided by `exp(abs(x))`.",
    "round(float(bessel_i1e(1.0)), 4) -> 0.2079",
    "https://dlmf.nist.gov/10.25",
)


def _slope_of_i(t: Any, x: Any, y: Any, *, order: int) -> Any:
    """10.29.1: half the sum of the neighbours, which loses no digits near 0."""
    above = bessel_i(x, order=order + 1)
    if order == 0:
        return ops.mul(t, above)
    slope = ops.add(bessel_i(x, order=order - 1), above)
    return ops.mul(t, ops.mul(weak_like(x, 0.5), slope))


# I_order(x), for an order from 0 on.
bessel_i: Elementwise = unary("bessel_i", partial(_emit, scaled=False), FLOAT, _slope_of_i)
