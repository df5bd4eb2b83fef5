"""Means, variances, and reductions that leave NaN out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, spread
from perspex.arguments.axes import canonical_axes
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike, Axis, DTypeLike
from perspex.jitted.fused import fused
from perspex.numpy import reductions
from perspex.numpy.promotion import inexact, promote_dtypes
from perspex.numpy.reducing import (
    EMPTY,
    NOTHING,
    ONE_AXIS,
    POSITION,
    RAISES,
    SAME,
    TOTAL,
    WORDS,
    checked_axis,
    checked_dtype,
    extreme,
    position,
    single_axis,
    total,
    wide_float,
)
from perspex.ops import elementwise as ops
from perspex.ops.elementwise import real_dtype
from perspex.ops.structural import convert, reshape, size_as, transpose

__all__ = [
    "average", "mean", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar", "std", "var",
]  # fmt: skip

# ---- Means --------------------------------------------------------------------------------------


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean along axes; NaN of no element.

    >>> import perspex.numpy as jnp
    >>> jnp.mean(jnp.array([[1, 2], [3, 5]]), axis=0)
    Array([2. , 3.5], dtype=float32)
    """
    axis, dtype = checked_axis("mean", axis, out), checked_dtype("mean", dtype)
    return _mean(a, where, axis, dtype, keepdims)


@fused(static=("axis", "dtype", "keepdims"))
def _mean(a: Any, where: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    a = arraylike("mean", a)
    result = dtypes.to_inexact_dtype(a.dtype) if dtype is None else dtype
    computation = wide_float(result) if dtype is None else result
    total = reductions.sum(a, axis, computation, keepdims=keepdims, where=where)
    count = _count(a, axis, keepdims, where, computation)
    return convert(ops.div(total, count), result)


def _count(a: Any, axis: Any, keepdims: bool, where: Any, dtype: np.dtype) -> Any:
    """How many elements a reduction takes together: a number unless `where` chooses them."""
    if where is None:
        return size_as(math.prod([a.shape[i] for i in canonical_axes(axis, a.ndim)]), dtype)
    return reductions.sum(spread(where, a.shape), axis, dtype, keepdims=keepdims)


def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The weighted mean along axes.

    Args:
      weights: of the shape of `a`, or of its lengths along `axis`; equal ones if not given.
      returned: return the sum of the weights too.

    Returns:
      An array of floats or complex numbers without the reduced axes; with `returned`, a pair of it
      and the sums of the weights.

    Raises:
      TypeError: if `a` or `weights` is not an array or a number.
      ValueError: if the shape of `weights` fits neither, or for an axis that is not there.

    >>> import perspex.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.25, dtype=float32)
    """
    pair = _average(a, weights, checked_axis("average", axis), keepdims)
    return pair if returned else pair[0]


@fused(static=("axis", "keepdims"))
def _average(a: Any, weights: Any, axis: Any, keepdims: bool) -> Any:
    if weights is None:
        a = inexact("average", a)
        result = mean(a, axis, keepdims=keepdims)
        count = math.prod([a.shape[i] for i in canonical_axes(axis, a.ndim)])
        return result, spread(size_as(count, result.dtype), result.shape)
    check_arraylike("average", a, weights)
    a, weights = promote_dtypes("average", a, weights, to=dtypes.to_inexact_dtype)
    axes = canonical_axes(axis, a.ndim)
    if a.shape != weights.shape:
        lengths = tuple([a.shape[i] for i in axes])
        if axis is None or weights.shape != lengths:
            raise ValueError(
                f"average: weights must have the shape {a.shape} of the array, or with an axis its "
                f"lengths {lengths} along it; got {weights.shape}"
            )
        order = tuple([int(i) for i in np.argsort(axes)])
        weights = transpose(weights, permutation=order) if len(order) > 1 else weights
        shape = tuple([n if i in axes else 1 for i, n in enumerate(a.shape)])
        weights = spread(reshape(weights, new_sizes=shape), a.shape)
    total = reductions.sum(weights, axis, keepdims=keepdims)
    return ops.div(reductions.sum(ops.mul(a, weights), axis, keepdims=keepdims), total), total


# ---- Variances ----------------------------------------------------------------------------------


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The variance along axes: the mean of the squared distances from the mean.

    It is NaN where no element is left after the correction.

    >>> import perspex.numpy as jnp
    >>> jnp.var(jnp.array([1.0, 3.0]), ddof=1)
    Array(2., dtype=float32)
    """
    axis, dtype = checked_axis("var", axis, out), checked_dtype("var", dtype)
    shift, correction = _correction("var", ddof, correction)
    return _var(a, where, mean, correction, axis, dtype, keepdims, shift)


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The standard deviation along axes: the root of the variance.

    It is NaN where no element is left after the correction.

    >>> import perspex.numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    axis, dtype = checked_axis("std", axis, out), checked_dtype("std", dtype)
    shift, correction = _correction("std", ddof, correction)
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"std: dtype must be floating or complex, got {dtype}")
    return _var(a, where, mean, correction, axis, dtype, keepdims, shift, True)


