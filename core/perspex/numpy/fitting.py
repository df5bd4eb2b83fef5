"""Polynomials by linear algebra: fitting them to points, and finding their roots."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_array, check_arraylike
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy import linalg
from perspex.numpy.arithmetic import absolute, divide, multiply
from perspex.numpy.creation import asarray
from perspex.numpy.grids import vander
from perspex.numpy.promotion import promote_dtypes
from perspex.numpy.reductions import cumprod
from perspex.numpy.reductions import sum as sum_
from perspex.numpy.selection import known_nonzero, where
from perspex.numpy.sorting import argsort
from perspex.numpy.transcendental import sqrt
from perspex.numpy.triangles import diag
from perspex.numpy.turning import roll

__all__ = ["polyfit", "roots"]


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial with the least sum of squared distances from points.

    Args:
      x: where, shape `(m,)`.
      y: the values there, shape `(m,)` or `(m, k)` for `k` fits at once.
      deg: the degree.
      rcond: singular values below this multiple of the greatest count as zero; by default `m`
        times the precision of the dtype.
      full: return the residuals, the rank, the singular values and `rcond`, too.
      w: weights of the distances, shape `(m,)`.
      cov: return the covariance of the coefficients too; `"unscaled"` for weights that are the
        inverse standard deviations of the values.

    Returns:
      The coefficients, the highest power first, shape `(deg + 1,)` or `(deg + 1, k)`; a tuple of
      them and of the other results that are asked for.

    Raises:
      TypeError: if an argument is not an array, or shapes do not fit.
      ValueError: for a negative degree, and too few points for `cov`.

    >>> import perspex.numpy as jnp
    >>> c = jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1)
    >>> jnp.allclose(c, jnp.array([2.0, 1.0]), atol=1e-5)
    Array(True, dtype=bool)
    """
    deg = operator.index(deg)
    if deg < 0:
        raise ValueError(f"polyfit: the degree must not be negative, got {deg}")
    operands = [x, y] if w is None else [x, y, w]
    check_arraylike("polyfit", *operands)
    x, y, *weights = (
        as_array(v) for v in promote_dtypes("polyfit", *operands, to=dtypes.to_inexact_dtype)
    )
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise TypeError(
            "polyfit takes a vector x that is not empty, and y with as many rows; got the shapes "
            f"{x.shape} and {y.shape}"
        )
    if weights and weights[0].shape != x.shape:
        raise TypeError(f"polyfit: weights must have the shape {x.shape}, got {weights[0].shape}")
    columns, values = vander(x, deg + 1), y
    if weights:
        (w,) = weights
        columns = multiply(columns, w[:, None])
        values = multiply(y, w[:, None] if y.ndim == 2 else w)
    if rcond is None:
        rcond = x.size * float(dtypes.finfo(x.dtype).eps)
    scale = sqrt(sum_(multiply(columns, columns), axis=0))
    scaled = divide(columns, scale[None])
    c, residuals, rank, s = linalg.lstsq(scaled, values, rcond)
    c = divide(c, scale[:, None] if y.ndim == 2 else scale)
    if full:
        return c, residuals, rank, s, asarray(rcond)
    if not cov:
        return c
    base = divide(linalg.inv(scaled.T @ scaled), scale[:, None] * scale[None])
    if cov == "unscaled":
        factor: Any = np.float32(1).astype(base.dtype) if y.ndim == 1 else residuals / residuals
    elif x.size <= deg + 1:
        raise ValueError(
            f"polyfit: {x.size} points do not give the covariance of {deg + 1} coefficients; "
            "pass more points, or cov='unscaled'"
        )
    else:
        factor = residuals / (x.size - deg - 1)
    if y.ndim == 1:
        return c, base * (factor if np.ndim(factor) == 0 else factor[0])
    return c, base[:, :, None] * factor


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, complex: the eigenvalues of its companion matrix.

    Args:
      p: a vector of coefficients, the highest power first.
      strip_zeros: leave zeros in front out, which needs concrete coefficients. Else there are as
        many roots as without zeros, with NaNs in the last places.

    Returns:
      A vector of complex numbers.

    Raises:
      TypeError: if `p` is not an array.
      ValueError: for an array of more than one axis.
      ConcretizationTypeError: for two or more traced coefficients with `strip_zeros`.

    >>> import perspex.numpy as jnp
    >>> jnp.roots(jnp.array([1.0, -3.0, 2.0]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    p = arraylike("roots", p)
    if p.ndim > 1:
        raise ValueError(f"roots takes a vector of coefficients, got the shape {p.shape}")
    (p,) = promote_dtypes("roots", p, to=dtypes.to_inexact_dtype)
    p = as_array(p).ravel()
    if strip_zeros and p.shape[0] > 1:
        (nonzero,) = known_nonzero("roots with strip_zeros=True", p)
        start = int(nonzero[0]) if nonzero.size else p.shape[0]
        return _roots(p[start:])
    return _roots(p) if p.shape[0] < 2 else _padded_roots(p)


@fused
def _roots(p: Any) -> Any:
    if p.shape[0] < 2:
        return asarray(np.zeros(0), dtype=np.result_type(p.dtype, np.complex64))
    first = divide(-p[1:], p[0])
    companion = diag(asarray(np.ones(p.shape[0] - 2), dtype=p.dtype), -1)
    return linalg.eigvals(companion.at[0].set(first))


@fused
def _padded_roots(p: Any) -> Any:
    n = p.shape[0]
    leading = sum_(cumprod((p == 0).astype("int32")))
    p = where(leading == n, 1, p)
    # The zeros in front become zeros behind; each one is one more root at zero.
    found = _roots(roll(p, -leading))
    found = found[argsort(absolute(found))]
    return where(np.arange(n - 1) < n - 1 - leading, roll(found, -leading), np.nan)
