"""Reductions along axes: sums, products, extremes, truth, their positions; running sums.

Sums and products of narrow integers are 32-bit integers, those of 16-bit floats are computed in
float32 and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.arguments.arrays import arraylike, as_array, check_arraylike, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.refused import check_no_out
from perspex.arguments.types import Array, ArrayLike, Axis, DTypeLike
from perspex.jitted.fused import fused
from perspex.numpy.creation import asarray
from perspex.numpy.floating import isclose
from perspex.numpy.logic import equal, isnan
from perspex.numpy.promotion import to_bool
from perspex.numpy.reducing import (
    EMPTY,
    NO_ARRAY,
    NOTHING,
    ONE_AXIS,
    POSITION,
    RAISES,
    RUNNING,
    SAME,
    TOTAL,
    WORDS,
    checked_axis,
    checked_dtype,
    extreme,
    position,
    running,
    single_axis,
    total,
    truth,
)
from perspex.numpy.triangles import diagonal
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "array_equal", "array_equiv",
    "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "max", "min",
    "minmax", "nancumprod", "nancumsum", "prod", "ptp", "sum", "trace",
]  # fmt: skip

# ---- Sums and products --------------------------------------------------------------------------


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum along axes.

    >>> import perspex.numpy as jnp
    >>> jnp.sum(jnp.ones((2, 3)), axis=0)
    Array([2., 2., 2.], dtype=float32)
    """
    axis, dtype = checked_axis("sum", axis, out), checked_dtype("sum", dtype)
    return total(a, initial, where, "sum", axis, dtype, keepdims, promote_integers)


def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product along axes.

    >>> import perspex.numpy as jnp
    >>> jnp.prod(jnp.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    axis, dtype = checked_axis("prod", axis, out), checked_dtype("prod", dtype)
    return total(a, initial, where, "prod", axis, dtype, keepdims, promote_integers)


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal.

    Args:
      a: an array of two axes or more.
      offset: which diagonal: above the main one if positive, below it if negative.
      axis1, axis2: the axes of the matrices.

    Returns:
      An array without the two axes, of the dtype of `sum`.

    Raises:
      ValueError: if `a` has fewer than two axes, or an axis is not there.
      TypeError: if `a` is not an array.
      NotImplementedError: for `out`.

    >>> import perspex.numpy as jnp
    >>> jnp.trace(jnp.eye(3))
    Array(3., dtype=float32)
    """
    check_no_out("trace", out)
    return sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements that differ from 0, along axes.

    Returns:
      An array of the default integers without the reduced axes.

    >>> import perspex.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([[0, 1], [2, 3]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    return _count_nonzero(a, checked_axis("count_nonzero", axis), keepdims)


@fused(static=("axis", "keepdims"))
def _count_nonzero(a: Any, axis: Any, keepdims: bool) -> Any:
    return sum(to_bool(arraylike("count_nonzero", a)), axis, keepdims=keepdims)


# ---- Extremes -----------------------------------------------------------------------------------


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest element along axes; NaN if there is one.

    >>> import perspex.numpy as jnp
    >>> jnp.max(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([3, 5], dtype=int32)
    """
    return extreme(a, initial, where, "max", checked_axis("max", axis, out), keepdims)


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least element along axes; NaN if there is one.

    >>> import perspex.numpy as jnp
    >>> jnp.min(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    return extreme(a, initial, where, "min", checked_axis("min", axis, out), keepdims)


amax, amin = max, min


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The least and the greatest element along axes; NaN if there is one.

    Args:
      initial: a number that takes part in both, or a pair of one for each.

    Returns:
      Two arrays without the reduced axes, of the dtype of `a`.

    >>> import perspex.numpy as jnp
    >>> jnp.minmax(jnp.array([3, 1, 2]))
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    axis = checked_axis("minmax", axis, out)
    return (
        min(a, axis, keepdims=keepdims, initial=low, where=where),
        max(a, axis, keepdims=keepdims, initial=high, where=where),
    )


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The difference of the greatest and the least element along axes.

    >>> import perspex.numpy as jnp
    >>> jnp.ptp(jnp.array([3, 1, 2]))
    Array(2, dtype=int32)
    """
    return _ptp(a, checked_axis("ptp", axis, out), keepdims)


@fused(static=("axis", "keepdims"))
def _ptp(a: Any, axis: Any, keepdims: bool) -> Any:
    a = arraylike("ptp", a)
    return ops.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first greatest element, or of the first NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return position(a, "argmax", single_axis("argmax", axis, out), bool(keepdims))


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first least element, or of the first NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.argmin(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return position(a, "argmin", single_axis("argmin", axis, out), bool(keepdims))


# ---- Truth --------------------------------------------------------------------------------------


def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements along axes are true, which numbers are unless they are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=0)
    Array([ True, False], dtype=bool)
    """
    return truth(a, where, "all", checked_axis("all", axis, out), keepdims)


def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element along axes is true, which numbers are unless they are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.any(jnp.array([[True, False], [False, False]]), axis=0)
    Array([ True, False], dtype=bool)
    """
    return truth(a, where, "any", checked_axis("any", axis, out), keepdims)


@fused(static=("equal_nan",))
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether `|a - b| <= atol + rtol * |b|` holds for all elements.

    Args:
      a, b: arrays or numbers that broadcast; the tolerance is relative to `b`.
      rtol, atol: relative and absolute tolerance.

    Returns:
      A boolean scalar.

    Raises:
      TypeError: if an operand is not an array or a number.
      ValueError: if the shapes do not broadcast (`TypeError` for equal ranks).

    >>> import perspex.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 1.0 + 1e-7]), 1.0)
    Array(True, dtype=bool)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    >>> import perspex.numpy as jnp
    >>> jnp.array_equal(jnp.arange(3), jnp.arange(4))
    Array(False, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    return as_array(np.bool_(False)) if a1.shape != a2.shape else _equal(a1, a2, equal_nan)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements there.

    Arrays that cannot be broadcast, and those whose dtypes never meet, are not equivalent.

    >>> import perspex.numpy as jnp
    >>> jnp.array_equiv(jnp.ones((2, 3)), 1)
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
        return _equal(a1, a2, False)
    except ValueError:
        return as_array(np.bool_(False))


@fused(static=("equal_nan",))
def _equal(a: Any, b: Any, equal_nan: bool) -> Any:
    same = equal(a, b)
    if equal_nan:
        same = ops.bitwise_or(same, ops.bitwise_and(isnan(a), isnan(b)))
    return all(same)


# ---- Running sums and products ------------------------------------------------------------------


def _cumulative(name: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    return running(a, name, single_axis(name, axis, out), checked_dtype(name, dtype))


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The sums of the elements up to each one.

    >>> import perspex.numpy as jnp
    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumulative("cumsum", a, axis, dtype, out)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The products of the elements up to each one.

    >>> import perspex.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumprod", a, axis, dtype, out)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The sums of the elements up to each one, with 0 in the place of NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """
    return _cumulative("nancumsum", a, axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The products of the elements up to each one, with 1 in the place of NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _cumulative("nancumprod", a, axis, dtype, out)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The sums of the elements up to each one, as in the array API standard.

    Returns:
      An array of the shape of `x`, one longer with `include_initial`; of `dtype`, by default that
      of `x`, or the default integers for narrow integers and booleans.

    >>> import perspex.numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2]), include_initial=True)
    Array([0, 1, 3], dtype=int32)
    """
    return _from_initial(x, "cumulative_sum", axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The products of the elements up to each one, as in the array API standard.

    >>> import perspex.numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """
    return _from_initial(x, "cumulative_prod", axis, dtype, include_initial)


