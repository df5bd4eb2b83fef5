"""The normal distribution function, its inverse and its logarithm; error functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import as_dtype, check_arraylike
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact, promote_inexact, strengthened, strong
from perspex.numpy.reducing import wide_float
from perspex.ops import bessel, integrals, special
from perspex.ops import elementwise as ops
from perspex.rules.custom_jvp import custom_jvp
from perspex.scipy.special.gammas import COMPLEX, RAISES, RAISES_FOR_ONE, RETURNS, real
from perspex.tracing.trace import typeof

__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "log_ndtr",
    "ndtr", "ndtri", "owens_t", "wofz",
]  # fmt: skip

_ROOT_HALF = math.sqrt(0.5)


@fused
def erf(x: ArrayLike) -> Array:
    """Error function: the integral of `exp(-t**2)` from 0 to `x`, times `2 / sqrt(pi)`. DLMF 7.2.1.

    >>> from perspex.scipy import special
    >>> special.erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return special.erf(inexact("erf", x))


@fused
def erfc(x: ArrayLike) -> Array:
    """Complementary error function `1 - erf(x)`, accurate for large `x`. DLMF 7.2.2.

    >>> from perspex.scipy import special
    >>> special.erfc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return special.erfc(inexact("erfc", x))


@fused
def erfinv(x: ArrayLike) -> Array:
    """Inverse of the error function.

    Args:
      x: numbers between -1 and 1; others give NaN.

    >>> from perspex.scipy import special
    >>> special.erfinv(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return special.erf_inv(inexact("erfinv", x))


@fused
def erfcinv(y: ArrayLike) -> Array:
    """Inverse of `erfc`, also where `y` is so small that `1 - y` is 1.

    Args:
      y: numbers between 0 and 2; others give NaN.

    >>> from perspex.scipy import special
    >>> round(float(special.erfcinv(0.3)), 4)
    0.7329
    """
    return _erfc_inv(strong(*real("erfcinv", inexact("erfcinv", y))))


# With a rule of its own, as the slope of what is chosen below 0 would be 0, and not NaN.
@custom_jvp
def _erfc_inv(y: Array) -> Array:
    return -_ROOT_HALF * _quantile(pnp.where(y < 0, math.nan, 0.5 * y))


_erfc_inv.defjvps(lambda t, out, y: t * (-0.5 * math.sqrt(math.pi) * pnp.exp(out * out)))


@fused
def erfcx(x: ArrayLike) -> Array:
    """Scaled complementary error function `exp(x**2) * erfc(x)`.

    It is accurate also where the factors overflow and vanish.

    >>> from perspex.scipy import special
    >>> round(float(special.erfcx(50.0)), 6)
    0.011282
    """
    x = strong(inexact("erfcx", x))
    if typeof(x).dtype.kind == "c":
        return integrals.wofz(ops.complex(-x.imag, x.real))
    return integrals.erfcx(x)


@fused
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`. DLMF 7.2.5.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: if `x` is complex.

    >>> from perspex.scipy import special
    >>> round(float(special.dawsn(1.0)), 4)
    0.5381
    """
    return integrals.dawsn(strong(*real("dawsn", inexact("dawsn", x))))


@fused
def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function `exp(-z**2) * erfc(-1j * z)`. DLMF 7.2.3.

    Args:
      z: real or complex numbers.

    Returns:
      An array of the shape of `z`, of complex dtype.

    Raises:
      TypeError: if `z` is not an array or a number.

    >>> from perspex.scipy import special
    >>> complex(special.wofz(0j))
    (1+0j)
    """
    z = strong(inexact("wofz", z))
    if typeof(z).dtype.kind != "c":
        z = z.astype(dtypes.to_complex_dtype(typeof(z).dtype))
    return integrals.wofz(z)


def _check_float(name: str, x: Any) -> Array:
    check_arraylike(name, x)
    dtype = dtypes.dtype_of(x)
    if dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise TypeError(f"{name} takes float32 or float64, got {dtype.name}; convert it")
    return inexact(name, x)


@fused
def ndtr(x: ArrayLike) -> Array:
    """Standard normal distribution function: the probability of values up to `x`.

    The integral of `exp(-t**2 / 2) / sqrt(2 * pi)` from minus infinity to `x`.

    >>> from perspex.scipy import special
    >>> special.ndtr(0.0)
    Array(0.5, dtype=float32)
    """
    x = strong(_check_float("ndtr", x))
    return 0.5 * special.erfc(-_ROOT_HALF * x)


@fused
def ndtri(p: ArrayLike) -> Array:
    """Standard normal quantiles: the inverse of `ndtr`.

    Args:
      p: probabilities of float32 or float64, from 0 to 1; others give NaN.

    >>> from perspex.scipy import special
    >>> round(float(special.ndtri(0.975)), 2)
    1.96
    """
    return _quantile(strong(_check_float("ndtri", p)))


@custom_jvp
def _quantile(p: Array) -> Array:
    """By the inverse error function, and by Newton's method in the tails."""
    tail = pnp.minimum(p, 1 - p)
    deep = (tail < 0.05) & (tail > 0)
    middle = math.sqrt(2) * special.erf_inv(pnp.where(p < 0, math.nan, 2 * p - 1))
    # In a tail 2 p - 1 loses digits. Newton's method solves log ndtr(-x) = log(tail), starting at
    # x^2 = y - log(y) + ... for y = -2 log(tail sqrt(2 pi)).
    y = -2 * pnp.log(pnp.where(deep, tail, 0.01) * math.sqrt(2 * math.pi))
    x = pnp.sqrt(y - pnp.log(y) + pnp.log(y) / y)
    for _ in range(4):
        mills = math.sqrt(math.pi / 2) * integrals.erfcx(_ROOT_HALF * x)
        value = pnp.log(mills) - 0.5 * (x * x - y)
        x = x + value * mills
    return pnp.where(deep, pnp.where(p < 0.5, -x, x), middle)


# By the formulas, the slope of the middle would be infinite where it is not taken.
_quantile.defjvps(lambda t, out, p: t * (math.sqrt(2 * math.pi) * pnp.exp(0.5 * out * out)))


@fused(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Logarithm of `ndtr`, also where that is zero.

    Args:
      series_order: has no effect: the result is accurate for every `x`.

    >>> from perspex.scipy import special
    >>> round(float(special.log_ndtr(-40.0)), 2)
    -804.61
    """
    x = strengthened(_check_float("log_ndtr", x))
    low = x < -1
    near = pnp.log1p(-0.5 * special.erfc(_ROOT_HALF * pnp.where(low, 0, x)))
    size = pnp.where(low, -x, 1)
    far = pnp.log(0.5 * integrals.erfcx(_ROOT_HALF * size)) - 0.5 * size * size
    return pnp.where(low, far, near)


@fused
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function: the mass of two standard normal variates `X > h`, `0 < Y < a * X`.

    Args:
      h: real numbers.
      a: real numbers, the slope.

    References:
      D. B. Owen, "Tables for computing bivariate normal probabilities" (1956).

    >>> from perspex.scipy import special
    >>> special.owens_t(0.0, 1.0)
    Array(0.125, dtype=float32)
    """
    h, a = map(strong, promote_inexact("owens_t", h, a))
    wide = wide_float(h.dtype)
    return integrals.owens_t(as_dtype(h, wide), as_dtype(a, wide))


# ---- Modified Bessel functions ---------------------------------------------------------------


@fused
def i0e(x: ArrayLike) -> Array:
    """Modified Bessel function of order 0, times `exp(-abs(x))`.

    >>> from perspex.scipy import special
    >>> special.i0e(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i0e(inexact("i0e", x))


@fused
def i1e(x: ArrayLike) -> Array:
    """Modified Bessel function of order 1, times `exp(-abs(x))`.

    >>> from perspex.scipy import special
    >>> special.i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i1e(inexact("i1e", x))


@fused
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind of order 0. DLMF 10.25.2.

    >>> from perspex.scipy import special
    >>> special.i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i(*real("i0", inexact("i0", x)), order=0)


@fused
def i1(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind of order 1. DLMF 10.25.2.

    >>> from perspex.scipy import special
    >>> special.i1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return bessel.bessel_i(*real("i1", inexact("i1", x)), order=1)


describe(
    (erf, erfc, erfinv, erfcinv, dawsn, i0, i0e, i1, i1e),
    {"x": "real numbers."},
    RAISES_FOR_ONE,
    RETURNS,
)
describe((erfcx,), *COMPLEX)
describe((owens_t,), {}, RAISES, RETURNS)
describe(
    (ndtr, ndtri, log_ndtr),
    {"x": "numbers of float32 or float64."},
    "TypeError: if the argument is not an array or a number of dtype float32 or float64.",
    "An array of the shape and dtype of the argument.",
)
