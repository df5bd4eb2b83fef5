"""Special functions of single elements: error functions, the gamma function and its derivatives."""

from __future__ import annotations

from perspex.arguments.arrays import as_dtype, with_weak_cotangents
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.lax.faces import accurate, adopt, matched, unary
from perspex.ops import bessel, incomplete
from perspex.ops import special as ops

__all__ = [
    "bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf", "erf_inv", "erfc", "igamma",
    "igamma_grad_a", "igammac", "lgamma", "polygamma", "random_gamma_grad", "zeta",
]  # fmt: skip

erf = unary(ops.erf)
erfc = accurate(ops.erfc)
erf_inv = unary(ops.erf_inv)
lgamma = unary(ops.lgamma)
digamma = unary(ops.digamma)
bessel_i0e = unary(bessel.bessel_i0e)
bessel_i1e = unary(bessel.bessel_i1e)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Derivative number `m` of the digamma function.

    Args:
      m: whole numbers in the dtype of `x`; they have no derivative.

    Returns:
      An array of the shape and dtype of the operands.

    References:
      https://dlmf.nist.gov/5.15

    >>> from perspex import lax
    >>> round(float(lax.polygamma(1.0, 1.0)), 4)  # pi^2 / 6
    1.6449
    """
    return ops.polygamma(*matched("polygamma", m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The zeta function of Hurwitz, the sum of `(q + k)**-x` over k = 0, 1, 2, ...

    Args:
      x: the exponent, above 1; floats.
      q: the first term, of the dtype of `x`.

    Returns:
      An array of the shape and dtype of the operands.

    References:
      https://dlmf.nist.gov/25.11.E1

    >>> from perspex import lax
    >>> round(float(lax.zeta(2.0, 1.0)), 4)  # pi^2 / 6
    1.6449
    """
    return ops.zeta(*matched("zeta", x, q))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x).

    It is the integral of `t**(a - 1) * exp(-t)` from 0 to `x`, divided by that to infinity.

    Returns:
      An array of the shape and dtype of the operands; NaN where one is negative or both are zero.

    References:
      https://dlmf.nist.gov/8.2.E4

    >>> from perspex import lax
    >>> round(float(lax.igamma(1.0, 2.0)), 4)  # 1 - exp(-2)
    0.8647
    """
    return with_weak_cotangents(incomplete.igamma, *matched("igamma", a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, `1 - igamma(a, x)`, precise where small.

    Returns:
      An array of the shape and dtype of the operands.

    References:
      https://dlmf.nist.gov/8.2.E4

    >>> from perspex import lax
    >>> round(float(lax.igammac(1.0, 2.0)), 4)  # exp(-2)
    0.1353
    """
    return with_weak_cotangents(incomplete.igammac, *matched("igammac", a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma(a, x)` with respect to `a`. It has derivatives, which JAX lacks.

    Returns:
      An array of the shape and dtype of the operands.

    >>> from perspex import lax
    >>> round(float(lax.igamma_grad_a(1.0, 2.0)), 4)
    -0.2208
    """
    return incomplete.igamma_grad_a(*matched("igamma_grad_a", a, x))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a gamma sample `x` with respect to its shape parameter `a`.

    `igamma(a, x)`, the uniform number behind the sample, is held constant: minus the derivative of
    `igamma` with respect to `a`, divided by that with respect to `x`.

    Returns:
      An array of the shape and dtype of the operands.

    References:
      Figurnov et al., "Implicit reparameterization gradients", https://arxiv.org/abs/1805.08498

    >>> from perspex import lax
    >>> round(float(lax.random_gamma_grad(1.0, 2.0)), 4)
    1.6317
    """
    slope = incomplete.random_gamma_grad(*matched("random_gamma_grad", a, x))
    return as_dtype(slope, slope.dtype)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b).

    Args:
      a, b: positive floats.
      x: floats between 0 and 1, of the dtype of `a`. Shapes must be equal unless operands are
        scalars; axes of size one broadcast.

    Returns:
      An array of the shape and dtype of the operands; NaN where one is out of its range.

    References:
      https://dlmf.nist.gov/8.17.E2

    >>> from perspex import lax
    >>> round(float(lax.betainc(1.0, 2.0, 0.5)), 4)  # 1 - (1 - x) ** 2
    0.75
    """
    a, b = matched("betainc", a, b)
    a, x = matched("betainc", a, x)
    b, x = matched("betainc", b, x)
    a, b = matched("betainc", a, b)
    return incomplete.regularized_incomplete_beta(a, b, x)


describe(
    (polygamma, zeta, igamma, igammac, igamma_grad_a, random_gamma_grad, betainc),
    {
        "a": "floats, the shape parameter, not below zero.",
        "x": "floats of the dtype of the other operand. Shapes must be equal unless one is a\n"
        "scalar; axes of size one broadcast.",
    },
    "TypeError: if an operand is not an array or a number, or has another dtype or shape.",
)
__test__ = adopt(globals())
