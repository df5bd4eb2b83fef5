"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Integers and booleans are converted to floats first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import like
from perspex.ir.avals import shaped
from perspex.numpy.elementwise import COMPLEX, NO_ARRAY, PAIR_OF_FLOATS, binary, unary
from perspex.numpy.promotion import strengthened, strong
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import log_add_exp_p
from perspex.ops.elementwise import real_dtype
from perspex.ops.structural import convert

__all__ = [
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "deg2rad", "degrees", "exp",
    "exp2", "expm1", "hypot", "log", "log10", "log1p", "log2", "rad2deg", "radians", "sin", "sinc",
    "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip

# ---- What takes more than a primitive -----------------------------------------------------------


def _log10(x: Any) -> Any:
    logarithm = ops.log(x)
    scale = real_dtype(logarithm.dtype).type(1 / np.log(10))
    if logarithm.dtype.kind != "c":
        return ops.mul(logarithm, scale)
    # By parts: a complex product would turn an infinite part into NaN.
    return ops.complex(ops.mul(ops.real(logarithm), scale), ops.mul(ops.imag(logarithm), scale))


def _logaddexp2(x: Any, y: Any) -> Any:
    ln2 = float(np.log(2))
    weak = all(aval.weak_type and not aval.shape for aval in (shaped(x), shaped(y)))
    if x.dtype.kind == "c":
        largest = ops.max(x, y)
        difference = ops.sub(ops.add(x, y), ops.mul(largest, like(x, 2)))
        added = ops.log1p(ops.exp(ops.mul(difference, like(x, ln2))))
        out = ops.add(largest, ops.div(added, like(x, ln2)))
        half = real_dtype(x.dtype).type(np.pi / ln2)
        out = ops.complex(ops.real(out), _wrapped(ops.imag(out), half))
        return convert(out, out.dtype, weak)
    # Cotangents of weakly typed scalars are weak: they are converted back.
    x, y = [strengthened(v) if np.shape(x) or np.shape(y) else strong(v) for v in (x, y)]
    # What the smaller one adds to the larger. Equal infinities differ by 0, not by NaN.
    # `abs` and `max` have no second derivative where the two are equal; a choice has.
    endless = ops.bitwise_and(ops.eq(x, y), ops.bitwise_not(ops.is_finite(x)))
    difference = ops.select(endless, like(x, 0), ops.sub(x, y))
    first = ops.ge(x, y)
    distance = ops.select(first, difference, ops.neg(difference))
    largest = ops.select(endless, ops.max(x, y), ops.select(first, x, y))
    added = ops.log1p(ops.exp(ops.neg(ops.mul(distance, like(x, ln2)))))
    out = ops.add(largest, ops.mul(added, like(x, 1 / ln2)))
    return convert(out, x.dtype, weak)


def _wrapped(x: Any, half: Any) -> Any:
    """`x` moved by multiples of `2 half` into `[-half, half)`."""
    period = half + half
    rest = ops.rem(ops.add(x, half), period)
    rest = ops.select(ops.lt(rest, half.dtype.type(0)), ops.add(rest, period), rest)
    return ops.sub(rest, half)


def _hypot(x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":
        raise ValueError("hypot is not defined for complex numbers; take their jnp.abs first")
    narrow, weak = x.dtype, shaped(x).weak_type and shaped(y).weak_type
    wide = np.dtype("float32") if dtypes.itemsize_bits(narrow) < 32 else narrow
    x, y = convert(x, wide), convert(y, wide)
    info = dtypes.finfo(x.dtype)
    number = x.dtype.type
    # Where squares would leave the range, powers of two move both sides to its middle.
    half = info.maxexp // 2
    largest = ops.max(ops.abs(x), ops.abs(y))
    big = ops.ge(largest, number(2.0 ** (half - 1)))
    small = ops.le(largest, number(2.0 ** (16 - half)))
    down, up = number(2.0 ** -(half + 2)), number(2.0 ** (half + 36))
    scale = ops.select(big, down, ops.select(small, up, number(1)))
    unscale = ops.select(big, 1 / down, ops.select(small, 1 / up, number(1)))
    u, v = ops.mul(x, scale), ops.mul(y, scale)
    root = ops.mul(ops.sqrt(ops.add(ops.square(u), ops.square(v))), unscale)
    # An infinity outweighs NaN. Its slope is unknown.
    first, second = [ops.eq(ops.abs(part), number(np.inf)) for part in (x, y)]
    infinite = ops.bitwise_or(first, second)
    ends = ops.square(ops.select(infinite, ops.select(first, x, y), number(1)))
    return convert(ops.select(infinite, ops.sqrt(ends), root), narrow, weak)


def _sinc(x: Any) -> Any:
    dtype, weak = x.dtype, x.aval.weak_type and not x.aval.shape
    x = convert(x, np.dtype("float32") if dtypes.itemsize_bits(dtype) < 32 else dtype)
    number, real = x.dtype.type, real_dtype(x.dtype).type
    small = ops.lt(ops.abs(x), real(0.125))
    # Taylor's series near 0, exact to 1e-17, so that derivatives of any order are right there.
    t = ops.square(ops.mul(ops.select(small, x, number(0)), number(np.pi)))
    series = number(-1 / math.factorial(15))
    for k in (13, 11, 9, 7, 5, 3, 1):
        coefficient = number((-1) ** (k // 2) / math.factorial(k))
        series = ops.add(ops.mul(series, t), coefficient)
    if x.dtype.kind == "c":  # the limit along the real axis, and beside it, is 0
        far = ops.eq(ops.abs(ops.real(x)), real(np.inf))
        far = ops.bitwise_and(far, ops.is_finite(ops.imag(x)))
        away = ops.select(ops.bitwise_or(small, far), number(1), x)
        rest = ops.select(far, number(0), ops.div(_sin_pi(away), ops.mul(away, number(np.pi))))
    else:
        away = ops.select(small, number(1), ops.abs(x))
        rest = ops.div(_sin_pi(away), ops.mul(away, number(np.pi)))
    return convert(ops.select(small, series, rest), dtype, weak)


def _sin_pi(x: Any) -> Any:
    """`sin(pi x)`: whole half turns are taken off `x` first."""
    number = x.dtype.type
    if x.dtype.kind == "c":
        return ops.sin(ops.mul(x, number(np.pi)))
    turns = ops.round(x, rounding_method=1)
    pairs = ops.round(ops.mul(turns, number(0.5)), rounding_method=1)
    odd = ops.ne(ops.mul(pairs, number(2)), turns)
    rest = ops.select(odd, ops.sub(turns, x), ops.sub(x, turns))
    infinite = ops.eq(ops.abs(x), number(np.inf))
    return ops.sin(ops.mul(ops.select(infinite, number(0), rest), number(np.pi)))


def _arccosh(x: Any) -> Any:
    y = ops.acosh(x)
    if y.dtype.kind != "c":
        return y
    # The right one of the two complex values.
    left = ops.lt(ops.real(y), real_dtype(y.dtype).type(0))
    return ops.select(left, ops.neg(y), y)


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda x: ops.mul(x, like(x, factor))


# ---- Exponentials and logarithms ----------------------------------------------------------------

# fmt: off
exp = unary("exp", ops.exp, "e to the power of each element.",
    'f"{jnp.exp(1.0):.4f}"', "'2.7183'")
exp2 = unary("exp2", ops.exp2, "2 to the power of each element.",
    "jnp.exp2(jnp.array([0, 1]))", "Array([1., 2.], dtype=float32)")
expm1 = unary("expm1", ops.expm1, "`exp(x) - 1`, exact for small `x`.",
    'f"{jnp.expm1(1e-7):.2e}"', "'1.00e-07'")
log = unary("log", ops.log, "The natural logarithm; NaN for negative reals.",
    "jnp.log(jnp.array([1.0, -1.0]))", "Array([ 0., nan], dtype=float32)")
log2 = unary("log2", ops.log2, "The logarithm to the base 2; NaN for negative reals.",
    "jnp.log2(jnp.array([1, 8]))", "Array([0., 3.], dtype=float32)")
log10 = unary("log10", _log10, "The logarithm to the base 10; NaN for negative reals.",
    "jnp.log10(jnp.array([1, 100]))", "Array([0., 2.], dtype=float32)")
log1p = unary("log1p", ops.log1p, "`log(1 + x)`, exact for small `x`.",
    'f"{jnp.log1p(1e-7):.2e}"', "'1.00e-07'")
logaddexp = binary("logaddexp", log_add_exp_p, "`log(exp(x1) + exp(x2))`, without overflow.",
    "jnp.logaddexp(jnp.array([-jnp.inf, 1000.0]), 0.0)", "Array([   0., 1000.], dtype=float32)",
    PAIR_OF_FLOATS, numbered=True)
logaddexp2 = binary("logaddexp2", _logaddexp2, "`log2(2 ** x1 + 2 ** x2)`, without overflow.",
    "jnp.logaddexp2(jnp.array([3.0, 1000.0]), 3.0)", "Array([   4., 1000.], dtype=float32)",
    PAIR_OF_FLOATS, numbered=True)
# fmt: on

# ---- Roots --------------------------------------------------------------------------------------

# fmt: off
sqrt = unary("sqrt", ops.sqrt, "The square root; NaN for negative reals.",
    "jnp.sqrt(jnp.array([4, 9]))", "Array([2., 3.], dtype=float32)")
cbrt = unary("cbrt", ops.cbrt, "The real cube root.",
    "jnp.cbrt(jnp.array([8, -27]))", "Array([ 2., -3.], dtype=float32)", raises=COMPLEX)
hypot = binary("hypot", _hypot,
    "The length `sqrt(x1 ** 2 + x2 ** 2)`, without overflow or underflow.",
    "jnp.hypot(3.0, jnp.array([4.0, 3e30]))", "Array([5.e+00, 3.e+30], dtype=float32)",
    PAIR_OF_FLOATS, numbered=True, raises=f"{NO_ARRAY}\n  ValueError: for complex numbers.")
# fmt: on

# ---- Trigonometric functions --------------------------------------------------------------------

# fmt: off
sin = unary("sin", ops.sin, "The sine of angles in radians.",
    "jnp.sin(jnp.array([0.0, jnp.pi / 2]))", "Array([0., 1.], dtype=float32)")
cos = unary("cos", ops.cos, "The cosine of angles in radians.",
    "jnp.cos(jnp.array([0.0, jnp.pi]))", "Array([ 1., -1.], dtype=float32)")
tan = unary("tan", ops.tan, "The tangent of angles in radians.",
    'f"{jnp.tan(1.0):.4f}"', "'1.5574'")
arcsin = unary("arcsin", ops.asin,
    "The angle from -pi/2 to pi/2 whose sine is `x`; NaN for reals outside [-1, 1].",
    'f"{jnp.arcsin(1.0):.4f}"', "'1.5708'")
arccos = unary("arccos", ops.acos,
    "The angle from 0 to pi whose cosine is `x`; NaN for reals outside [-1, 1].",
    'f"{jnp.arccos(0.0):.4f}"', "'1.5708'")
arctan = unary("arctan", ops.atan, "The angle from -pi/2 to pi/2 whose tangent is `x`.",
    'f"{jnp.arctan(1.0):.4f}"', "'0.7854'")
arctan2 = binary("arctan2", ops.atan2,
    "The angle from -pi to pi of the point with ordinate `x1` and abscissa `x2`.",
    'f"{jnp.arctan2(1.0, -1.0):.4f}"', "'2.3562'", PAIR_OF_FLOATS, numbered=True)
rad2deg = unary("rad2deg", _times(180 / np.pi), "Radians converted to degrees.",
    "jnp.rad2deg(jnp.pi)", "Array(180., dtype=float32, weak_type=True)")
deg2rad = unary("deg2rad", _times(np.pi / 180), "Degrees converted to radians.",
    'f"{jnp.deg2rad(180.0):.4f}"', "'3.1416'")
sinc = unary("sinc", _sinc,
    "The ratio `sin(pi x) / (pi x)`, which is 1 at 0 and exactly 0 at the other integers.",
    'f"{jnp.sinc(0.5):.4f}"', "'0.6366'")
# fmt: on

# ---- Hyperbolic functions -----------------------------------------------------------------------

# fmt: off
sinh = unary("sinh", ops.sinh, "The hyperbolic sine.",
    'f"{jnp.sinh(1.0):.4f}"', "'1.1752'")
cosh = unary("cosh", ops.cosh, "The hyperbolic cosine.",
    'f"{jnp.cosh(1.0):.4f}"', "'1.5431'")
tanh = unary("tanh", ops.tanh, "The hyperbolic tangent.",
    'f"{jnp.tanh(1.0):.4f}"', "'0.7616'")
arcsinh = unary("arcsinh", ops.asinh, "The inverse of `sinh`.",
    'f"{jnp.arcsinh(1.0):.4f}"', "'0.8814'")
arccosh = unary("arccosh", _arccosh, "The inverse of `cosh`; NaN for reals below 1.",
    'f"{jnp.arccosh(2.0):.4f}"', "'1.3170'")
arctanh = unary("arctanh", ops.atanh, "The inverse of `tanh`; NaN for reals outside [-1, 1].",
    'f"{jnp.arctanh(0.5):.4f}"', "'0.5493'")
# fmt: on

acos, acosh, asin, asinh = arccos, arccosh, arcsin, arcsinh
atan, atan2, atanh = arctan, arctan2, arctanh
degrees, radians = rad2deg, deg2rad
