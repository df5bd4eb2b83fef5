"""The normal distribution function, its inverse and its logarithm; error functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike, check_arraylike, inexact, promote_inexact
from perspex.ops import bessel, integrals, special
from perspex.scipy.functions.gammas import refuse_complex, strong
from perspex.tracing.trace import typeof

_ROOT_HALF = math.sqrt(0.5)


@fused
def erf(x: ArrayLike) -> Array:
    """The error function, `2 / sqrt(pi)` times the integral of `exp(-t**2)` from 0 to `x`.

    >>> erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return special.erf(inexact("erf", x))


@fused
def erfc(x: ArrayLike) -> Array:
    """`1 - erf(x)`, accurate for large `x`.

    >>> erfc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return special.erfc(inexact("erfc", x))


@fused
def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf` on (-1, 1).

    >>> erfinv(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return special.erf_inv(inexact("erfinv", x))


@fused
def erfcinv(y: ArrayLike) -> Array:
    """The inverse of `erfc` on (0, 2), also where `y` is so small that `1 - y` is 1.

    >>> round(float(erfcinv(np.float32(0.3))), 4)
    0.7329
    """
    y = strong(inexact("erfcinv", y))
    return -_ROOT_HALF * _quantile(0.5 * y)


@fused
def erfcx(x: ArrayLike) -> Array:
    """`exp(x**2) * erfc(x)`, also where these overflow and vanish.

    Args:
      x: real numbers.

    >>> round(float(erfcx(np.float32(50))), 6)
    0.011282
    """
    x = strong(inexact("erfcx", x))
    refuse_complex("erfcx", x)
    return integrals.erfcx(x)


@fused
def dawsn(x: ArrayLike) -> Array:
    """The integral of Dawson, `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`.

    Args:
      x: real numbers.

    >>> round(float(dawsn(np.float32(1))), 4)
    0.5381
    """
    x = strong(inexact("dawsn", x))
    refuse_complex("dawsn", x)
    return integrals.dawsn(x)


@fused
def wofz(z: ArrayLike) -> Array:
    """The function of Faddeeva, `exp(-z**2) * erfc(-1j * z)`.

    Args:
      z: real or complex numbers.

    Returns:
      An array of the shape of `z` and complex dtype.

    >>> complex(wofz(0j))
    (1+0j)
    """
    z = strong(inexact("wofz", z))
    if typeof(z).dtype.kind != "c":
        z = z.astype(dtypes.to_complex_dtype(typeof(z).dtype))
    return integrals.wofz(z)


def _check_float(name: str, x: Any) -> Any:
    check_arraylike(name, x)
    dtype = dtypes.dtype_of(x)
    if dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise TypeError(f"{name} takes float32 or float64, got {dtype.name}; convert it")
    return strong(inexact(name, x))


@fused
def ndtr(x: ArrayLike) -> Array:
    """The standard normal distribution function: the mass below `x`.

    Args:
      x: an array of float32 or float64.

    Raises:
      TypeError: `x` has another dtype.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32)
    """
    x = _check_float("ndtr", x)
    return 0.5 * special.erfc(-_ROOT_HALF * x)


@fused
def ndtri(p: ArrayLike) -> Array:
    """The standard normal quantile function, the inverse of `ndtr`.

    Args:
      p: an array of float32 or float64, between 0 and 1.

    Raises:
      TypeError: `p` has another dtype.

    >>> round(float(ndtri(np.float32(0.975))), 2)
    1.96
    """
    return _quantile(_check_float("ndtri", p))


def _quantile(p: Array) -> Array:
    """By the inverse error function, and one step of Newton's method in the tails."""
    tail = pnp.minimum(p, 1 - p)
    deep = (tail < 0.05) & (tail > 0)
    middle = math.sqrt(2) * special.erf_inv(2 * p - 1)
    # In a tail 2 p - 1 has lost digits; log ndtr(-x) = log(tail) is solved instead, from
    # x^2 = y - log(y) - ... for y = -2 log(tail sqrt(2 pi)).
    y = -2 * pnp.log(pnp.where(deep, tail, 0.01) * math.sqrt(2 * math.pi))
    x = pnp.sqrt(y - pnp.log(y) + pnp.log(y) / y)
    for _ in range(4):
        mills = math.sqrt(math.pi / 2) * integrals.erfcx(_ROOT_HALF * x)
        value = pnp.log(mills) - 0.5 * (x * x - y)
        x = x + value * mills
    return pnp.where(deep, pnp.where(p < 0.5, -x, x), middle)


@fused(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, also where that is zero.

    Args:
      x: an array of float32 or float64.
      series_order: has no effect: the result is exact for every `x`.

    Raises:
      TypeError: `x` has another dtype.

    >>> round(float(log_ndtr(np.float32(-40))), 2)
    -804.61
    """
    x = _check_float("log_ndtr", x)
    low = x < -1
    near = pnp.log1p(-0.5 * special.erfc(_ROOT_HALF * pnp.where(low, 0, x)))
    size = pnp.where(low, -x, 1)
    far = pnp.log(0.5 * integrals.erfcx(_ROOT_HALF * size)) - 0.5 * size * size
    return pnp.where(low, far, near)


@fused
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function: the mass of two normal variates `X > h`, `0 < Y < a X`.

    >>> owens_t(np.float32(0), np.float32(1))
    Array(0.125, dtype=float32)
    """
    return integrals.owens_t(*map(strong, promote_inexact("owens_t", h, a)))


# ---- Modified Bessel functions ---------------------------------------------------------------


@fused
def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, times `exp(-abs(x))`.

    >>> i0e(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i0e(inexact("i0e", x))


@fused
def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, times `exp(-abs(x))`.

    >>> i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i1e(inexact("i1e", x))


@fused
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = inexact("i0", x)
    return pnp.exp(pnp.abs(x)) * bessel.bessel_i0e(x)


@fused
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1.

    >>> i1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = inexact("i1", x)
    return pnp.exp(pnp.abs(x)) * bessel.bessel_i1e(x)
