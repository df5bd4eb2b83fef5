"""Whole numbers: Poisson, binomial, multinomial and geometric variates.

Small means are met by counting events one after the other, large ones by transformed rejection:
Hörmann, "The transformed rejection method for generating Poisson random variables" (Insurance:
Mathematics and Economics 12, 1993) and "The generation of binomial random variates" (Journal of
Statistical Computation and Simulation 46, 1993). Loops run for all samples together until the last
one is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import as_dtype, spread, spread_array
from perspex.arguments.dtypes import float_dtype, integer_dtype
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ir.avals import shaped
from perspex.lax.control import scan, while_loop
from perspex.numpy.promotion import promote_dtypes
from perspex.ops.keys import random_split
from perspex.ops.shape import unstack
from perspex.ops.special import erf, lgamma
from perspex.ops.structural import convert
from perspex.random.arguments import drawn_shape
from perspex.random.normals import real_normal
from perspex.random.sampling import sampler
from perspex.random.uniforms import unit
from perspex.tracing.trace import typeof

__all__ = ["binomial", "geometric", "multinomial", "poisson"]

_SINGLE = np.dtype("float32")


def _one_dtype(name: str, *parameters: Any) -> list[Any]:
    """Parameters at the floating dtype that they have together, in which samples are computed."""
    dtype = dtypes.to_inexact_dtype(shaped(promote_dtypes(name, *parameters)[0]).dtype)
    return [as_dtype(x, dtype) for x in parameters]


def _accepted(key: Any, shape: Shape, dtype: Any, propose: Callable[..., Any]) -> Any:
    """Proposals, repeated until each has been accepted; the last accepted one counts.

    `propose(u, v)` makes a number and whether it is accepted of two uniform numbers.
    """

    def again(state: Any) -> Any:
        found, done, key = state
        key, *pair = unstack(random_split(key, shape=(3,)), axis=0)
        proposal, good = propose(*[unit(k, shape, dtype) for k in pair])
        return pnp.where(good, proposal, found), done | good, key

    start = pnp.full(shape, -1, dtype), pnp.zeros(shape, bool), key
    return while_loop(lambda state: ~pnp.all(state[1]), again, start)[0]


# ---- Poisson -------------------------------------------------------------------------------------


@sampler(integer_dtype)
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Samples `k >= 0` with probability `lam**k * exp(-lam) / k!`.

    Args:
      key: one key, typed or raw, of the generator threefry2x32.
      lam: the mean, numbers that broadcast to `shape`; where it is negative or NaN, samples are
        -1; where it is infinite, they are the largest integer (0 in JAX).
      method: `"exact"`, or `"approximate"`, without a loop: by inversion for means below 7, else a
        rounded normal variate, corrected for its skewness (Cornish and Fisher). Its numbers are not
        those of JAX.

    References:
      W. Hörmann, "The transformed rejection method for generating Poisson random variables",
      Insurance: Mathematics and Economics 12 (1993), for means from 10. E. A. Cornish, R. A.
      Fisher, "Moments and cumulants in the specification of distributions" (1938).

    >>> from perspex import random
    >>> random.poisson(random.key(0), 3.0, (4,)).dtype
    dtype('int32')
    """
    lam = spread(as_dtype(lam, _SINGLE), shape)
    if method == "approximate":
        return convert(_approximate_poisson(key, lam, shape), dtype)
    few = ~(lam >= 10)
    counted = _count_arrivals(key, pnp.where(few, lam, _SINGLE.type(0)), shape, dtype)
    # An infinite mean would never be accepted.
    many = pnp.where(few | (lam == math.inf), _SINGLE.type(1e5), lam)
    drawn = pnp.where(few, counted, convert(_reject_poisson(key, many, shape), dtype))
    drawn = pnp.where(lam == math.inf, dtypes.iinfo(dtype).max, drawn)
    return pnp.where(lam == 0, dtype.type(0), drawn)


def _count_arrivals(key: Any, lam: Any, shape: Shape, dtype: Any) -> Any:
    """How many exponential waiting times fit into `lam` (Knuth)."""

    def again(state: Any) -> Any:
        count, key, total = state
        key, use = unstack(random_split(key, shape=(2,)), axis=0)
        count = pnp.where(total > -lam, count + dtype.type(1), count)
        return count, key, total + pnp.log(unit(use, shape, _SINGLE))

    start = pnp.zeros(shape, dtype), key, pnp.zeros(shape, _SINGLE)
    count, _, _ = while_loop(lambda state: pnp.any(state[2] > -lam), again, start)
    return count - dtype.type(1)


