"""Exponential, trigonometric and Fresnel integrals, the dilogarithm, hypergeometric functions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import check_arraylike
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact, promote_inexact, strengthened, strong
from perspex.ops import hypergeometric, integrals
from perspex.rules.custom_jvp import custom_jvp
from perspex.scipy.special.gammas import RAISES, RAISES_FOR_ONE, RETURNS, floats, real
from perspex.tracing.trace import typeof

__all__ = [
    "bessel_jn", "boxcox", "boxcox1p", "exp1", "expi", "expn", "fresnel", "hyp1f1", "hyp2f1",
    "sici", "spence", "sph_harm_y",
]  # fmt: skip


@fused
def exp1(x: ArrayLike) -> Array:
    """Integral of `exp(-t) / t` from `x` to infinity; NaN for negative `x`. DLMF 6.2.1.

    >>> from perspex.scipy import special
    >>> round(float(special.exp1(1.0)), 4)
    0.2194
    """
    return integrals.exp1(strengthened(*real("exp1", inexact("exp1", x))))


@fused
def expi(x: ArrayLike) -> Array:
    """Integral of `exp(t) / t` from minus infinity to `x`, as a principal value. DLMF 6.2.5.

    >>> from perspex.scipy import special
    >>> round(float(special.expi(1.0)), 4)
    1.8951
    """
    return integrals.expi(strengthened(*real("expi", inexact("expi", x))))


@fused
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Integral of `exp(-x * t) / t**n` for `t` from 1 to infinity. DLMF 8.19.3.

    Args:
      n: whole numbers, not negative; fractions are cut off.
      x: real numbers, not negative.

    >>> from perspex.scipy import special
    >>> round(float(special.expn(2, 1.0)), 4)
    0.1485
    """
    return integrals.expn(*map(strengthened, real("expn", *promote_inexact("expn", n, x))))


@fused
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Sine and cosine integral.

    The integrals of `sin(t) / t` from 0 to `x` (DLMF 6.2.9), and of `cos(t) / t` from infinity to
    `abs(x)` (DLMF 6.2.11).

    Returns:
      A pair of arrays of the shape of `x`, of floating dtype: the sine and the cosine integral.

    >>> from perspex.scipy import special
    >>> si, ci = special.sici(1.0)
    >>> round(float(si), 4), round(float(ci), 4)
    (0.9461, 0.3374)
    """
    x = strengthened(*real("sici", inexact("sici", x)))
    return integrals.si(x), integrals.ci(x)


@fused
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals of `sin(pi * t**2 / 2)` and `cos(pi * t**2 / 2)` from 0 to `x`.

    DLMF 7.2.7 and 7.2.8.

    Returns:
      A pair of arrays of the shape of `x`, of floating dtype: that of the sine comes first.

    Raises:
      TypeError: if `x` is not an array or a number.
      NotImplementedError: if `x` is complex.

    >>> from perspex.scipy import special
    >>> s, c = special.fresnel(1.0)
    >>> round(float(s), 4), round(float(c), 4)
    (0.4383, 0.7799)
    """
    x = strengthened(inexact("fresnel", x))
    if typeof(x).dtype.kind == "c":
        raise NotImplementedError(
            "fresnel is not implemented for complex arguments; take real ones"
        )
    return integrals.fresnel_s(x), integrals.fresnel_c(x)


@fused
def spence(x: ArrayLike) -> Array:
    """Dilogarithm of `1 - x`: the integral of `log(t) / (1 - t)` from 1 to `x`. DLMF 25.12.2.

    Args:
      x: real numbers, not negative; NaN below.

    >>> from perspex.scipy import special
    >>> round(float(special.spence(0.0)), 4)  # pi^2 / 6
    1.6449
    """
    return integrals.spence(strong(inexact("spence", x)))


