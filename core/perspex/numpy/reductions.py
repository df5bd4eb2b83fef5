"""Reductions along axes: sums, products, extremes, truth, their positions; running sums.

Common arguments:

* `axis`: an integer, a sequence of them, or None for all axes;
* `keepdims`: keep the reduced axes, with size one;
* `initial`: a number that takes part in the reduction;
* `where`: which elements take part, a boolean array that broadcasts with `a`;
* `dtype`: the dtype to compute in and of the result;
* `out`: for NumPy's sake; anything but None is refused.

Sums and products of narrow integers are 32-bit integers, those of 16-bit floats are computed in
float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.jitted.fused import fused
from perspex.numpy.creation import asarray
from perspex.numpy.floating import isclose
from perspex.numpy.logic import equal, isnan
from perspex.numpy.promotion import (
    BOOL,
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    arraylike,
    as_array,
    as_dtype,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    check_no_out,
    expand,
    filled,
    flat,
    hashable_axis,
    numeric,
    select,
    to_bool,
)
from perspex.numpy.triangles import diagonal
from perspex.ops import cumulative
from perspex.ops import elementwise as ops
from perspex.ops import reductions as reduce
from perspex.ops.shape import concatenate
from perspex.ops.structural import convert, reduce_sum

# ---- What they share ----------------------------------------------------------------------------


def _checked_where(name: str, where: Any) -> Any:
    if where is None:
        return None
    where = arraylike(name, where)
    if where.dtype != bool:
        raise ValueError(
            f"{name}: where must be None or a boolean array, got dtype {where.dtype.name}"
        )
    return where


def _checked_dtype(name: str, dtype: Any) -> Any:
    return None if dtype is None else dtypes.check_user_dtype(dtype, name)


def wide_integer(dtype: np.dtype) -> np.dtype:
    """The dtype in which integers are summed: the default width at least, signed or not."""
    if dtype != BOOL and not dtypes.issubdtype(dtype, np.integer):
        return dtype
    unsigned = dtypes.issubdtype(dtype, np.unsignedinteger)
    default = dtypes.canonicalize_dtype("uint64" if unsigned else "int64")
    narrow = dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(default)
    return default if dtype == BOOL or narrow else dtype


_FLOAT32 = np.dtype("float32")
_HALF = (np.dtype("float16"), np.dtype(dtypes.bfloat16))


def wide_float(dtype: np.dtype) -> np.dtype:
    """float32 for float16 and bfloat16, in which sums would lose digits; others as they are."""
    return _FLOAT32 if dtype in _HALF else dtype


def _reduced(
    name: str,
    primitive: Any,
    combine: Any,
    identity: Callable[[np.dtype], Any] | None,
    a: Any,
    axis: Axis,
    computation: np.dtype,
    result: np.dtype,
    keepdims: bool,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The reduction of the array `a`, in the dtype `computation` and given as `result`."""
    axes = canonical_axes(axis, a.ndim)
    if isinstance(computation, dtypes.KeyType):
        raise TypeError(
            f"{name} does not accept dtype {computation.name}; random.key_data(key) gives numbers"
        )
    if identity is None:
        if where is not None and initial is None:
            raise ValueError(
                f"{name}: nothing is the extreme where no element takes part; "
                "give `initial` with `where`"
            )
        if initial is None and 0 in [a.shape[i] for i in axes]:
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no identity: shape "
                f"{a.shape} along {axes}; give `initial`"
            )
        identity = primitive.identity
    a = convert(a, computation)
    if where is not None:
        if where.ndim > a.ndim:
            raise ValueError(
                f"{name}: where has the shape {where.shape}, with more axes than the array of "
                f"shape {a.shape}; it must spread over the array"
            )
        a = select(name, where, a, identity(computation))
        axes = canonical_axes(axis, a.ndim)
    out = primitive(a, axes=axes) if axes else a
    if initial is not None:
        if np.shape(initial):
            raise ValueError(f"{name}: initial must be a scalar, got shape {np.shape(initial)}")
        out = combine(as_dtype(initial, computation), out)
    return convert(expand(out, axes) if keepdims else out, result)


