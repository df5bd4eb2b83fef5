"""Functions that are integrals of elementary ones: exponential, sine, Fresnel and other integrals.

All are computed in double precision, whatever the dtype of the operands: near the origin by a
power series, far away by a continued fraction or an asymptotic expansion, with as many terms as a
double needs at the border. Equations are those of the NIST Digital Library of Mathematical
Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ops
from perspex.ops.families import COMPLEX, FLOAT, Elementwise, binary, unary
from perspex.ops.infix import Formula, call, emit, exp, horner, log, sign, where
from perspex.ops.special import digamma, erf, erfc, lgamma, unknown
from perspex.ops.structural import scalar_like
from perspex.tracing.trace import typeof

_DOUBLE = np.dtype("float64")
_EULER = float(np.euler_gamma)
_ROOT_PI = math.sqrt(math.pi)


def in_double(formula: Callable[..., Formula]) -> Callable[..., Any]:
    """The lower rule that computes `formula` in double precision."""

    def lower(b: Any, *values: Any) -> Any:
        (out,) = b.out_avals
        wide = ShapedArray(out.shape, _DOUBLE)
        if out.dtype == _DOUBLE:
            return emit(b, formula, values, [wide] * len(values))[0]
        given = [b.convert(v, wide) for v in values]
        return b.convert(emit(b, formula, given, [wide] * len(values))[0], out)

    return lower


def _imaginary(x: Formula) -> Formula:
    return call(ops.complex, x - x, x)


def _nan_kept(x: Formula, y: Formula) -> Formula:
    """`y`, and NaN where `x` is."""
    return where(x.equals(x), y, math.nan)


# ---- Exponential integrals -----------------------------------------------------------------------


def _entire(x: Formula, terms: int) -> Formula:
    """Ein(-x) of 6.2.3: the sum of x^k / (k k!)."""
    return x * horner([1 / (k * math.factorial(k)) for k in range(1, terms)], x)


def _e_fraction(n: Any, z: Formula, levels: int) -> Formula:
    """`E_n(z) exp(z)`: the even part of 8.19.17, from the last level."""
    tail = z + (n + 2.0 * levels)
    for k in range(levels, 0, -1):
        tail = (z + (n + 2.0 * (k - 1))) - k * (n + (k - 1.0)) / tail
    return 1.0 / tail


def _exp1(x: Formula) -> Formula:
    small = where(x < 2.0, x, 1.0)
    near = -(log(small) + _EULER) - _entire(-small, 28)
    large = where(x < 2.0, 2.0, x)
    far = exp(-large) * _e_fraction(1.0, where(large < 1e3, large, 1e3), 48)
    y = where(x < 2.0, near, far)
    return _nan_kept(x, where(x.equals(0.0), math.inf, where(x < 0.0, math.nan, y)))


def _expi(x: Formula) -> Formula:
    border = 40.0
    inside = (x > 0.0) & (x < border)
    small = where(inside, x, 1.0)
    near = log(small) + _EULER + _entire(small, 130)
    large = where(x < border, border, x)
    # 6.12.2: the terms k! / x^k fall until k = x.
    far = exp(large) / large * horner([float(math.factorial(k)) for k in range(38)], 1.0 / large)
    far = where(large > 720.0, math.inf, far)
    below = -_exp1(where(x < 0.0, -x, 1.0))
    y = where(x < 0.0, below, where(x < border, near, far))
    return _nan_kept(x, where(x.equals(0.0), -math.inf, y))


def _expn(n: Formula, x: Formula) -> Formula:
    n = call(ops.floor, n)
    # 8.19.8, where the term of k = n - 1 is the one with the logarithm.
    small = where((x > 0.0) & (x < 1.0), x, 0.5)
    order = where(n < 1.0, 1.0, n)
    total = small - small
    for k in reversed(range(21)):
        gap = float(k + 1) - order
        hole = gap.equals(0.0)
        term = where(hole, 0.0, 1.0 / where(hole, 1.0, gap)) / float(math.factorial(k))
        total = term - small * total
    odd = call(ops.rem, order - 1.0, where(order.equals(order), 2.0, order))
    power = exp((order - 1.0) * log(small) - call(lgamma, order)) * (1.0 - 2.0 * odd)
    near = power * (call(digamma, order) - log(small)) - total
    large = where(x < 1.0, 1.0, x)
    far = exp(-large) * _e_fraction(n, where(large < 1e3, large, 1e3), 70)
    y = where(x < 1.0, near, far)
    y = where(n.equals(0.0), exp(-x) / x, y)
    at_zero = where(n > 1.0, 1.0 / where(n > 1.0, n - 1.0, 1.0), math.inf)
    y = where(x.equals(0.0), at_zero, y)
    return where((n >= 0.0) & (x >= 0.0), y, math.nan)


# ---- Sine, cosine and Fresnel integrals ----------------------------------------------------------


def _trigonometric_tail(x: Formula) -> tuple[Formula, Formula]:
    """Real and imaginary part of E_1(i x) for x >= 4 (6.5.5, 6.5.6)."""
    z = _imaginary(x)
    value = exp(-z) * _e_fraction(1.0, z, 40)
    return call(ops.real, value), call(ops.imag, value)


_BORDER = 4.0


def _si(x: Formula) -> Formula:
    size = abs(x)
    small = where(size < _BORDER, size, 1.0)
    square = small * small
    # 6.6.5
    near = small * horner(
        [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(18)], square
    )
    large = where((size < _BORDER) | size.equals(math.inf), _BORDER, size)
    far = where(size.equals(math.inf), 0.5 * math.pi, 0.5 * math.pi + _trigonometric_tail(large)[1])
    return _nan_kept(x, sign(x) * where(size < _BORDER, near, far))


def _ci(x: Formula) -> Formula:
    # The real part for x < 0, but nothing at minus infinity.
    x = where(x.equals(-math.inf), math.nan, abs(x))
    near_zero = (x > 0.0) & (x < _BORDER)
    small = where(near_zero, x, 1.0)
    square = small * small
    # 6.6.6
    rest = horner([(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 19)], square)
    near = log(small) + _EULER + square * rest
    large = where((x > _BORDER) & (x < math.inf), x, _BORDER)
    far = where(x.equals(math.inf), 0.0, -_trigonometric_tail(large)[0])
    y = where(x < _BORDER, near, far)
    return _nan_kept(x, where(x.equals(0.0), -math.inf, y))


_FRESNEL_BORDER = 1.7


def _fresnel(cosine: bool) -> Callable[[Formula], Formula]:
    def formula(x: Formula) -> Formula:
        size = abs(x)
        small = where(size < _FRESNEL_BORDER, size, 1.0)
        fourth = (small * small) * (small * small)
        # 7.6.4, 7.6.6: integrals of the series of cos and sin of pi t^2 / 2.
        start = 0 if cosine else 1
        orders = range(start, 38, 2)
        coefficients = [
            (-1) ** (m // 2) * (math.pi / 2) ** m / (math.factorial(m) * (2 * m + 1))
            for m in orders
        ]
        near = horner(coefficients, fourth) * (small if cosine else small * small * small)
        # 7.5.9: C + i S = (1 + i) / 2 (1 - erfc z), z = (1 - i) sqrt(pi) x / 2; 7.9.3, even part.
        far_away = size > 1e7
        large = where((size < _FRESNEL_BORDER) | far_away, _FRESNEL_BORDER, size)
        # 2 z^2 = -i pi x^2
        angle = 0.5 * math.pi * (large * large)
        double_square = -_imaginary(2.0 * angle)
        levels = 40
        tail = double_square + (4.0 * levels + 1.0)
        for k in range(levels, 0, -1):
            tail = double_square + (4.0 * (k - 1) + 1.0) - (2.0 * k - 1.0) * (2.0 * k) / tail
        # (1 + i) / 2 erfc z = (1 + i) z exp(-z^2) / (sqrt(pi) tail) = x exp(i angle) / tail.
        rest = exp(_imaginary(angle)) / tail
        part = call(ops.real if cosine else ops.imag, rest) * large
        far = where(far_away, 0.5, 0.5 - part)
        return _nan_kept(x, sign(x) * where(size < _FRESNEL_BORDER, near, far))

    return formula


# ---- Integrals of exp(x^2) and exp(-x^2) ---------------------------------------------------------


def _half_factorials(terms: int, alternate: bool) -> list[float]:
    """`(2k - 1)!! / 2^k`, with alternating signs or not."""
    found = [1.0]
    for k in range(1, terms):
        found.append(found[-1] * (2 * k - 1) / 2 * (-1 if alternate else 1))
    return found


def _erfcx(x: Formula) -> Formula:
    """`exp(x^2) erfc(x)`."""
    size = abs(x)
    small = where(size < 8.0, x, 0.0)
    near = exp(small * small) * call(erfc, small)
    large = where(size < 8.0, 8.0, size)
    # 7.12.1
    far = horner(_half_factorials(24, True), 1.0 / (large * large)) / (large * _ROOT_PI)
    far = where(x < 0.0, 2.0 * exp(where(x < 0.0, x * x, 0.0)) - far, far)
    return _nan_kept(x, where(size < 8.0, near, far))


def _dawsn(x: Formula) -> Formula:
    """`exp(-x^2)` times the integral of `exp(t^2)` from 0 to x."""
    size = abs(x)
    small = where(size < 6.5, size, 0.0)
    square = small * small
    series = [1 / (math.factorial(k) * (2 * k + 1)) for k in range(140)]
    near = exp(-square) * small * horner(series, square)
    large = where(size < 6.5, 6.5, size)
    far = 0.5 * horner(_half_factorials(40, False), 1.0 / (large * large)) / large
    return _nan_kept(x, sign(x) * where(size < 6.5, near, far))


# ---- The dilogarithm -----------------------------------------------------------------------------


@functools.cache
def _dilogarithm_terms(count: int) -> list[float]:
    """`B_2n / (2n + 1)!` for n = 1, 2, ...: 25.12.2 in powers of log(1 - z)."""
    # The Bernoulli number by its zeta function (25.6.2); the first ones exactly.
    found = []
    for n in range(1, count + 1):
        zeta = sum(k ** (-2.0 * n) for k in range(1, 60)) + 59.5 ** (1 - 2.0 * n) / (2 * n - 1)
        size = 2 * zeta * math.factorial(2 * n) / (2 * math.pi) ** (2 * n)
        exact = {1: 1 / 6, 2: 1 / 30, 3: 1 / 42, 4: 1 / 30, 5: 5 / 66}.get(n, size)
        found.append((-1) ** (n + 1) * exact / math.factorial(2 * n + 1))
    return found


def _dilogarithm(u: Formula) -> Formula:
    """Li_2(z) for u = -log(1 - z), -1 <= z <= 1/2."""
    square = u * u
    return u - 0.25 * square + u * square * horner(_dilogarithm_terms(12), square)


def _spence(x: Formula) -> Formula:
    """The integral of log(t) / (1 - t) from 1 to x, Li_2(1 - x)."""
    sixth = math.pi * math.pi / 6
    x = where(x < 0.0, math.nan, x)
    # 25.12.4 leads x > 2 back to 1 / x; 25.12.6 leads x < 1/2 to 1 - x.
    flip = x > 2.0
    one = where(flip, 1.0 / where(flip, x, 1.0), x)
    low = one < 0.5
    safe = where(one.equals(0.0), 1.0, one)
    u = -log(where(low, 1.0 - one, one))
    value = _dilogarithm(u)
    # Li_2(1 - y) = pi^2/6 - log(y) log(1 - y) - Li_2(y)
    value = where(low, sixth - log(safe) * where(low, -u, 0.0) - value, value)
    # Li_2(1 - x) = -Li_2(1 - 1/x) - log(x)^2 / 2
    bend = log(where(flip, x, 1.0))
    value = where(flip, -value - 0.5 * bend * bend, value)
    return _nan_kept(x, where(x.equals(math.inf), -math.inf, where(x.equals(1.0), 0.0, value)))


# ---- Euler's and Owen's --------------------------------------------------------------------------


def _gamma(x: Formula) -> Formula:
    whole = call(ops.floor, x)
    odd = call(ops.rem, whole, where(x.equals(x), 2.0, x))
    odd = ~odd.equals(0.0) & (x < 0.0)
    size = exp(call(lgamma, x))
    value = where(odd, -size, size)
    pole = (x < 0.0) & whole.equals(x)
    return where(pole, math.nan, where(x.equals(0.0), 1.0 / x, value))


def _owens_t(h: Formula, a: Formula) -> Formula:
    """The integral of `exp(-h^2 (1 + x^2) / 2) / (1 + x^2)` from 0 to a, divided by 2 pi."""
    h, size = abs(h), abs(a)
    # T(h, a) with a > 1 is led back to T(a h, 1 / a): Owen, "Tables for computing bivariate normal
    # probabilities" (Annals of Mathematical Statistics 27, 1956), (2.3).
    flip = size > 1.0
    safe = where(flip, size, 1.0)
    k = where(flip, where(h.equals(0.0), 0.0, safe * h), h)
    b = where(flip, 1.0 / safe, size)
    # Beyond 9 standard deviations there is nothing.
    end = where(b * k > 9.0, 9.0 / where(k > 0.0, k, 1.0), b)
    total = end - end
    nodes = np.polynomial.legendre.leggauss(48)
    for node, weight in zip(*nodes, strict=True):
        x = end * float((node + 1) / 2)
        square = 1.0 + x * x
        total = total + exp(-0.5 * (k * k) * square) / square * float(weight / 2)
    value = total * end / (2.0 * math.pi)
    # Upper tails p = 1 - Phi: (Phi(h) + Phi(k)) / 2 - Phi(h) Phi(k) = (p + q) / 2 - p q.
    p, q = [0.5 * call(erfc, v * math.sqrt(0.5)) for v in (h, k)]
    value = where(flip, 0.5 * (p + q) - p * q - value, value)
    value = where(a < 0.0, -value, value)
    return _nan_kept(h, _nan_kept(a, value))


def _bell(t: Any, h: Any, a: Any) -> Any:
    """`t exp(-h^2 (1 + a^2) / 2) / (2 pi (1 + a^2))`"""
    square = ops.add(ops.square(a), scalar_like(a, 1))
    bell = ops.exp(ops.mul(ops.mul(scalar_like(h, -0.5), ops.square(h)), square))
    return ops.mul(t, ops.div(bell, ops.mul(scalar_like(a, 2 * math.pi), square)))


def _owens_slope(t: Any, h: Any, a: Any) -> Any:
    """`-t exp(-h^2 / 2) erf(a h / sqrt(2)) / sqrt(8 pi)`"""
    bell = ops.exp(ops.mul(scalar_like(h, -0.5), ops.square(h)))
    part = erf(ops.mul(ops.mul(a, h), scalar_like(h, math.sqrt(0.5))))
    return ops.mul(t, ops.mul(ops.mul(bell, part), scalar_like(h, -1 / math.sqrt(8 * math.pi))))


# ---- The Faddeeva function -----------------------------------------------------------------------


@functools.cache
def _weideman(count: int) -> tuple[float, list[float]]:
    """Scale L and coefficients of w(z) in powers of (L + iz) / (L - iz).

    Weideman, "Computation of the complex error function" (SIAM J. Numer. Anal. 31, 1994).
    """
    scale = math.sqrt(count / math.sqrt(2))
    size = 2 * count
    theta = np.pi * np.arange(-size + 1, size) / size
    t = scale * np.tan(theta / 2)
    f = np.concatenate([[0.0], np.exp(-(t**2)) * (scale**2 + t**2)])
    coefficients = np.real(np.fft.fft(np.fft.fftshift(f))) / (2 * size)
    return scale, [float(c) for c in coefficients[1 : count + 1]]


def _wofz(b: Any, z: Any) -> Any:
    (out,) = b.out_avals
    wide = ShapedArray(out.shape, np.dtype("complex128"))

    def formula(z: Formula) -> Formula:
        low = call(ops.imag, z) < 0.0
        up = where(low, -z, z)
        scale, coefficients = _weideman(64)
        iz = up * 1j
        down = 1.0 / (scale - iz)
        series = horner(coefficients, (scale + iz) * down)
        value = 2.0 * series * down * down + down * (1 / _ROOT_PI)
        return where(low, 2.0 * exp(-(z * z)) - value, value)

    if out.dtype == wide.dtype:
        return emit(b, formula, [z], [wide])[0]
    return b.convert(emit(b, formula, [b.convert(z, wide)], [wide])[0], out)


# ---- The primitives ------------------------------------------------------------------------------


def _over(t: Any, y: Any, x: Any) -> Any:
    return ops.mul(t, ops.div(y, x))


def _positive(x: Any) -> Any:
    """`|x|`, and NaN for negative `x`: both also in derivatives of any order."""
    factor = ops.select(ops.lt(x, scalar_like(x, 0)), scalar_like(x, math.nan), scalar_like(x, 1))
    return ops.mul(factor, ops.abs(x))


def _exp1_jvp(t: Any, x: Any) -> Any:
    """`-t exp(-x) / x`; NaN for negative `x`, where `exp1` is not real."""
    return ops.mul(t, ops.div(ops.neg(ops.exp(ops.neg(x))), _positive(x)))


def _phase(x: Any) -> Any:
    return ops.mul(scalar_like(x, math.pi / 2), ops.square(x))


def _sinc(t: Any, x: Any, y: Any) -> Any:
    zero = ops.eq(x, scalar_like(x, 0))
    one = scalar_like(x, 1)
    slope = ops.div(ops.sin(_angle(x)), ops.select(zero, one, x))
    return ops.mul(t, ops.select(zero, one, slope))


def _angle(x: Any) -> Any:
    """`x`, and 0 at infinity, where a bounded number divided by `x` is 0."""
    return ops.select(ops.eq(ops.abs(x), scalar_like(x, math.inf)), scalar_like(x, 0), x)


def _erfcx_jvp(t: Any, x: Any, y: Any) -> Any:
    # -2 exp(x^2) ierfc(x): where x is large, 7.18.7 as a continued fraction, which keeps digits.
    # Both formulas are computed everywhere, with operands at which their derivatives are finite.
    two, zero = scalar_like(x, 2), scalar_like(x, 0)
    far = ops.gt(x, two)
    twice = ops.mul(two, ops.max(x, two))
    below = twice
    for k in range(36 if typeof(x).dtype == _DOUBLE else 16, 0, -1):
        below = ops.add(twice, ops.div(scalar_like(x, 2 * k + 2), below))
    large = ops.div(ops.mul(scalar_like(x, -2), ops.select(far, y, zero)), below)
    near = ops.mul(ops.mul(two, ops.select(far, zero, x)), ops.select(far, zero, y))
    return ops.mul(t, ops.select(far, large, ops.sub(near, scalar_like(x, 2 / _ROOT_PI))))


def _spence_slope(t: Any, x: Any, y: Any) -> Any:
    # log(x) / (1 - x), and -1 at 1.
    one = scalar_like(x, 1)
    at_one = ops.eq(x, one)
    rest = ops.select(at_one, one, ops.sub(one, x))
    return ops.mul(t, ops.select(at_one, ops.neg(one), ops.div(ops.log(x), rest)))


exp1 = unary("exp1", in_double(_exp1), FLOAT, lambda t, x, y: _exp1_jvp(t, x))
expi = unary("expi", in_double(_expi), FLOAT, lambda t, x, y: _over(t, ops.exp(x), x))
expn: Elementwise = binary(
    "expn",
    in_double(_expn),
    FLOAT,
    unknown("expn", "n"),
    lambda t, n, x, y: ops.neg(ops.mul(t, _expn_before(n, x))),
)


def _expn_before(n: Any, x: Any) -> Any:
    """`E` of order `n - 1`.

    That of order -1, which `expn` does not take, is exp(-x) (1 + 1 / x) / x, DLMF 8.19.12. Both
    formulas are computed everywhere, and a derivative multiplies the slope of the one that is not
    used by 0. So that one gets an `x` at which its slope is finite.
    """
    zero, one = scalar_like(n, 0), scalar_like(n, 1)
    before = ops.sub(n, one)
    known = ops.ge(before, zero)
    high = expn(ops.max(before, zero), ops.select(known, x, one))
    x = _positive(ops.select(known, one, x))
    low = ops.div(ops.mul(ops.exp(ops.neg(x)), ops.add(one, ops.div(one, x))), x)
    return ops.select(known, high, low)


si = unary("si", in_double(_si), FLOAT, _sinc)
ci = unary("ci", in_double(_ci), FLOAT, lambda t, x, y: _over(t, ops.cos(_angle(x)), x))
fresnel_s = unary(
    "fresnel_s", in_double(_fresnel(False)), FLOAT, lambda t, x, y: ops.mul(t, ops.sin(_phase(x)))
)
fresnel_c = unary(
    "fresnel_c", in_double(_fresnel(True)), FLOAT, lambda t, x, y: ops.mul(t, ops.cos(_phase(x)))
)
erfcx = unary("erfcx", in_double(_erfcx), FLOAT, _erfcx_jvp)
dawsn = unary(
    "dawsn",
    in_double(_dawsn),
    FLOAT,
    lambda t, x, y: ops.mul(
        t, ops.sub(scalar_like(x, 1), ops.mul(ops.mul(scalar_like(x, 2), x), y))
    ),
)
spence = unary("spence", in_double(_spence), FLOAT, _spence_slope)
gamma: Elementwise = unary(
    "gamma", in_double(_gamma), FLOAT, lambda t, x, y: ops.mul(t, ops.mul(y, digamma(x)))
)
owens_t: Elementwise = binary(
    "owens_t",
    in_double(_owens_t),
    FLOAT,
    lambda t, h, a, y: _owens_slope(t, h, a),
    lambda t, h, a, y: _bell(t, h, a),
)
# w(z) = exp(-z^2) erfc(-iz)
wofz: Elementwise = unary(
    "wofz",
    _wofz,
    COMPLEX,
    lambda t, z, y: ops.mul(
        t, ops.sub(scalar_like(z, 2j / _ROOT_PI), ops.mul(ops.mul(scalar_like(z, 2), z), y))
    ),
)
