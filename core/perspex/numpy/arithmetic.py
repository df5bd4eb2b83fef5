"""Arithmetic: sums, products, quotients, remainders, powers, extrema, signs.

Each function promotes its operands and binds; eagerly it is one compiled program (`fused`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import (
    arraylike,
    as_array,
    as_dtype,
    check_arraylike,
    like,
    spread,
    weak_like,
)
from perspex.arguments.dtypes import check_real
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.elementwise import (
    ANY,
    COMPLEX,
    NO_ARRAY,
    NUMBERS,
    PAIR_OF_FLOATS,
    PAIR_OF_NUMBERS,
    binary,
    unary,
)
from perspex.numpy.promotion import (
    BOOL,
    broadcast,
    inexact,
    ordered,
    promote,
    promote_all,
    select,
    strong,
)
from perspex.ops import elementwise as ops
from perspex.tracing.array_methods import is_operand
from perspex.tracing.trace import is_concrete

__all__ = [
    "abs", "absolute", "angle", "clip", "conj", "conjugate", "divide", "divmod", "fabs",
    "float_power", "floor_divide", "fmax", "fmin", "fmod", "heaviside", "imag", "mod", "positive",
    "pow", "power", "real", "reciprocal", "remainder", "sign", "square", "true_divide",
]  # fmt: skip

_BOOLEANS = "TypeError: if an operand is not an array or a number, or if both are booleans."

# ---- Sums and products --------------------------------------------------------------------------


def _or_for_booleans(
    number: Callable[[Any, Any], Any], boolean: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    return lambda x, y: (boolean if x.dtype == BOOL else number)(x, y)


# fmt: off
add = binary("add", _or_for_booleans(ops.add, ops.bitwise_or),
    "The sum `x + y`, elementwise; for booleans the logical or.",
    "jnp.add(jnp.arange(3), 0.5)", "Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)")
subtract = binary("subtract", ops.sub,
    "The difference `x - y`, elementwise. For booleans use `logical_xor`.",
    "jnp.subtract(jnp.arange(3), 1)", "Array([-1,  0,  1], dtype=int32)", raises=_BOOLEANS)
multiply = binary("multiply", _or_for_booleans(ops.mul, ops.bitwise_and),
    "The product `x * y`, elementwise; for booleans the logical and.",
    "jnp.multiply(jnp.arange(3), 2)", "Array([0, 2, 4], dtype=int32)")
negative = unary("negative", ops.neg,
    "The elements with the opposite sign. For booleans use `logical_not`.",
    "jnp.negative(jnp.arange(3))", "Array([ 0, -1, -2], dtype=int32)",
    ANY, raises="TypeError: if `x` is not an array or a number, or is boolean.")
positive = unary("positive", lambda x: x, "The elements as they are, in an array.",
    "jnp.positive(jnp.arange(3))", "Array([0, 1, 2], dtype=int32)", ANY)
square = unary("square", ops.square, "The product of each element and itself.",
    "jnp.square(jnp.arange(3))", "Array([0, 1, 4], dtype=int32)", NUMBERS)
# fmt: on

# ---- Quotients ----------------------------------------------------------------------------------


def _is_integer(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.integer)


def _not_zero(divisor: Any) -> Any:
    """The divisor with 1 in the place of 0: the remainder of a division by 1 is 0."""
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
    """Quotient and remainder of floats: `x` without the remainder divides without rounding."""
    truncated = ops.rem(x, y)
    zero, one = weak_like(truncated, 0), weak_like(truncated, 1)
    # x / 0 is an infinity or NaN, which x - NaN would lose.
    whole = ops.select(ops.eq(y, zero), x, ops.sub(x, truncated))
    quotient = ops.div(whole, y)
    wrong = ops.bitwise_and(ops.ne(truncated, zero), ops.ne(ops.sign(y), ops.sign(truncated)))
    quotient = ops.select(wrong, ops.sub(quotient, one), quotient)
    remainder = ops.select(wrong, ops.add(truncated, y), truncated)
    return ops.round(quotient, rounding_method=0), remainder


def _floor_divide(x: Any, y: Any) -> Any:
    check_real("floor_divide", x)
    return _integer_quotient(x, y) if _is_integer(x) else _float_divmod(x, y)[0]


def _remainder(x: Any, y: Any) -> Any:
    y = _not_zero(y) if _is_integer(y) else y
    return _floored(ops.rem(x, y), y)


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    check_real("divmod", x)
    return (_integer_quotient(x, y), _remainder(x, y)) if _is_integer(x) else _float_divmod(x, y)


# fmt: off
true_divide = binary("true_divide", ops.div,
    "The quotient `x1 / x2`, elementwise; a float also for integers.",
    "jnp.true_divide(jnp.arange(3), 2)", "Array([0. , 0.5, 1. ], dtype=float32)",
    PAIR_OF_FLOATS, numbered=True)
reciprocal = unary("reciprocal", lambda x: ops.integer_pow(x, y=-1),
    "The quotient `1 / x`, elementwise; a float also for integers.",
    "jnp.reciprocal(jnp.array([1, 4]))", "Array([1.  , 0.25], dtype=float32)")
floor_divide = binary("floor_divide", _floor_divide,
    "The quotient `x1 // x2` rounded down, elementwise. By 0 it is unspecified for integers.",
    "jnp.floor_divide(jnp.array([-3, 3]), 2)", "Array([-2,  1], dtype=int32)",
    PAIR_OF_NUMBERS, numbered=True, raises=COMPLEX)
remainder = binary("remainder", _remainder,
    "The remainder `x1 % x2` with the sign of `x2`, elementwise. Integers modulo 0 give 0.",
    "jnp.remainder(jnp.array([-3, 3]), 2)", "Array([1, 1], dtype=int32)",
    PAIR_OF_NUMBERS, numbered=True, raises=COMPLEX)
fmod = binary("fmod", lambda x, y: ops.rem(x, _not_zero(y) if _is_integer(y) else y),
    "The remainder of the division rounded towards zero, elementwise; it has the sign of `x1`.",
    "jnp.fmod(jnp.array([-3, 3]), 2)", "Array([-1,  1], dtype=int32)",
    PAIR_OF_NUMBERS, numbered=True, raises=COMPLEX)
divmod = binary("divmod", _divmod, "The pair of `floor_divide(x1, x2)` and `remainder(x1, x2)`.",
    "jnp.divmod(jnp.array([-3, 3]), 2)",
    "(Array([-2,  1], dtype=int32), Array([1, 1], dtype=int32))",
    PAIR_OF_NUMBERS, numbered=True, returns="Two arrays of the common shape and dtype.",
    raises=COMPLEX)
# fmt: on

divide, mod = true_divide, remainder

# ---- Powers -------------------------------------------------------------------------------------


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The power `x1 ** x2`, elementwise.

    An exponent that is a Python integer, or a concrete integer scalar, unrolls into products. For
    integers to the power of an array the exponents must not be negative.

    Args:
      x1: the base, an array or a number; booleans count as integers.
      x2: the exponent, an array or a number.

    Returns:
      An array of the common shape and dtype.

    Raises:
      TypeError: if an operand is not an array or a number, for integers to a negative power that
        is a number, and for shapes that do not broadcast (`ValueError` for different ranks).

    >>> import perspex.numpy as jnp
    >>> jnp.power(jnp.arange(4), 2)
    Array([0, 1, 4, 9], dtype=int32)
    """
    exponent = _static_exponent(x2)
    if exponent is None:
        return power_of_arrays(x1, x2)
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