def _correction(name: str, ddof: Any, correction: Any) -> tuple[Any, Any]:
    """What to subtract from the number of elements: a number known now, or an array."""
    if correction is None:
        correction = ddof
    elif not isinstance(ddof, int) or ddof != 0:
        raise ValueError(f"{name}: give ddof or correction, not both")
    return (correction, None) if isinstance(correction, (int, float)) else (0, correction)


@fused(static=("axis", "dtype", "keepdims", "shift", "root"))
def _var(
    a: Any,
    where: Any,
    mean: Any,
    correction: Any,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    shift: float,
    root: bool = False,
) -> Any:
    """The variance, or its root."""
    a = arraylike("var", a)
    computation, result = _variance_dtypes("var", a.dtype, dtype)
    a = as_dtype(a, computation)
    if mean is None:
        mean = _mean(a, where, axis, computation, True)
    squares = _squares(ops.sub(a, spread(as_dtype(mean, computation), a.shape)))
    working = squares.dtype
    total = reductions.sum(squares, axis, working, keepdims=keepdims, where=where)
    count = _count(a, axis, keepdims, where, working)
    nothing = _nothing(result)
    is_number = isinstance(count, np.generic)
    if correction is None and is_number:
        left = working.type(count - shift)
        out = convert(ops.div(total, left), result)
        if left <= 0:  # a choice, so that derivatives of NaN are those of a quotient
            out = ops.select(spread(np.bool_(False), out.shape), out, spread(nothing, out.shape))
    else:
        correction = shift if correction is None else correction
        left = ops.sub(count, as_dtype(correction, working))
        out = convert(ops.div(total, left), result)
        out = ops.select(ops.gt(left, working.type(0)), out, nothing)
    return ops.sqrt(out) if root else out


def _nothing(dtype: np.dtype) -> Any:
    """The variance of no element: NaN, or 0 where there is none."""
    return dtype.type(np.nan if dtypes.issubdtype(dtype, np.inexact) else 0)


def _squares(x: Any) -> Any:
    """The squared magnitudes."""
    return ops.square(x) if x.dtype.kind != "c" else ops.real(ops.mul(x, ops.conj(x)))


