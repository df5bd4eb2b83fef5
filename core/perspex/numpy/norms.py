"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, expand
from perspex.arguments.axes import canonical_axis, hashable_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import absolute, conj, divide, multiply, power, real
from perspex.numpy.logic import isnan, logical_and, logical_not
from perspex.numpy.promotion import inexact
from perspex.numpy.reductions import any as any_
from perspex.numpy.reductions import max as max_
from perspex.numpy.reductions import min as min_
from perspex.numpy.reductions import sum as sum_
from perspex.numpy.selection import where
from perspex.numpy.transcendental import sqrt
from perspex.ops import elementwise as ew
from perspex.ops import linalg as ops
from perspex.ops.linalg.solve import inverse
from perspex.ops.structural import convert, full_like, move_axis

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

_MATRIX = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


def _length(x: Any, axis: Any, keepdims: bool) -> Any:
    squares = real(multiply(x, conj(x))) if x.dtype.kind == "c" else multiply(x, x)
    return sqrt(sum_(squares, axis=axis, keepdims=keepdims))


def _vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    if order is None or order == 2:
        return _length(x, axis, keepdims)
    size = absolute(x)
    if order == np.inf:
        return max_(size, axis=axis, keepdims=keepdims, initial=0)
    if order == -np.inf:
        return min_(size, axis=axis, keepdims=keepdims)
    if order == 0:
        return sum_(convert(ew.ne(x, full_like(x, 0)), size.dtype), axis=axis, keepdims=keepdims)
    if order == 1:
        return sum_(size, axis=axis, keepdims=keepdims)
    if isinstance(order, str):
        raise ValueError(
            f"Invalid order {order!r} for vector norm: it must be a number, inf or -inf"
        )
    total = sum_(power(size, order), axis=axis, keepdims=keepdims)
    return power(total, 1.0 / order)


def _matrix_norm(x: Any, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if order is None or order == "fro":
        return _length(x, axes, keepdims)
    if order not in _MATRIX:
        raise ValueError(
            f"Invalid order {order!r} for matrix norm: it must be one of 'fro', 'nuc', "
            "1, -1, 2, -2, inf, -inf"
        )
    row, column = axes
    if order in ("nuc", 2, -2):
        s = singular_values(_matrices_last(x, row, column))
        if order == 2:
            found = max_(s, axis=-1, initial=0)
        else:
            found = (sum_ if order == "nuc" else min_)(s, axis=-1)
        return expand(found, sorted(axes)) if keepdims else found
    inner, outer = (row, column) if abs(order) == 1 else (column, row)
    sums = sum_(absolute(x), axis=inner, keepdims=True)
    if order > 0:
        found = max_(sums, axis=outer, keepdims=True, initial=0)
    else:
        found = min_(sums, axis=outer, keepdims=True)
    if keepdims:
        return found
    return found.reshape([n for i, n in enumerate(x.shape) if i not in axes])


def _matrices_last(x: Any, row: int, column: int) -> Any:
    x = move_axis(x, row, x.ndim - 1)
    return move_axis(x, column - (column > row), x.ndim - 1)


def singular_values(x: Array) -> Array:
    """The singular values of matrices, descending.

    Args:
      x: an array of floats or complex numbers, of shape `(..., m, n)`.

    Returns:
      An array of floats of shape `(..., min(m, n))`.

    Raises:
      TypeError: for other dtypes.

    >>> import perspex.numpy as jnp
    >>> singular_values(jnp.diag(jnp.array([1.0, 3.0])))
    Array([3., 1.], dtype=float32)
    """
    (s,) = ops.svd(x, full_matrices=False, compute_uv=False, subset_by_index=None, algorithm=None)
    return s


def _order(order: Any) -> Any:
    """An order that can be hashed: numbers of NumPy's become Python's."""
    if order is None or isinstance(order, (str, int, float)):
        return order
    return operator.index(order) if hasattr(order, "__index__") else float(order)


def norm(
    x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> Array:
    """The norm of vectors or matrices.

    Args:
      ord: for vectors, any number `p`, `inf`, `-inf`, or 0, which counts the elements that are not
        zero; for matrices `"fro"`, `"nuc"` (the sum of the singular values), 2 and -2 (the
        greatest, the least), 1 and -1 (of the sums of columns), `inf` and `-inf` (of rows). By
        default the root of the sum of squares.
      axis: one axis, of vectors; or two, of matrices. By default all axes, at most two if `ord` is
        given.

    Returns:
      An array of floats without those axes. At zero, the gradient of the default norm is NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    return _norm(x, ord=_order(ord), axis=hashable_axis("norm", axis), keepdims=bool(keepdims))


@fused(static=("ord", "axis", "keepdims"))
def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    x = inexact("norm", x)
    if axis is None and ord is None:
        return _length(x, None, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple) else (axes,)
    axes = tuple([canonical_axis(i, x.ndim) for i in axes])
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, (axes[0], axes[1]), keepdims)
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}; pass one for the norm of vectors, or two "
        "for that of matrices"
    )


def vector_norm(
    x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float = 2
) -> Array:
    """The norm of vectors along one axis or several; of all elements by default.

    Args:
      axis: the axis or the axes; `None` takes all elements as one vector.
      ord: any number, `inf`, `-inf`, or 0, which counts the elements that are not zero.

    Returns:
      An array of floats without the axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([[3.0], [4.0]]), ord=1)
    Array(7., dtype=float32)
    """
    axis = hashable_axis("vector_norm", axis)
    return _vector_norms(x, axis=axis, keepdims=bool(keepdims), ord=_order(ord))


@fused(static=("axis", "keepdims", "ord"))
def _vector_norms(x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    out = inexact("vector_norm", x)
    # The sum of squares of integers is one, and its root of the default dtype.
    whole = ord == 2 and not dtypes.issubdtype(shaped(x).dtype, np.inexact)
    return _vector_norm(out.astype(float) if whole else out, ord, axis, keepdims)


def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Array:
    """The norm of matrices, the last two axes.

    Args:
      ord: `"fro"`, `"nuc"`, 2, -2, 1, -1, `inf` or `-inf`, as for `norm`.

    Returns:
      An array of floats without the two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.ones((5, 2, 2))).shape
    (5,)
    """
    return _norm(x, ord=_order(ord), axis=(-2, -1), keepdims=bool(keepdims))


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition of matrices: the norm times the norm of the inverse.

    Args:
      x: shape `(..., m, n)`, square unless `p` is `None`, 2 or -2.
      p: the order of the norm; by default the ratio of the greatest and the least singular value.

    Returns:
      An array of floats of shape `(...)`; infinite for singular matrices.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for empty matrices, fewer than two axes, and matrices that are not square where
        they must be.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.cond(jnp.array([[1.0, 0.0], [0.0, 4.0]]))
    Array(4., dtype=float32)
    """
    return _cond(x, p=_order(p))


