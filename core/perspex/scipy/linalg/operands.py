"""Checks of matrices and right-hand sides."""

from __future__ import annotations

from typing import Any

from perspex import dtypes
from perspex.arguments.arrays import as_array
from perspex.arguments.types import Array
from perspex.numpy.promotion import inexact, promote_dtypes

# For `describe`: parameters that have no effect, and the one of most functions.
WORDS = {
    "a": "square matrices of shape `(..., n, n)`.",
    "overwrite_a": "has no effect; arrays are not overwritten.",
    "overwrite_b": "has no effect; arrays are not overwritten.",
    "overwrite_c": "has no effect; arrays are not overwritten.",
    "check_finite": "has no effect; NaN and infinities are not refused.",
    "debug": "has no effect.",
    "lwork": "has no effect.",
    "turbo": "has no effect.",
}


def promoted(name: str, *xs: Any) -> list[Array]:
    """Arrays of one floating or complex dtype."""
    return [as_array(x) for x in promote_dtypes(name, *xs, to=dtypes.to_inexact_dtype)]


def matrices(name: str, a: Any) -> Array:
    """An array of floating or complex dtype with at least two axes."""
    a = as_array(inexact(name, a))
    if a.ndim < 2:
        raise TypeError(f"{name} takes arrays of at least two axes, got the shape {a.shape}")
    return a


def check_square(name: str, *xs: Array, ndim: int | None = None) -> None:
    """Refuse matrices that are not square or of different shapes; `ndim=2` refuses batches."""
    for a in xs:
        if a.ndim < 2 or a.shape[-1] != a.shape[-2] or ndim not in (None, a.ndim):
            kind = "a square matrix" if ndim == 2 else "a square matrix or a batch of them"
            raise ValueError(f"{name} takes {kind}, got the shape {a.shape}")
    if len({x.shape for x in xs}) > 1:
        raise ValueError(
            f"{name} takes matrices of one shape, got the shapes {[x.shape for x in xs]}"
        )


def check_right_side(name: str, a: Array, b: Array, is_vector: bool) -> None:
    """Refuse an `a` that is not square, and a `b` with another number of rows."""
    check_square(name, a)
    if not b.ndim or b.shape[-1 if is_vector else -2] != a.shape[-1]:
        raise ValueError(
            f"{name}: a matrix of shape {a.shape} does not fit a right-hand side of shape {b.shape}"
        )
