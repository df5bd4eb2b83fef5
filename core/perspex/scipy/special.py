"""Special functions: those of `scipy.special`."""

from __future__ import annotations

from typing import Any

from perspex import numpy as pnp
from perspex.jitted.fused import fused
from perspex.nn import log_softmax as _log_softmax
from perspex.nn import softmax as _softmax
from perspex.nn.normalization import logsumexp as logsumexp
from perspex.numpy.promotion import Array, ArrayLike, Axis, inexact, promote_inexact
from perspex.ops import elementwise as ops
from perspex.rules.custom_jvp import custom_jvp
from perspex.scipy.functions.gammas import bernoulli as bernoulli
from perspex.scipy.functions.gammas import beta as beta
from perspex.scipy.functions.gammas import betainc as betainc
from perspex.scipy.functions.gammas import betaln as betaln
from perspex.scipy.functions.gammas import comb as comb
from perspex.scipy.functions.gammas import digamma as digamma
from perspex.scipy.functions.gammas import factorial as factorial
from perspex.scipy.functions.gammas import gamma as gamma
from perspex.scipy.functions.gammas import gammainc as gammainc
from perspex.scipy.functions.gammas import gammaincc as gammaincc
from perspex.scipy.functions.gammas import gammaln as gammaln
from perspex.scipy.functions.gammas import gammasgn as gammasgn
from perspex.scipy.functions.gammas import loggamma as loggamma
from perspex.scipy.functions.gammas import multigammaln as multigammaln
from perspex.scipy.functions.gammas import poch as poch
from perspex.scipy.functions.gammas import polygamma as polygamma
from perspex.scipy.functions.gammas import zeta as zeta
from perspex.scipy.functions.integrals import bessel_jn as bessel_jn
from perspex.scipy.functions.integrals import boxcox as boxcox
from perspex.scipy.functions.integrals import boxcox1p as boxcox1p
from perspex.scipy.functions.integrals import exp1 as exp1
from perspex.scipy.functions.integrals import expi as expi
from perspex.scipy.functions.integrals import expn as expn
from perspex.scipy.functions.integrals import fresnel as fresnel
from perspex.scipy.functions.integrals import hyp1f1 as hyp1f1
from perspex.scipy.functions.integrals import hyp2f1 as hyp2f1
from perspex.scipy.functions.integrals import sici as sici
from perspex.scipy.functions.integrals import spence as spence
from perspex.scipy.functions.integrals import sph_harm_y as sph_harm_y
from perspex.scipy.functions.normal import dawsn as dawsn
from perspex.scipy.functions.normal import erf as erf
from perspex.scipy.functions.normal import erfc as erfc
from perspex.scipy.functions.normal import erfcinv as erfcinv
from perspex.scipy.functions.normal import erfcx as erfcx
from perspex.scipy.functions.normal import erfinv as erfinv
from perspex.scipy.functions.normal import i0 as i0
from perspex.scipy.functions.normal import i0e as i0e
from perspex.scipy.functions.normal import i1 as i1
from perspex.scipy.functions.normal import i1e as i1e
from perspex.scipy.functions.normal import log_ndtr as log_ndtr
from perspex.scipy.functions.normal import ndtr as ndtr
from perspex.scipy.functions.normal import ndtri as ndtri
from perspex.scipy.functions.normal import owens_t as owens_t
from perspex.scipy.functions.normal import wofz as wofz


@fused
def expit(x: ArrayLike) -> Array:
    """The logistic function `1 / (1 + exp(-x))`.

    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return ops.logistic(inexact("expit", x))


@fused
def logit(x: ArrayLike) -> Array:
    """`log(x / (1 - x))`, the inverse of `expit`.

    >>> logit(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    return _logit(inexact("logit", x))


# Some derivatives here are given, because those of the formulas are NaN at the ends of the domain.


@custom_jvp
def _logit(x: Array) -> Array:
    return pnp.log(x / (1 - x))


_logit.defjvps(lambda t, out, x: t / (x * (1 - x)))


@fused
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(y)`, and 0 where `x` is 0.

    >>> xlogy(0.0, 0.0)
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

    >>> xlog1py(0.0, -1.0)
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
    """`-x * log(x)`, 0 at 0 and minus infinity below: the term of an entropy.

    >>> entr(1.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    x = inexact("entr", x)
    return pnp.where(x < 0, -pnp.inf, -_xlogx(x))


@custom_jvp
def _xlogx(x: Array) -> Array:
    return _xlogy(x, x)


_xlogx.defjvps(lambda t, out, x: t * (pnp.log(x) + 1))


@fused
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """`p * log(p / q)`: the term of a relative entropy; 0 at `p = 0`, infinite where undefined.

    >>> rel_entr(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = promote_inexact("rel_entr", p, q)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    safe_p, safe_q = pnp.where(both, p, 1), pnp.where(both, q, 1)
    value = safe_p * (pnp.log(safe_p) - pnp.log(safe_q))
    return pnp.where(both, value, pnp.where(none, 0, pnp.inf))


@fused
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """`rel_entr(p, q) - p + q`: never negative.

    >>> kl_div(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = promote_inexact("kl_div", p, q)
    return rel_entr(p, q) - p + q


def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Any:
    """`perspex.nn.softmax`, over all axes unless told otherwise.

    >>> softmax(pnp.zeros((2, 1)))
    Array([[0.5],
           [0.5]], dtype=float32)
    """
    return _softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Any:
    """`perspex.nn.log_softmax`, over all axes unless told otherwise.

    >>> log_softmax(pnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _log_softmax(x, axis)
