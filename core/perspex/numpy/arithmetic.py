"""Arithmetic: sums, products, quotients, remainders, powers, extrema, signs.

Each function promotes its operands and binds; eagerly it is one compiled program (`fused`).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.promotion import (
    BOOL,
    Array,
    ArrayLike,
    arraylike,
    as_dtype,
    broadcast,
    check_arraylike,
    check_real,
    inexact,
    like,
    numeric,
    ordered,
    promote,
    promote_all,
    promote_inexact,
    promote_numeric,
    select,
    spread,
    weak_like,
)
from perspex.ops import elementwise as ops
from perspex.tracing.array_methods import is_operand
from perspex.tracing.trace import is_concrete

# ---- Sums and products --------------------------------------------------------------------------


@fused
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The sum `x + y`, elementwise; for booleans the logical or.

    >>> import perspex.numpy as jnp
    >>> jnp.add(jnp.arange(3), 0.5)
    Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)
    """
    x, y = promote("add", x, y)
    return ops.bitwise_or(x, y) if x.dtype == BOOL else ops.add(x, y)


@fused
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The difference `x - y`, elementwise; `TypeError` for booleans (use `logical_xor`).

    >>> import perspex.numpy as jnp
    >>> jnp.subtract(jnp.arange(3), 1)
    Array([-1,  0,  1], dtype=int32)
    """
    return ops.sub(*promote("subtract", x, y))


@fused
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The product `x * y`, elementwise; for booleans the logical and.

    >>> import perspex.numpy as jnp
    >>> jnp.multiply(jnp.arange(3), 2)
    Array([0, 2, 4], dtype=int32)
    """
    x, y = promote("multiply", x, y)
    return ops.bitwise_and(x, y) if x.dtype == BOOL else ops.mul(x, y)


@fused
def negative(x: ArrayLike, /) -> Array:
    """`-x`, elementwise; `TypeError` for booleans (use `logical_not`).

    >>> import perspex.numpy as jnp
    >>> jnp.negative(jnp.arange(3))
    Array([ 0, -1, -2], dtype=int32)
    """
    return ops.neg(arraylike("negative", x))


@fused
def positive(x: ArrayLike, /) -> Array:
    """`x` as an array.

    >>> import perspex.numpy as jnp
    >>> jnp.positive(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    return arraylike("positive", x)


@fused
def square(x: ArrayLike, /) -> Array:
    """`x * x`, elementwise.

    >>> import perspex.numpy as jnp
    >>> jnp.square(jnp.arange(3))
    Array([0, 1, 4], dtype=int32)
    """
    return ops.square(numeric("square", x))


# ---- Quotients ----------------------------------------------------------------------------------


@fused
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient `x1 / x2`, elementwise, as floats also for integers.

    >>> import perspex.numpy as jnp
    >>> jnp.true_divide(jnp.arange(3), 2)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return ops.div(*promote_inexact("true_divide", x1, x2))


divide = true_divide


@fused
def reciprocal(x: ArrayLike, /) -> Array:
    """`1 / x`, elementwise, as floats also for integers.

    >>> import perspex.numpy as jnp
    >>> jnp.reciprocal(jnp.array([1, 4]))
    Array([1.  , 0.25], dtype=float32)
    """
    return ops.integer_pow(inexact("reciprocal", x), y=-1)


@fused
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient `x1 // x2` rounded down, elementwise. Integers divided by 0 give -1.

    Errors:
      `TypeError` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.floor_divide(jnp.array([-3, 3]), 2)
    Array([-2,  1], dtype=int32)
    """
    x1, x2 = promote_numeric("floor_divide", x1, x2)
    check_real("floor_divide", x1)
    return _integer_quotient(x1, x2) if _is_integer(x1) else _float_divmod(x1, x2)[0]


@fused
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder `x1 % x2` of `floor_divide`, elementwise; it has the sign of `x2`.

    Integers modulo 0 give 0.

    >>> import perspex.numpy as jnp
    >>> jnp.remainder(jnp.array([-3, 3]), 2)
    Array([1, 1], dtype=int32)
    """
    x1, x2 = promote_numeric("remainder", x1, x2)
    if _is_integer(x2):
        x2 = _not_zero(x2)
    return _floored(ops.rem(x1, x2), x2)


mod = remainder


@fused
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of the division rounded towards zero, elementwise; it has the sign of `x1`.

    >>> import perspex.numpy as jnp
    >>> jnp.fmod(jnp.array([-3, 3]), 2)
    Array([-1,  1], dtype=int32)
    """
    x1, x2 = promote_numeric("fmod", x1, x2)
    return ops.rem(x1, _not_zero(x2) if _is_integer(x2) else x2)


