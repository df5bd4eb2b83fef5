"""Dirichlet's distribution, of vectors of positive numbers with sum 1."""

from __future__ import annotations

import math

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import promote_dtypes
from perspex.ops.special import lgamma
from perspex.scipy.special import xlogy
from perspex.tracing.trace import typeof

__all__ = ["logpdf", "pdf"]


@fused
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Logarithm of the density of Dirichlet's distribution at `x`.

    The density is `gamma(sum(alpha)) * prod(x**(alpha - 1) / gamma(alpha))` where the numbers of
    `x` are not negative and have the sum 1, and 0 elsewhere.

    Args:
      x: vectors of shape `(n, ...)`, or `(n - 1, ...)` without the last number.
      alpha: the concentrations, positive numbers of shape `(n,)`.

    Returns:
      An array of the shape of `x` without its first axis, of floating dtype.

    Raises:
      TypeError: for an argument that is not an array or a number.
      ValueError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> x, alpha = jnp.array([0.2, 0.8]), jnp.array([1.0, 2.0])
    >>> round(float(stats.dirichlet.logpdf(x, alpha)), 3)
    0.47
    """
    x, alpha = promote_dtypes("dirichlet.logpdf", x, alpha, to=dtypes.to_inexact_dtype)
    given, n = typeof(x).shape, typeof(alpha).shape
    if len(n) != 1 or not given or given[0] not in (n[0], n[0] - 1):
        raise ValueError(
            f"dirichlet: x of shape {given} must have as many rows as alpha, of shape {n}, has "
            "numbers, or one fewer"
        )
    if given[0] != n[0]:
        x = pnp.concatenate([x, 1 - pnp.sum(x, axis=0, keepdims=True)])
    alpha = alpha.reshape((-1, *(1,) * (len(given) - 1)))
    scale = lgamma(pnp.sum(alpha)) - pnp.sum(lgamma(alpha))
    value = scale + pnp.sum(xlogy(alpha - 1, x), axis=0)
    eps = float(dtypes.finfo(typeof(x).dtype).eps)
    possible = pnp.all(x >= 0, axis=0) & (pnp.abs(pnp.sum(x, axis=0) - 1) < 10 * eps)
    return pnp.where(possible, value, -math.inf)


@fused
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Density of Dirichlet's distribution at `x`.

    The density is `gamma(sum(alpha)) * prod(x**(alpha - 1) / gamma(alpha))` where the numbers of
    `x` are not negative and have the sum 1, and 0 elsewhere.

    Args:
      x: vectors of shape `(n, ...)`, or `(n - 1, ...)` without the last number.
      alpha: the concentrations, positive numbers of shape `(n,)`.

    Returns:
      An array of the shape of `x` without its first axis, of floating dtype.

    Raises:
      TypeError: for an argument that is not an array or a number.
      ValueError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> round(float(stats.dirichlet.pdf(jnp.array([0.2, 0.8]), jnp.array([1.0, 2.0]))), 3)
    1.6
    """
    return pnp.exp(logpdf(x, alpha))
