"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Integers and booleans are converted to floats first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    inexact,
    like,
    promote_inexact,
    real_dtype,
)
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import log_add_exp_p
from perspex.ops.structural import convert

# ---- Exponentials and logarithms ----------------------------------------------------------------


@fused
def exp(x: ArrayLike, /) -> Array:
    """e to the power of each element.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.exp(1.0):.4f}"
    '2.7183'
    """
    return ops.exp(inexact("exp", x))


@fused
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power of each element.

    >>> import perspex.numpy as jnp
    >>> jnp.exp2(jnp.array([0, 1]))
    Array([1., 2.], dtype=float32)
    """
    return ops.exp2(inexact("exp2", x))


@fused
def expm1(x: ArrayLike, /) -> Array:
    """`exp(x) - 1`, exact for small `x`.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.expm1(1e-7):.2e}"
    '1.00e-07'
    """
    return ops.expm1(inexact("expm1", x))


@fused
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm; NaN for negative reals.

    >>> import perspex.numpy as jnp
    >>> jnp.log(jnp.array([1.0, -1.0]))
    Array([ 0., nan], dtype=float32)
    """
    return ops.log(inexact("log", x))


@fused
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to the base 2.

    >>> import perspex.numpy as jnp
    >>> jnp.log2(jnp.array([1, 8]))
    Array([0., 3.], dtype=float32)
    """
    return ops.log2(inexact("log2", x))


@fused
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to the base 10.

    >>> import perspex.numpy as jnp
    >>> jnp.log10(jnp.array([1, 100]))
    Array([0., 2.], dtype=float32)
    """
    logarithm = ops.log(inexact("log10", x))
    scale = real_dtype(logarithm.dtype).type(1 / np.log(10))
    if logarithm.dtype.kind != "c":
        return ops.mul(logarithm, scale)
    # By parts: a complex product would turn an infinite part into NaN.
    return ops.complex(ops.mul(ops.real(logarithm), scale), ops.mul(ops.imag(logarithm), scale))


@fused
def log1p(x: ArrayLike, /) -> Array:
    """`log(1 + x)`, exact for small `x`.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.log1p(1e-7):.2e}"
    '1.00e-07'
    """
    return ops.log1p(inexact("log1p", x))


@fused
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`log(exp(x1) + exp(x2))`, without overflow.

    >>> import perspex.numpy as jnp
    >>> jnp.logaddexp(jnp.array([-jnp.inf, 1000.0]), 0.0)
    Array([   0., 1000.], dtype=float32)
    """
    return log_add_exp_p(*promote_inexact("logaddexp", x1, x2))


@fused
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`log2(2 ** x1 + 2 ** x2)`, without overflow.

    >>> import perspex.numpy as jnp
    >>> jnp.logaddexp2(jnp.array([3.0, 1000.0]), 3.0)
    Array([   4., 1000.], dtype=float32)
    """
    x, y = promote_inexact("logaddexp2", x1, x2)
    ln2 = float(np.log(2))
    if x.dtype.kind == "c":
        largest = ops.max(x, y)
        difference = ops.sub(ops.add(x, y), ops.mul(largest, like(x, 2)))
        added = ops.log1p(ops.exp(ops.mul(difference, like(x, ln2))))
        out = ops.add(largest, ops.div(added, like(x, ln2)))
        half = real_dtype(x.dtype).type(np.pi / ln2)
        return ops.complex(ops.real(out), _wrapped(ops.imag(out), half))
    # What the smaller one adds to the larger. Equal infinities differ by 0, not by NaN.
    distance = ops.abs(ops.select(ops.eq(x, y), like(x, 0), ops.sub(x, y)))
    added = ops.log1p(ops.exp(ops.neg(ops.mul(distance, like(x, ln2)))))
    return ops.add(ops.max(x, y), ops.mul(added, like(x, 1 / ln2)))


