"""Rounding, the parts of floating point numbers, and comparing them with tolerance."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, like, spread
from perspex.arguments.dtypes import check_real
from perspex.arguments.glossary import describe
from perspex.arguments.refused import check_no_out
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.elementwise import ANY, COMPLEX, NO_ARRAY, PAIR_OF_FLOATS, binary, unary
from perspex.numpy.logic import isfinite, isnan
from perspex.numpy.promotion import (
    BOOL,
    beside_numbers,
    broadcast,
    inexact,
    promote_all,
    promote_inexact,
    select,
    strong,
)
from perspex.ops import elementwise as ops
from perspex.ops.elementwise import real_dtype
from perspex.ops.passing import bitcast_convert_type
from perspex.ops.structural import convert

__all__ = [
    "around", "ceil", "copysign", "floor", "frexp", "isclose", "ldexp", "modf", "nan_to_num",
    "nextafter", "rint", "round", "signbit", "spacing", "trunc",
]  # fmt: skip

_TO_EVEN = 1

# ---- Rounding -----------------------------------------------------------------------------------


def _is_whole(x: Any) -> bool:
    return x.dtype == BOOL or dtypes.issubdtype(x.dtype, np.integer)


# fmt: off
floor = unary("floor", lambda x: x if _is_whole(x) else ops.floor(x),
    "The greatest whole number that is not above each element.",
    "jnp.floor(jnp.array([-1.5, 1.5]))", "Array([-2.,  1.], dtype=float32)", ANY, raises=COMPLEX)
ceil = unary("ceil", lambda x: x if _is_whole(x) else ops.ceil(x),
    "The least whole number that is not below each element.",
    "jnp.ceil(jnp.array([-1.5, 1.5]))", "Array([-1.,  2.], dtype=float32)", ANY, raises=COMPLEX)
# fmt: on


@fused
def trunc(x: ArrayLike) -> Array:
    """The elements rounded towards zero; integers and booleans stay as they are.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is complex, or not an array or a number.

    >>> import perspex.numpy as jnp
    >>> jnp.trunc(jnp.array([-1.5, 1.5]))
    Array([-1.,  1.], dtype=float32)
    """
    x = arraylike("trunc", x)
    if _is_whole(x):
        return x
    return ops.select(ops.lt(x, like(x, 0)), ops.ceil(x), ops.floor(x))


def _rint(x: Any) -> Any:
    if _is_whole(x):
        return convert(x, dtypes.canonicalize_dtype(float))
    return _by_parts(lambda part: ops.round(part, rounding_method=_TO_EVEN), x)


# fmt: off
rint = unary("rint", _rint, "The nearest whole numbers, halves rounded to even.",
    "jnp.rint(jnp.array([0.5, 1.5, 2.4]))", "Array([0., 2., 2.], dtype=float32)",
    ANY, returns="An array of the shape and dtype of `x`; of floats for integers and booleans.")
# fmt: on


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The elements rounded to a number of decimals, halves to even.

    Args:
      a: an array or a number, not of booleans; integers stay as they are.
      decimals: digits after the point; negative for tens, hundreds, ... of floats.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for booleans.
      NotImplementedError: for integers with negative `decimals`, and for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.round(jnp.array([0.5, 1.25, 2.75]), 1)
    Array([0.5, 1.2, 2.8], dtype=float32)
    """
    check_no_out("round", out)
    return _round(a, concrete("round: decimals", operator.index, decimals))


around = round


@fused(static=("decimals",))
def _round(a: Any, decimals: int) -> Any:
    a = arraylike("round", a)
    if dtypes.issubdtype(a.dtype, np.integer):
        if decimals < 0:
            raise NotImplementedError(
                f"round: integers to {decimals} decimals; use a // 10**n * 10**n, or floats"
            )
        return a
    if a.dtype == BOOL:
        raise ValueError("round does not accept booleans; convert them with astype")
    if decimals > np.log10(float(dtypes.finfo(a.dtype).max)):
        return a
    return _by_parts(lambda part: _round_part(part, decimals), a)


