"""Functions of single elements: arithmetic, comparison, bits, transcendental functions.

Each binds its primitive. Operands must have one dtype, and one shape unless one is a scalar; sizes
of 1 are spread, ranks are not raised. `perspex.numpy` has the functions that promote.
"""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.lax.arrays import ArrayLike, as_array, aval_of
from perspex.ops import elementwise as ops
from perspex.ops.structural import broadcast_in_dim
from perspex.runtime.array import Array
from perspex.tracing.trace import typeof


class RoundingMethod(enum.IntEnum):
    """Where numbers in the middle of two integers are rounded to."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def matched(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of one shape, unless one is a scalar; axes of size one are spread."""
    ax, ay = aval_of(name, x), aval_of(name, y)
    if ax.shape == ay.shape or not ax.shape or not ay.shape:
        return x, y
    if ax.ndim != ay.ndim:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes {ax.shape} and "
            f"{ay.shape}; add axes with lax.expand_dims"
        )
    pairs = list(zip(ax.shape, ay.shape, strict=True))
    if any(n != m and n != 1 and m != 1 for n, m in pairs):
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: {ax.shape}, {ay.shape}; sizes must "
            "be equal or 1"
        )
    shape = tuple([m if n == 1 else n for n, m in pairs])
    return _spread(x, ax.shape, shape), _spread(y, ay.shape, shape)


def _spread(x: Any, given: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    if given == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(len(shape))))


def check_accuracy(name: str, accuracy: Any) -> None:
    if accuracy is not None:
        raise NotImplementedError(
            f"{name}: the accuracy of the compiled function cannot be chosen; leave it out"
        )