def _reject_poisson(key: Any, lam: Any, shape: Shape) -> Any:
    """Algorithm PTRS of Hörmann, for means of 10 and more."""
    log_lam = pnp.log(lam)
    b = 0.931 + 2.53 * pnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Any, v: Any) -> Any:
        u = u - 0.5
        us = 0.5 - pnp.abs(u)
        k = pnp.floor((2 * a / us + b) * u + lam + 0.43)
        s = pnp.log(v * inverse_alpha / (a / (us * us) + b))
        density = -lam + k * log_lam - lgamma(k + 1)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        return k, ((us >= 0.07) & (v <= quick)) | (~outside & (s <= density))

    return _accepted(key, shape, _SINGLE, propose)


def _approximate_poisson(key: Any, lam: Any, shape: Shape) -> Any:
    z = real_normal(key, shape, _SINGLE)
    # For u = Phi(z), the least k with a distribution function of at least u.
    u = 0.5 * pnp.where(z > 0, 1 + _erf_of(z), 1 - _erf_of(-z))
    term = pnp.exp(-lam)
    below, count = term, pnp.zeros(shape, _SINGLE)
    for k in range(1, 24):
        count = count + (below < u)
        term = term * (lam / k)
        below = below + term
    root = pnp.sqrt(lam)
    skewed = lam + root * z + (z * z - 1) / 6 - z * (z * z - 1) / (72 * root)
    many = pnp.maximum(pnp.floor(skewed + 0.5), 0)
    return pnp.where(lam < 7, count, pnp.where(lam >= 7, many, -1))


def _erf_of(z: Any) -> Any:
    return erf(z * _SINGLE.type(math.sqrt(0.5)))


# ---- Binomial ------------------------------------------------------------------------------------


