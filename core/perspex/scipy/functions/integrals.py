"""Exponential, trigonometric and Fresnel integrals, the dilogarithm, hypergeometric functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.numpy.promotion import Array, ArrayLike, check_arraylike, inexact, promote_inexact
from perspex.ops import hypergeometric, integrals
from perspex.scipy.functions.gammas import floats, strong
from perspex.tracing.trace import typeof


@fused
def exp1(x: ArrayLike) -> Array:
    """The integral of `exp(-t) / t` from `x` to infinity; NaN for negative `x`.

    >>> round(float(exp1(np.float32(1))), 4)
    0.2194
    """
    return integrals.exp1(strong(inexact("exp1", x)))


@fused
def expi(x: ArrayLike) -> Array:
    """The integral of `exp(t) / t` from minus infinity to `x`, through 0 as a principal value.

    >>> round(float(expi(np.float32(1))), 4)
    1.8951
    """
    return integrals.expi(strong(inexact("expi", x)))


@fused
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The integral of `exp(-x t) / t**n` for `t` from 1 to infinity.

    Args:
      n: whole numbers, not negative; fractions are cut off.
      x: real numbers, not negative.

    >>> round(float(expn(2, np.float32(1))), 4)
    0.1485
    """
    return integrals.expn(*map(strong, promote_inexact("expn", n, x)))


@fused
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and the cosine integral.

    The integrals of `sin(t) / t` from 0 to `x`, and of `cos(t) / t` from infinity to `abs(x)`.

    >>> si, ci = sici(np.float32(1))
    >>> round(float(si), 4), round(float(ci), 4)
    (0.9461, 0.3374)
    """
    x = strong(inexact("sici", x))
    return integrals.si(x), integrals.ci(x)


@fused
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of `sin(pi t**2 / 2)` and of `cos(pi t**2 / 2)` from 0 to `x`.

    Args:
      x: real numbers.

    Raises:
      NotImplementedError: `x` is complex.

    >>> s, c = fresnel(np.float32(1))
    >>> round(float(s), 4), round(float(c), 4)
    (0.4383, 0.7799)
    """
    x = strong(inexact("fresnel", x))
    if typeof(x).dtype.kind == "c":
        raise NotImplementedError(
            "fresnel is not implemented for complex arguments; take real ones"
        )
    return integrals.fresnel_s(x), integrals.fresnel_c(x)


@fused
def spence(x: ArrayLike) -> Array:
    """The dilogarithm of `1 - x`: the integral of `log(t) / (1 - t)` from 1 to `x`.

    Args:
      x: real numbers, not negative; NaN below.

    >>> round(float(spence(np.float32(0))), 4)  # pi^2 / 6
    1.6449
    """
    return integrals.spence(inexact("spence", x))


@fused
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The confluent hypergeometric function, differentiable in `x`.

    >>> round(float(hyp1f1(1.0, 2.0, 0.5)), 4)  # (exp(x) - 1) / x
    1.2974
    """
    return hypergeometric.hyp1f1(*map(strong, floats("hyp1f1", a, b, x)))


@fused
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """The hypergeometric function of Gauss for `x <= 1`, differentiable in `x`; infinite above.

    >>> round(float(hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)  # -log(1 - x) / x
    1.3863
    """
    return hypergeometric.hyp2f1(*map(strong, floats("hyp2f1", a, b, c, x)))


@fused
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The transformation `(x**lmbda - 1) / lmbda` of Box and Cox, `log(x)` where `lmbda` is 0.

    Args:
      x: real numbers, not negative; NaN below.

    >>> round(float(boxcox(2.0, 0.5)), 4)
    0.8284
    """
    x, power = promote_inexact("boxcox", x, lmbda)
    return _box_cox(pnp.log(x), power)


@fused
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox(1 + x, lmbda)`, accurate for small `x`.

    >>> round(float(boxcox1p(1.0, 0.5)), 4)
    0.8284
    """
    x, power = promote_inexact("boxcox1p", x, lmbda)
    return _box_cox(pnp.log1p(x), power)


def _box_cox(log_x: Array, power: Array) -> Array:
    zero = power == 0
    # Near zero by the series of expm1, which has a derivative there.
    small = pnp.abs(power) < float(dtypes.finfo(typeof(log_x).dtype).eps)
    safe = pnp.where(zero | small, 1, power)
    series = log_x * (1 + 0.5 * power * log_x)
    return pnp.where(zero | small, series, pnp.expm1(safe * log_x) / safe)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind of the orders 0 to `v`.

    By the continued fraction of their ratios (DLMF 10.10.1), from `n_iter` terms.

    Args:
      z: real or complex numbers, less than about `n_iter / 1.5` in size.
      v: the highest order, known while tracing.
      n_iter: from which order to start.

    Returns:
      An array of shape `(v + 1, *z.shape)`.

    Raises:
      ValueError: `v` is negative or not below `n_iter`.

    >>> [round(float(y), 4) for y in bessel_jn(np.float32(1), v=1)]
    [0.7652, 0.4401]
    """
    check_arraylike("bessel_jn", z)
    if not 0 <= v < n_iter:
        raise ValueError(f"bessel_jn: v must be between 0 and n_iter={n_iter}, got {v}")
    return _bessel_jn(z, int(v), int(n_iter))


@fused(static=("v", "n_iter"))
def _bessel_jn(z: Any, v: int, n_iter: int) -> Array:
    z = inexact("bessel_jn", z)
    zero = z == 0
    safe = pnp.where(zero, 1, z)
    ratios = [pnp.zeros_like(z)]
    for k in range(n_iter, 0, -1):
        ratios.append(1 / (2 * k / safe - ratios[-1]))
    ratios = ratios[:0:-1]
    # 10.12.4: J_0 + 2 (J_2 + J_4 + ...) = 1.
    products, total, product = [pnp.ones_like(z)], pnp.ones_like(z), pnp.ones_like(z)
    for k, ratio in enumerate(ratios, 1):
        product = product * ratio
        products.append(product)
        if k % 2 == 0:
            total = total + 2 * product
    found = pnp.stack([p / total for p in products[: v + 1]])
    at_zero = pnp.stack([pnp.full_like(z, float(k == 0)) for k in range(v + 1)])
    return pnp.where(zero, at_zero, found)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonics of degree `n` and order `m`.

    Args:
      n, m: integers with `abs(m) <= n`; else the result is 0. Arrays of one shape or scalars.
      theta: the polar angle, from 0 to pi.
      phi: the azimuth; both broadcast with `n` and `m`.
      diff_n: must be `None`.
      n_max: the highest degree; by default that of `n`, which must then be known while tracing.

    Returns:
      A complex array of the shape to which everything broadcasts.

    >>> round(float(sph_harm_y(0, 0, 0.3, 0.5).real), 4)  # 1 / sqrt(4 pi)
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
