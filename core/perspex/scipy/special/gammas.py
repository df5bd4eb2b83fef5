"""The gamma function and its relatives. "DLMF" is https://dlmf.nist.gov."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import check_arraylike, with_weak_cotangents
from perspex.arguments.glossary import describe
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact, promote_all, promote_inexact, strong
from perspex.ops import incomplete, integrals, special
from perspex.rules.custom_jvp import custom_jvp
from perspex.tracing.trace import typeof
from perspex.transforms.jvp import jvp

__all__ = [
    "bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
]  # fmt: skip

# For `describe`, in all modules of special functions.
RETURNS = "An array of the shape to which the arguments broadcast, of floating dtype."
RAISES = (
    "TypeError: for arguments that are not arrays or numbers, and for shapes that do not\n"
    "broadcast (ValueError if their ranks differ).\n"
    "TypeError or ValueError: for complex arguments, as in JAX."
)
# Of functions of real and of complex numbers.
COMPLEX: tuple[dict[str, str], str, str] = (
    {"x": "real or complex numbers."},
    "TypeError: if the argument is not an array or a number.",
    "An array of the shape of `x`, of floating or complex dtype.",
)
RAISES_FOR_ONE = (
    "TypeError: if the argument is not an array or a number.\n"
    "TypeError or ValueError: for complex arguments, as in JAX."
)


def floats(name: str, *args: Any) -> Sequence[Array]:
    """Operands at one floating dtype, and one shape unless they are scalars."""
    if len(args) == 1:
        return (inexact(name, args[0]),)
    if len(args) == 2:
        return promote_inexact(name, *args)
    return promote_all(name, *args, to=dtypes.to_inexact_dtype)


def real(name: str, *args: Array) -> Sequence[Array]:
    """Operands of one dtype; a `ValueError` if they are complex."""
    if typeof(args[0]).dtype.kind == "c":
        raise ValueError(f"{name} does not support complex arguments; take real ones")
    return args


@fused
def gammaln(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function.

    >>> from perspex.scipy import special
    >>> special.gammaln(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return special.lgamma(inexact("gammaln", x))


@fused
def gamma(x: ArrayLike) -> Array:
    """Gamma function: the integral of `t**(x - 1) * exp(-t)` from 0 to infinity. DLMF 5.2.1.

    It is `(x - 1)!` for whole `x`, NaN at -1, -2, ... and infinite at 0; complex numbers give NaN
    there, too.

    >>> from perspex.scipy import special
    >>> special.gamma(5.0)
    Array(24., dtype=float32)
    """
    x = strong(inexact("gamma", x))
    if typeof(x).dtype.kind != "c":
        return integrals.gamma(x)
    pole = (x.imag == 0) & (x.real <= 0) & (x.real == pnp.floor(x.real))
    return pnp.where(pole | pnp.isnan(x), complex(math.nan, math.nan), _complex_gamma(x))


@custom_jvp
def _complex_gamma(x: Array) -> Array:
    with config.enable_x64(True):  # an error of the logarithm is a relative one of the result
        value = pnp.exp(loggamma(x.astype(np.complex128))).astype(typeof(x).dtype)
    return pnp.where(x.imag == 0, integrals.gamma(x.real) + 0j, value)


@_complex_gamma.defjvp
def _(primals: Any, tangents: Any) -> Any:
    out = _complex_gamma(*primals)
    _, (change,) = jvp(lambda x: [loggamma(x)], primals, tangents)
    return out, out * change


@fused
def gammasgn(x: ArrayLike) -> Array:
    """Sign of the gamma function: 1 or -1; NaN at -1, -2, ...

    >>> from perspex.scipy import special
    >>> special.gammasgn(-0.5)
    Array(-1., dtype=float32)
    """
    (x,) = real("gammasgn", inexact("gammasgn", x))
    floor = pnp.floor(x)
    sign = pnp.where((x < 0) & (floor % 2 != 0), -1, 1).astype(typeof(x).dtype)
    sign = pnp.where((x == 0) & pnp.signbit(x), -sign, sign)
    return pnp.where(((x < 0) & (x == floor)) | (x != x), math.nan, sign)


@fused
def loggamma(x: ArrayLike) -> Array:
    """Principal branch of the logarithm of the gamma function.

    It is analytic but for a cut along the negative axis, where `gammaln` gives the logarithm of the
    absolute value; NaN at complex poles, and for real numbers below zero.

    >>> from perspex.scipy import special
    >>> complex(special.loggamma(np.complex64(1j))).imag < 0
    True
    """
    x = inexact("loggamma", x)
    if typeof(x).dtype.kind != "c":
        return pnp.where(x < 0, math.nan, special.lgamma(x))
    # DLMF 5.5.3 reflects the left half plane to the right one. In the upper half plane
    # log sin(pi z) is log(1/2) + i pi/2 - i pi z + log(1 - exp(2 i pi z)).
    left, below = x.real < 0, pnp.signbit(x.imag)
    z = pnp.where(below, pnp.conj(x), x)
    w = pnp.where(left, z, 0.5j)
    turn = pnp.expm1(2j * math.pi * (w - pnp.round(w.real)))  # keeps digits near the poles
    log_sin = 1j * math.pi * (0.5 - w) - math.log(2) + pnp.log(-turn)
    right = _log_gamma_right(pnp.where(left, 1 - z, z))
    out = pnp.where(left, math.log(math.pi) - log_sin - right, right)
    out = pnp.where(below, pnp.conj(out), out)
    pole = (x.imag == 0) & (x.real <= 0) & (x.real == pnp.floor(x.real))
    return pnp.where(pole, complex(math.nan, math.nan), out).astype(typeof(x).dtype)


def _zeta_less_one(k: int) -> float:
    """The sum of `n ** -k` from n = 2 on, by the formula of Euler and Maclaurin (DLMF 2.10.1)."""
    n = 100.0
    rest = n / (k - 1) + 0.5 + k / (12 * n) - k * (k + 1) * (k + 2) / (720 * n**3)
    return math.fsum(m**-k for m in range(2, 100)) + rest * n**-k


# DLMF 5.7.3: the series of `log(gamma(2 + w)) / w`.
_AT_TWO = (1 - np.euler_gamma, *[(-1) ** k * _zeta_less_one(k) / k for k in range(2, 26)])


def _log_gamma_right(z: Array) -> Array:
    """`loggamma` in the right half plane: by a series around 1 and 2, where it vanishes."""
    at_one, at_two = abs(z - 1) < 0.5, abs(z - 2) < 0.5
    w = pnp.where(at_one, z - 1, pnp.where(at_two, z - 2, 0))
    near: Any = 0.0
    for c in reversed(_AT_TWO):
        near = near * w + c
    near = near * w - pnp.log1p(pnp.where(at_one, w, 0))
    return pnp.where(at_one | at_two, near, _log_gamma_far(z))


def _log_gamma_far(z: Array) -> Array:
    """By Stirling's formula (DLMF 5.11.1) at z + 8, and the recurrence down to z."""
    steps = 8
    w = z + steps
    square = 1 / (w * w)
    series: Any = 0.0
    for c in (3617 / 122400, 1 / 156, 691 / 360360, 1 / 1188, 1 / 1680, 1 / 1260, 1 / 360, 1 / 12):
        series = c - series * square
    logs = sum(pnp.log(z + k) for k in range(steps))
    return (w - 0.5) * pnp.log(w) - w + 0.5 * math.log(2 * math.pi) + series / w - logs


