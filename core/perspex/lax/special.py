"""Special functions of single elements: error functions, the gamma function and its derivatives."""

from __future__ import annotations

from perspex.lax.arrays import ArrayLike
from perspex.lax.elementwise import check_accuracy, matched
from perspex.ops import bessel, incomplete
from perspex.ops import special as ops
from perspex.runtime.array import Array


def erf(x: ArrayLike) -> Array:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `x`.

    >>> round(float(erf(1.0)), 4)
    0.8427
    """
    return ops.erf(x)


def erfc(x: ArrayLike, *, accuracy: None = None) -> Array:
    """`1 - erf(x)`, exact for large `x`.

    >>> round(float(erfc(1.0)), 4)
    0.1573
    """
    check_accuracy("erfc", accuracy)
    return ops.erfc(x)


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is `x`, which is between -1 and 1.

    >>> round(float(erf_inv(0.5)), 4)
    0.4769
    """
    return ops.erf_inv(x)


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function.

    >>> round(float(lgamma(5.0)), 4)  # log(4!)
    3.1781
    """
    return ops.lgamma(x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of `lgamma`.

    >>> round(float(digamma(1.0)), 4)  # minus Euler's constant
    -0.5772
    """
    return ops.digamma(x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Derivative number `m` of `digamma`; `m` is a whole number in the dtype of `x`.

    >>> round(float(polygamma(1.0, 1.0)), 4)  # pi^2 / 6
    1.6449
    """
    return ops.polygamma(*matched("polygamma", m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The zeta function of Hurwitz, the sum of `(q + k) ** -x` over k = 0, 1, 2, ...

    >>> round(float(zeta(2.0, 1.0)), 4)  # pi^2 / 6
    1.6449
    """
    return ops.zeta(*matched("zeta", x, q))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, P(a, x) of https://dlmf.nist.gov/8.2.

    It is the integral of `t ** (a - 1) * exp(-t)` from 0 to `x`, divided by that to infinity.

    Args:
      a, x: floats of one dtype, not below zero, of one shape or scalars.

    Returns:
      An array of their shape and dtype; NaN where an operand is negative or both are zero.

    >>> round(float(igamma(1.0, 2.0)), 4)  # 1 - exp(-2)
    0.8647
    """
    return incomplete.igamma(*matched("igamma", a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, `1 - igamma(a, x)`, precise where small.

    >>> round(float(igammac(1.0, 2.0)), 4)  # exp(-2)
    0.1353
    """
    return incomplete.igammac(*matched("igammac", a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma(a, x)` by `a`.

    >>> round(float(igamma_grad_a(1.0, 2.0)), 4)
    -0.2208
    """
    return incomplete.igamma_grad_a(*matched("igamma_grad_a", a, x))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """How a gamma sample `x` moves with the shape parameter `a`.

    With `igamma(a, x)`, the uniform number behind the sample, held constant: minus the derivative
    of `igamma` by `a`, divided by that by `x` (Figurnov et al., "Implicit reparameterization
    gradients", https://arxiv.org/abs/1805.08498).

    >>> round(float(random_gamma_grad(1.0, 2.0)), 4)
    1.6317
    """
    return incomplete.random_gamma_grad(*matched("random_gamma_grad", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, I_x(a, b) of https://dlmf.nist.gov/8.17.

    Args:
      a, b: positive floats.
      x: floats between 0 and 1, of the same dtype; all of one shape or scalars.

    Returns:
      An array of their shape and dtype; NaN where an operand is out of its range.

    >>> round(float(betainc(1.0, 2.0, 0.5)), 4)  # 1 - (1 - x) ** 2
    0.75
    """
    a, b = matched("betainc", a, b)
    a, x = matched("betainc", a, x)
    b, x = matched("betainc", b, x)
    a, b = matched("betainc", a, b)
    return incomplete.regularized_incomplete_beta(a, b, x)


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function I_0(x), divided by `exp(abs(x))`.

    >>> round(float(bessel_i0e(1.0)), 4)
    0.4658
    """
    return bessel.bessel_i0e(x)


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function I_1(x), divided by `exp(abs(x))`.

    >>> round(float(bessel_i1e(1.0)), 4)
    0.2079
    """
    return bessel.bessel_i1e(x)
