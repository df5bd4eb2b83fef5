"""Comparison, logic and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.jitted.fused import fused
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    arraylike,
    filled,
    numeric,
    ordered,
    promote,
    promote_numeric,
    to_bool,
)
from perspex.ops import elementwise as ops
from perspex.ops.structural import convert

# ---- Comparison ---------------------------------------------------------------------------------


@fused
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether `x == y`, elementwise; NaN equals nothing.

    >>> import perspex.numpy as jnp
    >>> jnp.equal(jnp.arange(3), 1)
    Array([False,  True, False], dtype=bool)
    """
    return ops.eq(*promote("equal", x, y))


@fused
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether `x != y`, elementwise; NaN differs from everything.

    >>> import perspex.numpy as jnp
    >>> jnp.not_equal(jnp.arange(3), 1)
    Array([ True, False,  True], dtype=bool)
    """
    return ops.ne(*promote("not_equal", x, y))


@fused
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether `x < y`, elementwise; complex numbers compare by real part, then imaginary part.

    >>> import perspex.numpy as jnp
    >>> jnp.less(jnp.arange(3), 1)
    Array([ True, False, False], dtype=bool)
    """
    return ordered(ops.lt, *promote("less", x, y))


@fused
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether `x <= y`, elementwise; complex numbers as in `less`.

    >>> import perspex.numpy as jnp
    >>> jnp.less_equal(jnp.arange(3), 1)
    Array([ True,  True, False], dtype=bool)
    """
    return ordered(ops.le, *promote("less_equal", x, y))


@fused
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether `x > y`, elementwise; complex numbers as in `less`.

    >>> import perspex.numpy as jnp
    >>> jnp.greater(jnp.arange(3), 1)
    Array([False, False,  True], dtype=bool)
    """
    return ordered(ops.gt, *promote("greater", x, y))


@fused
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether `x >= y`, elementwise; complex numbers as in `less`.

    >>> import perspex.numpy as jnp
    >>> jnp.greater_equal(jnp.arange(3), 1)
    Array([False,  True,  True], dtype=bool)
    """
    return ordered(ops.ge, *promote("greater_equal", x, y))


# ---- Logic --------------------------------------------------------------------------------------


@fused
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both are true, elementwise; numbers are true unless they are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.logical_and(jnp.arange(3), True)
    Array([False,  True,  True], dtype=bool)
    """
    x, y = promote("logical_and", x, y)
    return ops.bitwise_and(to_bool(x), to_bool(y))


@fused
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether one or both are true, elementwise; numbers are true unless they are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.logical_or(jnp.arange(3), False)
    Array([False,  True,  True], dtype=bool)
    """
    x, y = promote("logical_or", x, y)
    return ops.bitwise_or(to_bool(x), to_bool(y))


@fused
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one is true, elementwise; numbers are true unless they are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.logical_xor(jnp.arange(3), True)
    Array([ True, False, False], dtype=bool)
    """
    x, y = promote("logical_xor", x, y)
    return ops.bitwise_xor(to_bool(x), to_bool(y))


@fused
def logical_not(x: ArrayLike, /) -> Array:
    """Whether it is false, elementwise; numbers are false if they are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.logical_not(jnp.arange(3))
    Array([ True, False, False], dtype=bool)
    """
    return ops.bitwise_not(to_bool(arraylike("logical_not", x)))


# ---- Bits ---------------------------------------------------------------------------------------


@fused
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in both, elementwise, of integers or booleans.

    >>> import perspex.numpy as jnp
    >>> jnp.bitwise_and(jnp.arange(4), 2)
    Array([0, 0, 2, 2], dtype=int32)
    """
    return ops.bitwise_and(*promote("bitwise_and", x, y))


@fused
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in one or both, elementwise, of integers or booleans.

    >>> import perspex.numpy as jnp
    >>> jnp.bitwise_or(jnp.arange(4), 2)
    Array([2, 3, 2, 3], dtype=int32)
    """
    return ops.bitwise_or(*promote("bitwise_or", x, y))


@fused
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in exactly one, elementwise, of integers or booleans.

    >>> import perspex.numpy as jnp
    >>> jnp.bitwise_xor(jnp.arange(4), 2)
    Array([2, 3, 0, 1], dtype=int32)
    """
    return ops.bitwise_xor(*promote("bitwise_xor", x, y))


@fused
def bitwise_not(x: ArrayLike, /) -> Array:
    """All bits inverted, elementwise, of integers or booleans.

    >>> import perspex.numpy as jnp
    >>> jnp.bitwise_not(jnp.arange(3))
    Array([-1, -2, -3], dtype=int32)
    """
    return ops.bitwise_not(arraylike("bitwise_not", x))


invert = bitwise_invert = bitwise_not


@fused
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits are set in the magnitude of each integer, as uint8.

    >>> import perspex.numpy as jnp
    >>> jnp.bitwise_count(jnp.array([0, 3, -8]))
    Array([0, 2, 1], dtype=uint8)
    """
    x = numeric("bitwise_count", x)
    magnitude = x if dtypes.issubdtype(x.dtype, np.unsignedinteger) else ops.abs(x)
    return convert(ops.population_count(magnitude), np.dtype("uint8"))