@fused
def digamma(x: ArrayLike) -> Array:
    """Derivative of the logarithm of the gamma function. DLMF 5.2.2.

    >>> from perspex.scipy import special
    >>> special.digamma(1.0)
    Array(-0.5772157, dtype=float32, weak_type=True)
    """
    return special.digamma(inexact("digamma", x))


@fused
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Derivative number `n` of `digamma`. DLMF 5.15.

    Args:
      n: integers, 0 or more.
      x: real numbers.

    Raises:
      TypeError: for arguments that are not real arrays or numbers.
      ValueError: if `n` is not of an integer dtype.

    >>> from perspex.scipy import special
    >>> round(float(special.polygamma(1, 1.0)), 4)  # pi^2 / 6
    1.6449
    """
    check_arraylike("polygamma", n, x)
    if not dtypes.issubdtype(dtypes.dtype_of(n), np.integer):
        raise ValueError(f"polygamma: n must be of an integer dtype, got {dtypes.dtype_of(n).name}")
    return with_weak_cotangents(special.polygamma, *promote_inexact("polygamma", n, x))


@fused
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Beta function, `gamma(a) * gamma(b) / gamma(a + b)`. DLMF 5.12.1.

    >>> from perspex.scipy import special
    >>> round(float(special.beta(2.0, 3.0)), 4)
    0.0833
    """
    a, b = real("beta", *promote_inexact("beta", a, b))
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return sign * pnp.exp(incomplete.betaln(a, b))


