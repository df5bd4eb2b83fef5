"""Arithmetic made of other operations: polynomials, high halves of products."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_array, aval_of
from perspex.arguments.types import Array, ArrayLike
from perspex.ops import elementwise as ops
from perspex.ops.structural import broadcast_in_dim, convert, full_like

__all__ = ["mulhi", "one_minus_square", "polynomial"]


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the product of integers, which is twice as wide as they are.

    The result is made from four products of half words, so that it needs no wider integers than it
    is given.

    Args:
      x, y: integers of one dtype and shape; one may be a scalar.

    Returns:
      An array of the shape and dtype of the operands.

    Raises:
      TypeError: for operands that are not integers, or dtypes or shapes that differ.

    References:
      Warren, "Hacker's Delight", 2nd ed., section 8-2

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.mulhi(np.int8(100), np.int8(100)), 100 * 100 >> 8
    (Array(39, dtype=int8), 39)
    """
    for i, v in enumerate((x, y)):
        aval = aval_of("mulhi", v)
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(
                f"mulhi does not accept dtype {aval.dtype.name} at position {i}; it takes integers"
            )
    number = aval_of("mulhi", x).dtype
    half = dtypes.itemsize_bits(number) // 2
    signed = dtypes.issubdtype(number, np.signedinteger)
    shift = ops.shift_right_arithmetic if signed else ops.shift_right_logical
    bits, mask = number.type(half), number.type((1 << half) - 1)
    x_low, x_high = ops.bitwise_and(x, mask), shift(x, bits)
    y_low, y_high = ops.bitwise_and(y, mask), shift(y, bits)
    carried = ops.shift_right_logical(ops.mul(x_low, y_low), bits)
    middle = ops.add(ops.mul(x_high, y_low), carried)
    rest = ops.add(ops.bitwise_and(middle, mask), ops.mul(x_low, y_high))
    high = ops.add(ops.mul(x_high, y_high), shift(middle, bits))
    return ops.add(high, shift(rest, bits))


def one_minus_square(x: ArrayLike) -> Array:
    """`1 - x**2`, to the last digit also where `x` is nearly 1: it is `(1 - x) * (1 + x)`.

    Args:
      x: an array of numbers.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is not an array or a number.

    >>> from perspex import lax
    >>> lax.one_minus_square(0.6)
    Array(0.64, dtype=float32, weak_type=True)
    """
    aval = aval_of("one_minus_square", x)
    one: Any = aval.dtype.type(1)
    if aval.weak_type:
        one = convert(one, aval.dtype, True)
    return ops.mul(ops.sub(one, x), ops.add(one, x))


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """The polynomial `coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + ...`, by Horner's rule.

    Args:
      x: an array of numbers.
      coeffs: scalars or arrays of the shape of `x`, the constant first. With none, the polynomial
        is zero. They and `x` are promoted to one dtype (JAX converts the coefficients to that of
        `x`).
      unroll: has no effect; the rule is always written out.

    Returns:
      An array of the shape of `x`.

    Raises:
      TypeError: if `coeffs` is not a sequence, or a coefficient has another shape.

    >>> from perspex import lax
    >>> lax.polynomial(2.0, [1.0, 2.0, 3.0])
    Array(17., dtype=float32, weak_type=True)
    """
    if not isinstance(coeffs, Iterable):
        raise TypeError(f"polynomial: coeffs must be a sequence of coefficients, got {coeffs!r}")
    given = [x, *coeffs]
    shape = aval_of("polynomial", x).shape
    for c in given:
        found = aval_of("polynomial", c).shape
        if found not in ((), shape):
            raise TypeError(
                f"polynomial got incompatible shapes for broadcasting: {shape}, {found}; "
                "coefficients are scalars or have the shape of x"
            )
    dtype, weak = dtypes.result_type(*given, return_weak_type_flag=True)
    at, *terms = [convert(as_array(v), dtype, weak) for v in given]
    if not terms:
        return full_like(at, 0)
    total = terms.pop()
    if total.shape != shape:
        total = broadcast_in_dim(total, shape=shape, broadcast_dimensions=())
    for term in reversed(terms):
        total = ops.add(ops.mul(total, at), term)
    return total