def _round_part(x: Any, decimals: int) -> Any:
    if decimals == 0:
        return ops.round(x, rounding_method=_TO_EVEN)
    narrow = x.dtype == np.dtype("float16")
    y = convert(x, np.dtype("float32")) if narrow else x
    factor = like(y, 10.0**decimals)
    scaled = ops.round(ops.mul(y, factor), rounding_method=_TO_EVEN)
    y = ops.div(scaled, factor)
    return convert(y, x.dtype) if narrow else y


def _by_parts(f: Any, x: Any) -> Any:
    """`f` of reals, or of the real and the imaginary part."""
    if x.dtype.kind != "c":
        return f(x)
    return ops.complex(f(ops.real(x)), f(ops.imag(x)))


@fused
def _modf(x: Any) -> Any:
    x = inexact("modf", x)
    check_real("modf", x)
    whole = ops.select(ops.ge(x, like(x, 0)), ops.floor(x), ops.ceil(x))
    return ops.sub(x, whole), whole


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the whole part of each element, both with its sign.

    Returns:
      Two arrays of floats of the shape of `x`: the fractions, and the whole parts.

    Raises:
      TypeError: if `x` is complex, or not an array or a number.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.modf(jnp.array([-1.5, 2.25]))
    (Array([-0.5 ,  0.25], dtype=float32), Array([-1.,  2.], dtype=float32))
    """
    check_no_out("modf", out)
    return _modf(x)


# ---- The parts of a floating point number -------------------------------------------------------


def _bits(x: Any) -> Any:
    """The bits of floats as unsigned integers of their width."""
    width = dtypes.itemsize_bits(x.dtype)
    return bitcast_convert_type(x, new_dtype=np.dtype(f"uint{width}"))


def _is_narrow(x: Any) -> bool:
    """Whether `x` has floats of 8 bits or fewer, whose bits are not laid out as IEEE 754 says."""
    return dtypes.itemsize_bits(x.dtype) <= 8


def _power_of_two(exponent: Any, dtype: np.dtype) -> Any:
    """`2 ** exponent` exactly, for exponents of normal numbers."""
    info = dtypes.finfo(dtype)
    unsigned = np.dtype(f"uint{info.bits}")
    biased = convert(ops.add(exponent, np.int32(info.maxexp - 1)), unsigned)
    bits = ops.shift_left(biased, unsigned.type(info.nmant))
    return bitcast_convert_type(bits, new_dtype=dtype)


@fused
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign of each element is negative, also that of zeros and NaN.

    Returns:
      An array of booleans of the shape of `x`.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.signbit(jnp.array([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], dtype=bool)
    """
    x = arraylike("signbit", x)
    if x.dtype.kind == "c":
        raise ValueError(f"signbit is not well defined for complex numbers, got {x.dtype.name}")
    if x.dtype == BOOL:
        return spread(np.bool_(False), x.shape)
    if _is_whole(x):
        return ops.lt(x, x.dtype.type(0))
    bits = _bits(x)
    last = like(bits, dtypes.itemsize_bits(x.dtype) - 1)
    return convert(ops.shift_right_logical(bits, last), np.dtype(bool))