_INT32 = np.dtype("int32")


@fused(static=("exponent",))
def integer_power(x: Any, exponent: int) -> Any:
    """`x ** exponent` for an exponent known while tracing."""
    check_arraylike("power", x)
    aval = shaped(x)
    is_flag = aval.dtype == BOOL
    return ops.integer_pow(as_dtype(x, _INT32) if is_flag else as_array(x), y=exponent)


def _counting(dtype: np.dtype) -> np.dtype:
    """The dtype of a power: booleans count in 32 bits, also where integers have 64."""
    return _INT32 if dtype == BOOL else dtype


@fused
def power_of_arrays(x: Any, y: Any) -> Any:
    """`x ** y` for an exponent that may be any: that of integers is never refused."""
    check_arraylike("power", x, y)
    if dtypes.issubdtype(shaped(x).dtype, np.inexact) and _is_integer(shaped(y)):
        # Not promoted: with an integer exponent the derivative at x = 0 comes out right.
        return ops.pow(*broadcast("power", x, y))
    x, y = promote_all("power", x, y, to=_counting)
    if not _is_integer(x):
        return ops.pow(x, y)
    return _integer_to_integer(as_dtype(x, x.dtype), as_dtype(y, y.dtype))


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


# fmt: off
float_power = binary("float_power", ops.pow,
    "The power `x ** y`, elementwise; a float also for integers.",
    "jnp.float_power(jnp.array([1, 2]), -1)", "Array([1. , 0.5], dtype=float32)", PAIR_OF_FLOATS)
# fmt: on

pow = power

# ---- Extrema ------------------------------------------------------------------------------------