@fused
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Logarithm of the absolute value of the beta function, also where that vanishes.

    >>> from perspex.scipy import special
    >>> round(float(special.betaln(2.0, 3.0)), 4)
    -2.4849
    """
    return incomplete.betaln(*promote_inexact("betaln", a, b))


@fused
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Regularized incomplete beta function: the beta distribution's mass below `x`.

    The integral of `t**(a - 1) * (1 - t)**(b - 1)` from 0 to `x`, divided by `beta(a, b)`
    (DLMF 8.17.2). Differentiable with respect to `x`.

    Args:
      a, b: positive numbers.
      x: numbers between 0 and 1.

    >>> from perspex.scipy import special
    >>> special.betainc(1.0, 2.0, 0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return incomplete.regularized_incomplete_beta(*real("betainc", *floats("betainc", a, b, x)))


@fused
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized lower incomplete gamma function: the gamma distribution's mass below `x`.

    The integral of `t**(a - 1) * exp(-t)` from 0 to `x`, divided by `gamma(a)`. DLMF 8.2.4.
    Differentiable with respect to `a` and `x`.

    Args:
      a: positive numbers.
      x: real numbers, not negative.

    >>> from perspex.scipy import special
    >>> round(float(special.gammainc(1.0, 2.0)), 4)
    0.8647
    """
    return with_weak_cotangents(incomplete.igamma, *promote_inexact("gammainc", a, x))


@fused
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized upper incomplete gamma function, `1 - gammainc(a, x)`. DLMF 8.2.4.

    Args:
      a: positive numbers.
      x: real numbers, not negative.

    >>> from perspex.scipy import special
    >>> round(float(special.gammaincc(1.0, 2.0)), 4)
    0.1353
    """
    return with_weak_cotangents(incomplete.igammac, *promote_inexact("gammaincc", a, x))


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Logarithm of the gamma function of positive definite matrices of size `d`.

    It is `log(pi) * d * (d - 1) / 4` plus the sum of `gammaln(a - j / 2)` for j below d (DLMF
    35.3.4).

    Args:
      a: real numbers above `(d - 1) / 2`.
      d: a positive integer, known while tracing.

    Returns:
      An array of the shape of `a`, of floating dtype.

    Raises:
      TypeError: if `a` is not a real array or number, or `d` is traced or not an integer.

    >>> from perspex.scipy import special
    >>> round(float(special.multigammaln(4.0, 3)), 4)
    5.403
    """
    return _multigammaln(a, concrete("multigammaln: d", operator.index, d))


@fused(static=("size",))
def _multigammaln(a: Any, size: int) -> Array:
    a = strong(promote_inexact("multigammaln", a, size)[0])
    total = sum((special.lgamma(a - j / 2) for j in range(size)), pnp.zeros_like(a))
    return total + math.log(math.pi) * size * (size - 1) / 4


