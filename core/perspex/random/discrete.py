"""Integers, booleans and categories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_dtype, spread_array
from perspex.arguments.shapes import common_shape
from perspex.arguments.sharded import OutSharding
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ir.avals import shaped
from perspex.ops.elementwise import add, bitwise_and, gt, lt, max, min, mul, rem, select, sub
from perspex.ops.keys import random_bits, random_split
from perspex.ops.reductions import argmax
from perspex.ops.shape import unstack
from perspex.ops.sorting import top_k
from perspex.ops.structural import broadcast_in_dim, convert, move_axis, reshape, transpose
from perspex.random.arguments import drawn_shape, shape_of
from perspex.random.continuous import gumbel_mode, gumbel_samples
from perspex.random.sampling import sampler
from perspex.random.uniforms import unit
from perspex.tracing.trace import typeof

_BOOL = np.dtype("bool")


__all__ = ["bernoulli", "categorical", "rademacher", "randint"]


def _integer(name: str, dtype: Any) -> Any:
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, name)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"{name} only accepts integer dtypes, got {dtype.name}")
    return dtype


@sampler(_integer, fits=False)
def randint(
    key: ArrayLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Integers from `minval` below `maxval`, all equally likely.

    Bounds beyond the dtype are moved to its ends, where `maxval` may be one above the largest
    integer. Where `maxval` is not above `minval`, the samples are `minval`.

    Args:
      minval, maxval: integers or arrays of them that broadcast to `shape`.
      dtype: an integer dtype; int32 by default, int64 with `enable_x64`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, a bound is not an array
          or a number, or `dtype` is not an integer dtype.
      ValueError: if `key` is an array of keys or the bounds do not broadcast to `shape`.
      OverflowError: for a Python integer that fits no array.

    >>> from perspex import random
    >>> random.randint(random.key(0), (5,), 0, 10)
    Array([9, 0, 2, 3, 1], dtype=int32)
    """
    drawn_shape("randint", shape, shape_of(minval), shape_of(maxval))
    return integers(key, minval, maxval, shape, dtype)


def integers(key: Any, minval: Any, maxval: Any, shape: Shape, dtype: Any) -> Any:
    """`randint` for a typed key and checked arguments."""
    info = dtypes.iinfo(dtype)
    minval, maxval = _as_integers(minval), _as_integers(maxval)
    if info.bits < 32:
        # Drawn with 32 bits, which leave less of a bias than fewer would.
        wide = np.dtype("int32")
        minval = _clip(convert(minval, wide), int(info.min), int(info.max))
        maxval = _clip(convert(maxval, wide), int(info.min), int(info.max) + 1)
        return convert(_integers(key, minval, maxval, shape, wide), dtype)
    return _integers(key, minval, maxval, shape, dtype)


def _as_integers(x: Any) -> Any:
    aval = shaped(x)
    if dtypes.issubdtype(aval.dtype, np.integer):
        return as_dtype(x, aval.dtype)
    return as_dtype(x, dtypes.canonicalize_dtype("int64"))


