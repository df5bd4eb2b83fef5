"""Exponentials, powers, roots and trigonometry: one row each, written as in `ops.arithmetic`."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops import expansions
from perspex.ops.arithmetic import (
    abs,
    add,
    clamp,
    complex,
    div,
    eq,
    imag,
    is_complex,
    mul,
    neg,
    real,
    select,
    square,
    sub,
)
from perspex.ops.families import (
    FLOAT,
    INEXACT,
    NUMBER,
    Elementwise,
    accurate,
    binary,
    check_dtype,
    unary,
)
from perspex.ops.structural import convert, scalar_like, weak_like
from perspex.tracing import spaces
from perspex.tracing.trace import typeof

# ---- Exponentials and logarithms ----------------------------------------------------------------

exp = accurate("exp", expansions.exp, INEXACT, lambda t, x, y: mul(t, y))
exp.says("The exponential `e**x`.", "exp(0.0) -> 1.")
expm1 = accurate("expm1", expansions.expm1, INEXACT, lambda t, x, y: mul(t, exp(x)))
expm1.says("`exp(x) - 1`, without loss of digits where `x` is small.", "expm1(0.0) -> 0.")
log = accurate("log", "stablehlo.log", INEXACT, lambda t, x, y: div(t, x))
log.says("The natural logarithm.", "log(1.0) -> 0.")
log2 = accurate(
    "log2",
    lambda b, x, **how: expansions.scaled_log(b, x, 1 / np.log(2), **how),
    INEXACT,
    lambda t, x, y: div(t, mul(x, scalar_like(x, np.log(2)))),
)
log2.says("The logarithm to base 2.", "log2(8.0) -> 3.")
log1p = accurate("log1p", "stablehlo.log_plus_one", INEXACT, lambda t, x, y: div(t, _plus(x, 1)))
log1p.says("`log(1 + x)`, without loss of digits where `x` is small.", "log1p(0.0) -> 0.")
exp2 = accurate(
    "exp2", expansions.exp2, INEXACT, lambda t, x, y: mul(mul(scalar_like(y, np.log(2)), t), y)
)
exp2.says("The power `2**x`.", "exp2(1.0) -> 2.")
logistic = accurate(
    "logistic",
    expansions.logistic,
    INEXACT,
    lambda t, x, y: mul(t, mul(y, sub(weak_like(y, 1), y))),
)
logistic.says("The logistic function `1 / (1 + exp(-x))`.", "logistic(0.0) -> 0.5")

# ---- Powers and roots ---------------------------------------------------------------------------

sqrt = accurate(
    "sqrt", "stablehlo.sqrt", INEXACT, lambda t, x, y: mul(t, div(scalar_like(x, 0.5), y))
)
sqrt.says("The square root.", "sqrt(4.0) -> 2.")
rsqrt = accurate(
    "rsqrt",
    "stablehlo.rsqrt",
    INEXACT,
    lambda t, x, y: mul(t, mul(scalar_like(x, -0.5), div(y, x))),
)
rsqrt.says("The reciprocal of the square root, `1 / sqrt(x)`.", "rsqrt(4.0) -> 0.5")
# A power has a derivative of its own where a quotient has NaN, at 0.
cbrt = accurate(
    "cbrt",
    "stablehlo.cbrt",
    FLOAT,
    lambda t, x, y: mul(t, mul(scalar_like(x, 1 / 3), integer_pow(y, y=-2))),
)
cbrt.says("The real cube root.", "cbrt(8.0) -> 2.")
# 1 - x^2, without the cancellation where x is near 1.
one_minus_square = unary(
    "one_minus_square",
    expansions.one_minus_square,
    INEXACT,
    lambda t, x, y: mul(t, mul(scalar_like(x, -2), x)),
)

# ---- Trigonometry -------------------------------------------------------------------------------

sin = accurate("sin", expansions.sine, INEXACT, lambda t, x, y: mul(t, cos(x)))
sin.says("The sine of an angle in radians.", "sin(0.0) -> 0.")
cos: Elementwise = accurate("cos", expansions.cosine, INEXACT, lambda t, x, y: neg(mul(t, sin(x))))
cos.says("The cosine of an angle in radians.", "cos(0.0) -> 1.")
tan = accurate("tan", "stablehlo.tan", INEXACT, lambda t, x, y: mul(t, _more(square(y))))
tan.says("The tangent of an angle in radians.", "tan(0.0) -> 0.")
asin = unary("asin", "chlo.asin", INEXACT, lambda t, x, y: mul(t, rsqrt(one_minus_square(x))))
asin.says("The angle between -pi/2 and pi/2 whose sine is `x`.", "asin(0.0) -> 0.")
acos = unary("acos", "chlo.acos", INEXACT, lambda t, x, y: mul(t, neg(rsqrt(one_minus_square(x)))))
acos.says("The angle between 0 and pi whose cosine is `x`.", "acos(1.0) -> 0.")
atan = unary("atan", "chlo.atan", INEXACT, lambda t, x, y: div(t, _more(square(x))))
atan.says("The angle between -pi/2 and pi/2 whose tangent is `x`.", "atan(0.0) -> 0.")
atan2 = binary(
    "atan2",
    "stablehlo.atan2",
    INEXACT,
    lambda t, x, y, z: mul(t, div(y, add(square(x), square(y)))),
    lambda t, x, y, z: mul(t, div(neg(x), add(square(x), square(y)))),
)
atan2.says(
    "The angle of the point with ordinate `x` and abscissa `y`, between -pi and pi.",
    "atan2(0.0, 1.0) -> 0.",
)
sinh = unary("sinh", "chlo.sinh", INEXACT, lambda t, x, y: mul(t, cosh(x)))
sinh.says("The hyperbolic sine.", "sinh(0.0) -> 0.")
cosh: Elementwise = unary("cosh", "chlo.cosh", INEXACT, lambda t, x, y: mul(t, sinh(x)))
cosh.says("The hyperbolic cosine.", "cosh(0.0) -> 1.")
tanh = accurate("tanh", "stablehlo.tanh", INEXACT, lambda t, x, y: mul(t, one_minus_square(y)))
tanh.says("The hyperbolic tangent.", "tanh(0.0) -> 0.")
asinh = unary("asinh", "chlo.asinh", INEXACT, lambda t, x, y: mul(t, _asinh_slope(x)))
asinh.says("The inverse of the hyperbolic sine.", "asinh(0.0) -> 0.")
acosh = unary(
    "acosh",
    "chlo.acosh",
    INEXACT,
    lambda t, x, y: mul(t, mul(rsqrt(_beside(x, -1)), rsqrt(_beside(x, 1)))),
)
acosh.says("The inverse of the hyperbolic cosine.", "acosh(1.0) -> 0.")
atanh = unary("atanh", "chlo.atanh", INEXACT, lambda t, x, y: div(t, one_minus_square(x)))
atanh.says("The inverse of the hyperbolic tangent.", "atanh(0.0) -> 0.")

# ---- Rows with parameters -----------------------------------------------------------------------


class IntegerPow(Elementwise):
    """`x ** y` for a Python integer `y`, by repeated squaring."""

    def __init__(self) -> None:
        super().__init__("integer_pow", expansions.integer_pow, NUMBER, (_integer_pow_jvp,))
        self.makes_nan = True

    def type(self, x: ShapedArray, *, y: int) -> ShapedArray:
        if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
            raise TypeError(
                f"integers cannot be raised to the negative power {y}; convert to a float first"
            )
        return super().type(x)


class Pow(Elementwise):
    """`x ** y`; an inexact `x` takes an integer `y` as it is."""

    def __init__(self) -> None:
        super().__init__("pow", expansions.power, NUMBER, (_pow_jvp_x, _pow_jvp_y))
        self.makes_nan = True

    def type(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        if dtypes.issubdtype(y.dtype, np.integer):
            check_dtype("pow", x.dtype, NUMBER)
            weak = x.weak_type and y.weak_type
            out = super().type(x, ShapedArray(y.shape, x.dtype, y.weak_type))
            return out.update(weak_type=weak)
        check_dtype("pow", x.dtype, INEXACT)
        return super().type(x, y)


class Round(Elementwise):
    """To the nearest integer: halves away from zero (method 0) or to even (method 1)."""

    def __init__(self) -> None:
        super().__init__("round", expansions.rounded, FLOAT, (None,))


class ReducePrecision(Elementwise):
    """The operand rounded to fewer exponent and mantissa bits, in its own dtype."""

    memory = staticmethod(spaces.of_first)

    def __init__(self) -> None:
        super().__init__(
            "reduce_precision",
            expansions.reduced_precision,
            FLOAT,
            (lambda t, x, y, **p: reduce_precision(t, **p),),
            transposed=lambda ct, x, **p: [reduce_precision(ct, **p)],
        )


def _integer_pow_jvp(t: Any, x: Any, out: Any, *, y: int) -> Any:
    if y == 0:
        return scalar_like(t, 0)
    if y == 1:
        return t
    rest = x if y == 2 else integer_pow(x, y=y - 1)
    return mul(t, mul(scalar_like(x, y), rest))


def _pow_jvp_x(t: Any, x: Any, y: Any, z: Any) -> Any:
    # y x^(y-1). An integer y may be 0, and the slope is then 0, whatever x is; a float y is not
    # constant, and at x = y = 0 there is no slope.
    is_integer = dtypes.issubdtype(typeof(y).dtype, np.integer)
    y = convert(y, typeof(x).dtype)
    if not is_integer:
        return mul(t, mul(y, pow(x, sub(y, scalar_like(y, 1)))))
    zero = eq(y, scalar_like(y, 0))
    power = pow(x, select(zero, scalar_like(y, 1), sub(y, scalar_like(y, 1))))
    slope = mul(y, power)
    return mul(t, select(zero, scalar_like(slope, 0), slope))


def _pow_jvp_y(t: Any, x: Any, y: Any, z: Any) -> Any:
    if dtypes.issubdtype(typeof(y).dtype, np.integer):
        return None
    # log(x) x^y, with the limit 0 at x = 0.
    safe = select(eq(x, weak_like(x, 0)), weak_like(x, 1), x)
    # Converted, so that the cotangent of a weakly typed `y` beside a weakly typed `x` is weak.
    return convert(mul(t, mul(log(safe), z)), typeof(y).dtype)


integer_pow: IntegerPow = IntegerPow()
pow = Pow()
round = Round()
reduce_precision = ReducePrecision()

# ---- Written-out rules --------------------------------------------------------------------------


def _more(x: Any) -> Any:
    """`x + 1`, weakly typed for a weakly typed scalar only, as in JAX."""
    return add(x, scalar_like(x, 1))


def _plus(x: Any, n: int) -> Any:
    """`x + n`, as weakly typed as `x`."""
    return add(x, weak_like(x, n))


def _beside(x: Any, n: int) -> Any:
    """`x + n`, on the same side of a branch cut: the sign of an imaginary part of 0 stays."""
    if not is_complex(x):
        return _plus(x, n)
    parts = complex(_plus(real(x), n), imag(x))
    return convert(parts, typeof(x).dtype, typeof(x).weak_type)


def _asinh_slope(x: Any) -> Any:
    """1 / sqrt(1 + x^2); for reals without overflow, x and 1 being divided by max(1, |x|)."""
    if is_complex(x):
        return rsqrt(_beside(square(x), 1))
    one = scalar_like(x, 1)
    limit = 2 * float(dtypes.finfo(typeof(x).dtype).max) ** 0.5  # leaves an infinite x infinite
    scale = div(one, clamp(one, abs(x), scalar_like(x, limit)))
    return mul(scale, rsqrt(add(square(mul(x, scale)), square(scale))))
