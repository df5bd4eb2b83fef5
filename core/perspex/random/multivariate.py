"""Distributions of vectors and matrices that take linear algebra."""

from __future__ import annotations

import operator

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.dtypes import float_dtype, inexact_dtype
from perspex.arguments.shapes import common_shape, iterated_shape
from perspex.arguments.sharded import OutSharding, lying
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.random.normals import normal
from perspex.random.words import document

__all__ = ["multivariate_normal", "orthogonal"]


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Normal samples with a mean vector and a covariance matrix.

    With `d = x - mean` the density is proportional to `exp(-d @ inv(cov) @ d / 2)`.

    Args:
      mean: shape `(..., n)`.
      cov: shape `(..., n, n)`, positive definite; semidefinite for the other methods.
      shape: the shape of the result without its last axis; the batch axes of `mean` and `cov` must
        broadcast to it. By default what these broadcast to.
      dtype: a floating dtype; by default that at which `mean` and `cov` meet.
      method: how `cov` is factored: `"cholesky"`, `"eigh"` or `"svd"`.

    Returns:
      An array of shape `(*shape, n)`, of the dtype at which `mean`, `cov` and `dtype` meet.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `mean` or `cov` is
          not numbers.
      ValueError: if `key` is an array of keys, `dtype` is not a floating dtype, `method` is
          unknown, or the shapes do not fit.

    >>> from perspex import random
    >>> random.multivariate_normal(random.key(0), pnp.zeros(2), pnp.eye(2), (3,)).shape
    (3, 2)
    """
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"method must be one of 'svd', 'eigh', 'cholesky'; got {method!r}")
    meeting = dtypes.to_inexact_dtype(pnp.result_type(pnp.asarray(mean), pnp.asarray(cov)))
    mean, cov = (pnp.asarray(x, dtype=meeting) for x in (mean, cov))
    dtype = float_dtype("multivariate_normal", meeting if dtype is None else dtype)
    if mean.ndim < 1 or cov.ndim < 2:
        raise ValueError(
            "multivariate_normal requires mean.ndim >= 1 and cov.ndim >= 2, got the shapes "
            f"{mean.shape} and {cov.shape}"
        )
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, got {cov.shape}"
        )
    batch = common_shape(mean.shape[:-1], cov.shape[:-2])
    if shape is None:
        shape = batch
    else:
        shape = iterated_shape("multivariate_normal", shape)
        if common_shape(shape, batch) != shape:
            raise ValueError(
                f"multivariate_normal: mean and cov have the batch axes {batch}, which do not "
                f"broadcast to the shape {shape}"
            )
    if method == "svd":
        u, s, _ = pnp.linalg.svd(cov)
        factor = u * pnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = pnp.linalg.eigh(cov)
        factor = v * pnp.sqrt(w[..., None, :])
    else:
        factor = pnp.linalg.cholesky(cov)
    out = mean + pnp.matvec(factor, normal(key, (*shape, n), dtype))
    return lying("multivariate_normal", out_sharding, out)


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Orthogonal matrices (unitary ones, for a complex dtype), each as likely as any other.

    Args:
      n, m: the numbers of rows and of columns; `m` is `n` unless given. The shorter ones are
        orthonormal.
      shape: the batch axes of the result.

    Returns:
      An array of shape `(*shape, n, m)` and dtype `dtype`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `n` or `m` is not an
          integer.
      ValueError: if `key` is an array of keys or `dtype` is not a floating or complex dtype.

    References:
      F. Mezzadri, "How to generate random matrices from the classical compact groups", Notices of
      the AMS 54 (2007).

    >>> from perspex import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> pnp.allclose(q @ q.T, pnp.eye(3), atol=1e-6)
    Array(True, dtype=bool)
    """
    n = operator.index(n)
    m = n if m is None else operator.index(m)
    size = (*iterated_shape("orthogonal", shape), max(n, m), min(n, m))
    q, r = pnp.linalg.qr(normal(key, size, dtype))
    d = pnp.linalg.diagonal(r)
    # The sign that LAPACK gives the columns is no coin flip.
    q = q * (d / pnp.abs(d))[..., None, :]
    return lying("orthogonal", out_sharding, pnp.swapaxes(q, -1, -2) if n < m else q)


document(multivariate_normal, float_dtype, ["mean", "cov"], united=False)
document(orthogonal, inexact_dtype, [], united=False)