def _from_initial(x: Any, name: str, axis: Any, dtype: Any, include_initial: bool) -> Any:
    check_arraylike(name, x)
    ndim = np.ndim(x)
    if ndim == 0:
        raise ValueError(f"{name} takes an array of one axis or more, got a scalar")
    if axis is None and ndim > 1:
        raise ValueError(f"{name}: give the axis, of the {ndim} that there are")
    axis = canonical_axis(0 if axis is None else axis, ndim)
    out = running(x, name, axis, checked_dtype(name, dtype), widen=name.endswith("sum"))
    return _with_initial(out, name, axis) if include_initial else out


@fused(static=("name", "axis"))
def _with_initial(x: Any, name: str, axis: int) -> Any:
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    first = spread(x.dtype.type(0 if name.endswith("sum") else 1), shape)
    return concatenate(first, x, dimension=axis)


# ---- Documentation ------------------------------------------------------------------------------

describe([sum, prod], WORDS, RAISES, TOTAL)
describe([trace, allclose], WORDS)
describe([max, min, minmax], WORDS, NOTHING, SAME)
describe([ptp], WORDS, EMPTY, SAME)
describe([argmax, argmin], ONE_AXIS, EMPTY, POSITION)
describe([count_nonzero], WORDS, f"{NO_ARRAY}\nValueError: for an axis that is not there.")
describe([all, any], WORDS, RAISES, "An array of booleans without the reduced axes.")
describe(
    [cumsum, cumprod, nancumsum, nancumprod],
    ONE_AXIS,
    "TypeError: if `a` is not an array or a number, and for several axes.\n"
    "ValueError: for an axis that is not there.\nNotImplementedError: for `out`.",
    RUNNING,
)
describe(
    [array_equal, array_equiv],
    {**WORDS, **dict.fromkeys(("a1", "a2"), "an array, or nested lists of numbers.")},
    "TypeError: if an argument cannot be made an array.",
    "A boolean scalar.",
)
describe(
    [cumulative_sum, cumulative_prod],
    {
        "x": "an array of one axis or more.",
        "axis": "the axis; it may be left out if there is only one.",
        "dtype": "the dtype to compute in, which is that of the result.",
        "include_initial": "begin with the empty sum 0, or the empty product 1.",
    },
    "TypeError: if `x` is not an array.\n"
    "ValueError: for a scalar, and if there are several axes and none is given.",
    "An array of the shape of `x`, one longer with `include_initial`; of `dtype`, by default that\n"
    "of `x`, or the default integers for booleans.",
)
