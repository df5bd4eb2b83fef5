"""Student's distribution."""

from __future__ import annotations

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.functions.gammas import betaln
from perspex.scipy.stats.densities import floats


@fused
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: real numbers.
      df: the degrees of freedom, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logpdf(0.5, 3.0)), 3)
    -1.161
    """
    x, df, loc, scale = floats("t.logpdf", x, df, loc, scale)
    y = (x - loc) / scale
    kernel = 0.5 * (df + 1) * pnp.log1p(y * y / df)
    return -(kernel + 0.5 * pnp.log(df) + betaln(0.5 * df, 0.5) + pnp.log(scale))


@fused
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Args:
      x: real numbers.
      df: the degrees of freedom, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(pdf(0.5, 3.0)), 3)
    0.313
    """
    return pnp.exp(logpdf(x, df, loc, scale))
