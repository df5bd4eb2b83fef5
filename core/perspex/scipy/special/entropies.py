"""Logistic functions, products with logarithms, terms of entropies, softmax."""

from __future__ import annotations

from typing import Any

from perspex import numpy as pnp
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.jitted.fused import fused
from perspex.nn import log_softmax as _log_softmax
from perspex.nn import softmax as _softmax
from perspex.numpy.promotion import beside_numbers, inexact, promote_inexact, strengthened
from perspex.ops import elementwise as ops
from perspex.rules.custom_jvp import custom_jvp
from perspex.scipy.special.gammas import RETURNS, real
from perspex.tracing.trace import typeof

__all__ = [
    "entr", "expit", "kl_div", "log_softmax", "logit", "rel_entr", "softmax", "xlog1py", "xlogy",
]  # fmt: skip


@fused
def expit(x: ArrayLike) -> Array:
    """Logistic function `1 / (1 + exp(-x))`.

    >>> from perspex.scipy import special
    >>> special.expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return ops.logistic(inexact("expit", x))


@fused
def logit(x: ArrayLike) -> Array:
    """Inverse of the logistic function: `log(x / (1 - x))`.

    Args:
      x: numbers between 0 and 1; other real numbers give NaN.

    >>> from perspex.scipy import special
    >>> special.logit(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    return _logit(beside_numbers(inexact("logit", x)))


# Derivatives are given where those of the formulas are NaN at the ends of the domain.


@custom_jvp
def _logit(x: Array) -> Array:
    return pnp.log(x / (1 - x))


_logit.defjvps(lambda t, out, x: t / (x * (1 - x)))


@fused
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(y)`, and 0 where `x` is 0.

    >>> from perspex.scipy import special
    >>> special.xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _xlogy(*promote_inexact("xlogy", x, y))


@custom_jvp
def _xlogy(x: Array, y: Array) -> Array:
    taken = (x != 0) | (y != y)
    return pnp.where(taken, x * pnp.log(y), 0)


_xlogy.defjvps(lambda t, out, x, y: t * pnp.log(y), lambda t, out, x, y: t * x / y)


@fused
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(1 + y)`, and 0 where `x` is 0.

    >>> from perspex.scipy import special
    >>> special.xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _xlog1py(*promote_inexact("xlog1py", x, y))


@custom_jvp
def _xlog1py(x: Array, y: Array) -> Array:
    taken = (x != 0) | (y != y)
    return pnp.where(taken, x * pnp.log1p(y), 0)


_xlog1py.defjvps(lambda t, out, x, y: t * pnp.log1p(y), lambda t, out, x, y: t * x / (1 + y))


@fused
def entr(x: ArrayLike) -> Array:
    """The term `-x * log(x)` of an entropy: 0 at 0, and minus infinity below.

    >>> from perspex.scipy import special
    >>> special.entr(1.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    (x,) = real("entr", inexact("entr", x))
    return pnp.where(x < 0, -pnp.inf, -_xlogx(x))


@custom_jvp
def _xlogx(x: Array) -> Array:
    return _xlogy(x, x)


_xlogx.defjvps(lambda t, out, x: t * (pnp.log(x) + 1))


@custom_jvp
def _log_ratio(p: Array, q: Array) -> Array:
    """`log(p / q)`, where that quotient is near 1, too large or too small as exact as elsewhere."""
    ratio = p / q
    near = pnp.abs(ratio - 1) < 0.25
    close = pnp.log1p((p - q) / pnp.where(near, q, 1))  # the difference is exact there
    tiny, huge = pnp.finfo(p.dtype).tiny, pnp.finfo(p.dtype).max
    usual = (ratio >= tiny) & (ratio <= huge)
    far = pnp.where(usual, pnp.log(pnp.where(usual, ratio, 1)), pnp.log(p) - pnp.log(q))
    return pnp.where(near, close, far)


_log_ratio.defjvps(lambda t, out, p, q: t / p, lambda t, out, p, q: -t / q)


@custom_jvp
def _p_log_ratio(p: Array, q: Array) -> Array:
    return p * _log_ratio(p, q)


# By `p`, the product rule would multiply infinity by 0 where `p` is infinite.
_p_log_ratio.defjvps(
    lambda t, out, p, q: t * (_log_ratio(p, q) + 1), lambda t, out, p, q: -t * p / q
)


@custom_jvp
def _divergence(p: Array, q: Array) -> Array:
    """`p * log(p / q) - p + q`, which is a square where `p` and `q` are near each other.

    With `s = (q - p) / (q + p)`, `log(q / p)` is `2 * atanh(s)`, and what the first term of its
    series leaves of `q - p` is `(q - p) * s`: the two never cancel.
    """
    difference = q - p
    near = pnp.abs(difference) < pnp.minimum(p, q) * 0.5
    u = pnp.where(near, difference / p, 0)
    s = u / (2 + u)
    series, terms = pnp.zeros_like(s), 14 if p.dtype == "float64" else 6
    for k in reversed(range(terms)):
        series = series * (s * s) + 1 / (2 * k + 3)
    close = difference * s - 2 * (p * s) * (s * s) * series
    return pnp.where(near, close, _p_log_ratio(p, q) + difference)


_divergence.defjvps(
    lambda t, out, p, q: t * _log_ratio(p, q),
    lambda t, out, p, q: t * pnp.where((q == pnp.inf) & (p == p), 1, -((p - q) / q)),
)


@fused
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The term `p * log(p / q)` of a relative entropy.

    It is 0 where `p` is 0 and `q` is not negative, and infinite where it is not defined.

    >>> from perspex.scipy import special
    >>> special.rel_entr(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = real("rel_entr", *promote_inexact("rel_entr", p, q))
    p, q = [strengthened(x) if typeof(p).shape else x for x in (p, q)]
    both, none = _defined(p, q), (p == 0) & (q >= 0)
    safe_p, safe_q = pnp.where(both, p, 1), pnp.where(both, q, 1)
    value = _p_log_ratio(safe_p, safe_q)
    return pnp.where(both, value, pnp.where(none, 0, pnp.inf))


def _defined(p: Any, q: Any) -> Any:
    """Where the formula holds, and where it gives NaN because one of the two is."""
    return ((p > 0) & (q > 0)) | pnp.isnan(p) | pnp.isnan(q)


@fused
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The term `p * log(p / q) - p + q` of a Kullback-Leibler divergence; not negative.

    >>> from perspex.scipy import special
    >>> special.kl_div(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = real("kl_div", *promote_inexact("kl_div", p, q))
    p, q = [strengthened(x) if typeof(p).shape else x for x in (p, q)]
    both, none = _defined(p, q), (p == 0) & (q >= 0)
    safe_p, safe_q = pnp.where(both, p, 1), pnp.where(both, q, 1)
    value = _divergence(safe_p, safe_q)
    return pnp.where(both, value, pnp.where(none, q, pnp.inf))


def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Exponentials of `x` divided by their sum, without overflow.

    Args:
      x: an array of numbers.
      axis: the axis, or axes, to sum over; `None` for all of them.

    Returns:
      An array of the shape of `x`, of floating or complex dtype.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for an axis that `x` does not have.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import special
    >>> special.softmax(jnp.zeros((2, 1)))
    Array([[0.5],
           [0.5]], dtype=float32)
    """
    return _softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Logarithms of `softmax(x, axis=axis)`, also where that is zero.

    Args:
      x: an array of numbers.
      axis: the axis, or axes, to sum over; `None` for all of them.

    Returns:
      An array of the shape of `x`, of floating or complex dtype.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for an axis that `x` does not have.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import special
    >>> special.log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _log_softmax(x, axis)


describe(
    (expit, logit, entr, xlogy, xlog1py, rel_entr, kl_div),
    {name: "real numbers." for name in "xypq"},
    "TypeError: for arguments that are not arrays or numbers, and for shapes that do not\n"
    "broadcast (ValueError if their ranks differ).",
    RETURNS,
)