@fused
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """`floor_divide(x1, x2)` and `remainder(x1, x2)`.

    >>> import perspex.numpy as jnp
    >>> jnp.divmod(jnp.array([-3, 3]), 2)
    (Array([-2,  1], dtype=int32), Array([1, 1], dtype=int32))
    """
    x1, x2 = promote_numeric("divmod", x1, x2)
    if _is_integer(x1):
        divisor = _not_zero(x2)
        return _integer_quotient(x1, x2), _floored(ops.rem(x1, divisor), divisor)
    check_real("divmod", x1)
    return _float_divmod(x1, x2)


def _is_integer(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.integer)


def _not_zero(divisor: Any) -> Any:
    """The divisor with 1 for 0, by which the remainder is 0."""
    return ops.select(ops.eq(divisor, weak_like(divisor, 0)), weak_like(divisor, 1), divisor)


def _floored(remainder: Any, divisor: Any) -> Any:
    """The remainder of the floored division from that of the truncated one."""
    zero = weak_like(remainder, 0)
    differs = ops.ne(ops.lt(remainder, zero), ops.lt(divisor, zero))
    wrong = ops.bitwise_and(differs, ops.ne(remainder, zero))
    return ops.select(wrong, ops.add(remainder, divisor), remainder)


def _integer_quotient(x: Any, y: Any) -> Any:
    quotient = ops.div(x, y)
    if dtypes.issubdtype(x.dtype, np.unsignedinteger):
        return quotient
    inexact_ = ops.ne(ops.rem(x, y), weak_like(x, 0))
    wrong = ops.bitwise_and(ops.ne(ops.sign(x), ops.sign(y)), inexact_)
    return ops.select(wrong, ops.sub(quotient, weak_like(quotient, 1)), quotient)


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder of floats: what the remainder leaves divides without rounding."""
    truncated = ops.rem(x, y)
    zero, one = weak_like(truncated, 0), weak_like(truncated, 1)
    # x / 0 is an infinity or NaN, which x - NaN would lose.
    whole = ops.select(ops.eq(y, zero), x, ops.sub(x, truncated))
    quotient = ops.div(whole, y)
    wrong = ops.bitwise_and(ops.ne(truncated, zero), ops.ne(ops.sign(y), ops.sign(truncated)))
    quotient = ops.select(wrong, ops.sub(quotient, one), quotient)
    remainder = ops.select(wrong, ops.add(truncated, y), truncated)
    return ops.round(quotient, rounding_method=0), remainder


# ---- Powers -------------------------------------------------------------------------------------


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 ** x2`, elementwise.

    An exponent that is a Python integer, or a concrete integer scalar, unrolls into products. For
    integers to the power of an array the exponents must not be negative.

    Errors:
      `TypeError` for integers to a negative power known while tracing.

    >>> import perspex.numpy as jnp
    >>> jnp.power(jnp.arange(4), 2)
    Array([0, 1, 4, 9], dtype=int32)
    """
    exponent = _static_exponent(x2)
    if exponent is None:
        return _power(x1, x2)
    check_arraylike("power", x1, x2)
    return integer_power(x1, exponent)


def _static_exponent(y: Any) -> int | None:
    if y.__class__ is int:
        return y
    if y.__class__ is float or not is_concrete(y):
        return None
    try:
        return operator.index(y)
    except TypeError:
        return None


@fused(static=("exponent",))
def integer_power(x: Any, exponent: int) -> Any:
    """`x ** exponent` for an exponent known while tracing."""
    return ops.integer_pow(numeric("power", x), y=exponent)


@fused
def _power(x: Any, y: Any) -> Any:
    check_arraylike("power", x, y)
    if dtypes.issubdtype(shaped(x).dtype, np.inexact) and _is_integer(shaped(y)):
        # Not promoted: with an integer exponent the derivative at x = 0 comes out right.
        return ops.pow(*broadcast("power", x, y))
    x, y = promote_numeric("power", x, y)
    return _integer_to_integer(x, y) if _is_integer(x) else ops.pow(x, y)


def _integer_to_integer(x: Any, y: Any) -> Any:
    """Repeated squaring; powers above 63 overflow 64 bits unless |x| < 2, when they repeat."""
    zero, one = like(x, 0), like(x, 1)
    vanishes = ops.bitwise_and(ops.eq(x, zero), ops.ne(y, zero))
    result = ops.select(vanishes, zero, one)
    for bit in range(6):
        odd = ops.ne(ops.bitwise_and(ops.shift_right_logical(y, like(y, bit)), one), zero)
        result = ops.select(odd, ops.mul(result, x), result)
        x = ops.mul(x, x)
    return result


pow = power


