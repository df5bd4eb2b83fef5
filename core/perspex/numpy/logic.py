"""Comparison, logic and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, like, spread
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.elementwise import (
    ANY,
    NO_INTEGER,
    NUMBERS,
    PAIR_OF_NUMBERS,
    PAIR_TRUTH,
    TRUTH,
    binary,
    unary,
)
from perspex.numpy.promotion import ordered, to_bool
from perspex.ops import elementwise as ops
from perspex.ops.structural import convert

__all__ = [
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_right_shift",
    "equal", "greater", "greater_equal", "invert", "iscomplex", "iscomplexobj", "isfinite", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "left_shift", "less",
    "less_equal", "logical_not", "not_equal", "right_shift",
]  # fmt: skip

# ---- Comparison ---------------------------------------------------------------------------------


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: ordered(compare, x, y)


# fmt: off
equal = binary("equal", ops.eq, "Whether `x == y`, elementwise; NaN equals nothing.",
    "jnp.equal(jnp.arange(3), 1)", "Array([False,  True, False], dtype=bool)", PAIR_TRUTH)
not_equal = binary("not_equal", ops.ne,
    "Whether `x != y`, elementwise; NaN differs from everything.",
    "jnp.not_equal(jnp.arange(3), 1)", "Array([ True, False,  True], dtype=bool)", PAIR_TRUTH)
less = binary("less", _ordered(ops.lt),
    "Whether `x < y`, elementwise; complex numbers compare by real part, then imaginary part.",
    "jnp.less(jnp.arange(3), 1)", "Array([ True, False, False], dtype=bool)", PAIR_TRUTH)
less_equal = binary("less_equal", _ordered(ops.le),
    "Whether `x <= y`, elementwise; complex numbers compare by real part, then imaginary part.",
    "jnp.less_equal(jnp.arange(3), 1)", "Array([ True,  True, False], dtype=bool)", PAIR_TRUTH)
greater = binary("greater", _ordered(ops.gt),
    "Whether `x > y`, elementwise; complex numbers compare by real part, then imaginary part.",
    "jnp.greater(jnp.arange(3), 1)", "Array([False, False,  True], dtype=bool)", PAIR_TRUTH)
greater_equal = binary("greater_equal", _ordered(ops.ge),
    "Whether `x >= y`, elementwise; complex numbers compare by real part, then imaginary part.",
    "jnp.greater_equal(jnp.arange(3), 1)", "Array([False,  True,  True], dtype=bool)", PAIR_TRUTH)
# fmt: on

# ---- Logic --------------------------------------------------------------------------------------


def _of_truth(combine: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: combine(*map(to_bool, operands))


# fmt: off
logical_and = binary("logical_and", _of_truth(ops.bitwise_and),
    "Whether both operands are true, elementwise; numbers are true unless they are 0.",
    "jnp.logical_and(jnp.arange(3), True)", "Array([False,  True,  True], dtype=bool)", PAIR_TRUTH)
logical_or = binary("logical_or", _of_truth(ops.bitwise_or),
    "Whether one or both operands are true, elementwise; numbers are true unless they are 0.",
    "jnp.logical_or(jnp.arange(3), False)", "Array([False,  True,  True], dtype=bool)", PAIR_TRUTH)
logical_xor = binary("logical_xor", _of_truth(ops.bitwise_xor),
    "Whether exactly one operand is true, elementwise; numbers are true unless they are 0.",
    "jnp.logical_xor(jnp.arange(3), True)", "Array([ True, False, False], dtype=bool)", PAIR_TRUTH)
logical_not = unary("logical_not", _of_truth(ops.bitwise_not),
    "Whether each element is false; numbers are false if they are 0.",
    "jnp.logical_not(jnp.arange(3))", "Array([ True, False, False], dtype=bool)", TRUTH)
# fmt: on

# ---- Bits ---------------------------------------------------------------------------------------


def _bitwise_count(x: Any) -> Any:
    magnitude = x if dtypes.issubdtype(x.dtype, np.unsignedinteger) else ops.abs(x)
    return convert(ops.population_count(magnitude), np.dtype("uint8"))


def _right_shift(x: Any, y: Any) -> Any:
    unsigned = dtypes.issubdtype(x.dtype, np.unsignedinteger)
    return (ops.shift_right_logical if unsigned else ops.shift_right_arithmetic)(x, y)


# fmt: off
bitwise_and = binary("bitwise_and", ops.bitwise_and,
    "The bits set in both operands, elementwise, of integers or booleans.",
    "jnp.bitwise_and(jnp.arange(4), 2)", "Array([0, 0, 2, 2], dtype=int32)", raises=NO_INTEGER)
bitwise_or = binary("bitwise_or", ops.bitwise_or,
    "The bits set in one or both operands, elementwise, of integers or booleans.",
    "jnp.bitwise_or(jnp.arange(4), 2)", "Array([2, 3, 2, 3], dtype=int32)", raises=NO_INTEGER)
bitwise_xor = binary("bitwise_xor", ops.bitwise_xor,
    "The bits set in exactly one operand, elementwise, of integers or booleans.",
    "jnp.bitwise_xor(jnp.arange(4), 2)", "Array([2, 3, 0, 1], dtype=int32)", raises=NO_INTEGER)
bitwise_not = unary("bitwise_not", ops.bitwise_not,
    "All bits inverted, elementwise, of integers or booleans.",
    "jnp.bitwise_not(jnp.arange(3))", "Array([-1, -2, -3], dtype=int32)", ANY, raises=NO_INTEGER)
bitwise_count = unary("bitwise_count", _bitwise_count,
    "The number of bits set in the magnitude of each integer.",
    "jnp.bitwise_count(jnp.array([0, 3, -8]))", "Array([0, 2, 1], dtype=uint8)",
    NUMBERS, returns="An array of dtype uint8 and the shape of `x`.", raises=NO_INTEGER)
left_shift = binary("left_shift", ops.shift_left,
    "The bits of `x` moved `y` places up, elementwise; zeros come in.",
    "jnp.left_shift(jnp.arange(3), 4)", "Array([ 0, 16, 32], dtype=int32)",
    PAIR_OF_NUMBERS, raises=NO_INTEGER)
right_shift = binary("right_shift", _right_shift,
    "The bits of `x1` moved `x2` places down, elementwise; signed integers keep their sign.",
    "jnp.right_shift(jnp.array([-8, 8]), 1)", "Array([-4,  4], dtype=int32)",
    PAIR_OF_NUMBERS, numbered=True, raises=NO_INTEGER)
# fmt: on

invert = bitwise_invert = bitwise_not
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift

# ---- Properties ---------------------------------------------------------------------------------


def _isfinite(x: Any) -> Any:
    if x.dtype.kind == "c":
        return ops.bitwise_and(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))
    return ops.is_finite(x) if _is_float(x) else spread(np.bool_(True), x.shape)


def _isinf(x: Any) -> Any:
    if x.dtype.kind == "c":
        return ops.bitwise_or(isinf(ops.real(x)), isinf(ops.imag(x)))
    if not _has_infinity(x.dtype):
        return spread(np.bool_(False), x.shape)
    return ops.eq(ops.abs(x), x.dtype.type(np.inf))


# fmt: off
isnan = unary("isnan", lambda x: ops.ne(x, x), "Whether each element is NaN.",
    "jnp.isnan(jnp.array([1.0, jnp.nan]))", "Array([False,  True], dtype=bool)", TRUTH)
isfinite = unary("isfinite", _isfinite, "Whether each element is neither infinite nor NaN.",
    "jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))", "Array([ True, False, False], dtype=bool)",
    TRUTH)
isinf = unary("isinf", _isinf, "Whether each element is an infinity.",
    "jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))", "Array([False,  True, False], dtype=bool)",
    TRUTH)
# fmt: on


@fused
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part of each element differs from 0.

    >>> import perspex.numpy as jnp
    >>> jnp.iscomplex(jnp.array([1j, 2]))
    Array([ True, False], dtype=bool)
    """
    x = arraylike("iscomplex", x)
    if x.dtype.kind == "c":
        return to_bool(ops.imag(x))
    zero = np.bool_(False) if x.dtype == bool else like(x, 0)  # a weak bool makes nothing weak
    return spread(ops.ne(zero, zero), x.shape)


