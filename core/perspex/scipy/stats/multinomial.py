"""The multinomial distribution, of how often each of several outcomes occurs."""

from __future__ import annotations

import math

from perspex import dtypes
from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike, promote_dtypes
from perspex.ops.special import lgamma
from perspex.scipy.special import xlogy
from perspex.tracing.trace import typeof


@fused
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts `x`.

    Args:
      x: whole numbers of shape `(..., outcomes)`.
      n: their sum.
      p: the probabilities of the outcomes, of shape `(..., outcomes)`.

    Returns:
      An array of the shape to which the arguments broadcast without the last axis; minus infinity
      where the counts do not add up to `n`.

    >>> round(float(logpmf(pnp.array([1, 2]), 3, pnp.array([0.5, 0.5]))), 3)
    -0.981
    """
    p, x, n = promote_dtypes("multinomial.logpmf", p, x, n, to=dtypes.to_inexact_dtype)
    value = lgamma(n + 1) + pnp.sum(xlogy(x, p) - lgamma(x + 1), axis=-1)
    return pnp.where(pnp.sum(x, axis=-1) == n, value, -math.inf).astype(typeof(p).dtype)


@fused
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts `x`: see `logpmf`.

    >>> round(float(pmf(pnp.array([1, 2]), 3, pnp.array([0.5, 0.5]))), 3)
    0.375
    """
    return pnp.exp(logpmf(x, n, p))