@fused(static=("p",))
def _cond(x: Any, p: Any) -> Any:
    x = inexact("cond", x)
    if x.ndim < 2:
        raise ValueError(f"linalg.cond takes matrices of at least two axes, got shape {x.shape}")
    if 0 in x.shape[-2:]:
        raise ValueError(f"linalg.cond: matrices must not be empty, got shape {x.shape}")
    axes = (x.ndim - 2, x.ndim - 1)
    if p in (None, 2, -2):
        s = singular_values(x)
        first, last = s[..., 0], s[..., -1]
        found = divide(last, first) if p == -2 else divide(first, last)
    elif x.shape[-1] != x.shape[-2]:
        raise ValueError(f"linalg.cond with p={p!r} takes square matrices, got shape {x.shape}")
    else:
        found = multiply(_matrix_norm(x, p, axes, False), _matrix_norm(inverse(x), p, axes, False))
    # The inverse of a singular matrix is NaN, its condition is infinite.
    singular = logical_and(isnan(found), logical_not(any_(isnan(x), axis=axes)))
    return where(singular, np.inf, found)


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """The number of singular values that are not small.

    Args:
      M: shape `(..., m, n)`; a vector or a number has rank one if it is not zero.
      rtol: the limit of small values, as a multiple of the greatest singular value; by default
        `max(m, n)` times the precision of the dtype. (JAX takes it for `tol`.)
      hermitian: use that the matrices are Hermitian.
      tol: the limit itself; only one of the two may be given.

    Returns:
      An array of the default integers of shape `(...)`.

    Raises:
      TypeError: if `M` is not an array or a number.
      ValueError: for empty matrices, and for two tolerances.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: give a relative or an absolute tolerance, not both")
    return _matrix_rank(M, rtol, tol, hermitian=bool(hermitian))


@fused(static=("hermitian",))
def _matrix_rank(m: Any, rtol: Any, tol: Any, hermitian: bool) -> Any:
    m = inexact("matrix_rank", m)
    if m.ndim < 2:
        return convert(any_(ew.ne(m, full_like(m, 0))), np.dtype("int32"))
    s = absolute(eigenvalues(m)) if hermitian else singular_values(m)
    if not s.shape[-1]:
        raise ValueError(f"matrix_rank: matrices must not be empty, got shape {m.shape}")
    if tol is not None:
        limit = arraylike("matrix_rank", tol)
    else:
        if rtol is None:
            rtol = s.dtype.type(max(m.shape[-2:]) * float(dtypes.finfo(s.dtype).eps))
        limit = multiply(max_(s, axis=-1), arraylike("matrix_rank", rtol))
    return sum_(convert(s > limit[..., None], np.dtype("int32")), axis=-1)


def eigenvalues(x: Array, symmetrize_input: bool = True, lower: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    Args:
      x: an array of floats or complex numbers, of shape `(..., n, n)`.
      symmetrize_input: take the mean of the matrices and their conjugate transposes.
      lower: read the lower triangles, otherwise the upper ones.

    Returns:
      An array of floats of shape `(..., n)`.

    Raises:
      TypeError: for other dtypes.
      ValueError: for matrices that are not square.

    >>> import perspex.numpy as jnp
    >>> eigenvalues(jnp.diag(jnp.array([3.0, 1.0])))
    Array([1., 3.], dtype=float32)
    """
    _, w = ops.eigh(
        x,
        algorithm=None,
        lower=lower,
        sort_eigenvalues=True,
        subset_by_index=None,
        symmetrize_input=symmetrize_input,
    )
    return w


describe(
    [norm, vector_norm, matrix_norm],
    {"x": "an array or a number.", "keepdims": "keep the reduced axes, with size 1."},
    "TypeError: if `x` is not an array or a number.\n"
    "ValueError: for an unknown order, an axis that is not there, and another number of axes.",
)