@fused
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part of each element is 0.

    >>> import perspex.numpy as jnp
    >>> jnp.isreal(jnp.array([1j, 2]))
    Array([False,  True], dtype=bool)
    """
    return ops.bitwise_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether an object has a complex dtype, whatever its values.

    Args:
      x: an array, a number, nested lists of numbers, or a type such as `jnp.complex64`.

    Returns:
      A Python bool.

    Raises:
      ValueError: for lists of different lengths in one list.

    >>> import perspex.numpy as jnp
    >>> jnp.iscomplexobj(jnp.array([1j])), jnp.iscomplexobj(2.0)
    (True, False)
    """
    dtype = getattr(x, "dtype", None)
    if isinstance(x, type):  # one of NumPy's has its dtype only as an instance
        return isinstance(dtype, np.dtype) and dtype.kind == "c"
    if x is None or isinstance(x, str):
        return False
    return (np.asarray(x).dtype if dtype is None else dtype).kind == "c"


def isrealobj(x: Any) -> bool:
    """Whether an object has no complex dtype, whatever its values.

    Args:
      x: an array, a number or nested lists of numbers.

    Returns:
      A Python bool.

    Raises:
      ValueError: for lists of different lengths in one list.

    >>> import perspex.numpy as jnp
    >>> jnp.isrealobj(jnp.array([1j])), jnp.isrealobj(2.0)
    (False, True)
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether an object is a number or an array without axes.

    Args:
      element: any object.

    Returns:
      A Python bool.

    Raises:
      Nothing: every object is accepted.

    >>> import perspex.numpy as jnp
    >>> jnp.isscalar(1.0), jnp.isscalar(jnp.array(1.0)), jnp.isscalar([1.0])
    (True, True, False)
    """
    return np.isscalar(element) or getattr(element, "ndim", None) == 0


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is the positive infinity.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: if `x` is complex.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.isposinf(jnp.array([1.0, -jnp.inf, jnp.inf]))
    Array([False, False,  True], dtype=bool)
    """
    return _is_infinity(x, "isposinf", False, out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is the negative infinity.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: if `x` is complex.
      NotImplementedError: for `out`.

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
        return spread(np.bool_(False), x.shape)
    return ops.eq(x, x.dtype.type(-np.inf if negative else np.inf))


def _is_float(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.floating)


def _has_infinity(dtype: Any) -> bool:
    """Whether a dtype has infinities: integers and some floats of 8 bits have none."""
    return dtypes.issubdtype(dtype, np.floating) and bool(
        np.isinf(np.array(np.inf, dtype).astype(np.float64))
    )


describe(
    [iscomplex, isreal, iscomplexobj, isrealobj, isposinf, isneginf],
    {"x": "an array or a number.", "out": "not supported: arrays never change."},
    "TypeError: if `x` is not an array or a number.",
    "An array of booleans of the shape of `x`.",
)