@fused
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Rising factorial (Pochhammer's symbol) `gamma(z + m) / gamma(z)`. DLMF 5.2.5.

    Args:
      z, m: real numbers.

    >>> from perspex.scipy import special
    >>> round(float(special.poch(2.0, 3.0)), 4)
    24.0
    """
    z, m = real("poch", *promote_inexact("poch", z, m))
    sign = gammasgn(z) * gammasgn(z + m)
    ratio = sign * pnp.exp(special.lgamma(z + m) - special.lgamma(z))
    # The difference of two large logarithms has few digits, and that of a beta function has all.
    low, size = pnp.minimum(z, z + m), abs(m)
    is_large = (low > 10) & (m != 0)
    low, size = (pnp.where(is_large, x, 10) for x in (low, size))
    log = pnp.sign(m) * (special.lgamma(size) - betaln(low, size))
    return pnp.where(m == 0, 1, pnp.where(is_large, pnp.exp(log), ratio))


@fused(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Factorial `n!`: the gamma function of `n + 1`; 0 below zero.

    Args:
      n: real numbers.
      exact: must be false, as there are no integers of any size.

    Raises:
      TypeError: if `n` is not a real array or number.
      NotImplementedError: if `exact` is true.

    >>> from perspex.scipy import special
    >>> round(float(special.factorial(5)))
    120
    """
    if exact:
        raise NotImplementedError("factorial with exact=True needs integers of any size; use math")
    n = inexact("factorial", n)
    return pnp.where(n < 0, 0, integrals.gamma(pnp.where(n < 0, 0, n) + 1))


@fused(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose `k` of `N` things. DLMF 26.3.1.

    Args:
      N, k: real numbers; the result is 0 if one is negative, or `k` greater than `N`.
      repetition: whether a thing may be chosen again.

    >>> from perspex.scipy import special
    >>> round(float(special.comb(5, 2)))
    10
    """
    n, k = promote_inexact("comb", N, k)
    if repetition:
        n = pnp.where((n == 0) & (k == 0), 1, n + k - 1)
    possible = (n >= 0) & (k >= 0) & (k <= n)
    n, k = pnp.where(possible, n, 1), pnp.where(possible, k, 0)
    # DLMF 26.3.1: exact for small n, otherwise from the logarithm of B(n - k + 1, k + 1).
    few = n <= (7 if typeof(n).dtype == np.dtype("float16") else 30)
    x, y, z = [integrals.gamma(pnp.where(few, v, 0) + 1) for v in (n, k, n - k)]
    ways = pnp.where(few, x / (y * z), pnp.exp(-incomplete.betaln(n - k + 1, k + 1)) / (n + 1))
    return pnp.where(possible, ways, 0)


@fused
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Zeta function of Hurwitz: the sum of `(q + k)**-x` over k = 0, 1, 2, ... DLMF 25.11.1.

    Args:
      x: real numbers above 1; below the result is NaN.
      q: real numbers, 1 for the zeta function of Riemann; it must be given.

    Raises:
      TypeError: for arguments that are not real arrays or numbers.
      NotImplementedError: if `q` is not given.

    >>> from perspex.scipy import special
    >>> round(float(special.zeta(2.0, 1.0)), 4)
    1.6449
    """
    if q is None:
        raise NotImplementedError("zeta: pass q=1 for the zeta function of Riemann, where x > 1")
    return with_weak_cotangents(special.zeta, *promote_inexact("zeta", x, q))


def bernoulli(n: int) -> Array:
    """Bernoulli numbers from 0 to `n`, with -1/2 for number 1. DLMF 24.2.1.

    Args:
      n: an integer, not negative, known while tracing.

    Returns:
      An array of shape `(n + 1,)` of the default floating dtype.

    Raises:
      TypeError: if `n` is traced or not an integer.
      ValueError: if `n` is negative.

    >>> from perspex.scipy import special
    >>> special.bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    n = concrete("bernoulli: n", operator.index, n)
    if n < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, got {n}")
    found = [incomplete.bernoulli_number(k) for k in range(n + 1)]
    return pnp.array([float(b) if abs(b) < 2**1020 else math.copysign(math.inf, b) for b in found])


_X = {"x": "real numbers."}
describe((gamma, loggamma), *COMPLEX)
describe((gammaln, gammasgn, digamma), _X, RAISES_FOR_ONE, RETURNS)
describe((poch, comb, factorial, polygamma, zeta), {}, RAISES, RETURNS)
describe(
    (beta, betaln, betainc, gammainc, gammaincc),
    {"a": "real numbers.", "b": "real numbers."},
    RAISES,
    RETURNS,
)