def _variance_dtypes(name: str, given: np.dtype, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype to compute in, and that of the result."""
    if dtype is None:
        computation = dtypes.to_inexact_dtype(given)
        return wide_float(computation), real_dtype(computation)
    if given.kind == "c" and dtype.kind != "c":
        raise ValueError(
            f"{name}: dtype {dtype.name} cannot hold complex numbers; leave it out: "
            "the variance of complex numbers is real"
        )
    return wide_float(dtype), dtype


# ---- Without NaN --------------------------------------------------------------------------------


def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum along axes, with 0 in the place of NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.nansum(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    axis, dtype = checked_axis("nansum", axis, out), checked_dtype("nansum", dtype)
    return total(a, initial, where, "nansum", axis, dtype, keepdims)


def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product along axes, with 1 in the place of NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.nanprod(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    axis, dtype = checked_axis("nanprod", axis, out), checked_dtype("nanprod", dtype)
    return total(a, initial, where, "nanprod", axis, dtype, keepdims)


def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest element along axes that is not NaN; NaN where all are.

    >>> import perspex.numpy as jnp
    >>> jnp.nanmax(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    return extreme(a, initial, where, "nanmax", checked_axis("nanmax", axis, out), keepdims)


def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least element along axes that is not NaN; NaN where all are.

    >>> import perspex.numpy as jnp
    >>> jnp.nanmin(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    return extreme(a, initial, where, "nanmin", checked_axis("nanmin", axis, out), keepdims)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first greatest element that is not NaN; -1 where all are.

    >>> import perspex.numpy as jnp
    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2, dtype=int32)
    """
    return position(a, "nanargmax", single_axis("nanargmax", axis, out), bool(keepdims))


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first least element that is not NaN; -1 where all are.

    >>> import perspex.numpy as jnp
    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 3.0]))
    Array(0, dtype=int32)
    """
    return position(a, "nanargmin", single_axis("nanargmin", axis, out), bool(keepdims))


def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements along axes that are not NaN; NaN where all are.

    >>> import perspex.numpy as jnp
    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    axis, dtype = checked_axis("nanmean", axis, out), checked_dtype("nanmean", dtype)
    return _nanmean(a, where, axis, dtype, keepdims)


@fused(static=("axis", "dtype", "keepdims"))
def _nanmean(a: Any, where: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    a = arraylike("nanmean", a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return _mean(a, where, axis, dtype, keepdims)
    dtype = a.dtype if dtype is None else dtype
    options: dict[str, Any] = {"keepdims": keepdims, "where": where}
    count = reductions.sum(ops.eq(a, a), axis, dtype, **options)
    return ops.div(nansum(a, axis, dtype, **options), count)


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements along axes that are not NaN; NaN where none is left.

    >>> import perspex.numpy as jnp
    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    axis, dtype = checked_axis("nanvar", axis, out), checked_dtype("nanvar", dtype)
    return _nanvar(a, where, mean, ddof, axis, dtype, keepdims)


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation of the elements along axes that are not NaN; NaN where none is left.

    >>> import perspex.numpy as jnp
    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    axis, dtype = checked_axis("nanstd", axis, out), checked_dtype("nanstd", dtype)
    return _nanvar(a, where, mean, ddof, axis, dtype, keepdims, True)


@fused(static=("axis", "dtype", "keepdims", "root"))
def _nanvar(
    a: Any,
    where: Any,
    mean: Any,
    ddof: Any,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    root: bool = False,
) -> Any:
    """The variance of the numbers, or its root."""
    a = arraylike("nanvar", a)
    computation, result = _variance_dtypes("nanvar", a.dtype, dtype)
    a = as_dtype(a, computation)
    if mean is None:
        mean = _nanmean(a, where, axis, computation, True)
    distance = ops.sub(a, spread(as_dtype(mean, computation), a.shape))
    # Chosen before squaring, so that NaN does not reach derivatives either.
    squares = _squares(ops.select(ops.ne(a, a), computation.type(0), distance))
    options: dict[str, Any] = {"keepdims": keepdims, "where": where}
    total = reductions.sum(squares, axis, squares.dtype, **options)
    count = reductions.sum(ops.eq(a, a), axis, squares.dtype, **options)
    count = ops.sub(count, as_dtype(ddof, squares.dtype))
    number = squares.dtype.type
    some = ops.gt(count, number(0))
    out = ops.div(total, ops.select(some, count, number(1)))
    out = convert(ops.select(some, out, _nothing(squares.dtype)), result)
    return ops.sqrt(out) if root else out


# ---- Documentation ------------------------------------------------------------------------------

_MEAN = (
    "An array without the reduced axes, of `dtype`; by default that of `a`, or floats for\n"
    "integers and booleans."
)
_VARIANCE = (
    "An array without the reduced axes, of `dtype`; by default floats: for complex numbers the\n"
    "variance is real."
)
_OF_VARIANCE = {
    **WORDS,
    "ddof": "the number to subtract from the number of elements.",
    "mean": "the mean, with the reduced axes kept, if it is known already.",
    "correction": "another name of `ddof`; only one may be given.",
}

describe([mean, nanmean], WORDS, RAISES, _MEAN)
describe([average], WORDS)
describe(
    [var, std, nanvar, nanstd],
    _OF_VARIANCE,
    "TypeError: if `a` is not an array or a number.\n"
    "ValueError: for an axis that is not there, a real `dtype` for complex numbers, and both of\n"
    "`ddof` and `correction`.\n"
    "NotImplementedError: for `out`.",
    _VARIANCE,
)
describe([nansum, nanprod], WORDS, RAISES, TOTAL)
describe([nanmax, nanmin], WORDS, NOTHING, SAME)
describe([nanargmax, nanargmin], ONE_AXIS, EMPTY, POSITION)
