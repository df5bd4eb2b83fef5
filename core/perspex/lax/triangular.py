"""Equations with triangular and tridiagonal matrices."""

from __future__ import annotations

from perspex.arguments.arrays import aval_of, inexact_operands
from perspex.arguments.types import Array, ArrayLike
from perspex.lax.polar import qdwh as qdwh
from perspex.ops import linalg as ops
from perspex.ops.linalg import SvdAlgorithm as SvdAlgorithm
from perspex.ops.structural import reshape

__all__ = ["triangular_solve", "tridiagonal_solve"]


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The solution `x` of `op(a) @ x = b`, or of `x @ op(a) = b`, for a triangular `a`.

    Args:
      a: matrices of shape `(..., n, n)`. Only one triangle is read.
      b: matrices with the same batch axes; or one axis fewer: vectors.
      lower: whether it is the lower triangle.
      transpose_a, conjugate_a: `op` transposes, conjugates, or both.
      unit_diagonal: take the diagonal of `a` for ones.
      left_side: solve `op(a) @ x = b`.

    Returns:
      An array of the shape of `b`.

    Raises:
      ValueError: for an `a` that is not square.
      TypeError: where the shapes do not fit.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> linalg.triangular_solve(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([4.0, 3.0]),
    ...                  left_side=True, lower=True)
    Array([2., 1.], dtype=float32)
    """
    a, b = inexact_operands("triangular_solve", a, b)
    a_aval, b_aval = aval_of("triangular_solve", a), aval_of("triangular_solve", b)
    is_vector = b_aval.ndim == a_aval.ndim - 1
    if is_vector:
        axis = b_aval.ndim if left_side else b_aval.ndim - 1
        shape = (*b_aval.shape[:axis], 1, *b_aval.shape[axis:])
        b = reshape(b, new_sizes=shape)
    out = ops.triangular_solve(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and a_aval.dtype.kind == "c",
        unit_diagonal=unit_diagonal,
    )
    return reshape(out, new_sizes=b_aval.shape) if is_vector else out


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """The solution `x` of `dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i]` for all rows.

    Args:
      dl, d, du: the diagonal below the main one, that, and the one above, each of shape
        `(..., n)`; `dl[..., 0]` and `du[..., -1]` are not looked at.
      b: shape `(..., n, k)`.
      perturb_singular: make pivots that are zero small numbers instead.

    Returns:
      An array of the shape and dtype of `b`.

    Raises:
      TypeError: for a `b` with fewer than two axes.
      ValueError: for shapes that do not fit.

    >>> import numpy as np
    >>> from perspex.lax import linalg
    >>> one = np.ones(2, "float32")
    >>> linalg.tridiagonal_solve(one, 2 * one, one, np.array([[3.0], [3.0]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    diagonals = inexact_operands("tridiagonal_solve", dl, d, du, b)
    return ops.tridiagonal_solve(*diagonals, perturb_singular=perturb_singular)