# fmt: off
maximum = binary("maximum", ops.max,
    "The larger of two values, elementwise; NaN if one of them is.",
    "jnp.maximum(jnp.arange(3), 1)", "Array([1, 1, 2], dtype=int32)")
minimum = binary("minimum", ops.min,
    "The smaller of two values, elementwise; NaN if one of them is.",
    "jnp.minimum(jnp.arange(3), 1)", "Array([0, 1, 1], dtype=int32)")
# fmt: on


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
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """The array with values below `min` raised to it and above `max` lowered to it.

    Args:
      arr: an array of reals; it must be given.
      min, max: bounds that broadcast with `arr`; `None` is no bound.

    Returns:
      An array of the common shape and of the dtype that all three promote to.

    Raises:
      ValueError: if an argument is complex, or no array is given.
      TypeError: if an argument is not an array or a number.

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


def _absolute(x: Any) -> Any:
    unsigned = x.dtype == BOOL or dtypes.issubdtype(x.dtype, np.unsignedinteger)
    return x if unsigned else ops.abs(x)


def _fabs(x: Any) -> Any:
    check_real("fabs", x)
    return ops.abs(x)


def _heaviside(x: Any, y: Any) -> Any:
    check_real("heaviside", x)
    zero, one = like(x, 0), like(x, 1)
    weak = all(shaped(v).weak_type for v in (x, y, zero))
    x, y = strong(x), strong(y)
    at_zero = select("heaviside", ops.ne(x, x), x, y)
    out = ops.select(ops.lt(x, zero), zero, ops.select(ops.gt(x, zero), one, at_zero))
    return as_dtype(out, x.dtype, weak)


# fmt: off
absolute = unary("absolute", _absolute, "The magnitude of each element.",
    "jnp.absolute(jnp.array([-1.0, 3 + 4j]))", "Array([1., 5.], dtype=float32)",
    ANY, returns="An array of the shape of `x` and its dtype; of floats for complex `x`.")
fabs = unary("fabs", _fabs, "The magnitude of each element; a float also for integers.",
    "jnp.fabs(jnp.array([-1, 2]))", "Array([1., 2.], dtype=float32)", raises=COMPLEX)
sign = unary("sign", ops.sign,
    "The sign of each element: -1, 0 or 1; `x / |x|` for complex numbers.",
    "jnp.sign(jnp.array([-2.5, 0.0, 3.0]))", "Array([-1.,  0.,  1.], dtype=float32)",
    ANY, raises="TypeError: if `x` is not an array or a number, or is boolean.")
heaviside = binary("heaviside", _heaviside,
    "The step function: 0 where `x1` is negative, 1 where it is positive, `x2` where it is 0.",
    "jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)", "Array([0. , 0.5, 1. ], dtype=float32)",
    PAIR_OF_FLOATS, numbered=True, raises=COMPLEX)
# fmt: on

abs = absolute

# ---- Complex numbers ----------------------------------------------------------------------------

# fmt: off
conjugate = conj = unary("conjugate", lambda x: ops.conj(x) if x.dtype.kind == "c" else x,
    "The complex conjugate of each element; reals are their own.",
    "jnp.conjugate(jnp.array([1 + 2j]))", "Array([1.-2.j], dtype=complex64)", ANY)
# fmt: on


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
    return ops.imag(val) if val.dtype.kind == "c" else spread(weak_like(val, 0), val.shape)


@fused(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each complex number, from -pi to pi.

    Args:
      z: an array or a number; reals have the angle 0 or pi.
      deg: return degrees, not radians.

    Returns:
      An array of floats of the shape of `z`.

    >>> import perspex.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    z = arraylike("angle", z)
    re, im = inexact("angle", real(z)), inexact("angle", imag(z))
    if z.dtype.kind != "c" and (z.ndim == 0 or not dtypes.issubdtype(z.dtype, np.inexact)):
        # As JAX: the angle of a real scalar and of integers has the default dtype.
        default = dtypes.canonicalize_dtype(float)
        re, im = as_dtype(re, default), as_dtype(im, default)
    result = ops.atan2(im, re)
    return ops.mul(result, like(result, 180 / np.pi)) if deg else result


describe(
    [real, imag, angle],
    {"val": "an array or a number."},
    NO_ARRAY,
    "An array of the shape of `val` and its dtype; of floats for complex `val`.",
)
describe(
    [fmax, fmin],
    dict.fromkeys(("x1", "x2"), "an array or a number; both are promoted and broadcast."),
    f"{NO_ARRAY}\nValueError: if the shapes do not broadcast (`TypeError` for equal ranks).",
    "An array of the common shape and dtype.",
)