@fused
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of `x` moved `y` places up, elementwise; zeros come in.

    >>> import perspex.numpy as jnp
    >>> jnp.left_shift(jnp.arange(3), 4)
    Array([ 0, 16, 32], dtype=int32)
    """
    return ops.shift_left(*promote_numeric("left_shift", x, y))


bitwise_left_shift = left_shift


@fused
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of `x1` moved `x2` places down, elementwise; signed integers keep their sign.

    >>> import perspex.numpy as jnp
    >>> jnp.right_shift(jnp.array([-8, 8]), 1)
    Array([-4,  4], dtype=int32)
    """
    x1, x2 = promote_numeric("right_shift", x1, x2)
    if dtypes.issubdtype(x1.dtype, np.unsignedinteger):
        return ops.shift_right_logical(x1, x2)
    return ops.shift_right_arithmetic(x1, x2)


bitwise_right_shift = right_shift


# ---- Properties ---------------------------------------------------------------------------------


@fused
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part differs from 0, elementwise.

    >>> import perspex.numpy as jnp
    >>> jnp.iscomplex(jnp.array([1j, 2]))
    Array([ True, False], dtype=bool)
    """
    x = arraylike("iscomplex", x)
    return to_bool(ops.imag(x)) if x.dtype.kind == "c" else filled(np.bool_(False), x.shape)


@fused
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is 0, elementwise.

    >>> import perspex.numpy as jnp
    >>> jnp.isreal(jnp.array([1j, 2]))
    Array([False,  True], dtype=bool)
    """
    return ops.bitwise_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether `x`, an array, a number or nested lists of numbers, has a complex dtype.

    >>> import perspex.numpy as jnp
    >>> jnp.iscomplexobj(jnp.array([1j])), jnp.iscomplexobj(2.0)
    (True, False)
    """
    if x is None or isinstance(x, (str, type)):
        return False
    dtype = getattr(x, "dtype", None)
    return (np.asarray(x).dtype if dtype is None else dtype).kind == "c"


def isrealobj(x: Any) -> bool:
    """Whether `x`, an array, a number or nested lists of numbers, has no complex dtype.

    >>> import perspex.numpy as jnp
    >>> jnp.isrealobj(jnp.array([1j])), jnp.isrealobj(2.0)
    (False, True)
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether `element` is a number or an array without axes.

    >>> import perspex.numpy as jnp
    >>> jnp.isscalar(1.0), jnp.isscalar(jnp.array(1.0)), jnp.isscalar([1.0])
    (True, True, False)
    """
    return np.isscalar(element) or getattr(element, "ndim", None) == 0


@fused
def isnan(x: ArrayLike, /) -> Array:
    """Whether each element is NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    x = arraylike("isnan", x)
    return ops.ne(x, x)


@fused
def isfinite(x: ArrayLike, /) -> Array:
    """Whether each element is neither infinite nor NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x = arraylike("isfinite", x)
    if x.dtype.kind == "c":
        return ops.bitwise_and(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))
    return ops.is_finite(x) if _is_float(x) else filled(np.bool_(True), x.shape)


@fused
def isinf(x: ArrayLike, /) -> Array:
    """Whether each element is an infinity.

    >>> import perspex.numpy as jnp
    >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
    x = arraylike("isinf", x)
    if x.dtype.kind == "c":
        return ops.bitwise_or(isinf(ops.real(x)), isinf(ops.imag(x)))
    if not _has_infinity(x.dtype):
        return filled(np.bool_(False), x.shape)
    return ops.eq(ops.abs(x), x.dtype.type(np.inf))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is the positive infinity; `ValueError` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.isposinf(jnp.array([1.0, -jnp.inf, jnp.inf]))
    Array([False, False,  True], dtype=bool)
    """
    return _is_infinity(x, "isposinf", False, out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is the negative infinity; `ValueError` for complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.isneginf(jnp.array([1.0, -jnp.inf, jnp.inf]))
    Array([False,  True, False], dtype=bool)
    """
    return _is_infinity(x, "isneginf", True, out)


def _is_infinity(x: Any, name: str, negative: bool, out: Any) -> Any:
    if out is not None:
        raise NotImplementedError(f"{name}: arrays never change; use the result, not `out`")
    return _equals_infinity(x, name, negative)


@fused(static=("name", "negative"))
def _equals_infinity(x: Any, name: str, negative: bool) -> Any:
    x = arraylike(name, x)
    if x.dtype.kind == "c":
        raise ValueError(f"{name} is not well defined for complex numbers, got {x.dtype.name}")
    if not _has_infinity(x.dtype):
        return filled(np.bool_(False), x.shape)
    return ops.eq(x, x.dtype.type(-np.inf if negative else np.inf))


def _is_float(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.floating)


def _has_infinity(dtype: Any) -> bool:
    """Whether a dtype has infinities: integers and some floats of 8 bits have none."""
    return dtypes.issubdtype(dtype, np.floating) and bool(
        np.isinf(np.array(np.inf, dtype).astype(np.float64))
    )