@sampler(float_dtype, converts=False)
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples `k` from 0 to `n` with probability `n! / (k! (n - k)!) * p**k * (1 - p)**(n - k)`.

    Args:
      n: the number of trials, not negative; it broadcasts to `shape`.
      p: the probability of success in a trial, between 0 and 1; it broadcasts to `shape`.

    Returns:
      An array of shape `shape` and dtype `dtype`, NaN where a parameter is out of range.

    References:
      W. Hörmann, "The generation of binomial random variates", Journal of Statistical Computation
      and Simulation 46 (1993), for `n * p > 10`.

    >>> from perspex import random
    >>> bool(random.binomial(random.key(0), 10, 0.3) <= 10)
    True
    """
    n, p = [spread(x, shape) for x in _one_dtype("binomial", n, p)]
    return convert(_binomial_samples(key, n, p, shape), dtype)


def _binomial_samples(key: Any, n: Any, p: Any, shape: Shape) -> Any:
    dtype = typeof(n).dtype
    # The rarer of the event and its opposite is counted.
    rare = p < 0.5
    q = pnp.where(rare, p, 1 - p)
    bad_n, bad_q = ~(n >= 0), ~(q >= 0)
    endless = n == math.inf
    q = pnp.where(bad_q, dtype.type(0.01), q)
    few = bad_n | (n * q <= 10)
    whole = pnp.floor(n)
    counted = _count_successes(key, pnp.where(few, whole, dtype.type(0)), q, shape)
    many = pnp.where(few, dtype.type(1e4), whole)
    rejected = _reject_binomial(key, many, pnp.where(few, dtype.type(0.5), q), shape)
    x = pnp.where(few, counted, rejected)
    x = pnp.where(bad_n | bad_q, math.nan, pnp.where(endless, math.inf, x))
    return pnp.where(rare | bad_n | bad_q | endless, x, whole - x)


def _count_successes(key: Any, n: Any, p: Any, shape: Shape) -> Any:
    """How many geometric waiting times fit into `n` trials."""
    dtype = typeof(n).dtype
    log_failure = pnp.log1p(-p)

    def again(state: Any) -> Any:
        count, total, key = state
        use, key = unstack(random_split(key, shape=(2,)), axis=0)
        count = pnp.where(total <= n, count + 1, count)
        return count, total + pnp.ceil(pnp.log(unit(use, shape, dtype)) / log_failure), key

    start = pnp.zeros(shape, dtype), pnp.zeros(shape, dtype), key
    count, _, _ = while_loop(lambda state: pnp.any(state[1] <= n), again, start)
    return count - 1


def _reject_binomial(key: Any, n: Any, p: Any, shape: Shape) -> Any:
    """Algorithm BTRS of Hörmann, for `n p >= 10` and `p <= 1/2`."""
    dtype = typeof(n).dtype
    deviation = pnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    quick = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = pnp.floor((n + 1) * p)

    def propose(u: Any, v: Any) -> Any:
        u = u - 0.5
        us = 0.5 - pnp.abs(u)
        k = pnp.floor((2 * a / us + b) * u + c)
        s = pnp.log(v * alpha / (a / (us * us) + b))
        bound = (
            (mode + 0.5) * pnp.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * pnp.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * pnp.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        outside = (k < 0) | (k > n)
        return k, ((us >= 0.07) & (v <= quick)) | (~outside & (s <= bound))

    return _accepted(key, shape, dtype, propose)


# log k! minus Stirling's formula for it, for k = 0 to 9.
_TAILS = [
    math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1) - 0.5 * math.log(2 * math.pi)
    for k in range(10)
]


def _stirling_tail(k: Any) -> Any:
    dtype = typeof(k).dtype
    small = pnp.clip(k, 0, 9)
    known = pnp.take(np.array(_TAILS).astype(dtype), convert(small, np.dtype("int32")))
    next_k = small + 1
    square = next_k * next_k
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / next_k
    return pnp.where(k <= 9, known, series)


@sampler(float_dtype, static=("unroll",), fits=False, converts=False)
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Samples `k` with probability `n! * prod(p**k / k!)`: how often each of the outcomes occurs.

    One outcome after the other gets its binomial share of the trials that are left.

    Args:
      n: the numbers of trials, of a shape that broadcasts to `shape`.
      p: the probabilities of the outcomes, of shape `(..., outcomes)`; the last axis adds up to 1.
      shape: the shape of the result without its last axis. The default is that of `p`.
      unroll: how many outcomes a turn of the loop deals with.

    Returns:
      An array of shape `(*shape, outcomes)` and dtype `dtype`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `n` or `p` is not an
          array or a number.
      ValueError: if `key` is an array of keys, `dtype` is not a floating dtype, `p` is a number, or
          the parameters do not broadcast to `shape`.

    >>> import numpy as np
    >>> from perspex import random
    >>> float(random.multinomial(random.key(0), 10, np.full(4, 0.25)).sum())
    10.0
    """
    given = typeof(p).shape
    if not given:
        raise ValueError("multinomial: p must have at least one axis, got a scalar")
    batch = given[:-1] if shape is None else shape
    shape = drawn_shape("multinomial", batch, typeof(n).shape, given[:-1])
    n, p = _one_dtype("multinomial", n, p)
    n = spread(n, shape)
    p = spread(p, (*shape, typeof(p).shape[-1]))
    one = typeof(p).dtype.type(1)
    left = pnp.flip(pnp.cumsum(pnp.flip(p, -1), -1), -1)
    ratios = p / pnp.where(left == 0, one, left)
    ratios = pnp.moveaxis(ratios, -1, 0)

    def share(left: Any, turn: Any) -> Any:
        ratio, key = turn
        count = _binomial_samples(key, left, pnp.clip(ratio, 0, 1), shape)
        return left - count, count

    keys = random_split(key, shape=(typeof(p).shape[-1],))
    _, counts = scan(share, n, (ratios, keys), unroll=unroll)
    return convert(pnp.moveaxis(counts, 0, -1), dtype)


# ---- Geometric -----------------------------------------------------------------------------------


@sampler(integer_dtype)
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples `k >= 1` with probability `p * (1 - p)**(k - 1)`: trials until the first success.

    Args:
      p: the probability of success in a trial, above 0 and up to 1; it broadcasts to `shape`.

    >>> from perspex import random
    >>> int(random.geometric(random.key(0), 1.0))
    1
    """
    (p,) = _one_dtype("geometric", p)
    p, given = spread_array(p, shape), typeof(p).dtype
    u = unit(key, shape, given)
    u = pnp.where(u == 0, given.type(1), u)
    turns = pnp.floor(pnp.log(u) / pnp.log1p(-p)) + 1
    return convert(turns, dtype)
