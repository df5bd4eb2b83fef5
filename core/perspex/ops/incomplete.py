"""Incomplete gamma and beta functions: how they are computed.

All in double precision, whatever the dtype of the operands, so that float32 results are rounded
ones. Equations are those of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.

The common factors of these functions, `x^a exp(-x) / Gamma(a)` and `x^a (1 - x)^b / B(a, b)`, are
ratios of huge numbers. As in Loader, "Fast and accurate computation of binomial probabilities"
(2000), they are written with two small numbers: `stirling(a)`, the error of Stirling's formula, and
`deviance(a, x) = a log(a / x) + x - a`, which is 0 at `x = a`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ops
from perspex.ops.families import FLOAT, Elementwise, binary
from perspex.ops.gamma_curvature import curvature
from perspex.ops.infix import (
    Formula,
    any_of,
    call,
    emit,
    exp,
    expm1,
    horner,
    log,
    log1p,
    loop,
    sign,
    sqrt,
    where,
)
from perspex.ops.special import digamma, erfc, lgamma, unknown
from perspex.ops.structural import scalar_like
from perspex.tracing.trace import typeof

_DOUBLE = np.dtype("float64")
_MOST_TURNS = 20_000.0
# Where `a` is above the first and |x / a - 1| below the second, an expansion takes over from series
# and fractions, which need about 9 sqrt(a) turns there.
_LARGE, _NEAR = 200.0, 0.4
# What a term adds too little below, also to 1 - P where that is small.
_SMALL = 1e-17
# Below it, and for x <= 1, what 1 - P would lose is more than a digit.
_FLAT = 0.25
_EULER = float(np.euler_gamma)


# ---- Two small numbers ---------------------------------------------------------------------------


@functools.cache
def bernoulli_number(n: int) -> Any:
    """The Bernoulli number `B_n` as a fraction, with `B_1 = -1/2` (24.5.3)."""
    from fractions import Fraction  # slow to import, and rarely needed

    if n == 0:
        return Fraction(1)
    total = sum((math.comb(n + 1, k) * bernoulli_number(k) for k in range(n)), Fraction(0))
    return -total / (n + 1)


# 5.11.1: log Gamma(a) = (a - 1/2) log a - a + log(2 pi)/2 + sum of B_2k / (2k (2k-1) a^(2k-1)).
_STIRLING = [
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
]
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def stirling(a: Formula) -> Formula:
    """`log Gamma(a)` minus its leading terms, for `a > 0`."""
    far = where(a > 16.0, a, 16.0)
    series = horner(_STIRLING, 1.0 / (far * far)) / far
    near = where(a > 16.0, 1.0, a)
    exact = call(lgamma, near) - ((near - 0.5) * log(near) - near + _HALF_LOG_TWO_PI)
    return where(a > 16.0, series, exact)


def deviance(a: Formula, x: Formula) -> Formula:
    """`a log(a / x) + x - a` for positive numbers, with the digits that a small one has."""
    v = (a - x) / (a + x)
    square = v * v
    # log(a / x) = 2 artanh(v) (4.6.4, 4.37.24); here |v| < 0.1.
    rest = horner([2.0 / (2 * j + 1) for j in range(1, 9)], square) * square
    near = (a - x) * v + a * v * rest
    return where(abs(v) < 0.1, near, a * log(a / x) + x - a)


# ---- Gamma ---------------------------------------------------------------------------------------


@functools.cache
def _temme(orders: int, terms: int) -> list[list[float]]:
    """The Taylor coefficients of `c_k(eta)`, `k < orders`, of 8.12.10: those of 8.12.12."""
    from fractions import Fraction  # slow to import, and rarely needed

    count = terms + 2 * orders + 2
    # mu = x / a - 1 as a series in eta, where eta^2 / 2 = mu - log(1 + mu), so that
    # (1 + mu) eta = mu mu'.
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, count + 2):
        known = sum((k * mu[k] * mu[n + 1 - k] for k in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - known) / (n + 1))
    # 1 / mu - 1 / eta = c_0(eta).
    ratio = mu[1:]  # mu / eta
    inverse = [Fraction(1)]
    for n in range(1, count + 1):
        inverse.append(-sum((ratio[k] * inverse[n - k] for k in range(1, n + 1)), Fraction(0)))
    zeroth = inverse[1:]
    # 1 / Gamma*(a) as a series in -1/a is the series of Gamma* (5.11.3): exp of Stirling's.
    exponent = [Fraction(0)] * (orders + 1)
    for k in range(1, orders + 1, 2):
        exponent[k] = bernoulli_number(k + 1) / (k * (k + 1))
    g = [Fraction(1)]
    for n in range(1, orders + 1):
        total = sum((k * exponent[k] * g[n - k] for k in range(1, n + 1)), Fraction(0))
        g.append(total / n)
    rows = [zeroth]
    for k in range(1, orders):
        previous = rows[-1]
        rows.append(
            [
                (n + 2) * previous[n + 2] + (-1) ** k * g[k] * zeroth[n]
                for n in range(len(previous) - 2)
            ]
        )
    return [[float(c) for c in row[:terms]] for row in rows]


def _two_variables(rows: list[list[float]], eta: Formula, a: Formula) -> Formula:
    return functools.reduce(
        lambda total, row: total / a + horner(row, eta), reversed(rows[:-1]), horner(rows[-1], eta)
    )


class _Regions:
    """Which method serves which `(a, x)`, and operands that suit it everywhere else too."""

    def __init__(self, a: Formula, x: Formula) -> None:
        self.valid = (a > 0.0) & (x > 0.0) & call(ops.is_finite, a) & call(ops.is_finite, x)
        one = where(self.valid, a, 1.0)
        self.large = self.valid & (one > _LARGE) & (abs(x - one) < _NEAR * one)
        self.below = (x <= 1.0) | (x <= a)
        self.a = where(self.valid & ~self.large, a, 1.0)
        self.x = where(self.valid & ~self.large, x, 1.0)
        # A fraction for x > a where it is needed, a series below.
        self.fraction = self.valid & ~self.large & ~self.below

    def for_series(self) -> tuple[Formula, Formula]:
        return where(self.fraction, 1.0, self.a), where(self.fraction, 0.5, self.x)

    def for_fraction(self) -> tuple[Formula, Formula]:
        return where(self.fraction, self.a, 1.0), where(self.fraction, self.x, 4.0)


def _expansion(a: Formula, x: Formula) -> tuple[Formula, Formula, Formula, Formula]:
    """For large `a`: eta, mu / eta, the sum of 8.12.10, and what it sums to in the derivative."""
    mu = (x - a) / a
    eta = sign(mu) * sqrt(2.0 * deviance(a, x) / a)
    flat = eta.equals(0.0)
    ratio = where(flat, 1.0, mu / where(flat, 1.0, eta))
    rows = _temme(8, 20)
    total = _two_variables(rows, eta, a)
    # d/da, with eta' = -(mu / eta) / a.
    by_a = [[-k * c for c in row] for k, row in enumerate(rows)][1:]
    by_eta = [[n * c for n, c in enumerate(row)][1:] for row in rows]
    slope = (_two_variables(by_a, eta, a) / a - ratio * _two_variables(by_eta, eta, a)) / a
    return eta, ratio, total, slope


def _density_times_x(a: Formula, x: Formula) -> Formula:
    """`x^a exp(-x) / Gamma(a)`."""
    return sqrt(a / (2.0 * math.pi)) * exp(-stirling(a) - deviance(a, x))


def _series(b: Any, aval: ShapedArray, a: Any, x: Any, dual: bool) -> list[Any]:
    """8.11.4: the sum of x^n / ((a+1) ... (a+n)), and with `dual` its derivative by `a`."""

    def start(a: Formula, x: Formula) -> list[Formula]:
        one = where(a.equals(a), 1.0, a)
        return [a, x, one, one, *([one - one, one - one] if dual else [])]

    def turn(n: Formula, x: Formula, term: Formula, total: Formula, *ts: Formula) -> Any:
        n = n + 1.0
        ratio = x / n
        term = term * ratio
        if not dual:
            return [n, x, term, total + term]
        slope = ts[0] * ratio - term / n
        return [n, x, term, total + term, slope, ts[1] + slope]

    def going(n: Formula, x: Formula, term: Formula, total: Formula, *ts: Formula) -> Formula:
        more = term > _SMALL * total
        return any_of(more | (abs(ts[0]) > _SMALL * abs(ts[1])) if dual else more)

    count = 6 if dual else 4
    values = emit(b, start, [a, x], [aval] * 2)
    values = loop(b, going, turn, values, [aval] * count)
    return [values[3], values[5]] if dual else [values[3]]


def _fraction(b: Any, aval: ShapedArray, eps: float, a: Any, x: Any, dual: bool) -> list[Any]:
    """8.9.2: `Gamma(a, x) x^-a exp(x)`, and with `dual` its derivative by `a`.

    By Lentz's method (3.10(iii)): numerators n (a - n), denominators x + 2n + 1 - a.
    """

    def start(a: Formula, x: Formula) -> list[Formula]:
        zero = a - a
        f = x - a + 1.0
        return [zero, a, f, f, zero, f, *([zero - 1.0, zero, zero - 1.0, zero] if dual else [])]

    def turn(
        n: Formula, a: Formula, den: Formula, c: Formula, d: Formula, f: Formula, *ts: Any
    ) -> Any:
        n, den = n + 1.0, den + 2.0
        num = n * (a - n)
        c_next = den + num / c
        d_next = 1.0 / (den + num * d)
        step = c_next * d_next
        out = [n, a, den, c_next, d_next, f * step]
        if dual:
            tc, td, tf, _ = ts
            tc_next = (n - num * tc / c) / c - 1.0
            td_next = -(d_next * d_next) * (n * d + num * td - 1.0)
            t_step = tc_next * d_next + c_next * td_next
            out += [tc_next, td_next, tf * step + f * t_step, t_step]
        return out

    def going(
        n: Formula, a: Formula, den: Formula, c: Formula, d: Formula, f: Formula, *ts: Any
    ) -> Any:
        more = abs(c * d - 1.0) > eps
        if dual:
            more = more | (abs(ts[3] * f) > eps * abs(ts[2]))
        return any_of((n.equals(0.0) | more) & (n < _MOST_TURNS))

    values = emit(b, start, [a, x], [aval] * 2)
    values = loop(b, going, turn, values, [aval] * (10 if dual else 6))

    def finish(f: Formula, *tf: Formula) -> list[Formula]:
        return [1.0 / f, *[-t / (f * f) for t in tf]]

    kept = [values[5], values[8]] if dual else [values[5]]
    return emit(b, finish, kept, [aval] * len(kept))


def _in_double(f: Callable[..., Any]) -> Callable[..., Any]:
    """A lower rule of `f(b, aval, eps, *values)`, which is given doubles and gives one.

    `eps` says when a loop may stop: a fraction of what the dtype of the result resolves; in double
    precision the factors of a product that has converged still differ from 1 by rounding.
    """

    def lower(b: Any, *values: Any) -> Any:
        (out,) = b.out_avals
        wide = ShapedArray(out.shape, _DOUBLE)
        eps = max(float(dtypes.finfo(out.dtype).eps) / 16, 4.5e-16)
        if out.dtype == _DOUBLE:
            return f(b, wide, eps, *values)
        given = [b.convert(_normal(b, v, out), wide) for v in values]
        return b.convert(f(b, wide, eps, *given), out)

    return lower


def _normal(b: Any, x: Any, aval: ShapedArray) -> Any:
    """`x` with zeros for subnormal numbers, which only some operations of a CPU take for zero."""
    tiny = float(dtypes.finfo(aval.dtype).tiny)
    if tiny > 1e-37:  # float16, whose subnormal numbers are normal ones of float32
        return x
    return emit(b, lambda x: where(abs(x) < tiny, 0.0, x), [x], [aval])[0]


def _gamma_parts(
    b: Any, aval: ShapedArray, eps: float, a: Any, x: Any, dual: bool
) -> tuple[list[Any], list[Any]]:
    """The sums that the formulas need: of the series, of the fraction."""

    def operands(a: Formula, x: Formula) -> list[Formula]:
        regions = _Regions(a, x)
        return [*regions.for_series(), *regions.for_fraction()]

    low_a, low_x, high_a, high_x = emit(b, operands, [a, x], [aval] * 2)
    return (_series(b, aval, low_a, low_x, dual), _fraction(b, aval, eps, high_a, high_x, dual))


@functools.cache
def _zeta(k: int) -> float:
    """`zeta(k)` for `k > 1`, by the formula of Euler and Maclaurin (25.2.9)."""
    n = 12
    total = sum(j**-k for j in range(1, n)) + n ** (1 - k) / (k - 1) + n**-k / 2
    factor = k * n ** (-k - 1) / 2
    for j in range(1, 7):
        total += float(bernoulli_number(2 * j)) * factor
        factor *= (k + 2 * j - 1) * (k + 2 * j) / (n * n * (2 * j + 1) * (2 * j + 2))
    return total


def _rest(regions: _Regions) -> Formula:
    """`Q(a, x)` where `a < _FLAT` and `x <= 1`: there it is small, and `P` is nearly 1.

    `Q = 1 - x^a / Gamma(1 + a) (1 + a T)`, `T` the sum of `(-x)^n / (n! (a + n))` for `n > 0`
    (8.7.1), and `log Gamma(1 + a)` is a series in `a` (5.7.3).
    """
    near = ~regions.fraction & (regions.a < _FLAT) & (regions.x <= 1.0)
    a, x = where(near, regions.a, 0.1), where(near, regions.x, 0.5)
    series = horner([(-1) ** k * _zeta(k) / k for k in range(2, 27)], a)
    power = a * (log(x) + _EULER - a * series)
    terms = [-1.0 / (a + 1.0)]
    for n in range(2, 19):
        terms.append((-1) ** n / math.factorial(n) / (a + float(n)))
    total = terms.pop()
    for term in reversed(terms):
        total = total * x + term
    return -expm1(power) - exp(power) * (a * x) * total


def _incomplete_gamma(upper: bool) -> Callable[..., Any]:
    def lower(b: Any, aval: ShapedArray, eps: float, a: Any, x: Any) -> Any:
        low, high = _gamma_parts(b, aval, eps, a, x, dual=False)

        def combine(a: Formula, x: Formula, series: Formula, fraction: Formula) -> Formula:
            regions = _Regions(a, x)
            factor = _density_times_x(regions.a, regions.x)
            p, q = factor * series / regions.a, factor * fraction
            big_a, big_x = where(regions.large, a, 1e3), where(regions.large, x, 1e3)
            eta, _, total, _ = _expansion(big_a, big_x)
            rest = exp(-0.5 * big_a * eta * eta) / sqrt(2.0 * math.pi * big_a) * total
            half = 0.5 * call(erfc, (eta if upper else -eta) * sqrt(0.5 * big_a))
            large = half + rest if upper else half - rest
            if upper:
                out = where(regions.fraction, q, where(a < _FLAT, _rest(regions), 1.0 - p))
            else:
                out = where(regions.fraction, 1.0 - q, p)
            out = where(regions.large, large, out)
            # At the ends: all of the mass is above x = 0, or below infinity.
            nothing = (x.equals(0.0) & (a > 0.0)) | (a.equals(math.inf) & (x < math.inf))
            everything = (x.equals(math.inf) & (a < math.inf)) | (a.equals(0.0) & (x > 0.0))
            ends = where(nothing & (x >= 0.0), 0.0, where(everything & (a >= 0.0), 1.0, out - out))
            ends = where(nothing | everything, ends, math.nan)
            ends = where((a >= 0.0) & (x >= 0.0), ends, math.nan)
            return where(regions.valid, out, 1.0 - ends if upper else ends)

        return emit(b, combine, [a, x, *low, *high], [aval] * 4)[0]

    return _in_double(lower)


def _gamma_slope(sample: bool) -> Callable[..., Any]:
    """`-(dP/da) / (dP/dx)`, the derivative of a sample by `a`; or `dP/da` itself."""

    def lower(b: Any, aval: ShapedArray, eps: float, a: Any, x: Any) -> Any:
        low, high = _gamma_parts(b, aval, eps, a, x, dual=True)

        def combine(a: Formula, x: Formula, *sums: Formula) -> Formula:
            series, series_slope, fraction, fraction_slope = sums
            regions = _Regions(a, x)
            ra, rx = regions.a, regions.x
            # P = factor series / a, Q = factor fraction, dP/dx = factor / x; below, digamma(a + 1)
            # is digamma(a) + 1/a (5.5.2), which cancel where a is small.
            change = log(rx) - call(digamma, where(regions.fraction, ra, ra + 1.0))
            below = -(rx / ra) * (series * change + series_slope)
            above = rx * (fraction * change + fraction_slope)
            big_a, big_x = where(regions.large, a, 1e3), where(regions.large, x, 1e3)
            eta, ratio, total, slope = _expansion(big_a, big_x)
            shift = log1p((big_x - big_a) / big_a) - 0.5 / big_a
            large = ratio - 0.5 * eta + total * shift + slope
            large = large * (big_x / big_a) * exp(stirling(big_a))
            out = where(regions.large, large, where(regions.fraction, above, below))
            if not sample:
                density = _density_times_x(
                    where(regions.valid, a, 1.0), where(regions.valid, x, 1.0)
                )
                out = -out * density / where(regions.valid, x, 1.0)
            flat = x.equals(0.0) & (a > 0.0)
            return where(regions.valid, out, where(flat, out - out, math.nan))

        return emit(b, combine, [a, x, *low, *high], [aval] * 6)[0]

    return _in_double(lower)


# ---- Beta ----------------------------------------------------------------------------------------


@_in_double
def _beta_fraction(b: Any, aval: ShapedArray, eps: float, p: Any, q: Any, x: Any) -> Any:
    """8.17.22, a continued fraction, on the side of the mean where it converges fast (8.17.4)."""

    def prepare(p: Formula, q: Formula, x: Formula) -> list[Formula]:
        inside = (p > 0.0) & (q > 0.0) & (x > 0.0) & (x < 1.0)
        inside = inside & call(ops.is_finite, p) & call(ops.is_finite, q)
        p, q, x = where(inside, p, 1.0), where(inside, q, 1.0), where(inside, x, 0.5)
        swap = x > (p + 1.0) / (p + q + 2.0)
        y = 1.0 - x
        return [where(swap, q, p), where(swap, p, q), where(swap, y, x), where(swap, x, y)]

    def start(p: Formula, q: Formula, x: Formula, y: Formula) -> list[Formula]:
        one = where(p.equals(p), 1.0, p)
        return [p, q, x, one - one, one, one - one, one, one - one]

    def turn(p: Any, q: Any, x: Any, m: Any, c: Any, d: Any, f: Any, _: Any) -> list[Formula]:
        odd = -(p + m) * (p + q + m) * x / ((p + 2.0 * m) * (p + 2.0 * m + 1.0))
        m = m + 1.0
        even = m * (q - m) * x / ((p + 2.0 * m - 1.0) * (p + 2.0 * m))
        change = f - f
        for step in (odd, even):
            c, d = _nonzero(1.0 + step / c), 1.0 / _nonzero(1.0 + step * d)
            f = f * c * d
            change = c * d - 1.0
        return [p, q, x, m, c, d, f, change]

    def going(p: Any, q: Any, x: Any, m: Any, c: Any, d: Any, f: Any, change: Any) -> Formula:
        return any_of((m.equals(0.0) | (abs(change) > eps)) & (m < _MOST_TURNS))

    def combine(
        p: Formula, q: Formula, x: Formula, a: Formula, b: Formula, u: Formula, v: Formula, f: Any
    ) -> Formula:
        n = a + b
        factor = exp(
            stirling(n) - stirling(a) - stirling(b) - deviance(a, n * u) - deviance(b, n * v)
        )
        tail = factor * sqrt(b / (a * n) / (2.0 * math.pi)) / f
        swap = x > (p + 1.0) / (p + q + 2.0)
        out = where(swap, 1.0 - tail, tail)
        # All mass is at 0 where p = 0 or q is infinite, at 1 the other way round.
        at_zero, at_one = p.equals(0.0) | q.equals(math.inf), q.equals(0.0) | p.equals(math.inf)
        out = where(at_zero, 1.0, where(at_one, 0.0, out))
        out = where(x.equals(0.0), 0.0, where(x.equals(1.0), 1.0, out))
        legal = (p >= 0.0) & (q >= 0.0) & (x >= 0.0) & (x <= 1.0) & ~(at_zero & at_one)
        return where(legal, out, math.nan)

    inner = emit(b, prepare, [p, q, x], [aval] * 3)
    values = emit(b, start, inner, [aval] * 4)
    values = loop(b, going, turn, values, [aval] * 8)
    return emit(b, combine, [p, q, x, *inner, values[6]], [aval] * 8)[0]


def _nonzero(v: Formula) -> Formula:
    """Lentz's method must not divide by zero; 1e-300 in its place changes nothing else."""
    return where(v.equals(0.0), 1e-300, v)


