"""The distribution of chi squared."""

from __future__ import annotations

from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike
from perspex.scipy.stats import gamma
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
    -1.516
    """
    x, df, loc, scale = floats("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, 0.5 * df, loc, 2 * scale)


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
    0.22
    """
    x, df, loc, scale = floats("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, 0.5 * df, loc, 2 * scale)


@fused
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function: the mass up to `x`.

    Args:
      x: real numbers.
      df: the degrees of freedom, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(cdf(0.5, 3.0)), 3)
    0.081
    """
    x, df, loc, scale = floats("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, 0.5 * df, loc, 2 * scale)


@fused
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Args:
      x: real numbers.
      df: the degrees of freedom, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logcdf(0.5, 3.0)), 3)
    -2.512
    """
    x, df, loc, scale = floats("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, 0.5 * df, loc, 2 * scale)


@fused
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function: the mass above `x`.

    Args:
      x: real numbers.
      df: the degrees of freedom, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(sf(0.5, 3.0)), 3)
    0.919
    """
    x, df, loc, scale = floats("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, 0.5 * df, loc, 2 * scale)


@fused
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass above `x`.

    Args:
      x: real numbers.
      df: the degrees of freedom, positive.
      loc: the start, or the centre, of the distribution.
      scale: its scale, positive.

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    >>> round(float(logsf(0.5, 3.0)), 3)
    -0.085
    """
    x, df, loc, scale = floats("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, 0.5 * df, loc, 2 * scale)