@fused
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Confluent hypergeometric function of Kummer.

    The sum of `a (a + 1) ... (a + k - 1) / (b (b + 1) ... (b + k - 1)) * x**k / k!`. DLMF 13.2.2.

    >>> from perspex.scipy import special
    >>> round(float(special.hyp1f1(1.0, 2.0, 0.5)), 4)  # (exp(x) - 1) / x
    1.2974
    """
    return hypergeometric.hyp1f1(*map(strong, real("hyp1f1", *floats("hyp1f1", a, b, x))))


@fused
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Hypergeometric function of Gauss, differentiable with respect to `x`. DLMF 15.2.1.

    Args:
      x: real numbers up to 1; above, the result is infinite.

    >>> from perspex.scipy import special
    >>> round(float(special.hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)  # -log(1 - x) / x
    1.3863
    """
    return hypergeometric.hyp2f1(*map(strong, floats("hyp2f1", a, b, c, x)))


@fused
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Transformation of Box and Cox, `(x**lmbda - 1) / lmbda`; `log(x)` where `lmbda` is 0.

    Args:
      x: real numbers, not negative; NaN below.
      lmbda: the exponent, real numbers.

    References:
      G. E. P. Box and D. R. Cox, "An analysis of transformations" (1964).

    >>> from perspex.scipy import special
    >>> round(float(special.boxcox(2.0, 0.5)), 4)
    0.8284
    """
    x, power = promote_inexact("boxcox", x, lmbda)
    return _box_cox(pnp.log(x), power)


@fused
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Transformation of Box and Cox of `1 + x`: `boxcox(1 + x, lmbda)`, accurate for small `x`.

    Args:
      x: real numbers, at least -1; NaN below.
      lmbda: the exponent, real numbers.

    >>> from perspex.scipy import special
    >>> round(float(special.boxcox1p(1.0, 0.5)), 4)
    0.8284
    """
    x, power = promote_inexact("boxcox1p", x, lmbda)
    return _box_cox(pnp.log1p(x), power)


def _box_cox(log_x: Array, power: Array) -> Array:
    zero = power == 0
    # The series of expm1 has a derivative at zero.
    bounded = pnp.isfinite(log_x)
    small = (pnp.abs(power) < float(dtypes.finfo(typeof(log_x).dtype).eps)) & bounded
    safe = pnp.where(zero | small, 1, power)
    finite = pnp.where(bounded, log_x, 0)
    series = log_x + 0.5 * power * finite * finite
    return pnp.where(zero | small, series, pnp.expm1(safe * log_x) / safe)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of the orders 0 to `v`. DLMF 10.2.2.

    By the continued fraction of their ratios (DLMF 10.10.1), from `n_iter` terms.

    Args:
      z: real or complex numbers, less than about `n_iter / 1.5` in size.
      v: the highest order, known while tracing.
      n_iter: from which order to start.

    Returns:
      An array of shape `(v + 1, *z.shape)`, of floating or complex dtype.

    Raises:
      TypeError: if `z` is not an array or a number.
      ValueError: if `v` is negative or not below `n_iter`.

    >>> from perspex.scipy import special
    >>> [round(float(y), 4) for y in special.bessel_jn(1.0, v=1)]
    [0.7652, 0.4401]
    """
    check_arraylike("bessel_jn", z)
    if not 0 <= v < n_iter:
        raise ValueError(f"bessel_jn: v must be between 0 and n_iter={n_iter}, got {v}")
    return _bessel_jn(z, int(v), int(n_iter))


@fused(static=("v", "n_iter"))
def _bessel_jn(z: Any, v: int, n_iter: int) -> Array:
    return pnp.stack(_orders(strong(inexact("bessel_jn", z)), v, n_iter))


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _orders(z: Array, v: int, n_iter: int) -> list[Array]:
    zero = z == 0
    safe = pnp.where(zero, 1, z)
    ratios = [pnp.zeros_like(z)]
    for k in range(n_iter, 0, -1):
        ratios.append(1 / (2 * k / safe - ratios[-1]))
    ratios = [pnp.where(zero, 0, ratios[-1]), *ratios[-2:0:-1]]
    # 10.12.4: J_0 + 2 (J_2 + J_4 + ...) = 1.
    products, total, product = [pnp.ones_like(z)], pnp.ones_like(z), pnp.ones_like(z)
    for k, ratio in enumerate(ratios, 1):
        product = product * ratio
        products.append(product)
        if k % 2 == 0:
            total = total + 2 * product
    return [p / total for p in products[: v + 1]]


@_orders.defjvp
def _(v: int, n_iter: int, primals: Any, tangents: Any) -> Any:
    """By 10.6.1, where the order -1 is minus the order 1 (10.4.1)."""
    found = _orders(primals[0], v + 1, max(n_iter, v + 2))
    pairs = zip([-found[1], *found], found[1:], strict=False)
    return found[: v + 1], [0.5 * (below - above) * tangents[0] for below, above in pairs]


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonics of degree `n` and order `m`. DLMF 14.30.1.

    They are normalized: the integral of their square modulus over the sphere is 1.

    Args:
      n, m: integers with `abs(m) <= n`; else the result is 0. Arrays of one shape or scalars.
      theta: the polar angle, from 0 to pi.
      phi: the azimuth; both broadcast with `n` and `m`.
      diff_n: must be `None`.
      n_max: the highest degree; by default that of `n`, which must then be known while tracing.

    Returns:
      A complex array of the shape to which everything broadcasts.

    Raises:
      TypeError: for arguments that are not arrays or numbers.
      ValueError: for shapes that do not broadcast.
      NotImplementedError: if `diff_n` is given.

    >>> from perspex.scipy import special
    >>> round(float(special.sph_harm_y(0, 0, 0.3, 0.5).real), 4)  # 1 / sqrt(4 pi)
    0.2821
    """
    check_arraylike("sph_harm_y", n, m, theta, phi)
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; differentiate with jvp")
    if n_max is None:
        n_max = int(np.max(np.asarray(n)))
    return _sph_harm_y(n, m, theta, phi, int(n_max))