@fused
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of `x1` with the sign of `x2`, elementwise.

    Args:
      x1, x2: arrays or numbers, promoted to one dtype of floats and broadcast.

    Returns:
      An array of floats of the common shape.

    Raises:
      TypeError: if an operand is complex, or not an array or a number.
      ValueError: if the shapes do not broadcast (`TypeError` for equal ranks).

    >>> import perspex.numpy as jnp
    >>> jnp.copysign(jnp.array([1.0, -2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    x1, x2 = promote_inexact("copysign", x1, x2)
    check_real("copysign", x1)
    magnitude = ops.abs(x1)
    return ops.select(signbit(x2), ops.neg(magnitude), magnitude)


# fmt: off
nextafter = binary("nextafter", ops.nextafter,
    "The float next to `x` on the way to `y`, elementwise.",
    "jnp.nextafter(jnp.array([1.0]), 2.0) - 1", "Array([1.1920929e-07], dtype=float32)",
    PAIR_OF_FLOATS, raises=COMPLEX)
# fmt: on


@fused
def spacing(x: ArrayLike, /) -> Array:
    """The distance from `x` to the next float away from zero, with the sign of `x`.

    Returns:
      An array of floats of the shape of `x`.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for complex numbers.
      NotImplementedError: for floats of 8 bits or fewer.

    >>> import perspex.numpy as jnp
    >>> jnp.spacing(jnp.array([1.0, -1e6]))
    Array([ 1.1920929e-07, -6.2500000e-02], dtype=float32)
    """
    x = inexact("spacing", x)
    if x.dtype.kind == "c":
        raise ValueError("spacing is not defined for complex numbers")
    if _is_narrow(x):
        raise NotImplementedError(f"spacing: {x.dtype.name} is not supported; take np.spacing")
    return _spacing(strong(beside_numbers(x)))


def _spacing(x: Any) -> Any:
    infinity = like(x, np.inf)
    if x.dtype == np.dtype("float16"):
        return ops.sub(ops.nextafter(x, infinity), x)
    step = ops.sub(ops.nextafter(x, copysign(infinity, x)), x)
    # The processor takes the difference of the smallest floats for zero.
    smallest = copysign(x.dtype.type(dtypes.finfo(x.dtype).smallest_subnormal), x)
    return ops.select(ops.eq(step, like(x, 0)), smallest, step)


@fused
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The product `x1 * 2 ** x2` for integers `x2`, without rounding of the power.

    Args:
      x1: an array or a number; integers and booleans become floats.
      x2: an array of integers or an integer; it is broadcast with `x1`.

    Returns:
      An array of floats, of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number.
      ValueError: for complex `x1`, and for `x2` that are not integers.
      ValueError: if the shapes do not broadcast (`TypeError` for equal ranks).

    >>> import perspex.numpy as jnp
    >>> jnp.ldexp(jnp.array([1.0, 1.5]), 3)
    Array([ 8., 12.], dtype=float32)
    """
    check_arraylike("ldexp", x1, x2)
    given = [shaped(x).dtype for x in (x1, x2)]
    if given[0].kind == "c" or dtypes.issubdtype(given[1], np.inexact):
        names = " and ".join([dtype.name for dtype in given])
        raise ValueError(f"ldexp takes reals and integers, got {names}; convert the exponents")
    x = inexact("ldexp", x1)
    x, n = broadcast("ldexp", as_dtype(x, x.dtype), arraylike("ldexp", x2))
    return _scale(x, n)


def _scale(x: Any, n: Any) -> Any:
    """`x * 2 ** n` in three steps, as `2 ** n` may take the least number above the greatest."""
    if _is_narrow(x):
        return convert(_scale(convert(x, np.dtype("float32")), n), x.dtype)
    info = dtypes.finfo(x.dtype)
    most = np.int32(3 * (info.maxexp - 4))
    if dtypes.issubdtype(n.dtype, np.unsignedinteger):
        n = ops.min(n, like(n, min(int(most), int(dtypes.iinfo(n.dtype).max))))
    elif dtypes.itemsize_bits(n.dtype) > 32:
        n = ops.clamp(like(n, -most), n, like(n, most))
    n = ops.clamp(-most, convert(n, np.dtype("int32")), most)
    third = ops.div(n, np.int32(3))
    rest = ops.sub(n, ops.add(third, third))
    for step in (third, third, rest):
        x = ops.mul(x, _power_of_two(step, x.dtype))
    return x


@fused
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissas and exponents: `x` is `mantissa * 2 ** exponent`.

    Infinities, NaN and zeros are their own mantissas, with exponent 0.

    Returns:
      An array of floats of magnitude from 0.5 up to 1, and an array of int32, of the shape of `x`.

    Raises:
      TypeError: if `x` is complex, or not an array or a number.

    >>> import perspex.numpy as jnp
    >>> jnp.frexp(jnp.array([1.0, 12.0]))
    (Array([0.5 , 0.75], dtype=float32), Array([1, 4], dtype=int32))
    """
    x = inexact("frexp", x)
    check_real("frexp", x)
    x = as_dtype(x, x.dtype)
    if _is_narrow(x):
        mantissa, exponent = frexp(convert(x, np.dtype("float32")))
        return convert(mantissa, x.dtype), exponent
    info = dtypes.finfo(x.dtype)
    bits = _bits(x)
    number = bits.dtype.type
    biased = ops.bitwise_and(
        ops.shift_right_logical(bits, number(info.nmant)), number(2**info.nexp - 1)
    )
    special = ops.bitwise_or(ops.eq(biased, number(0)), ops.eq(biased, number(2**info.nexp - 1)))
    exponent = ops.sub(convert(biased, np.dtype("int32")), np.int32(info.maxexp - 2))
    exponent = ops.select(special, np.int32(0), exponent)
    return _scale(x, ops.neg(exponent)), exponent


# ---- Replacing and comparing --------------------------------------------------------------------


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """The elements with NaN and infinities replaced by numbers.

    Args:
      x: an array or a number; integers and booleans stay as they are.
      copy: has no effect: arrays never change.
      nan: the number in the place of NaN.
      posinf, neginf: the numbers in the place of infinities; by default the greatest and the least
        number of the dtype.

    Returns:
      An array of the shape and dtype of `x`.

    >>> import perspex.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
    Array([1., 0., 9.], dtype=float32)
    """
    return _nan_to_num(x, nan, posinf, neginf)


@fused
def _nan_to_num(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    x = arraylike("nan_to_num", x)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    if x.dtype.kind == "c":
        return _by_parts(lambda part: _nan_to_num(part, nan, posinf, neginf), x)
    info, number = dtypes.finfo(x.dtype), x.dtype.type
    replacements = (
        (ops.ne(x, x), nan),
        (ops.eq(x, number(np.inf)), info.max if posinf is None else posinf),
        (ops.eq(x, number(-np.inf)), info.min if neginf is None else neginf),
    )
    for where, value in replacements:
        x = select("nan_to_num", where, as_dtype(value, x.dtype), x)
    return x


@fused(static=("equal_nan",))
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether `|a - b| <= atol + rtol * |b|`, elementwise; equal infinities are close.

    Args:
      a, b: arrays or numbers that broadcast; the tolerance is relative to `b`.
      rtol, atol: relative and absolute tolerance.
      equal_nan: NaN is close to NaN.

    Returns:
      An array of booleans of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number.
      ValueError: if the shapes do not broadcast (`TypeError` for equal ranks).

    >>> import perspex.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 1.1]), 1.0)
    Array([ True, False], dtype=bool)
    """
    check_arraylike("isclose", a, b)
    a, b = promote_all("isclose", a, b, to=dtypes.to_inexact_dtype)
    part = real_dtype(a.dtype)
    tolerance = ops.add(as_dtype(atol, part), ops.mul(as_dtype(rtol, part), ops.abs(b)))
    near = ops.le(ops.abs(ops.sub(a, b)), tolerance)
    close = ops.bitwise_or(ops.eq(a, b), ops.bitwise_and(isfinite(b), near))
    if equal_nan:
        close = ops.bitwise_or(close, ops.bitwise_and(isnan(a), isnan(b)))
    return close


describe(
    [trunc, round, modf, signbit, spacing, frexp, nan_to_num],
    {"x": "an array or a number.", "out": "not supported: arrays never change."},
    NO_ARRAY,
)
