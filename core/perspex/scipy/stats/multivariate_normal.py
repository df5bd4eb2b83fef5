"""The multivariate normal distribution."""

from __future__ import annotations

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax import linalg
from perspex.numpy.promotion import promote_dtypes
from perspex.scipy.stats.families import HALF_LOG_TWO_PI
from perspex.tracing.trace import typeof

__all__ = ["logpdf", "pdf"]


@fused
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Logarithm of the density of the multivariate normal distribution at `x`.

    The density is `exp(-0.5 * y @ inv(cov) @ y) / sqrt(det(2 * pi * cov))` with `y = x - mean`.

    Args:
      x: vectors of shape `(..., n)`.
      mean: the mean, of shape `(n,)` or `(..., n)`; a number for a distribution of numbers.
      cov: positive definite matrices of shape `(..., n, n)`, or the variance of each component, a
        number.
      allow_singular: must be `None`.

    Returns:
      An array of the shape to which the batches broadcast, of floating dtype; NaN where `cov` is
      not positive definite.

    Raises:
      TypeError: for an argument that is not an array or a number.
      ValueError: for shapes that do not fit.
      NotImplementedError: if `allow_singular` is given.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> x, mean, cov = jnp.ones(2), jnp.zeros(2), jnp.eye(2)
    >>> round(float(stats.multivariate_normal.logpdf(x, mean, cov)), 3)
    -2.838
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: allow_singular is not supported")
    x, mean, cov = promote_dtypes(
        "multivariate_normal.logpdf", x, mean, cov, to=dtypes.to_inexact_dtype
    )
    of_mean, of_cov = typeof(mean).shape, typeof(cov).shape
    if not of_mean:
        deviation = x - mean
        return -0.5 * deviation * deviation / cov - HALF_LOG_TWO_PI - 0.5 * pnp.log(cov)
    n = of_mean[-1]
    if not of_cov:
        deviation = x - mean
        square = pnp.sum(deviation * deviation, axis=-1) / cov
        return -0.5 * (square + n * pnp.log(cov)) - n * HALF_LOG_TWO_PI
    if len(of_cov) < 2 or of_cov[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal.logpdf: cov must have shape (..., {n}, {n}) for a mean of shape "
            f"{of_mean}, got {of_cov}"
        )
    factor = linalg.cholesky(cov)
    deviation = x - mean
    batch = pnp.broadcast_shapes(typeof(deviation).shape[:-1], of_cov[:-2])
    factor = pnp.broadcast_to(factor, (*batch, n, n))
    columns = pnp.broadcast_to(deviation, (*batch, n))[..., None]
    y = linalg.triangular_solve(factor, columns, left_side=True, lower=True)[..., 0]
    log_det = pnp.sum(pnp.log(pnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * pnp.sum(y * y, axis=-1) - n * HALF_LOG_TWO_PI - log_det


@fused
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Density of the multivariate normal distribution at `x`.

    The density is `exp(-0.5 * y @ inv(cov) @ y) / sqrt(det(2 * pi * cov))` with `y = x - mean`.

    Args:
      x: vectors of shape `(..., n)`.
      mean: the mean, of shape `(n,)` or `(..., n)`; a number for a distribution of numbers.
      cov: positive definite matrices of shape `(..., n, n)`, or the variance of each component, a
        number.

    Returns:
      An array of the shape to which the batches broadcast, of floating dtype; NaN where `cov` is
      not positive definite.

    Raises:
      TypeError: for an argument that is not an array or a number.
      ValueError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> round(float(stats.multivariate_normal.pdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2))), 4)
    0.0585
    """
    return pnp.exp(logpdf(x, mean, cov))