# ---- Functions of two operands ------------------------------------------------------------------


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum `x + y`.

    >>> add(1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return ops.add(*matched("add", x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """The difference `x - y`.

    >>> sub(1.0, 2.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    return ops.sub(*matched("sub", x, y))


def mul(x: ArrayLike, y: ArrayLike) -> Array:
    """The product `x * y`.

    >>> mul(3, 2)
    Array(6, dtype=int32, weak_type=True)
    """
    return ops.mul(*matched("mul", x, y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The quotient `x / y`; integers are rounded towards zero.

    >>> div(-7, 2)
    Array(-3, dtype=int32, weak_type=True)
    """
    return ops.div(*matched("div", x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of `div`; it has the sign of `x`.

    >>> rem(-7, 2)
    Array(-1, dtype=int32, weak_type=True)
    """
    return ops.rem(*matched("rem", x, y))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of two values; NaN if one is.

    >>> max(1, 2)
    Array(2, dtype=int32, weak_type=True)
    """
    return ops.max(*matched("max", x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of two values; NaN if one is.

    >>> min(1, 2)
    Array(1, dtype=int32, weak_type=True)
    """
    return ops.min(*matched("min", x, y))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point with ordinate `x` and abscissa `y`.

    >>> atan2(0.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.atan2(*matched("atan2", x, y))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex number with real part `x` and imaginary part `y`.

    >>> complex(1.0, 2.0)
    Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return ops.complex(*matched("complex", x, y))


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in both, of integers or booleans.

    >>> bitwise_and(6, 3)
    Array(2, dtype=int32, weak_type=True)
    """
    return ops.bitwise_and(*matched("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in one or both, of integers or booleans.

    >>> bitwise_or(6, 3)
    Array(7, dtype=int32, weak_type=True)
    """
    return ops.bitwise_or(*matched("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in exactly one, of integers or booleans.

    >>> bitwise_xor(6, 3)
    Array(5, dtype=int32, weak_type=True)
    """
    return ops.bitwise_xor(*matched("bitwise_xor", x, y))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved `y` places up.

    >>> shift_left(1, 3)
    Array(8, dtype=int32, weak_type=True)
    """
    return ops.shift_left(*matched("shift_left", x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved `y` places down; the sign stays.

    >>> shift_right_arithmetic(-8, 1)
    Array(-4, dtype=int32, weak_type=True)
    """
    return ops.shift_right_arithmetic(*matched("shift_right_arithmetic", x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved `y` places down; zeros come in.

    >>> shift_right_logical(8, 1)
    Array(4, dtype=int32, weak_type=True)
    """
    return ops.shift_right_logical(*matched("shift_right_logical", x, y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The float next to `x1` on the way to `x2`.

    >>> nextafter(0.0, 1.0)
    Array(1.e-45, dtype=float32, weak_type=True)
    """
    return ops.nextafter(*matched("nextafter", x1, x2))


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether `x` equals `y`.

    >>> eq(2.0, 1.0)
    Array(False, dtype=bool, weak_type=True)
    """
    return ops.eq(*matched("eq", x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether `x` differs from `y`.

    >>> ne(2.0, 1.0)
    Array(True, dtype=bool, weak_type=True)
    """
    return ops.ne(*matched("ne", x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether `x` is less than `y`.

    >>> lt(2.0, 1.0)
    Array(False, dtype=bool, weak_type=True)
    """
    return ops.lt(*matched("lt", x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether `x` is at most `y`.

    >>> le(2.0, 1.0)
    Array(False, dtype=bool, weak_type=True)
    """
    return ops.le(*matched("le", x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether `x` is greater than `y`.

    >>> gt(2.0, 1.0)
    Array(True, dtype=bool, weak_type=True)
    """
    return ops.gt(*matched("gt", x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether `x` is at least `y`.

    >>> ge(2.0, 1.0)
    Array(True, dtype=bool, weak_type=True)
    """
    return ops.ge(*matched("ge", x, y))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """`x ** y` for inexact `x`; `y` has the dtype of `x`, or integers.

    >>> pow(2.0, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    dtype = aval_of("pow", x).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(
            f"pow does not accept dtype {dtype.name} for x: it takes a float or complex; "
            "convert it, or use lax.integer_pow"
        )
    return ops.pow(*matched("pow", x, y))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """`x ** y` for an integer `y` known while tracing.

    >>> integer_pow(3, 2)
    Array(9, dtype=int32, weak_type=True)
    """
    return ops.integer_pow(x, y=operator.index(y))


# ---- Functions of one operand -------------------------------------------------------------------


def neg(x: ArrayLike) -> Array:
    """`-x`.

    >>> neg(2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return ops.neg(x)


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign; `x / |x|` for complex numbers.

    >>> sign(-2.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    return ops.sign(x)


def abs(x: ArrayLike) -> Array:
    """The magnitude; a real number for complex ones.

    >>> abs(-2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return ops.abs(x)


def square(x: ArrayLike) -> Array:
    """`x * x`.

    >>> square(3.0)
    Array(9., dtype=float32, weak_type=True)
    """
    return ops.square(x)


def floor(x: ArrayLike) -> Array:
    """Rounded down, of floats.

    >>> floor(1.5)
    Array(1., dtype=float32, weak_type=True)
    """
    return ops.floor(x)


def ceil(x: ArrayLike) -> Array:
    """Rounded up, of floats.

    >>> ceil(1.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return ops.ceil(x)


def exp(x: ArrayLike, *, accuracy: None = None) -> Array:
    """e to the power of `x`.

    >>> exp(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    check_accuracy("exp", accuracy)
    return ops.exp(x)


def exp2(x: ArrayLike, *, accuracy: None = None) -> Array:
    """2 to the power of `x`.

    >>> exp2(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    check_accuracy("exp2", accuracy)
    return ops.exp2(x)


def expm1(x: ArrayLike, *, accuracy: None = None) -> Array:
    """`exp(x) - 1`, exact for small `x`.

    >>> expm1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_accuracy("expm1", accuracy)
    return ops.expm1(x)


def log(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The natural logarithm.

    >>> log(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_accuracy("log", accuracy)
    return ops.log(x)


def log2(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The logarithm to the base 2.

    >>> log2(8.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_accuracy("log2", accuracy)
    return ops.log2(x)


def log1p(x: ArrayLike, *, accuracy: None = None) -> Array:
    """`log(1 + x)`, exact for small `x`.

    >>> log1p(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_accuracy("log1p", accuracy)
    return ops.log1p(x)


def logistic(x: ArrayLike, *, accuracy: None = None) -> Array:
    """`1 / (1 + exp(-x))`.

    >>> logistic(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    check_accuracy("logistic", accuracy)
    return ops.logistic(x)


def sqrt(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The square root.

    >>> sqrt(4.0)
    Array(2., dtype=float32, weak_type=True)
    """
    check_accuracy("sqrt", accuracy)
    return ops.sqrt(x)


def rsqrt(x: ArrayLike, *, accuracy: None = None) -> Array:
    """One by the square root.

    >>> rsqrt(4.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    check_accuracy("rsqrt", accuracy)
    return ops.rsqrt(x)


def cbrt(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The real cube root.

    >>> cbrt(8.0)
    Array(2., dtype=float32, weak_type=True)
    """
    check_accuracy("cbrt", accuracy)
    return ops.cbrt(x)


def sin(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The sine, in radians.

    >>> sin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_accuracy("sin", accuracy)
    return ops.sin(x)


def cos(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The cosine, in radians.

    >>> cos(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    check_accuracy("cos", accuracy)
    return ops.cos(x)


def tan(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The tangent, in radians.

    >>> tan(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_accuracy("tan", accuracy)
    return ops.tan(x)


def asin(x: ArrayLike) -> Array:
    """The angle from -pi/2 to pi/2 with sine `x`.

    >>> asin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.asin(x)


def acos(x: ArrayLike) -> Array:
    """The angle from 0 to pi with cosine `x`.

    >>> acos(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.acos(x)


def atan(x: ArrayLike) -> Array:
    """The angle from -pi/2 to pi/2 with tangent `x`.

    >>> atan(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.atan(x)


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine.

    >>> sinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.sinh(x)


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine.

    >>> cosh(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return ops.cosh(x)


def tanh(x: ArrayLike, *, accuracy: None = None) -> Array:
    """The hyperbolic tangent.

    >>> tanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    check_accuracy("tanh", accuracy)
    return ops.tanh(x)


def asinh(x: ArrayLike) -> Array:
    """The inverse of `sinh`.

    >>> asinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.asinh(x)


def acosh(x: ArrayLike) -> Array:
    """The inverse of `cosh`.

    >>> acosh(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.acosh(x)


def atanh(x: ArrayLike) -> Array:
    """The inverse of `tanh`.

    >>> atanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return ops.atanh(x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Rounded to the nearest whole number, of floats.

    >>> round(2.5), round(2.5, RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    return ops.round(x, rounding_method=int(RoundingMethod(rounding_method)))


def reciprocal(x: ArrayLike) -> Array:
    """`1 / x`.

    >>> reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return ops.integer_pow(x, y=-1)


def is_finite(x: ArrayLike) -> Array:
    """Whether a float is neither infinite nor NaN.

    >>> is_finite(1.0)
    Array(True, dtype=bool, weak_type=True)
    """
    return ops.is_finite(x)


def real(x: ArrayLike) -> Array:
    """The real part of a complex number.

    >>> real(1 + 2j)
    Array(1., dtype=float32, weak_type=True)
    """
    return ops.real(x)


def imag(x: ArrayLike) -> Array:
    """The imaginary part of a complex number.

    >>> imag(1 + 2j)
    Array(2., dtype=float32, weak_type=True)
    """
    return ops.imag(x)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate, as a complex number also for reals.

    >>> conj(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    return ops.conj(x)


def bitwise_not(x: ArrayLike) -> Array:
    """All bits inverted, of an integer or a boolean.

    >>> bitwise_not(0)
    Array(-1, dtype=int32, weak_type=True)
    """
    return ops.bitwise_not(x)


def population_count(x: ArrayLike) -> Array:
    """How many bits of an integer are set.

    >>> population_count(7)
    Array(3, dtype=int32, weak_type=True)
    """
    return ops.population_count(x)


def clz(x: ArrayLike) -> Array:
    """How many leading bits of an integer are zero.

    >>> clz(1)
    Array(31, dtype=int32, weak_type=True)
    """
    return ops.clz(x)


def reduce_precision(x: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """A float rounded to fewer bits of exponent and mantissa, in its own dtype.

    >>> reduce_precision(1.2345, 5, 2)
    Array(1.25, dtype=float32, weak_type=True)
    """
    exponent, mantissa = operator.index(exponent_bits), operator.index(mantissa_bits)
    if exponent < 1 or mantissa < 0:
        raise ValueError(
            "reduce_precision: exponent_bits must be positive and mantissa_bits must not be "
            f"negative, got {exponent} and {mantissa}"
        )
    return ops.reduce_precision(x, exponent_bits=exponent, mantissa_bits=mantissa)


def stop_gradient(x: Any) -> Any:
    """The arrays of a pytree as constants: derivatives do not pass.

    >>> stop_gradient({"w": 1.5})
    {'w': Array(1.5, dtype=float32, weak_type=True)}
    """
    return tree.map(_stop_gradient, x)


def _stop_gradient(x: Any) -> Any:
    aval = typeof(x)
    return ops.stop_gradient(x) if dtypes.issubdtype(aval.dtype, np.inexact) else as_array(x)
