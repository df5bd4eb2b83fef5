"""Functions of single elements: arithmetic, comparison, bits, transcendental functions.

Each binds its primitive. Operands must have one dtype, and one shape unless one is a scalar; sizes
of 1 broadcast, ranks are not raised. `perspex.numpy` has the functions that promote. Most are made
of the row of their primitive in `ops`, which has their documentation; the few with parameters or
checks of their own are written out.
"""

from __future__ import annotations

import enum
import operator
from typing import Any, TypeVar

import numpy as np

from perspex import dtypes, tree
from perspex.arguments.arrays import as_array, aval_of
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.lax.faces import accurate, adopt, binary, matched, unary
from perspex.ops import elementwise as ops
from perspex.ops import halves
from perspex.tracing.trace import typeof

T = TypeVar("T")

__all__ = [
    "RoundingMethod", "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clz", "complex",
    "conj", "cos", "cosh", "div", "eq", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag",
    "integer_pow", "is_finite", "le", "log", "log1p", "log2", "logistic", "lt", "max", "min",
    "mul", "mulhi", "ne", "neg", "nextafter", "population_count", "pow", "real", "reciprocal",
    "reduce_precision", "rem", "round", "rsqrt", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan",
    "tanh",
]  # fmt: skip


class RoundingMethod(enum.IntEnum):
    """How a number halfway between two integers is rounded."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# ---- Of two operands ----------------------------------------------------------------------------

add = binary(ops.add)
sub = binary(ops.sub)
mul = binary(ops.mul)
div = binary(ops.div)
rem = binary(ops.rem)
max = binary(ops.max)
min = binary(ops.min)
atan2 = binary(ops.atan2)
complex = binary(ops.complex)
bitwise_and = binary(ops.bitwise_and, "bitwise_and")
bitwise_or = binary(ops.bitwise_or, "bitwise_or")
bitwise_xor = binary(ops.bitwise_xor, "bitwise_xor")
shift_left = binary(ops.shift_left)
shift_right_arithmetic = binary(ops.shift_right_arithmetic)
shift_right_logical = binary(ops.shift_right_logical)
eq = binary(ops.eq)
ne = binary(ops.ne)
lt = binary(ops.lt)
le = binary(ops.le)
gt = binary(ops.gt)
ge = binary(ops.ge)
mulhi = binary(halves.mulhi)

# ---- Of one operand -----------------------------------------------------------------------------

neg = unary(ops.neg)
sign = unary(ops.sign)
abs = unary(ops.abs)
square = unary(ops.square)
floor = unary(ops.floor)
ceil = unary(ops.ceil)
asin = unary(ops.asin)
acos = unary(ops.acos)
atan = unary(ops.atan)
sinh = unary(ops.sinh)
cosh = unary(ops.cosh)
asinh = unary(ops.asinh)
acosh = unary(ops.acosh)
atanh = unary(ops.atanh)
is_finite = unary(ops.is_finite)
real = unary(ops.real)
imag = unary(ops.imag)
conj = unary(ops.conj)
bitwise_not = unary(ops.bitwise_not, "bitwise_not")
population_count = unary(ops.population_count)
clz = unary(ops.clz)

# With the parameter `accuracy` that JAX gives them.
exp = accurate(ops.exp)
exp2 = accurate(ops.exp2)
expm1 = accurate(ops.expm1)
log = accurate(ops.log)
log2 = accurate(ops.log2)
log1p = accurate(ops.log1p)
logistic = accurate(ops.logistic)
sqrt = accurate(ops.sqrt)
rsqrt = accurate(ops.rsqrt)
cbrt = accurate(ops.cbrt)
sin = accurate(ops.sin)
cos = accurate(ops.cos)
tan = accurate(ops.tan)
tanh = accurate(ops.tanh)

# ---- With parameters of their own ---------------------------------------------------------------


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next representable float after `x1` in the direction of `x2`.

    Args:
      x1: an array or a scalar (float).
      x2: of the dtype of `x1`. Shapes must be equal unless one operand is a scalar; axes of size
        one broadcast.

    Returns:
      An array of the shape of both and the dtype of `x1`.

    >>> from perspex import lax
    >>> lax.nextafter(0.0, 1.0)
    Array(1.e-45, dtype=float32, weak_type=True)
    """
    return ops.nextafter(*matched("nextafter", x1, x2))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """The power `x**y` of inexact `x`.

    Args:
      x: an array or a scalar (float or complex).
      y: of the dtype of `x`, or integers. Shapes must be equal unless one operand is a scalar;
        axes of size one broadcast.

    Returns:
      An array of the dtype of `x`.

    >>> from perspex import lax
    >>> lax.pow(2.0, 3)
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
    """The power `x**y` for an integer `y` that is known while tracing.

    Args:
      x: an array or a scalar (number).
      y: the exponent; negative only if `x` is inexact.

    Returns:
      An array of the shape and dtype of `x`.

    >>> from perspex import lax
    >>> lax.integer_pow(3, 2)
    Array(9, dtype=int32, weak_type=True)
    """
    return ops.integer_pow(x, y=operator.index(y))


def reciprocal(x: ArrayLike) -> Array:
    """The reciprocal `1 / x`.

    Args:
      x: an array or a scalar (float or complex).

    Returns:
      An array of the shape and dtype of `x`.

    >>> from perspex import lax
    >>> lax.reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return ops.integer_pow(x, y=-1)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Floats rounded to the nearest whole number.

    Args:
      x: an array or a scalar (float).
      rounding_method: how numbers halfway between two integers are rounded.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is not an array or a number, or its dtype is not a float.
      ValueError: for another `rounding_method`.

    >>> from perspex import lax
    >>> lax.round(2.5), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    return ops.round(x, rounding_method=int(RoundingMethod(rounding_method)))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to fewer bits of exponent and mantissa.

    Args:
      operand: an array or a scalar (float).
      exponent_bits: the number of bits of the exponent, at least 1.
      mantissa_bits: the number of bits of the mantissa, at least 0.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      TypeError: if `operand` is not an array or a number, or its dtype is not a float.
      ValueError: for too few bits.

    >>> from perspex import lax
    >>> lax.reduce_precision(1.2345, 5, 2)
    Array(1.25, dtype=float32, weak_type=True)
    """
    exponent, mantissa = operator.index(exponent_bits), operator.index(mantissa_bits)
    if exponent < 1 or mantissa < 0:
        raise ValueError(
            "reduce_precision: exponent_bits must be positive and mantissa_bits must not be "
            f"negative, got {exponent} and {mantissa}"
        )
    return ops.reduce_precision(operand, exponent_bits=exponent, mantissa_bits=mantissa)


def stop_gradient(x: T) -> T:
    """The arrays of a pytree as constants: they have no derivative.

    Args:
      x: a pytree of arrays and numbers.

    Returns:
      The pytree with the same values.

    >>> from perspex import lax
    >>> lax.stop_gradient({"w": 1.5})
    {'w': Array(1.5, dtype=float32, weak_type=True)}
    """
    return tree.map(_stop_gradient, x)


def _stop_gradient(x: Any) -> Any:
    aval = typeof(x)
    return ops.stop_gradient(x) if dtypes.issubdtype(aval.dtype, np.inexact) else as_array(x)


describe(
    (nextafter, pow, integer_pow, reciprocal, stop_gradient),
    {},
    "TypeError: if an operand is not an array or a number, or has another dtype or shape.",
)
__test__ = adopt(globals())