def _wrapped(x: Any, half: Any) -> Any:
    """`x` moved by multiples of `2 half` into `[-half, half)`."""
    period = half + half
    rest = ops.rem(ops.add(x, half), period)
    rest = ops.select(ops.lt(rest, half.dtype.type(0)), ops.add(rest, period), rest)
    return ops.sub(rest, half)


# ---- Roots --------------------------------------------------------------------------------------


@fused
def sqrt(x: ArrayLike, /) -> Array:
    """The square root; NaN for negative reals.

    >>> import perspex.numpy as jnp
    >>> jnp.sqrt(jnp.array([4, 9]))
    Array([2., 3.], dtype=float32)
    """
    return ops.sqrt(inexact("sqrt", x))


@fused
def cbrt(x: ArrayLike, /) -> Array:
    """The real cube root; `TypeError` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.cbrt(jnp.array([8, -27]))
    Array([ 2., -3.], dtype=float32)
    """
    return ops.cbrt(inexact("cbrt", x))


@fused
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`sqrt(x1 ** 2 + x2 ** 2)`, without overflow or underflow.

    Errors:
      `ValueError` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.hypot(3.0, jnp.array([4.0, 3e30]))
    Array([5.e+00, 3.e+30], dtype=float32)
    """
    x, y = promote_inexact("hypot", x1, x2)
    if x.dtype.kind == "c":
        raise ValueError("hypot is not defined for complex numbers; take their jnp.abs first")
    narrow, weak = x.dtype, shaped(x).weak_type and shaped(y).weak_type
    if dtypes.itemsize_bits(narrow) < 32:
        x, y = convert(x, np.dtype("float32")), convert(y, np.dtype("float32"))
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
    infinite = ops.eq(largest, number(np.inf))
    for part in (x, y):  # an infinity outweighs NaN
        infinite = ops.bitwise_or(infinite, ops.eq(ops.abs(part), number(np.inf)))
    return convert(ops.select(infinite, number(np.inf), root), narrow, weak)


# ---- Trigonometric functions --------------------------------------------------------------------


@fused
def sin(x: ArrayLike, /) -> Array:
    """The sine of each element, in radians.

    >>> import perspex.numpy as jnp
    >>> jnp.sin(jnp.array([0.0, jnp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return ops.sin(inexact("sin", x))


@fused
def cos(x: ArrayLike, /) -> Array:
    """The cosine of each element, in radians.

    >>> import perspex.numpy as jnp
    >>> jnp.cos(jnp.array([0.0, jnp.pi]))
    Array([ 1., -1.], dtype=float32)
    """
    return ops.cos(inexact("cos", x))


@fused
def tan(x: ArrayLike, /) -> Array:
    """The tangent of each element, in radians.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.tan(1.0):.4f}"
    '1.5574'
    """
    return ops.tan(inexact("tan", x))


@fused
def arcsin(x: ArrayLike, /) -> Array:
    """The angle from -pi/2 to pi/2 whose sine is `x`; NaN outside [-1, 1].

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arcsin(1.0):.4f}"
    '1.5708'
    """
    return ops.asin(inexact("arcsin", x))


@fused
def arccos(x: ArrayLike, /) -> Array:
    """The angle from 0 to pi whose cosine is `x`; NaN outside [-1, 1].

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arccos(0.0):.4f}"
    '1.5708'
    """
    return ops.acos(inexact("arccos", x))


@fused
def arctan(x: ArrayLike, /) -> Array:
    """The angle from -pi/2 to pi/2 whose tangent is `x`.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arctan(1.0):.4f}"
    '0.7854'
    """
    return ops.atan(inexact("arctan", x))


@fused
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle from -pi to pi of the point with ordinate `x1` and abscissa `x2`.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arctan2(1.0, -1.0):.4f}"
    '2.3562'
    """
    return ops.atan2(*promote_inexact("arctan2", x1, x2))


@fused
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians to degrees.

    >>> import perspex.numpy as jnp
    >>> jnp.rad2deg(jnp.pi)
    Array(180., dtype=float32, weak_type=True)
    """
    x = inexact("rad2deg", x)
    return ops.mul(x, like(x, 180 / np.pi))


@fused
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees to radians.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.deg2rad(180.0):.4f}"
    '3.1416'
    """
    x = inexact("deg2rad", x)
    return ops.mul(x, like(x, np.pi / 180))


@fused
def sinc(x: ArrayLike, /) -> Array:
    """`sin(pi x) / (pi x)`, and 1 at 0; exactly 0 at the other integers.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.sinc(0.5):.4f}"
    '0.6366'
    """
    x = inexact("sinc", x)
    dtype, weak = x.dtype, x.aval.weak_type
    if dtypes.itemsize_bits(dtype) < 32:
        x = convert(x, np.dtype("float32"))
    number, real = x.dtype.type, real_dtype(x.dtype).type
    small = ops.lt(ops.abs(x), real(0.125))
    # Taylor's series near 0, exact to 1e-17, so that derivatives of any order are right there.
    t = ops.square(ops.mul(ops.select(small, x, number(0)), number(np.pi)))
    series = number(-1 / math.factorial(15))
    for k in (13, 11, 9, 7, 5, 3, 1):
        coefficient = number((-1) ** (k // 2) / math.factorial(k))
        series = ops.add(ops.mul(series, t), coefficient)
    even = x if x.dtype.kind == "c" else ops.abs(x)
    away = ops.select(small, number(1), even)
    quotient = ops.div(_sin_pi(away), ops.mul(away, number(np.pi)))
    return convert(ops.select(small, series, quotient), dtype, weak)


def _sin_pi(x: Any) -> Any:
    """`sin(pi x)`, of what is left of `x` after whole half turns."""
    number = x.dtype.type
    if x.dtype.kind == "c":
        return ops.sin(ops.mul(x, number(np.pi)))
    turns = ops.round(x, rounding_method=1)
    pairs = ops.round(ops.mul(turns, number(0.5)), rounding_method=1)
    odd = ops.ne(ops.mul(pairs, number(2)), turns)
    rest = ops.select(odd, ops.sub(turns, x), ops.sub(x, turns))
    infinite = ops.eq(ops.abs(x), number(np.inf))
    return ops.sin(ops.mul(ops.select(infinite, number(0), rest), number(np.pi)))


# ---- Hyperbolic functions -----------------------------------------------------------------------


@fused
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.sinh(1.0):.4f}"
    '1.1752'
    """
    return ops.sinh(inexact("sinh", x))


@fused
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.cosh(1.0):.4f}"
    '1.5431'
    """
    return ops.cosh(inexact("cosh", x))


@fused
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.tanh(1.0):.4f}"
    '0.7616'
    """
    return ops.tanh(inexact("tanh", x))


@fused
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse of `sinh`.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arcsinh(1.0):.4f}"
    '0.8814'
    """
    return ops.asinh(inexact("arcsinh", x))


@fused
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of `cosh`; NaN below 1.

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arccosh(2.0):.4f}"
    '1.3170'
    """
    y = ops.acosh(inexact("arccosh", x))
    if y.dtype.kind != "c":
        return y
    # Of the two complex values, the one to the right.
    left = ops.lt(ops.real(y), real_dtype(y.dtype).type(0))
    return ops.select(left, ops.neg(y), y)


@fused
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse of `tanh`; NaN outside [-1, 1].

    >>> import perspex.numpy as jnp
    >>> f"{jnp.arctanh(0.5):.4f}"
    '0.5493'
    """
    return ops.atanh(inexact("arctanh", x))


acos, acosh, asin, asinh = arccos, arccosh, arcsin, arcsinh
atan, atan2, atanh = arctan, arctan2, arctanh
degrees, radians = rad2deg, deg2rad
