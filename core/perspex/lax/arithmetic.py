"""Arithmetic made of other operations: polynomials, and `1 - x**2`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perspex.arguments.arrays import as_array, as_dtype, aval_of, spread
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import PYTHON_SCALARS
from perspex.ops import elementwise as ops
from perspex.ops.structural import convert, scalar_like

__all__ = ["one_minus_square", "polynomial"]


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
    one = scalar_like(x, 1)
    return convert(ops.mul(ops.sub(one, x), ops.add(one, x)), aval.dtype, aval.weak_type)


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """The polynomial `coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + ...`, by Horner's rule.

    Args:
      x: an array of numbers.
      coeffs: scalars or arrays of the shape of `x`, the constant first. With none, the polynomial
        is zero. They are converted to the dtype of `x`.
      unroll: has no effect; the rule is always written out.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `coeffs` is not a sequence, or a coefficient has another shape.

    >>> from perspex import lax
    >>> lax.polynomial(2.0, [1.0, 2.0, 3.0])
    Array(17., dtype=float32, weak_type=True)
    """
    if not isinstance(coeffs, Iterable):
        raise TypeError(f"polynomial: coeffs must be a sequence of coefficients, got {coeffs!r}")
    given = [x, *coeffs]
    aval = aval_of("polynomial", x)
    shape = aval.shape
    for c in given:
        found = aval_of("polynomial", c).shape
        if found not in ((), shape):
            raise TypeError(
                f"polynomial got incompatible shapes for broadcasting: {shape}, {found}; "
                "coefficients are scalars or have the shape of x"
            )
    at = as_array(x)
    weak = aval.weak_type and not shape
    # Numbers in a formula are as weak as a scalar, arrays are converted.
    terms = [
        as_dtype(c, aval.dtype, weak) if c.__class__ in PYTHON_SCALARS else convert(c, aval.dtype)
        for c in given[1:]
    ]
    if not terms:
        return spread(as_dtype(0, aval.dtype, weak), shape)
    total = spread(terms.pop(), shape)
    for term in reversed(terms):
        total = ops.add(ops.mul(total, at), term)
    return total