_STATIC = ("axis", "dtype", "keepdims", "promote_integers")

# ---- Sums and products --------------------------------------------------------------------------


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum along axes. Arguments: see the module.

    `promote_integers=False` keeps the dtype of narrow integers.

    >>> import perspex.numpy as jnp
    >>> jnp.sum(jnp.ones((2, 3)), axis=0)
    Array([2., 2., 2.], dtype=float32)
    """
    check_no_out("sum", out)
    axis, dtype = hashable_axis("sum", axis), _checked_dtype("sum", dtype)
    return _sum(a, initial, where, axis, dtype, keepdims, promote_integers)


@fused(static=_STATIC)
def _sum(
    a: Any,
    initial: Any,
    where: Any,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    promote_integers: bool,
) -> Any:
    a, where = numeric("sum", a), _checked_where("sum", where)
    result = _result_dtype(a, dtype, promote_integers)
    computation = wide_float(result) if dtype is None else result
    primitive: Any = reduce_sum
    combine = ops.add
    if computation == BOOL:
        primitive, combine = reduce.reduce_or, ops.bitwise_or
    return _reduced(
        "sum",
        primitive,
        combine,
        lambda dtype: dtype.type(0),
        a,
        axis,
        computation,
        result,
        keepdims,
        initial,
        where,
    )


def _result_dtype(a: Any, dtype: Any, promote_integers: bool) -> np.dtype:
    if dtype is not None:
        return dtype
    return wide_integer(a.dtype) if promote_integers else a.dtype


def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product along axes. Arguments: see the module and `sum`.

    >>> import perspex.numpy as jnp
    >>> jnp.prod(jnp.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    check_no_out("prod", out)
    axis, dtype = hashable_axis("prod", axis), _checked_dtype("prod", dtype)
    return _prod(a, initial, where, axis, dtype, keepdims, promote_integers)


@fused(static=_STATIC)
def _prod(
    a: Any,
    initial: Any,
    where: Any,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    promote_integers: bool,
) -> Any:
    a, where = numeric("prod", a), _checked_where("prod", where)
    result = _result_dtype(a, dtype, promote_integers)
    computation = wide_float(result) if dtype is None else result
    primitive: Any = reduce.reduce_prod
    combine = ops.mul
    if computation == BOOL:
        primitive, combine = reduce.reduce_and, ops.bitwise_and
    return _reduced(
        "prod",
        primitive,
        combine,
        lambda dtype: dtype.type(1),
        a,
        axis,
        computation,
        result,
        keepdims,
        initial,
        where,
    )


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal.

    Args:
      a: an array of two axes or more.
      offset, axis1, axis2: which diagonal, as in `diagonal`.
      dtype, out: as in `sum`.

    >>> import perspex.numpy as jnp
    >>> jnp.trace(jnp.eye(3))
    Array(3., dtype=float32)
    """
    check_no_out("trace", out)
    return sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements differ from 0 along axes.

    >>> import perspex.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([[0, 1], [2, 3]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    return _count_nonzero(a, hashable_axis("count_nonzero", axis), keepdims)


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
    """The greatest element along axes; NaN if there is one. Arguments: see the module.

    Errors:
      `ValueError` where there is no element, or may be none, and no `initial`.

    >>> import perspex.numpy as jnp
    >>> jnp.max(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([3, 5], dtype=int32)
    """
    check_no_out("max", out)
    return _extreme(a, initial, where, "max", hashable_axis("max", axis), keepdims)


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least element along axes; NaN if there is one. Arguments and errors as of `max`.

    >>> import perspex.numpy as jnp
    >>> jnp.min(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    check_no_out("min", out)
    return _extreme(a, initial, where, "min", hashable_axis("min", axis), keepdims)


amax, amin = max, min


@fused(static=("name", "axis", "keepdims"))
def _extreme(a: Any, initial: Any, where: Any, name: str, axis: Any, keepdims: bool) -> Any:
    a, where = arraylike(name, a), _checked_where(name, where)
    greatest = name == "max"
    return _reduced(
        name,
        reduce.reduce_max if greatest else reduce.reduce_min,
        ops.max if greatest else ops.min,
        None,
        a,
        axis,
        a.dtype,
        a.dtype,
        keepdims,
        initial,
        where,
    )


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The least and the greatest element along axes; `initial` may be a pair.

    >>> import perspex.numpy as jnp
    >>> jnp.minmax(jnp.array([3, 1, 2]))
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    check_no_out("minmax", out)
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    axis = hashable_axis("minmax", axis)
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
    check_no_out("ptp", out)
    return _ptp(a, hashable_axis("ptp", axis), keepdims)


@fused(static=("axis", "keepdims"))
def _ptp(a: Any, axis: Any, keepdims: bool) -> Any:
    a = arraylike("ptp", a)
    return ops.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first greatest element, or of the first NaN.

    Args:
      a: an array of reals or booleans.
      axis: an integer; None counts through the elements of the whole array.
      keepdims: keep the axis, or all of them, with size one.

    Errors:
      `ValueError` where there is no element.

    >>> import perspex.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    check_no_out("argmax", out)
    return _position(a, "argmax", _single_axis("argmax", axis), bool(keepdims))


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first least element, or of the first NaN; arguments as of `argmax`.

    >>> import perspex.numpy as jnp
    >>> jnp.argmin(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    check_no_out("argmin", out)
    return _position(a, "argmin", _single_axis("argmin", axis), bool(keepdims))


def _single_axis(name: str, axis: Any) -> int | None:
    axis = hashable_axis(name, axis)
    if isinstance(axis, tuple):
        raise TypeError(f"{name} takes one axis or None, got {axis}")
    return axis


@fused(static=("name", "axis", "keepdims"))
def _position(a: Any, name: str, axis: Any, keepdims: bool) -> Any:
    a = arraylike(name, a)
    given = a.ndim
    if axis is None:
        a, along = flat(a), 0
    else:
        along = canonical_axis(axis, given)
    if a.shape[along] == 0:
        raise ValueError(f"{name}: attempt to get the position of the extreme of an empty axis")
    primitive = reduce.argmax if name == "argmax" else reduce.argmin
    out = primitive(a, axes=(along,), index_dtype=dtypes.canonicalize_dtype("int64"))
    if not keepdims:
        return out
    return expand(out, range(given) if axis is None else (along,))


# ---- Truth --------------------------------------------------------------------------------------


def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements along axes are true: different from 0. Arguments: see the module.

    >>> import perspex.numpy as jnp
    >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=0)
    Array([ True, False], dtype=bool)
    """
    check_no_out("all", out)
    return _truth(a, where, "all", hashable_axis("all", axis), keepdims)


def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element along axes is true: different from 0. Arguments: see the module.

    >>> import perspex.numpy as jnp
    >>> jnp.any(jnp.array([[True, False], [False, False]]), axis=0)
    Array([ True, False], dtype=bool)
    """
    check_no_out("any", out)
    return _truth(a, where, "any", hashable_axis("any", axis), keepdims)


@fused(static=("name", "axis", "keepdims"))
def _truth(a: Any, where: Any, name: str, axis: Any, keepdims: bool) -> Any:
    a, where = convert(arraylike(name, a), BOOL), _checked_where(name, where)
    every = name == "all"
    return _reduced(
        name,
        reduce.reduce_and if every else reduce.reduce_or,
        ops.bitwise_and if every else ops.bitwise_or,
        lambda dtype: np.bool_(every),
        a,
        axis,
        BOOL,
        BOOL,
        keepdims,
        None,
        where,
    )


@fused(static=("equal_nan",))
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether `isclose` holds for all elements; arguments as there.

    >>> import perspex.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 1.0 + 1e-7]), 1.0)
    Array(True, dtype=bool)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
      a1, a2: arrays, or what `asarray` takes.
      equal_nan: NaN equals NaN.

    >>> import perspex.numpy as jnp
    >>> jnp.array_equal(jnp.arange(3), jnp.arange(4))
    Array(False, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    return as_array(np.bool_(False)) if a1.shape != a2.shape else _equal(a1, a2, equal_nan)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements there.

    As in NumPy, arrays that cannot be broadcast are not equivalent; JAX raises an error for them.

    >>> import perspex.numpy as jnp
    >>> jnp.array_equiv(jnp.ones((2, 3)), 1)
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return as_array(np.bool_(False))
    return _equal(a1, a2, False)


@fused(static=("equal_nan",))
def _equal(a: Any, b: Any, equal_nan: bool) -> Any:
    same = equal(a, b)
    if equal_nan:
        same = ops.bitwise_or(same, ops.bitwise_and(isnan(a), isnan(b)))
    return all(same)


# ---- Running sums and products ------------------------------------------------------------------


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """The sums of the elements up to each one.

    Args:
      a: an array.
      axis: along which axis; None runs through the elements of the whole array.
      dtype: the dtype to compute in; booleans count as integers if it is not given.

    >>> import perspex.numpy as jnp
    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    check_no_out("cumsum", out)
    return _running(a, "cumsum", _single_axis("cumsum", axis), _checked_dtype("cumsum", dtype))


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """The products of the elements up to each one; arguments as of `cumsum`.

    >>> import perspex.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    check_no_out("cumprod", out)
    return _running(a, "cumprod", _single_axis("cumprod", axis), _checked_dtype("cumprod", dtype))


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """`cumsum` with NaN taken for 0.

    >>> import perspex.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """
    check_no_out("nancumsum", out)
    axis, dtype = _single_axis("nancumsum", axis), _checked_dtype("nancumsum", dtype)
    return _running(a, "nancumsum", axis, dtype)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """`cumprod` with NaN taken for 1.

    >>> import perspex.numpy as jnp
    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    check_no_out("nancumprod", out)
    axis, dtype = _single_axis("nancumprod", axis), _checked_dtype("nancumprod", dtype)
    return _running(a, "nancumprod", axis, dtype)


@fused(static=("name", "axis", "dtype", "widen"))
def _running(a: Any, name: str, axis: Any, dtype: Any, widen: bool = False) -> Any:
    a = arraylike(name, a)
    if axis is None or a.ndim == 0:
        a, axis = flat(a), axis or 0
    axis = canonical_axis(axis, a.ndim)
    if name.startswith("nan") and dtypes.issubdtype(a.dtype, np.inexact):
        a = ops.select(ops.ne(a, a), a.dtype.type(0 if name == "nancumsum" else 1), a)
    if dtype is None:
        result = wide_integer(a.dtype) if widen or a.dtype == BOOL else a.dtype
    else:
        result = dtype
    # Running sums of truth values are counted, then tested.
    a = to_bool(a) if result == BOOL else a
    primitive = cumulative.cumsum if name.endswith("sum") else cumulative.cumprod
    out = primitive(
        convert(a, wide_integer(result) if result == BOOL else result), axis=axis, reverse=False
    )
    return convert(out, result)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:
    """The sums of the elements up to each one, as in the array API standard.

    Args:
      x: an array of one axis or more.
      axis: along which axis; may be left out if there is only one.
      dtype: the dtype to compute in; the default width for narrow integers if not given.
      include_initial: begin with the empty sum, 0.

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
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:
    """The products of the elements up to each one; arguments as of `cumulative_sum`.

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
    out = _running(x, name, axis, _checked_dtype(name, dtype), widen=name.endswith("sum"))
    return _with_initial(out, name, axis) if include_initial else out


@fused(static=("name", "axis"))
def _with_initial(x: Any, name: str, axis: int) -> Any:
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    first = filled(x.dtype.type(0 if name.endswith("sum") else 1), shape)
    return concatenate(first, x, dimension=axis)
