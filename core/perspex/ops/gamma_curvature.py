"""The second derivative of the incomplete gamma function by its shape, by quadrature.

With `p` the density of the gamma distribution of shape `a`, and `t = x exp(-s)`,

    P_aa(a, x) = integral of p(t) ((log t - psi(a))^2 - psi'(a)) dt from 0 to x
               = x p(x) integral of exp(-phi(s)) ((log t - psi(a))^2 - psi'(a)) ds over s > 0,
    phi(s) = (a - x) s + x (exp(-s) - 1 + s).

Over all `t` it is 0, so above the mean `s < 0` is taken, with the other sign. The rule is that of
Takahasi and Mori, "Double exponential formulas for numerical integration" (1974), for a half line.
Each operation that the rule uses has a derivative, so that of the third order and more follow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import config
from perspex.ops import elementwise as ops
from perspex.ops.special import digamma, polygamma
from perspex.ops.structural import broadcast_like, convert, reduce_sum, scalar_like
from perspex.tracing.trace import typeof

_DOUBLE = np.dtype("float64")
_STEP = 1 / 16
_AT = np.arange(-4.0, 6.5, _STEP)
# Where, in units of the width of the integrand, and with which weight.
_NODES = np.exp(_AT - np.exp(-_AT))
_WEIGHTS = _STEP * _NODES * (1 + np.exp(-_AT))
# Where exp(-phi) is 0; its factor may be infinite there.
_FAR = 745.0


def curvature(a: Any, x: Any) -> Any:
    """`P_aa(a, x) / P_x(a, x)`, computed in double precision, in the dtype of `a`."""
    aval = typeof(a)
    with config.enable_x64(True):
        out = _curvature(convert(a, _DOUBLE), convert(x, _DOUBLE))
        return convert(out, aval.dtype, aval.weak_type)


def _curvature(a: Any, x: Any) -> Any:
    zero, one = scalar_like(a, 0), scalar_like(a, 1)
    legal = ops.bitwise_and(ops.gt(a, zero), ops.gt(x, zero))
    legal = ops.bitwise_and(legal, ops.lt(ops.max(a, x), scalar_like(a, math.inf)))
    outside = ops.select(ops.eq(x, zero), zero, scalar_like(a, math.nan))
    a, x = ops.select(legal, a, one), ops.select(legal, x, one)
    gap = ops.sub(a, x)
    below = ops.lt(x, ops.max(a, one))
    # Where phi is about 1: |a - x| s + x s^2 / 2 = 1. A small a has a long tail, exp(-a s).
    root = ops.sqrt(ops.add(ops.square(gap), ops.add(x, x)))
    width = ops.div(scalar_like(a, 2), ops.add(ops.abs(gap), root))
    slow = ops.select(ops.lt(gap, zero), ops.div(one, a), width)
    width = ops.select(below, slow, ops.neg(width))
    log_ratio = ops.sub(ops.log(x), digamma(a))
    whole = typeof(a).update(shape=(*typeof(a).shape, _NODES.size))
    given, last = tuple(range(whole.ndim - 1)), whole.ndim - 1
    wide = [broadcast_like(v, whole, given) for v in (width, gap, x, log_ratio, polygamma(one, a))]
    width, gap, high, log_ratio, trigamma = wide
    s = ops.mul(width, broadcast_like(_NODES, whole, (last,)))
    phi = ops.add(ops.mul(gap, s), ops.mul(high, ops.add(ops.expm1(ops.neg(s)), s)))
    far = ops.gt(phi, scalar_like(phi, _FAR))
    s, phi = ops.select(far, zero, s), ops.select(far, zero, phi)
    bend = ops.sub(ops.square(ops.sub(log_ratio, s)), trigamma)
    terms = ops.mul(ops.mul(ops.exp(ops.neg(phi)), bend), width)
    terms = ops.mul(terms, broadcast_like(_WEIGHTS, whole, (last,)))
    out = ops.mul(x, reduce_sum(ops.select(far, zero, terms), axes=(last,)))
    return ops.select(legal, out, outside)