@fused
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x ** y`, elementwise, as floats also for integers.

    >>> import perspex.numpy as jnp
    >>> jnp.float_power(jnp.array([1, 2]), -1)
    Array([1. , 0.5], dtype=float32)
    """
    return ops.pow(*promote_inexact("float_power", x, y))


# ---- Extrema ------------------------------------------------------------------------------------


@fused
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of two values, elementwise; NaN if one is.

    >>> import perspex.numpy as jnp
    >>> jnp.maximum(jnp.arange(3), 1)
    Array([1, 1, 2], dtype=int32)
    """
    return ops.max(*promote("maximum", x, y))


@fused
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of two values, elementwise; NaN if one is.

    >>> import perspex.numpy as jnp
    >>> jnp.minimum(jnp.arange(3), 1)
    Array([0, 1, 1], dtype=int32)
    """
    return ops.min(*promote("minimum", x, y))


@fused
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of two values, elementwise; NaN only if both are.

    >>> import perspex.numpy as jnp
    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0)
    Array([1., 0.], dtype=float32)
    """
    return _extremum_without_nan("fmax", ops.gt, x1, x2)


@fused
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of two values, elementwise; NaN only if both are.

    >>> import perspex.numpy as jnp
    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0)
    Array([0., 0.], dtype=float32)
    """
    return _extremum_without_nan("fmin", ops.lt, x1, x2)


def _extremum_without_nan(name: str, before: Any, x: Any, y: Any) -> Any:
    x, y = promote_all(name, x, y)
    first = ordered(before, x, y)
    if dtypes.issubdtype(y.dtype, np.inexact):
        first = ops.bitwise_or(first, ops.ne(y, y))
    return select(name, first, x, y)


def clip(
    arr: ArrayLike | None = None,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Array:
    """`arr` with values below `min` raised to it and above `max` lowered to it.

    Args:
      arr: an array of reals.
      min, max: bounds that broadcast with `arr`; `None` is no bound. The result has the dtype
        that all three promote to.

    Errors:
      `ValueError` for complex numbers, and without an array.

    >>> import perspex.numpy as jnp
    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("clip: no array was given")
    return _clip(arr, min, max)


@fused
def _clip(arr: Any, low: Any, high: Any) -> Any:
    arr = arraylike("clip", arr)
    for x in (arr, low, high):
        if x is not None and is_operand(x) and shaped(x).dtype.kind == "c":
            raise ValueError(
                "clip: complex numbers have no order; clip the real and the imaginary part"
            )
    if low is not None:
        arr = ops.max(*promote("clip", low, arr))
    if high is not None:
        arr = ops.min(*promote("clip", high, arr))
    return arr


# ---- Signs and magnitudes -----------------------------------------------------------------------


@fused
def absolute(x: ArrayLike, /) -> Array:
    """The magnitude of each element: a real number also for complex ones.

    >>> import perspex.numpy as jnp
    >>> jnp.absolute(jnp.array([-1.0, 3 + 4j]))
    Array([1., 5.], dtype=float32)
    """
    x = arraylike("absolute", x)
    unsigned = x.dtype == BOOL or dtypes.issubdtype(x.dtype, np.unsignedinteger)
    return x if unsigned else ops.abs(x)


abs = absolute


@fused
def fabs(x: ArrayLike, /) -> Array:
    """The magnitude of each element, as floats; `TypeError` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    x = inexact("fabs", x)
    check_real("fabs", x)
    return ops.abs(x)


@fused
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 by the sign of each element; `x / |x|` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.sign(jnp.array([-2.5, 0.0, 3.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return ops.sign(arraylike("sign", x))


@fused
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where `x1` is negative, 1 where it is positive, `x2` where it is 0.

    >>> import perspex.numpy as jnp
    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = promote_inexact("heaviside", x1, x2)
    check_real("heaviside", x1)
    zero, one = like(x1, 0), like(x1, 1)
    at_zero = select("heaviside", ops.ne(x1, x1), x1, x2)
    return ops.select(ops.lt(x1, zero), zero, ops.select(ops.gt(x1, zero), one, at_zero))


# ---- Complex numbers ----------------------------------------------------------------------------


@fused
def real(val: ArrayLike, /) -> Array:
    """The real part of each element.

    >>> import perspex.numpy as jnp
    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    val = arraylike("real", val)
    return ops.real(val) if val.dtype.kind == "c" else val


@fused
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of each element; 0 for reals.

    >>> import perspex.numpy as jnp
    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    val = arraylike("imag", val)
    return ops.imag(val) if val.dtype.kind == "c" else spread(like(val, 0), val.shape)


@fused
def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate of each element; reals are their own.

    >>> import perspex.numpy as jnp
    >>> jnp.conjugate(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = arraylike("conjugate", x)
    return ops.conj(x) if x.dtype.kind == "c" else x


conj = conjugate


@fused(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each complex number, in radians from -pi to pi, or in degrees.

    >>> import perspex.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    z = arraylike("angle", z)
    re, im = inexact("angle", real(z)), inexact("angle", imag(z))
    if z.dtype.kind != "c" and z.ndim == 0:
        # As JAX: the angle of a real scalar has the default dtype.
        default = dtypes.canonicalize_dtype(float)
        re, im = as_dtype(re, default), as_dtype(im, default)
    result = ops.atan2(im, re)
    return ops.mul(result, like(result, 180 / np.pi)) if deg else result
