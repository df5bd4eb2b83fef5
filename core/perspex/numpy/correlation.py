"""Covariance and correlation of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_dtype, check_arraylike, expand, spread
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import absolute, conj, divide, multiply, real, subtract
from perspex.numpy.axes import squeeze, transpose
from perspex.numpy.creation import asarray
from perspex.numpy.products import dot
from perspex.numpy.promotion import promote_dtypes
from perspex.numpy.reductions import sum as sum_
from perspex.numpy.statistics import average
from perspex.numpy.transcendental import sqrt
from perspex.numpy.triangles import diagonal
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate

__all__ = ["corrcoef", "cov"]


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of variables, from observations of them.

    Args:
      m: a vector, or an array with a row for each variable and a column for each observation.
      bias: divide by the number of observations `n`, and not by `n - 1`.
      ddof: divide by `n - ddof`.
      fweights: the number of times that each observation counts, a vector of integers.
      aweights: the weight of each observation, a vector.

    Returns:
      An array of shape `(variables, variables)`, a scalar for one variable; of `dtype`, by default
      floats or complex numbers.

    Raises:
      TypeError: if an argument is not an array, or `fweights` are not integers.
      ValueError: for more than two axes, and weights or observations that do not fit.

    >>> import perspex.numpy as jnp
    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    given = [v for v in (m, y, fweights, aweights) if v is not None]
    check_arraylike("cov", *given)
    for name, v in (("m", m), ("y", y)):
        if v is not None and np.ndim(v) > 2:
            raise ValueError(f"cov: {name} has more than 2 dimensions, got shape {np.shape(v)}")
    if ddof is not None and not np.isscalar(ddof):
        raise ValueError(f"cov: ddof must be a number, got {ddof!r}")
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None and np.ndim(w) != 1:
            raise ValueError(f"cov: {name} must be a vector, got shape {np.shape(w)}")
    if fweights is not None and not dtypes.issubdtype(asarray(fweights).dtype, np.integer):
        raise TypeError(f"cov: fweights must be integers, got {asarray(fweights).dtype.name}")
    freedom = ddof if ddof is not None else 0 if bias else 1
    target = None if dtype is None else dtypes.check_user_dtype(dtype, "cov")
    return _cov(m, y, fweights, aweights, freedom, bool(rowvar), target)


def _variables(x: Any, rowvar: bool) -> Any:
    """One row for each variable."""
    if x.ndim < 2:
        return expand(x, range(2 - x.ndim))
    return x if rowvar else transpose(x)


@fused(static=("rowvar", "dtype"))
def _cov(m: Any, y: Any, fweights: Any, aweights: Any, ddof: Any, rowvar: bool, dtype: Any) -> Any:
    arrays = promote_dtypes(
        "cov", *[v for v in (m, y) if v is not None], to=dtypes.to_inexact_dtype
    )
    rows = [_variables(asarray(v), rowvar) for v in arrays]
    if dtype is not None:
        rows = [as_dtype(v, dtype) for v in rows]
    x = rows[0]
    if len(rows) == 2:
        if x.shape[1] != rows[1].shape[1]:
            raise ValueError(
                "cov: m and y must have the same number of observations, got "
                f"{x.shape[1]} and {rows[1].shape[1]}"
            )
        x = concatenate(*rows, dimension=0)
    if not x.shape[0]:
        return spread(x.dtype.type(0), (0, 0))
    n = x.shape[1]
    if not n:
        return squeeze(spread(x.dtype.type(np.nan), (x.shape[0],) * 2))
    weights: Any = None
    for w in (fweights, aweights):
        if w is None:
            continue
        if np.shape(w) != (n,):
            raise ValueError(
                f"cov: weights must have one number for each of {n} observations, got shape "
                f"{np.shape(w)}"
            )
        w = absolute(w)
        weights = w if weights is None else multiply(weights, w)
    mean = average(x, axis=1, weights=weights)
    total: Any = n if weights is None else sum_(weights)
    if aweights is None or weights is None:
        factor = subtract(total, ddof)
    else:
        # Weights make up for fewer observations than their sum.
        squares = sum_(multiply(weights, absolute(aweights)))
        factor = subtract(total, divide(multiply(ddof, squares), total))
    x = subtract(x, expand(mean, (1,)))
    other = x if weights is None else multiply(x, expand(asarray(weights), (0,)))
    return squeeze(divide(dot(x, conj(transpose(other))), as_dtype(asarray(factor), x.dtype)))


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The correlation coefficients of variables, from observations of them.

    Args:
      x: a vector, or an array with a row for each variable and a column for each observation.

    Returns:
      An array of shape `(variables, variables)`, a scalar for one variable, of numbers in [-1, 1].

    >>> import perspex.numpy as jnp
    >>> jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _corrcoef(cov(x, y, rowvar, dtype=dtype))


@fused
def _corrcoef(c: Any) -> Any:
    if not c.ndim:
        return divide(c, c)
    deviation = sqrt(real(diagonal(c)))
    c = divide(divide(c, expand(deviation, (1,))), expand(deviation, (0,)))
    one = ops.real_dtype(c.dtype).type(1)

    def within(v: Any) -> Any:
        return ops.clamp(-one, v, one)

    if c.dtype.kind == "c":
        return ops.complex(within(ops.real(c)), within(ops.imag(c)))
    return within(c)


describe(
    [cov, corrcoef],
    {
        "y": "more variables, in the same form.",
        "rowvar": "rows are variables; otherwise columns are.",
        "dtype": "the dtype to compute in, which is that of the result.",
    },
    "TypeError: if an argument is not an array.\n"
    "ValueError: for more than two axes, and observations that do not fit.",
)
