"""Statistics of samples: the most frequent value, ranks, the error of the mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import check_arraylike
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.lax import cummax, cummin
from perspex.numpy.promotion import inexact, strong

__all__ = ["ModeResult", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """The most frequent values and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]  # a method of tuples


def _check_nan_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"{name}: nan_policy must be 'propagate', 'omit' or 'raise', got {nan_policy!r}"
        )
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"{name}: nan_policy={nan_policy!r} is not supported; remove NaNs before"
        )


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent value along an axis, the smallest of several.

    Args:
      a: an array of numbers.
      axis: the axis to search; `None` for all elements.
      nan_policy: must be `"propagate"`: NaN is the largest value, and equal to itself.
      keepdims: keep the axis, with size 1.

    Returns:
      A named tuple `(mode, count)` of arrays: the values, of the dtype of `a`, and how often they
      occur, of integer dtype; NaN and 0.0 if there are none.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for an unknown policy, and an axis that `a` does not have.
      NotImplementedError: for the policies `"omit"` and `"raise"`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> found = stats.mode(jnp.array([3, 1, 2, 1]))
    >>> int(found.mode), int(found.count)
    (1, 2)
    """
    _check_nan_policy("mode", nan_policy)
    check_arraylike("mode", a)
    return ModeResult(*_mode(a, axis, bool(keepdims)))


@fused(static=("axis", "keepdims"))
def _mode(a: Any, axis: int | None, keepdims: bool) -> tuple[Array, Array]:
    a = pnp.asarray(a)
    a = strong(a) if a.dtype.kind == "c" else a
    ndim = a.ndim
    if not ndim and axis in (0, -1):
        return a, pnp.ones((), int)
    lines = a.reshape(-1) if axis is None else pnp.moveaxis(a, axis, -1)
    size = lines.shape[-1]
    # As in SciPy, NaN, which occurs 0 times, is the most frequent value of none.
    none = pnp.zeros((*lines.shape[:-1], 1), float)
    ordered = pnp.sort(lines, axis=-1) if size else none + np.nan
    # The count of each value so far: its place minus that of its first occurrence.
    new = pnp.concatenate(
        [pnp.ones_like(ordered[..., :1], bool), ordered[..., 1:] != ordered[..., :-1]], axis=-1
    )
    if dtypes.issubdtype(a.dtype, np.inexact):
        missing = pnp.isnan(ordered)
        again = pnp.concatenate([~new[..., :1], missing[..., :-1]], axis=-1)
        new = new & ~(missing & again)
    places = pnp.arange(max(size, 1))
    first = cummax(pnp.where(new, places, 0), axis=ordered.ndim - 1)
    counts = places - first + 1 if size else none
    best = pnp.argmax(counts, axis=-1, keepdims=True)
    found = [pnp.take_along_axis(v, best, axis=-1) for v in (ordered, counts)]
    if not keepdims:
        return found[0][..., 0], found[1][..., 0]
    if axis is None:
        return found[0].reshape((1,) * ndim), found[1].reshape((1,) * ndim)
    return pnp.moveaxis(found[0], -1, axis), pnp.moveaxis(found[1], -1, axis)


RANKINGS = "average", "min", "max", "dense", "ordinal"


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The place of each element in the order of all, from 1.

    Args:
      a: an array of real numbers.
      method: the rank of equal elements: the `"average"`, `"min"` or `"max"` of their places, the
        number of different values up to theirs (`"dense"`), or a place for each (`"ordinal"`).
      axis: the axis to rank along; `None` ranks all elements.
      nan_policy: must be `"propagate"`: where there is a NaN, all ranks are NaN.

    Returns:
      An array of the shape of `a` (1-D for `axis=None`), of the default floating dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for an unknown method or policy, and an axis that `a` does not have.
      NotImplementedError: for the policies `"omit"` and `"raise"`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> stats.rankdata(jnp.array([20, 10, 20]))
    Array([2.5, 1. , 2.5], dtype=float32)
    """
    _check_nan_policy("rankdata", nan_policy)
    if method not in RANKINGS:
        raise ValueError(f"rankdata: method must be one of {RANKINGS}, got {method!r}")
    check_arraylike("rankdata", a)
    return _rankdata(a, method, axis)


@fused(static=("method", "axis"))
def _rankdata(a: Any, method: str, axis: int | None) -> Array:
    a = pnp.asarray(a)
    dtype = dtypes.canonicalize_dtype("float64")
    lines = a.reshape(-1) if axis is None else pnp.moveaxis(a, axis, -1)
    order = pnp.argsort(lines, axis=-1, stable=True)
    inverse = pnp.argsort(order, axis=-1)
    if method == "ordinal":
        ranks = (inverse + 1).astype(dtype)
    else:
        ordered = pnp.take_along_axis(lines, order, axis=-1)
        changes = ordered[..., 1:] != ordered[..., :-1]
        edge = pnp.ones_like(ordered[..., :1], bool)
        new = pnp.concatenate([edge, changes], axis=-1)
        end = pnp.concatenate([changes, edge], axis=-1)
        size = ordered.shape[-1]
        places = pnp.arange(1, size + 1)
        least = cummax(pnp.where(new, places, 0), axis=ordered.ndim - 1)
        most = cummin(pnp.where(end, places, size), axis=ordered.ndim - 1, reverse=True)
        chosen = {
            "min": least,
            "max": most,
            "dense": pnp.cumsum(new, axis=-1),
            "average": (least + most).astype(dtype) / 2,
        }[method]
        ranks = pnp.take_along_axis(chosen.astype(dtype), inverse, axis=-1)
    if dtypes.issubdtype(a.dtype, np.inexact):
        missing = pnp.any(pnp.isnan(lines), axis=-1, keepdims=True)
        ranks = pnp.where(missing, float("nan"), ranks)
    return ranks if axis is None else pnp.moveaxis(ranks, -1, axis)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Standard error of the mean: the standard deviation divided by the root of the count.

    Args:
      a: an array of numbers.
      axis: the axis of the samples; `None` for all elements.
      ddof: the degrees of freedom that the standard deviation subtracts from the count.
      nan_policy: `"propagate"`: the error of samples with a NaN is NaN; `"omit"` leaves NaNs out.
      keepdims: keep the axis, with size 1.

    Returns:
      An array of the shape of `a` without the axis, of floating dtype.

    Raises:
      TypeError: if `a` is not an array or a number.
      ValueError: for an unknown policy, and an axis that `a` does not have.
      NotImplementedError: for the policy `"raise"`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import stats
    >>> round(float(stats.sem(jnp.array([1.0, 2.0, 3.0]))), 4)
    0.5774
    """
    if nan_policy != "omit":
        _check_nan_policy("sem", nan_policy)
    check_arraylike("sem", a)
    return _sem(a, axis, ddof, nan_policy == "omit", bool(keepdims))


@fused(static=("axis", "ddof", "omit", "keepdims"))
def _sem(a: Any, axis: int | None, ddof: int, omit: bool, keepdims: bool) -> Array:
    a = inexact("sem", a)
    if omit:
        spread = pnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims)
        count = pnp.sum(~pnp.isnan(a), axis=axis, keepdims=keepdims)
        return spread / pnp.sqrt(count.astype(a.dtype))
    count = a.size if axis is None else a.shape[axis]
    return pnp.std(a, axis, ddof=ddof, keepdims=keepdims) / a.dtype.type(count**0.5)
