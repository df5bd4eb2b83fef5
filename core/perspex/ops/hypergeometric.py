"""The hypergeometric functions 1F1 and 2F1 of real arguments.

By their series, in double precision, after a transformation to where it converges without loss.
Equations are those of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex.ir.avals import ShapedArray
from perspex.ops import elementwise as ops
from perspex.ops.families import FLOAT, Elementwise
from perspex.ops.infix import Formula, any_of, call, emit, exp, log, log1p, loop, where
from perspex.ops.integrals import gamma
from perspex.ops.special import digamma, lgamma, unknown
from perspex.ops.structural import scalar_like

_DOUBLE = np.dtype("float64")
_MOST_TERMS = 20_000.0
_FAR = 200.0
_FAR_SLOPE = 600.0


def _pole(x: Formula) -> Formula:
    """Whether `x` is 0, -1, -2, ..."""
    return (x <= 0.0) & call(ops.floor, x).equals(x)


def _sum(b: Any, wide: ShapedArray, values: list[Any]) -> Any:
    """The sum over k of (a)_k (q)_k / ((c)_k k!) x^k; an infinite `q` leaves its factors out."""

    def start(a: Formula, q: Formula, c: Formula, x: Formula) -> list[Formula]:
        one = where(x.equals(x), 1.0, x)
        return [a, q, c, x, one - one, one, one]

    def turn(a: Any, q: Any, c: Any, x: Any, k: Any, term: Any, total: Any) -> list[Formula]:
        upper = where(q.equals(math.inf), 1.0, q + k)
        k_next = k + 1.0
        # A series that has ended stays ended, also where `c + k` is 0 after `a + k` was.
        more = term * ((a + k) / (c + k)) * (upper / k_next) * x
        term = where(term.equals(0.0), 0.0, more)
        return [a, q, c, x, k_next, term, total + term]

    def going(a: Any, q: Any, c: Any, x: Any, k: Any, term: Any, total: Any) -> Formula:
        return any_of((abs(term) > 1e-17 * abs(total)) & (k < _MOST_TERMS))

    values = emit(b, start, values, [wide] * 4)
    return loop(b, going, turn, values, [wide] * 7)[6]


def _kummer(a: Formula, b: Formula, x: Formula) -> tuple[Formula, Formula, Formula]:
    """Where `-x` takes over (13.2.39), where the expansion for large `-x`; what to sum with."""
    turned = (x < 0.0) & ~_pole(a)
    far = turned & (x < -_FAR) & ~_pole(b - a)
    return turned, far, where(turned, b - a, a)


def _lower_1f1(b: Any, *values: Any) -> Any:
    (out,) = b.out_avals
    wide = ShapedArray(out.shape, _DOUBLE)
    given = [v if out.dtype == _DOUBLE else b.convert(v, wide) for v in values]

    def prepare(a: Formula, c: Formula, x: Formula) -> list[Formula]:
        turned, far, upper = _kummer(a, c, x)
        infinite = where(x.equals(x), math.inf, x)
        return [upper, infinite, c, where(far, 0.5, where(turned, -x, x))]

    def combine(a: Formula, c: Formula, x: Formula, total: Formula) -> Formula:
        turned, far, _ = _kummer(a, c, x)
        near = where(turned, exp(where(turned, x, 0.0)) * total, total)
        # 13.7.2
        size = where(far, -x, _FAR)
        term = series = where(far, 1.0, 1.0 + (size - size))
        for k in range(24):
            term = term * ((a + float(k)) * (a - c + (k + 1.0))) / ((k + 1.0) * size)
            series = series + term
        scale = exp(call(lgamma, c) - call(lgamma, c - a) - a * log(size))
        sign = _sign_of_gamma(c) * _sign_of_gamma(c - a)
        y = where(far, sign * scale * series, near)
        # At equal whole numbers below 0 the series ends in 0 / 0. There it is taken for its limit
        # along equal parameters, as in JAX; SciPy ends it.
        y = where(a.equals(c) & _pole(c), exp(x), y)
        y = where(a.equals(0.0) | x.equals(0.0), 1.0, y)
        y = where(_pole(c) & ~(_pole(a) & (a >= c)), math.inf, y)
        return where(a.equals(a) & c.equals(c) & x.equals(x), y, math.nan)

    total = _sum(b, wide, emit(b, prepare, given, [wide] * 3))
    y = emit(b, combine, [*given, total], [wide] * 4)[0]
    return y if out.dtype == _DOUBLE else b.convert(y, out)


# With `f' = u df/da + v df/dc` beside `f`: each term of the series with its derivative, which is
# finite also where a factor `a + k` is zero.


def _slope_sum(b: Any, wide: ShapedArray, values: list[Any]) -> Any:
    """`u dF/da + v dF/dc` of the series F of (a, c, x), term by term; `values`: (a, c, x, u, v)."""

    def start(a: Formula, c: Formula, x: Formula, u: Formula, v: Formula) -> list[Formula]:
        one = where(x.equals(x), 1.0, x)
        none = one - one
        return [a, c, x, u, v, none, one, none, none]

    def turn(
        a: Any, c: Any, x: Any, u: Any, v: Any, k: Any, term: Any, slope: Any, total: Any
    ) -> list[Formula]:
        factor = x / ((c + k) * (k + 1.0))
        after = term * (a + k) * factor
        slope = (slope * (a + k) + u * term) * factor - v * after / (c + k)
        return [a, c, x, u, v, k + 1.0, after, slope, total + slope]

    def going(
        a: Any, c: Any, x: Any, u: Any, v: Any, k: Any, term: Any, slope: Any, total: Any
    ) -> Formula:
        open_ = (abs(term) + abs(slope) > 1e-17 * abs(total)) & (k < _MOST_TERMS)
        return any_of(open_)

    values = emit(b, start, values, [wide] * 5)
    return loop(b, going, turn, values, [wide] * 9)[8]


def _lower_slope(by_a: bool) -> Any:
    """The lowering of `dF/da` or of `dF/dc`."""

    def lower(b: Any, *values: Any) -> Any:
        (out,) = b.out_avals
        wide = ShapedArray(out.shape, _DOUBLE)
        given = [v if out.dtype == _DOUBLE else b.convert(v, wide) for v in values]

        def prepare(a: Formula, c: Formula, x: Formula) -> list[Formula]:
            # 13.2.39: F(a, c, x) = exp(x) F(c - a, c, -x)
            turned, far = x < 0.0, x < -_FAR_SLOPE
            y = where(far, 0.5, where(turned, -x, x))
            none = y - y
            one = none + 1.0
            u, v = (where(turned, -1.0, one), none) if by_a else (where(turned, one, 0.0), one)
            return [where(turned, c - a, a), c, y, u, v]

        def combine(a: Formula, c: Formula, x: Formula, total: Formula) -> Formula:
            far = x < -_FAR_SLOPE
            y = where(x < 0.0, exp(where(x < 0.0, x, 0.0)) * total, total)
            # 13.7.2, with its derivative
            size = where(far, -x, _FAR_SLOPE)
            term = series = where(far, 1.0, 1.0 + (size - size))
            slope = change = term - term
            for k in range(24):
                p, q, s = a + float(k), a - c + (k + 1.0), (k + 1.0) * size
                slope = (slope * p * q + term * (q + p if by_a else -p)) / s
                term = term * (p * q) / s
                series, change = series + term, change + slope
            scale = exp(call(lgamma, c) - call(lgamma, c - a) - a * log(size))
            sign = _sign_of_gamma(c) * _sign_of_gamma(c - a)
            rest = call(digamma, c - a)
            of_scale = rest - log(size) if by_a else call(digamma, c) - rest
            y = where(far, sign * scale * (series * of_scale + change), y)
            y = where(x.equals(0.0), 0.0, y)
            return where(a.equals(a) & c.equals(c) & x.equals(x), y, math.nan)

        total = _slope_sum(b, wide, emit(b, prepare, given, [wide] * 3))
        y = emit(b, combine, [*given, total], [wide] * 4)[0]
        return y if out.dtype == _DOUBLE else b.convert(y, out)

    return lower


def _sign_of_gamma(x: Formula) -> Formula:
    half = 0.5 * call(ops.floor, x)
    odd = ~call(ops.floor, half).equals(half)
    return where((x < 0.0) & odd, -1.0, where(x.equals(x), 1.0, x))


def _lower_2f1(b: Any, *values: Any) -> Any:
    (out,) = b.out_avals
    wide = ShapedArray(out.shape, _DOUBLE)
    given = [v if out.dtype == _DOUBLE else b.convert(v, wide) for v in values]

    def finite_sum(p: Formula, q: Formula) -> Formula:
        return _pole(p) | _pole(q)

    def prepare(p: Formula, q: Formula, c: Formula, x: Formula) -> list[Formula]:
        turned = (x < 0.0) & ~finite_sum(p, q)
        outside = (x >= 1.0) & ~finite_sum(p, q)
        y = where(turned, x / (x - 1.0), where(outside, 0.5, x))
        return [p, where(turned, c - q, q), c, y]

    def combine(p: Formula, q: Formula, c: Formula, x: Formula, total: Formula) -> Formula:
        # 15.8.1
        turned = (x < 0.0) & ~finite_sum(p, q)
        y = where(turned, exp(-p * log1p(where(turned, -x, 0.0))) * total, total)
        # 15.4.20
        rest = c - p - q
        at_one = call(gamma, c) * call(gamma, rest)
        for v in (c - p, c - q):
            at_one = at_one / where(_pole(v), math.inf, call(gamma, v))
        at_one = where(rest > 0.0, at_one, math.inf)
        outside = (x >= 1.0) & ~finite_sum(p, q)
        y = where(outside, where(x.equals(1.0), at_one, math.inf), y)
        least = where(_pole(p), p, q)
        fine = finite_sum(p, q) & (least >= c)
        y = where(_pole(c) & ~fine, math.inf, y)
        return where(p.equals(p) & q.equals(q) & c.equals(c) & x.equals(x), y, math.nan)

    total = _sum(b, wide, emit(b, prepare, given, [wide] * 4))
    y = emit(b, combine, [*given, total], [wide] * 5)[0]
    return y if out.dtype == _DOUBLE else b.convert(y, out)


def _one_more(x: Any) -> Any:
    return ops.add(x, scalar_like(x, 1))


def _by_x(slope: Elementwise, a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """13.3.15, `dF/dx = a / b F(a + 1, b + 1, x)`, differentiated: the part with `slope`, and F."""
    more = (_one_more(a), _one_more(b), x)
    return ops.mul(ops.div(a, b), slope(*more)), hyp1f1(*more)


def _by_a_and_x(t: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    part, value = _by_x(hyp1f1_by_a, a, b, x)
    return ops.mul(t, ops.add(part, ops.div(value, b)))


def _by_b_and_x(t: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    part, value = _by_x(hyp1f1_by_b, a, b, x)
    return ops.mul(t, ops.sub(part, ops.div(ops.mul(a, value), ops.mul(b, b))))


hyp1f1_by_a: Elementwise = Elementwise(
    "hyp1f1_by_a",
    _lower_slope(True),
    FLOAT,
    (
        unknown("the derivative of hyp1f1", "a"),
        unknown("the derivative of hyp1f1", "b"),
        _by_a_and_x,
    ),
)
hyp1f1_by_b: Elementwise = Elementwise(
    "hyp1f1_by_b",
    _lower_slope(False),
    FLOAT,
    (
        unknown("the derivative of hyp1f1", "a"),
        unknown("the derivative of hyp1f1", "b"),
        _by_b_and_x,
    ),
)
# 13.2.2, 13.3.15
hyp1f1: Elementwise = Elementwise(
    "hyp1f1",
    _lower_1f1,
    FLOAT,
    (
        lambda t, a, b, x, y: ops.mul(t, hyp1f1_by_a(a, b, x)),
        lambda t, a, b, x, y: ops.mul(t, hyp1f1_by_b(a, b, x)),
        lambda t, a, b, x, y: ops.mul(
            t, ops.mul(ops.div(a, b), hyp1f1(_one_more(a), _one_more(b), x))
        ),
    ),
)
# 15.2.1, 15.5.1
hyp2f1: Elementwise = Elementwise(
    "hyp2f1",
    _lower_2f1,
    FLOAT,
    (
        unknown("hyp2f1", "a"),
        unknown("hyp2f1", "b"),
        unknown("hyp2f1", "c"),
        lambda t, a, b, c, x, y: ops.mul(
            t,
            ops.mul(ops.div(ops.mul(a, b), c), hyp2f1(_one_more(a), _one_more(b), _one_more(c), x)),
        ),
    ),
)
