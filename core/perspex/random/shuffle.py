"""Permutations and samples of the elements of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import as_dtype, check_arraylike
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import iterated_shape
from perspex.arguments.sharded import OutSharding, lying
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, Shape
from perspex.ir.avals import shaped
from perspex.ops.cumulative import cumsum
from perspex.ops.elementwise import add, log, mul, sub
from perspex.ops.keys import random_bits, random_split
from perspex.ops.shape import iota, part, unstack
from perspex.ops.sorting import sort, top_k
from perspex.ops.structural import convert, reshape
from perspex.random.continuous import gumbel_mode, gumbel_samples
from perspex.random.discrete import integers
from perspex.random.sampling import on_key
from perspex.random.uniforms import unit
from perspex.random.words import WORDS
from perspex.tracing.trace import typeof

__all__ = ["choice", "permutation"]


def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """An array in random order, or the integers below a number.

    Args:
      x: an array, or an integer `n` that stands for `arange(n)`.
      axis: the axis along which to move elements.
      independent: whether each line along the axis gets an order of its own.

    Returns:
      An array of the shape and dtype of `x`; integers of shape `(n,)` for an integer.

    Raises:
      TypeError: if `key` is not a key, or `x` is not an array or an integer.
      ValueError: if `key` is an array of keys or `axis` is out of range.
      ConcretizationTypeError: if `x` is a traced integer.

    >>> from perspex import random
    >>> random.permutation(random.key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    """
    check_arraylike("permutation", x)
    aval = shaped(x)
    axis = canonical_axis(axis, aval.ndim or 1, "permutation")
    if aval.shape:
        alone = independent or (aval.ndim == 1 and not aval.is_extended)
        found = _permutation(key, x, 0, axis, bool(alone))
        return lying("permutation", out_sharding, found)
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"permutation: x must be an integer or at least 1-dimensional, got {x!r}")
    found = _permutation(key, None, concrete("permutation: x", int, x), 0, True)
    return lying("permutation", out_sharding, found)


@on_key("permutation", static=3)
def _permutation(key: Any, x: Any, n: int, axis: int, independent: bool) -> Any:
    if x is None:
        return shuffled_range(key, n)
    if independent:
        return shuffled(key, as_dtype(x, typeof(x).dtype), axis)
    return permuted(key, x, axis)


def shuffled_range(key: Any, n: int) -> Any:
    """The integers below `n` in random order."""
    n = max(n, 0)
    return shuffled(key, iota(dtype=_index_dtype(), shape=(n,), dimension=0), 0)


def permuted(key: Any, x: Any, axis: int) -> Any:
    """The slices of `x` along an axis in random order."""
    aval = typeof(x)
    if aval.ndim == 1 and not aval.is_extended:
        return shuffled(key, x, axis)
    order = shuffled_range(key, aval.shape[axis])
    return pnp.take(x, order, axis, unique_indices=True)


def shuffled(key: Any, x: Any, axis: int) -> Any:
    """The elements of each line of `x` along an axis in random order."""
    # Sorted by 32 random bits, repeatedly, so often that no two elements have the same bits in all
    # rounds, but for a chance of 1 in `size` (three birthday bounds).
    shape = typeof(x).shape
    size = max(math.prod(shape), 1)
    rounds = math.ceil(3 * math.log(size) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = unstack(random_split(key, shape=(2,)), axis=0)
        order = random_bits(subkey, bit_width=32, shape=shape)
        _, x = sort(order, x, dimension=axis, is_stable=True, num_keys=1)
    return x


def _index_dtype() -> Any:
    return dtypes.canonicalize_dtype("int64")


def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """A random sample of the elements of an array.

    Args:
      a: an array, or an integer `n` that stands for `arange(n)`.
      shape: the shape of the sample; a tuple or a list.
      replace: whether an element may be drawn again.
      p: the probabilities of the elements along the axis, of shape `(n,)`; all equal by default.
        Without replacement at least as many must be above zero as are drawn.
      axis: the axis of `a` along which to draw.
      mode: how many bits to use without replacement where `p` is given; see `gumbel`.

    Returns:
      An array of the dtype of `a` with `shape` in the place of `axis`.

    Raises:
      TypeError: if `key` is not a key, `shape` is not a sequence of sizes, or `a` or `p` is not an
          array or a number.
      ValueError: if `key` is an array of keys, there is nothing or not enough to draw from, `p` has
          another shape, `mode` is unknown, or `axis` is out of range.
      ConcretizationTypeError: if `a` is a traced integer.

    >>> from perspex import random
    >>> random.choice(random.key(0), 5, (3,), replace=False)
    Array([0, 1, 4], dtype=int32)
    """
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"choice: shape must be a sequence of integers, got {shape!r}")
    shape = iterated_shape("choice", shape)
    check_arraylike("choice", a)
    aval = shaped(a)
    if aval.shape:
        axis = canonical_axis(axis, aval.ndim, "choice")
        available = aval.shape[axis]
    else:
        available = concrete("choice: a", int, a)
    draws = math.prod(shape)
    if not draws:
        return pnp.zeros(shape, aval.dtype)
    if available <= 0:
        raise ValueError(
            f"choice: a must be greater than 0 unless no samples are taken, got {available}"
        )
    if not replace and draws > available:
        raise ValueError(
            f"choice: cannot take a larger sample (size {draws}) than population (size "
            f"{available}) when 'replace=False'"
        )
    if p is not None:
        check_arraylike("choice", p)
        if shaped(p).shape != (available,):
            raise ValueError(
                "choice: p must be None or a 1D vector with the same size as a.shape[axis]. "
                f"p has shape {shaped(p).shape} and a.shape[axis] is {available}."
            )
        mode = gumbel_mode(mode)
    given, axis = (a, axis) if aval.shape else (None, 0)
    return _choice(key, given, p, shape, bool(replace), available, axis, mode)


@on_key("choice", static=5)
def _choice(
    key: Any, a: Any, p: Any, shape: Shape, replace: bool, n: int, axis: int, mode: Any
) -> Any:
    if p is None and not replace:
        drawn = shuffled_range(key, n) if a is None else permuted(key, a, axis)
        given = typeof(drawn).shape
        drawn = part(drawn, 0, math.prod(shape), axis, given)
        return reshape(drawn, new_sizes=(*given[:axis], *shape, *given[axis + 1 :]))
    if p is None:
        index = integers(key, 0, n, shape, _index_dtype())
    else:
        index = _weighted(key, p, shape, replace, mode)
    return index if a is None else pnp.take(a, index, axis)


def _weighted(key: Any, p: Any, shape: Shape, replace: bool, mode: str) -> Any:
    """Indices drawn with the probabilities `p`."""
    dtype = dtypes.to_inexact_dtype(typeof(p).dtype)
    p = as_dtype(p, dtypes.canonicalize_dtype(dtype))
    dtype = typeof(p).dtype
    if replace:
        below = cumsum(p, axis=0, reverse=False)
        n = typeof(p).shape[0]
        total = reshape(part(below, n - 1, n, 0, (n,)), new_sizes=())
        points = mul(total, sub(dtype.type(1), unit(key, shape, dtype)))
        return convert(pnp.searchsorted(below, points), _index_dtype())
    # The largest of `log(p) + gumbel` are a sample without replacement.
    scores = add(gumbel_samples(key, typeof(p).shape, dtype, mode), log(p))
    _, drawn = top_k(scores, k=math.prod(shape), axis=0, is_stable=True)
    return reshape(convert(drawn, _index_dtype()), new_sizes=shape)


describe([choice, permutation], WORDS)
