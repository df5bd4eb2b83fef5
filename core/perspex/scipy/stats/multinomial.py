"""The multinomial distribution, of how often each of several outcomes occurs."""

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

__all__ = ["logpmf", "pmf"]


@fused
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Logarithm of the probability of counts under the multinomial distribution.

    The probability is `n! * prod(p**x / x!)` where the counts have the sum `n`, and 0 elsewhere.

    Args:
      x: counts of the outcomes, of shape `(..., outcomes)`.
      n: the number of trials.
      p: the probabilities of the outcomes, of shape `(..., outcomes)`.

    Returns:
      An array of the shape to which the arguments broadcast without the last axis, of floating
      dtype.

    Raises:
      TypeError: for an argument that is not an array or a number.
      ValueError: for shapes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> round(float(stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5]))), 3)
    -0.981
    """
    p, x, n = promote_dtypes("multinomial.logpmf", p, x, n, to=dtypes.to_inexact_dtype)
    value = lgamma(n + 1) + pnp.sum(xlogy(x, p) - lgamma(x + 1), axis=-1)
    return pnp.where(pnp.sum(x, axis=-1) == n, value, -math.inf).astype(typeof(p).dtype)


@fused
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of counts under the multinomial distribution.

    The probability is `n! * prod(p**x / x!)` where the counts have the sum `n`, and 0 elsewhere.

    Args:
      x: counts of the outcomes, of shape `(..., outcomes)`.
      n: the number of trials.
      p: the probabilities of the outcomes, of shape `(..., outcomes)`.

    Returns:
      An array of the shape to which the arguments broadcast without the last axis, of floating
      dtype.

    Raises:
      TypeError: for an argument that is not an array or a number.
      ValueError: for shapes that do not broadcast.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> round(float(stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5]))), 3)
    0.375
    """
    return pnp.exp(logpmf(x, n, p))