def _log_beta(a: Formula, b: Formula) -> Formula:
    inside = (a > 0.0) & (b > 0.0) & call(ops.is_finite, a) & call(ops.is_finite, b)
    p, q = where(inside, a, 1.0), where(inside, b, 1.0)
    n = p + q
    # 5.12.1 by Stirling's formula, without the large terms, which cancel.
    rest = p * log1p(q / p) + q * log1p(p / q) - 0.5 * log(n / p / q)
    small = stirling(p) + stirling(q) - stirling(n) + _HALF_LOG_TWO_PI
    plain = call(lgamma, a) + call(lgamma, b) - call(lgamma, a + b)
    return where(inside, small - rest, plain)


# ---- The primitives ------------------------------------------------------------------------------


def _gamma_density(a: Any, x: Any) -> Any:
    """`x^(a - 1) exp(-x) / Gamma(a)`, what the lower function gains with x."""
    exponent = ops.sub(ops.mul(ops.sub(a, scalar_like(a, 1)), ops.log(x)), x)
    return ops.exp(ops.sub(exponent, lgamma(a)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """`x^(a - 1) (1 - x)^(b - 1) / B(a, b)`."""
    one = scalar_like(a, 1)
    low = ops.mul(ops.sub(a, one), ops.log(x))
    high = ops.mul(ops.sub(b, one), ops.log1p(ops.neg(x)))
    return ops.exp(ops.sub(ops.add(low, high), betaln(a, b)))


def _change(a: Any, x: Any) -> Any:
    """What `_gamma_density` gains with a, divided by it."""
    return ops.sub(ops.log(x), digamma(a))


def _sample_slope_by_x(t: Any, a: Any, x: Any, r: Any) -> Any:
    # r = -P_a / p, where p = P_x, so r_x = -p_a / p - r p_x / p.
    bend = ops.sub(ops.div(ops.sub(a, scalar_like(a, 1)), x), scalar_like(a, 1))
    return ops.mul(t, ops.neg(ops.add(_change(a, x), ops.mul(r, bend))))


def _log_sample_slope(a: Any, y: Any) -> Any:
    least = float(np.log(np.float64(dtypes.finfo(typeof(y).dtype).tiny))) + 2
    tiny = ops.lt(y, scalar_like(y, least))
    one = scalar_like(a, 1)
    x = ops.exp(ops.select(tiny, scalar_like(y, 0), y))
    near_zero = ops.div(ops.sub(digamma(ops.add(a, one)), y), a)
    return ops.select(tiny, near_zero, ops.div(random_gamma_grad(a, x), x))


# 8.2.4: P(a, x), the part of the mass of a gamma distribution that is below x.
igamma: Elementwise = binary(
    "igamma",
    _incomplete_gamma(upper=False),
    FLOAT,
    lambda t, a, x, y: ops.mul(t, igamma_grad_a(a, x)),
    lambda t, a, x, y: ops.mul(t, _gamma_density(a, x)),
)
# Q = 1 - P, the part above.
igammac: Elementwise = binary(
    "igammac",
    _incomplete_gamma(upper=True),
    FLOAT,
    lambda t, a, x, y: ops.neg(ops.mul(t, igamma_grad_a(a, x))),
    lambda t, a, x, y: ops.neg(ops.mul(t, _gamma_density(a, x))),
)
igamma_grad_a: Elementwise = binary(
    "igamma_grad_a",
    _gamma_slope(sample=False),
    FLOAT,
    lambda t, a, x, y: ops.mul(t, ops.mul(_gamma_density(a, x), curvature(a, x))),
    lambda t, a, x, y: ops.mul(t, ops.mul(_gamma_density(a, x), _change(a, x))),
)
# How a sample x must move with a, for P(a, x) to stay the uniform number that it is: -P_a / P_x.
random_gamma_grad: Elementwise = binary(
    "random_gamma_grad",
    _gamma_slope(sample=True),
    FLOAT,
    # r = -P_a / p, where p = P_x, so r_a = -P_aa / p - r p_a / p.
    lambda t, a, x, r: ops.neg(ops.mul(t, ops.add(curvature(a, x), ops.mul(r, _change(a, x))))),
    _sample_slope_by_x,
)
# The sample x itself, which was drawn for the shape a without regard to derivatives.
gamma_sample: Elementwise = binary(
    "gamma_sample", lambda b, a, x: x, FLOAT, lambda t, a, x, y: ops.mul(t, random_gamma_grad(a, y))
)
# The same of its logarithm y, which moves by the slope divided by x; where x vanishes,
# P = x^a / Gamma(a + 1), hence y = (log P + log Gamma(a + 1)) / a.
log_gamma_sample: Elementwise = binary(
    "log_gamma_sample",
    lambda b, a, y: y,
    FLOAT,
    lambda t, a, _, y: ops.mul(t, _log_sample_slope(a, y)),
)
# log |B(a, b)|
betaln: Elementwise = binary(
    "betaln",
    _in_double(lambda b, aval, _, *xs: emit(b, _log_beta, xs, [aval] * 2)[0]),
    FLOAT,
    lambda t, a, b, y: ops.mul(t, ops.sub(digamma(a), digamma(ops.add(a, b)))),
    lambda t, a, b, y: ops.mul(t, ops.sub(digamma(b), digamma(ops.add(a, b)))),
)
# 8.17.2: I_x(a, b), the part of the mass of a beta distribution that is below x.
regularized_incomplete_beta = Elementwise(
    "regularized_incomplete_beta",
    _beta_fraction,
    FLOAT,
    (
        unknown("regularized_incomplete_beta", "a", ValueError),
        unknown("regularized_incomplete_beta", "b", ValueError),
        lambda t, a, b, x, y: ops.mul(t, _beta_density(a, b, x)),
    ),
)