def _integers(key: Any, minval: Any, maxval: Any, shape: Shape, dtype: Any) -> Any:
    info = dtypes.iinfo(dtype)
    limit, highest = int(info.max), int(dtypes.iinfo(typeof(maxval).dtype).max)
    # Bounds of another dtype may ask for the largest integer, too.
    whole = gt(maxval, typeof(maxval).dtype.type(limit)) if highest > limit else None
    minval, maxval = [
        spread_array(convert(_clip(x, int(info.min), limit), dtype), shape)
        for x in (minval, maxval)
    ]
    unsigned = np.dtype(f"uint{info.bits}")
    one = unsigned.type(1)
    rising = gt(maxval, minval)
    # Modulo 2**bits the difference is right, also where it overflows the signed dtype.
    span = select(rising, convert(sub(maxval, minval), unsigned), _like(one, maxval, minval))
    if whole is not None:
        # All integers: the span becomes 0, and the remainder by 0 is the number itself.
        more = bitwise_and(spread_array(whole, shape), rising)
        span = select(more, add(span, one), span)
    first, second = unstack(random_split(key, shape=(2,)), axis=0)
    high = random_bits(first, bit_width=info.bits, shape=shape)
    low = random_bits(second, bit_width=info.bits, shape=shape)
    # A number of twice as many bits modulo the span: (2**bits high + low) % span, where
    # 2**bits % span is made of 2**(bits/2) % span, lest it overflow.
    factor = rem(unsigned.type(2 ** (info.bits // 2)), span)
    factor = rem(mul(factor, factor), span)
    offset = rem(add(mul(rem(high, span), factor), rem(low, span)), span)
    return add(minval, convert(offset, dtype))


def _like(x: Any, *others: Any) -> Any:
    """The scalar `x` at the shape that `others` have together."""
    shape = common_shape(*[typeof(other).shape for other in others])
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=()) if shape else x


def _clip(x: Any, least: int, most: int) -> Any:
    """Integers moved between bounds, so far as their dtype goes beyond them."""
    dtype = typeof(x).dtype
    info = dtypes.iinfo(dtype)
    if least > int(info.min):
        x = max(dtype.type(least), x)
    if most < int(info.max):
        x = min(dtype.type(most), x)
    return x


@sampler(static=("mode",))
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Booleans that are true with probability `p`.

    Args:
      p: floats that broadcast to `shape`.
      mode: `"low"` compares `p` with one uniform number of its dtype; `"high"` with one of twice as
        many bits, for a small `p`.

    Returns:
      A boolean array of shape `shape`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `p` is not a float or
          an array of floats.
      ValueError: if `key` is an array of keys, `mode` is unknown, or `p` does not broadcast to
          `shape`.

    >>> from perspex import random
    >>> random.bernoulli(random.key(0), 0.5, (4,)).dtype
    dtype('bool')
    """
    if mode not in ("high", "low"):
        raise ValueError(f"bernoulli: mode must be 'high' or 'low', got {mode!r}")
    dtype = typeof(p).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {dtype.name}; "
            "convert it first"
        )
    p = spread_array(as_dtype(p, dtype), shape)
    if mode == "low":
        return lt(unit(key, shape, dtype), p)
    high, low = unstack(unit(key, (2, *shape), dtype), axis=0)
    return lt(mul(low, dtype.type(2.0 ** -dtypes.finfo(dtype).nmant)), sub(p, high))


def _any(name: str, dtype: Any) -> Any:
    return dtypes.check_user_dtype(int if dtype is None else dtype, name)


@sampler(_any)
def rademacher(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Samples of -1 and 1, both equally likely.

    Args:
      dtype: a dtype; int32 by default, int64 with `enable_x64`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `dtype` is not a
          dtype.
      ValueError: if `key` is an array of keys.

    >>> from perspex import random
    >>> random.rademacher(random.key(0), (4,))
    Array([-1, -1,  1,  1], dtype=int32)
    """
    default = dtypes.canonicalize_dtype("float64")
    heads = lt(unit(key, shape, default), default.type(0.5))
    number = np.dtype("int32") if dtype == _BOOL else dtype
    x = sub(mul(number.type(2), convert(heads, number)), number.type(1))
    return convert(x, dtype)


@sampler(static=("axis", "replace", "mode"), fits=False)
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Categories with the probabilities `softmax(logits, axis)`, by the Gumbel-max trick.

    Without replacement, the largest of `logits + gumbel` are a sample (Kool et al.).

    Args:
      logits: log probabilities of any dtype of floats, up to a constant for each distribution.
      axis: the axis of `logits` along which the categories of a distribution lie.
      shape: the shape of the result, which ends in one to which `logits` without `axis` broadcasts;
        by default just that. The axes before it are independent samples.
      replace: whether a category may be drawn again for the same distribution.

    Returns:
      Indices into `axis`: int32, or with replacement int64 where `enable_x64` is set.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `logits` is not an
          array.
      ValueError: if `key` is an array of keys, `logits` has no floating dtype, `axis` is out of
          range or has no category, `shape` does not fit, `mode` is unknown, or there are more
          samples than categories without replacement.

    References:
      W. Kool et al., "Stochastic beams and where to find them", ICML 2019,
      https://proceedings.mlr.press/v97/kool19a.html.

    >>> import numpy as np
    >>> from perspex import random
    >>> random.categorical(random.key(0), np.log([0.1, 0.2, 0.7]), shape=(5,))
    Array([1, 2, 2, 1, 2], dtype=int32)
    """
    given, mode = typeof(logits), gumbel_mode(mode)
    if not dtypes.issubdtype(given.dtype, np.floating):
        raise ValueError(
            f"categorical: logits must have a floating dtype, got {given.dtype.name}; "
            "convert them first"
        )
    if not -given.ndim <= axis < given.ndim:
        raise np.exceptions.AxisError(axis, given.ndim, "categorical")
    axis %= given.ndim
    count = given.shape[axis]
    if not count:
        raise ValueError(f"categorical: there is no category along axis {axis} of {given.shape}")
    batch = given.shape[:axis] + given.shape[axis + 1 :]
    shape = drawn_shape("categorical", shape, batch)
    first = len(shape) - len(batch)
    if replace:
        full = (*shape[: first + axis], count, *shape[first + axis :])
        scores = add(gumbel_samples(key, full, given.dtype, mode), spread_array(logits, full))
        index = dtypes.canonicalize_dtype("int64")
        return argmax(scores, axes=(first + axis,), index_dtype=index)
    samples = math.prod(shape[:first])
    if samples > count:
        raise ValueError(
            f"categorical: {samples} samples without replacement cannot exceed the "
            f"{count} categories"
        )
    if shape[first:] != batch:
        raise ValueError(f"categorical: without replacement shape must end in {batch}, got {shape}")
    scores = add(logits, gumbel_samples(key, given.shape, given.dtype, mode))
    last = given.ndim - 1
    _, indices = top_k(move_axis(scores, axis, last), k=samples, axis=last, is_stable=True)
    order = (last, *range(last))
    return reshape(transpose(indices, permutation=order), new_sizes=shape)
