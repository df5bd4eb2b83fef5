"""Products and powers of matrices, as `numpy.linalg` and the array API name them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.arguments.arrays import as_array, check_arraylike, spread
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.jitted.fused import fused
from perspex.lax.linear import PrecisionLike
from perspex.numpy import axes, products, reductions, triangles, words
from perspex.numpy.products import matmul
from perspex.numpy.promotion import inexact
from perspex.ops.linalg import solve as solving

__all__ = [
    "cross", "diagonal", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot",
    "trace",
]  # fmt: skip

# ---- Numbers of a matrix ------------------------------------------------------------------------


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The traces of matrices, the last two axes.

    Args:
      x: matrices of shape `(..., m, n)`.
      offset: which diagonal; positive above the main one.
      dtype: the dtype of the result; that of the sum if not given.

    Returns:
      Numbers of shape `(...)`.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.trace(jnp.ones((3, 2, 2)))
    Array([2., 2., 2.], dtype=float32)
    """
    return reductions.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices, the last two axes.

    Args:
      x: matrices of shape `(..., m, n)`.
      offset: which diagonal; positive above the main one.

    Returns:
      An array of the diagonals, along the last axis.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return triangles.diagonal(x, offset=offset, axis1=-2, axis2=-1)


# ---- Products -----------------------------------------------------------------------------------


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise a square matrix to an integer power, by squaring; a negative one inverts it first.

    Args:
      a: matrices of shape `(..., n, n)`.
      n: an integer.

    Returns:
      Matrices of the same shape; floats for a negative `n`.

    Raises:
      TypeError: for matrices that are not square, and for an `n` that is not an integer.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    check_arraylike("matrix_power", a)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"linalg.matrix_power: the exponent must be an integer, got {n}") from None
    if np.ndim(a) < 2 or np.shape(a)[-1] != np.shape(a)[-2]:
        raise TypeError(
            f"linalg.matrix_power: the last two axes must be square, got shape {np.shape(a)}"
        )
    return _matrix_power(a, n=n)


@fused(static=("n",))
def _matrix_power(a: Any, n: int) -> Any:
    a = as_array(a)
    if n == 0:
        return spread(triangles.eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = solving.inverse(inexact("matrix_power", a)), -n
    out = None
    while n:
        if n & 1:
            out = a if out is None else matmul(out, a)
        n >>= 1
        if n:
            a = matmul(a, a)
    return out


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
      arrays: two matrices or more; the first and the last may be vectors.

    Returns:
      A matrix, a vector or a number.

    Raises:
      TypeError: for lists in place of arrays.
      ValueError: for fewer than two arrays, and for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    check_arraylike("multi_dot", *arrays)
    xs = [as_array(x) for x in arrays]
    if len(xs) < 2:
        raise ValueError(f"linalg.multi_dot takes two arrays or more, got {len(xs)}")
    shapes = [x.shape for x in xs]
    middle = all(len(s) == 2 for s in shapes[1:-1])
    if not middle or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        raise ValueError(
            "linalg.multi_dot takes matrices, and vectors in the first and the last place; "
            f"got the shapes {shapes}"
        )
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0], *[s[0] for s in shapes[1:]]]
    sizes = [*sizes, 1 if len(shapes[-1]) == 1 else shapes[-1][1]]
    if any(x.shape[-1] != y.shape[0] for x, y in zip(xs, xs[1:], strict=False)):
        raise ValueError(
            "linalg.multi_dot: the last axis of each array must fit the first of the next; "
            f"got the shapes {shapes}"
        )
    return _multiplied(xs, _best_splits(sizes), 0, len(xs) - 1, precision)


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices of which number `i` is `sizes[i]` by `sizes[i + 1]`."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], splits[i, j] = min(options)
    return splits


def _multiplied(xs: Sequence[Any], splits: Any, i: int, j: int, precision: Any) -> Any:
    if i == j:
        return xs[i]
    k = splits[i, j]
    left = _multiplied(xs, splits, i, k, precision)
    right = _multiplied(xs, splits, k + 1, j, precision)
    return matmul(left, right, precision=precision)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all pairs of elements of two vectors.

    Args:
      x1: an array of shape `(m,)`.
      x2: an array of shape `(n,)`.

    Returns:
      A matrix of shape `(m, n)`.

    Raises:
      TypeError: for lists.
      ValueError: for arrays without exactly one axis.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_arraylike("outer", x1, x2)
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            f"linalg.outer takes vectors, got the shapes {np.shape(x1)} and {np.shape(x2)}"
        )
    return products.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of three components.

    Args:
      x1, x2: arrays of size 3 along `axis`; the other axes broadcast.
      axis: the axis of the components.

    Returns:
      An array of the broadcast shape.

    Raises:
      TypeError: for lists.
      ValueError: for vectors of another size.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    check_arraylike("cross", x1, x2)
    sizes = [np.shape(x)[axis] for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(f"linalg.cross takes vectors of three components, got sizes {sizes}")
    return products.cross(x1, x2, axis=axis)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products over some axes of both arrays.

    Args:
      x1, x2: arrays.
      axes: how many axes: the last of `x1` and the first of `x2`; or a pair of sequences of axes.

    Returns:
      An array of the axes that are left, those of `x1` first.

    Raises:
      TypeError: for lists, and for axes whose sizes differ.
      ValueError: for axes that do not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(
        x1,
        x2,
        axes=axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transpose matrices: swap the last two axes.

    Args:
      x: matrices of shape `(..., m, n)`.

    Returns:
      Matrices of shape `(..., n, m)`.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: for fewer than two axes.

    >>> import perspex.numpy as jnp
    >>> jnp.linalg.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return axes.matrix_transpose(x)


describe((multi_dot, tensordot), words.MATRIX)