@fused(static=("n_max",))
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Array:
    (theta, phi) = promote_inexact("sph_harm_y", theta, phi)
    n, m, theta, phi = pnp.broadcast_arrays(n, m, theta, phi)
    size = pnp.abs(m)
    x, s = pnp.cos(theta), pnp.sin(theta)
    s = pnp.where(s < 0, -s, s)  # sqrt(1 - x^2), with the slope of the sine at 0
    # Legendre functions with the factor sqrt((2l + 1) (l - m)! / (4 pi (l + m)!)): diagonal ones
    # first (DLMF 14.6.1), then up in degree (14.10.3). Those of order `size` are picked.
    diagonal = pnp.full_like(x, math.sqrt(1 / (4 * math.pi)))
    start = diagonal
    for k in range(1, n_max + 1):
        diagonal = diagonal * (-math.sqrt((2 * k + 1) / (2 * k)) * s)
        start = pnp.where(size == k, diagonal, start)
    low, value = pnp.zeros_like(x), start
    found = pnp.where(n == size, value, 0)
    order = size.astype(typeof(x).dtype)
    for degree in range(1, n_max + 1):
        above = pnp.where(size < degree, (degree - order) * (degree + order), 1)
        last = pnp.maximum((degree - 1 - order) * (degree - 1 + order), 0)
        up = pnp.sqrt((4 * degree * degree - 1) / above)
        down = pnp.sqrt(last / max(4 * (degree - 1) ** 2 - 1, 1))
        after = up * (x * value - down * low)
        low = pnp.where(size < degree, value, low)
        value = pnp.where(size < degree, after, value)
        found = pnp.where((n == degree) & (size < degree), value, found)
    angle = order * phi
    # Y of order -m is (-1)^m times the conjugate.
    flip = pnp.where((m < 0) & (size % 2 == 1), -1, 1)
    turn = pnp.where(m < 0, -1, 1)
    real = found * pnp.cos(angle) * flip
    imaginary = found * pnp.sin(angle) * flip * turn
    return pnp.where(size <= n, real + 1j * imaginary, 0)


describe((exp1, expi, sici, fresnel, spence), {"x": "real numbers."}, RAISES_FOR_ONE, RETURNS)
describe((expn, hyp1f1, hyp2f1), {name: "real numbers." for name in "abcx"}, RAISES, RETURNS)
describe(
    (boxcox, boxcox1p),
    {},
    "TypeError: for arguments that are not arrays or numbers, and for shapes that do not\n"
    "broadcast (ValueError if their ranks differ).",
    RETURNS,
)
