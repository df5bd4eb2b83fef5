"""Quantiles: the values below which shares of the elements lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex.arguments.arrays import arraylike, as_dtype, flat, spread
from perspex.arguments.axes import canonical_axes
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import WORDS as LIES
from perspex.arguments.sharded import OutSharding, decided
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.jitted.fused import fused
from perspex.numpy import reductions
from perspex.numpy.promotion import inexact, strengthened
from perspex.numpy.reducing import WORDS, checked_axis
from perspex.ops import elementwise as ops
from perspex.ops.sorting import sort, take_along
from perspex.ops.structural import broadcast_in_dim, convert, reshape, size_as, transpose

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a share `q` of the elements lies; NaN if there is one.

    >>> import perspex.numpy as jnp
    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.75)
    Array(3., dtype=float32)
    """
    return _found("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a share `q` of the elements that are not NaN lies.

    >>> import perspex.numpy as jnp
    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
    Array(2., dtype=float32)
    """
    return _found("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The value below which `q` percent of the elements lie; NaN if there is one.

    >>> import perspex.numpy as jnp
    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 75)
    Array(3., dtype=float32)
    """
    how = out, overwrite_input, method, keepdims, weights
    return decided(out_sharding, lambda a, q: _found("percentile", a, q, axis, *how), a, q)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which `q` percent of the elements that are not NaN lie.

    >>> import perspex.numpy as jnp
    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)
    """
    return _found("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights)


def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle of the elements along axes, or the mean of the two in the middle.

    >>> import perspex.numpy as jnp
    >>> jnp.median(jnp.array([1, 5, 2, 4]))
    Array(3., dtype=float32)
    """
    return _found("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None)


def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle of the elements along axes that are not NaN, or the mean of the middle two.

    >>> import perspex.numpy as jnp
    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    return _found("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None)


def _found(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    weights: Any,
) -> Any:
    if overwrite_input or out is not None:
        raise ValueError(f"{name}: arrays never change, so `out` and `overwrite_input` do nothing")
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"{name}: the method {method!r} takes no weights, only 'inverted_cdf' does"
        )
    return _quantile(a, q, weights, name, checked_axis(name, axis), method, keepdims)


@fused(static=("name", "axis", "method", "keepdims"))
def _quantile(
    a: Any, q: Any, weights: Any, name: str, axis: Any, method: str, keepdims: bool
) -> Any:
    a, q = inexact(name, a), inexact(name, q)
    if name.endswith("percentile"):
        q = ops.div(q, q.dtype.type(100))
    if a.dtype.kind == "c":
        raise ValueError(f"{name}: complex numbers have no order; take their real part")
    if q.ndim > 1:
        raise ValueError(f"{name}: q must be a number or have one axis, got shape {q.shape}")
    axes = canonical_axes(axis, a.ndim)
    if weights is not None:
        weights = _weights(name, a, weights, axis, axes)
    lines = _lines(strengthened(a), axes)
    if weights is not None:
        weights = _lines(as_dtype(weights, a.dtype), axes)
    places = flat(strengthened(q))
    if 0 in lines.shape:
        out = spread(a.dtype.type(np.nan), (*lines.shape[:-1], places.size))
    else:
        out = _of_lines(lines, places, weights, method, name.startswith("nan"))
    out = convert(out, a.dtype)
    if keepdims:
        kept = tuple([1 if i in axes else n for i, n in enumerate(a.shape)])
        out = reshape(out, new_sizes=(*kept, places.size))
    if q.ndim == 0:
        return reshape(out, new_sizes=out.shape[:-1])
    return transpose(out, permutation=(out.ndim - 1, *range(out.ndim - 1)))


def _weights(name: str, a: Any, weights: Any, axis: Any, axes: tuple[int, ...]) -> Any:
    weights = arraylike(name, weights)
    if weights.dtype.kind == "c":
        raise ValueError(f"{name}: weights must be real")
    lengths = tuple([a.shape[i] for i in axes])
    if weights.shape == a.shape:
        return weights
    if axis is None or weights.shape != lengths:
        raise ValueError(
            f"{name}: weights must have the shape {a.shape} of the array, or with an axis its "
            f"lengths {lengths} along it; got {weights.shape}"
        )
    return broadcast_in_dim(weights, shape=a.shape, broadcast_dimensions=axes)


def _lines(a: Any, axes: tuple[int, ...]) -> Any:
    """The array with `axes` made one, the last."""
    kept = [i for i in range(a.ndim) if i not in axes]
    order = (*kept, *axes)
    if order != tuple(range(a.ndim)):
        a = transpose(a, permutation=order)
    shape = (*a.shape[: len(kept)], math.prod(a.shape[len(kept) :]))
    return a if a.shape == shape else reshape(a, new_sizes=shape)


def _of_lines(x: Any, q: Any, weights: Any, method: str, leave_nan_out: bool) -> Any:
    """Quantiles along the last axis, as a new last axis of the length of `q`."""
    last, count = x.ndim - 1, x.shape[-1]
    outer = x.shape[:-1]
    number = q.dtype.type
    nan, missing = x.dtype.type(np.nan), ops.ne(x, x)
    if leave_nan_out:
        # All NaN with one sign, which sorts last.
        x = ops.select(missing, nan, x)
        found = reductions.sum(ops.bitwise_not(missing), -1, q.dtype, keepdims=True)
    else:
        x = ops.select(spread(reductions.any(missing, -1, keepdims=True), x.shape), nan, x)
        found = spread(size_as(count, q.dtype), (*outer, 1))
    if weights is not None or method == "inverted_cdf":
        return _weighted(x, q, weights, found)
    (x,) = sort(x, dimension=last, is_stable=False, num_keys=1)
    shape = (*outer, q.size)
    q = broadcast_in_dim(q, shape=shape, broadcast_dimensions=(last,))
    top = spread(ops.sub(found, number(1)), shape)
    place = ops.mul(q, top)
    low, high = ops.floor(place), ops.ceil(place)
    above = ops.sub(place, low)
    below = ops.sub(number(1), above)
    at = [ops.max(number(0), ops.min(v, top)) for v in (low, high)]
    low_value, high_value = [take_along(x, convert(v, np.dtype("int32")), last) for v in at]
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "nearest":
        return ops.select(ops.le(above, number(0.5)), low_value, high_value)
    low_value, high_value = convert(low_value, q.dtype), convert(high_value, q.dtype)
    if method == "midpoint":
        return ops.mul(ops.add(low_value, high_value), number(0.5))
    return ops.add(ops.mul(low_value, below), ops.mul(high_value, above))


def _weighted(x: Any, q: Any, weights: Any, found: Any) -> Any:
    """The first element up to which the elements weigh the share `q` of all."""
    last, zero = x.ndim - 1, x.dtype.type(0)
    if weights is None:
        weights = spread(x.dtype.type(1), x.shape)
    bad = ops.bitwise_or(ops.lt(weights, zero), ops.ne(weights, weights))
    x, weights, bad = sort(x, weights, bad, dimension=last, is_stable=False, num_keys=1)
    missing = ops.ne(x, x)
    heavy = ops.select(ops.bitwise_or(bad, missing), zero, weights)
    heap = convert(reductions.cumsum(heavy, -1), q.dtype)
    total = reductions.max(heap, -1, keepdims=True)
    shape = (*x.shape, q.size)
    target = ops.mul(
        broadcast_in_dim(total, shape=shape, broadcast_dimensions=(*range(last), last)),
        broadcast_in_dim(q, shape=shape, broadcast_dimensions=(last + 1,)),
    )
    heap = broadcast_in_dim(heap, shape=shape, broadcast_dimensions=tuple(range(last + 1)))
    lighter = reductions.sum(ops.lt(heap, target), last)
    most = ops.max(ops.sub(found, found.dtype.type(1)), found.dtype.type(0))
    top = convert(most, lighter.dtype)
    place = ops.min(lighter, spread(top, lighter.shape))
    out = take_along(x, place, last)
    nothing = ops.bitwise_or(
        reductions.any(bad, -1, keepdims=True), ops.eq(found, found.dtype.type(0))
    )
    return ops.select(spread(nothing, out.shape), x.dtype.type(np.nan), out)


_WORDS = {
    **WORDS,
    "a": "an array of reals.",
    "q": "a number from 0 to 1 or a vector of them, whose axis comes first in the result.",
    "overwrite_input": "not supported: arrays never change.",
    "method": "the value between two elements: `linear`, `lower`, `higher`, `midpoint`,\n"
    "`nearest` or `inverted_cdf`.",
    "weights": "of the shape of `a`, or of its lengths along `axis`; only for `inverted_cdf`.",
}
_RAISES = (
    "TypeError: if `a` or `q` is not an array or a number.\n"
    "ValueError: for complex numbers, an unknown `method`, an axis that is not there, `out` and\n"
    "`overwrite_input`.\nNotImplementedError: for `weights` with another method."
)
_RETURNS = "An array of floats without the reduced axes, behind the axis of `q` if it has one."

describe([quantile, nanquantile], _WORDS, _RAISES, _RETURNS)
describe(
    [percentile, nanpercentile],
    {**_WORDS, "out_sharding": LIES, "q": _WORDS["q"].replace("1 or", "100 or")},
    _RAISES,
    _RETURNS,
)
describe([median, nanmedian], _WORDS, _RAISES, "An array of floats without the reduced axes.")
