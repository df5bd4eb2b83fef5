"""Arrays as sets: the elements that differ, and those that two arrays have in common.

All of it is one sort and a mask of the first element of each run of equals. How many runs there are
is a number that only running tells, so traced arrays need a `size`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from perspex import dtypes, errors
from perspex.advice import messages
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, flat, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, Index, Picks, place_dtype, whole
from perspex.numpy.indexing.read import read
from perspex.numpy.promotion import promote_dtypes
from perspex.numpy.selection import fixed_size, places
from perspex.numpy.sorting import searchsorted
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import cumsum
from perspex.ops.indexing import scatter
from perspex.ops.reductions import reduce_or
from perspex.ops.shape import concatenate, iota, part
from perspex.ops.sorting import sort
from perspex.ops.structural import convert, move_axis, reduce_sum, reshape
from perspex.ops.windows import FILL_OR_DROP, ScatterDimensionNumbers
from perspex.tracing.trace import concrete_value, story

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip

# Up to this many comparisons, `isin` compares every element with every other.
_COMPARED = 1 << 14


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
    values: Any
    inverse_indices: Any


# ---- Elements that differ -----------------------------------------------------------------------


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...


@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any: ...


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The elements that differ, in ascending order.

    Args:
      ar: an array or a number.
      return_index: return the position where each comes first, too.
      return_inverse: return which of them each element is, too.
      return_counts: return the count of each, too.
      axis: compare the parts along this axis instead of elements.
      equal_nan: NaNs count as equal.
      sorted: has no effect: the result is always sorted.

    Returns:
      An array of the dtype of `ar`, or a tuple of it and arrays of int32.

    >>> import perspex.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x = arraylike("unique", ar)
    inverse_shape = x.shape if axis is None else (x.shape[canonical_axis(axis, x.ndim)],)
    x, axis = (flat(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim))
    found = _unique("unique", x, axis, equal_nan, size, fill_value)
    wanted = [
        found.values,
        *([_public(found.indices)] if return_index else []),
        *([_public(reshape(found.inverse_indices, new_sizes=inverse_shape))] * return_inverse),
        *([_public(found.counts)] if return_counts else []),
    ]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult:
    """The elements that differ, their first positions, the inverse positions, and their counts.

    Returns:
      A named tuple of `values`, `indices`, `inverse_indices` and `counts`; NaNs are not equal.

    >>> import perspex.numpy as jnp
    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    every = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueAllResult(*every)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """The elements that differ, and their counts.

    Returns:
      A named tuple of `values` and `counts`; NaNs are not equal.

    >>> import perspex.numpy as jnp
    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
    Array([1, 3], dtype=int32)
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueCountsResult(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """The elements that differ, and which of them each element is.

    Returns:
      A named tuple of `values` and `inverse_indices`; NaNs are not equal.

    >>> import perspex.numpy as jnp
    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueInverseResult(*found)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The elements that differ, in ascending order.

    Returns:
      A vector of the dtype of `x`; NaNs are not equal.

    >>> import perspex.numpy as jnp
    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def _known(name: str, x: Any, error: Any = errors.ConcretizationTypeError) -> Any:
    """The array whose elements decide the size of a result; an error if it is traced.

    As in JAX, the result without a `size` is constant to derivatives.
    """
    value = concrete_value(x)
    if value is None:
        remedy = f"give the number of elements of the result: {name}(..., size=n)."
        raise error(messages.concretization(f"{name} without a size", *story(x), remedy=remedy))
    return value


def _public(x: Any) -> Any:
    return convert(x, place_dtype())


def _unique(
    name: str, x: Any, axis: int, equal_nan: bool, size: Any, fill_value: Any
) -> _UniqueAllResult:
    """All about the parts of `x` along an axis; `fill_value=None` fills up with the first."""
    length = fixed_size(name, size)
    if length is None:
        x = _known(name, x)
    n = x.shape[axis]
    if not n:
        if length and fill_value is None:
            raise ValueError(f"{name}: for an empty array and a size, fill_value must be given")
        return _nothing(x, axis, length or 0, fill_value)
    x = _one_nan(x)
    order, first = _runs(x, axis, equal_nan)
    if length is None:
        length = int(reduce_sum(convert(first, INT32), axes=(0,)))
    fill = None if fill_value is None else asarray(fill_value)
    return _UniqueAllResult(*_collect(x, order, first, fill, axis, length))


def _nothing(x: Any, axis: int, length: int, fill_value: Any) -> _UniqueAllResult:
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    value = as_dtype(asarray(0 if fill_value is None else fill_value), x.dtype)
    none = spread(INT32.type(0), (0,))
    count = spread(INT32.type(0), (length,))
    return _UniqueAllResult(spread(value, shape), count, none, count)


@fused
def _one_nan(x: Any) -> Any:
    """`x` with one NaN for all complex numbers that have a NaN in a part: it sorts last."""
    if x.dtype.kind != "c":
        return x
    return ops.select(ops.eq(x, x), x, spread(x.dtype.type(np.nan), x.shape))


@fused(static=("axis", "equal_nan"))
def _runs(x: Any, axis: int, equal_nan: bool) -> tuple[Any, Any]:
    """The positions that sort the parts of `x`, and which sorted parts differ from the one before.

    Equal parts stay in the order in which they come.
    """
    n = x.shape[axis]
    rows = reshape(move_axis(x, axis, 0), new_sizes=(n, x.size // n))
    columns = [
        reshape(part(rows, k, k + 1, 1, rows.shape), new_sizes=(n,)) for k in range(rows.shape[1])
    ]
    places = iota(dtype=INT32, shape=(n,), dimension=0)
    *ordered, order = sort(
        *columns, places, dimension=0, is_stable=True, num_keys=max(len(columns), 1)
    )
    differs: Any = spread(np.bool_(False), (n - 1,))
    for column in ordered:
        before = part(column, 0, n - 1, 0, (n,))
        after = part(column, 1, n, 0, (n,))
        new = ops.ne(before, after)
        if equal_nan and dtypes.issubdtype(column.dtype, np.inexact):
            new = ops.bitwise_and(new, ops.bitwise_or(ops.eq(before, before), ops.eq(after, after)))
        differs = ops.bitwise_or(differs, new)
    return order, concatenate(spread(np.bool_(True), (1,)), differs, dimension=0)


@fused(static=("axis", "length"))
def _collect(x: Any, order: Any, first: Any, fill: Any, axis: int, length: int) -> list[Any]:
    """Values, first positions, inverse and counts of the runs."""
    n = x.shape[axis]
    (starts,) = places(first, length, n)
    real = ops.lt(starts, INT32.type(n))
    # What is missing is filled up with the first run.
    indices = _taken(order, ops.select(real, starts, spread(INT32.type(0), (length,))))
    values = read(x, Index((*whole(x.shape[:axis]), Picks(indices), *whole(x.shape[axis + 1 :]))))
    if fill is not None:
        mask = spread(expand(real, [d for d in range(x.ndim) if d != axis]), values.shape)
        values = ops.select(mask, values, spread(as_dtype(fill, x.dtype), values.shape))
    group = ops.sub(cumsum(convert(first, INT32), axis=0, reverse=False), INT32.type(1))
    inverse = scatter(
        spread(INT32.type(0), (n,)),
        reshape(order, new_sizes=(n, 1)),
        group,
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=True,
        mode=FILL_OR_DROP,
    )
    return [values, indices, inverse, _counts(starts, first, n, length)]


def _counts(starts: Any, first: Any, n: int, length: int) -> Any:
    """The lengths of the runs that begin at `starts`; 0 where these are `n`."""
    if not length:
        return starts
    # One more run than asked for, to know where the last one ends.
    (ends,) = places(first, length + 1, n)
    return ops.sub(part(ends, 1, length + 1, 0, (length + 1,)), starts)


def _taken(x: Any, places: Any) -> Any:
    return read(x, Index((Picks(places),)))


# ---- Two arrays ---------------------------------------------------------------------------------


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among others. NaN never is.

    Args:
      element: the elements, an array of any shape.
      test_elements: the others, an array of any shape.
      invert: return whether it is not.
      method: has no effect: `"auto"`, `"compare_all"`, `"binary_search"` and `"sort"` of JAX.

    Returns:
      An array of booleans of the shape of `element`.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for another `method`.

    >>> import perspex.numpy as jnp
    >>> jnp.isin(jnp.arange(4), jnp.array([1, 3]))
    Array([False,  True, False,  True], dtype=bool)
    """
    check_arraylike("isin", element, test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"isin: method must be 'auto', 'compare_all', 'binary_search' or 'sort', got {method!r}"
        )
    return _isin(element, test_elements, bool(invert))


@fused(static=("invert",))
def _isin(element: Any, test: Any, invert: bool) -> Any:
    x, among = [asarray(v) for v in promote_dtypes("isin", element, test)]
    held = _held(flat(x), flat(among))
    held = ops.bitwise_not(held) if invert else held
    return convert(reshape(held, new_sizes=x.shape), np.dtype(bool))


def _held(x: Any, among: Any) -> Any:
    """Whether each of a vector's elements is in another vector."""
    n, m = x.size, among.size
    if not n or not m:
        return spread(np.bool_(False), (n,))
    if n * m <= _COMPARED:
        equal = ops.eq(spread(expand(x, (1,)), (n, m)), spread(expand(among, (0,)), (n, m)))
        return reduce_or(equal, axes=(1,))
    (ordered,) = sort(among, dimension=0, is_stable=False, num_keys=1)
    places = ops.min(searchsorted(ordered, x), INT32.type(m - 1))
    return ops.eq(_taken(ordered, places), x)


def _both(name: str, ar1: Any, ar2: Any) -> tuple[Any, Any]:
    check_arraylike(name, ar1, ar2)
    x, y = [flat(asarray(v)) for v in promote_dtypes(name, ar1, ar2)]
    return x, y


def _chosen(
    name: str,
    x: Any,
    keep: Callable[[Any], Any],
    size: Any,
    fill_value: Any,
    seam: int | None = None,
) -> tuple[Any, Any, Any]:
    """The elements of `x` that differ and that `keep` keeps; their positions; which are real.

    What is missing is `fill_value`, or the first one. NaNs are equal, but a NaN at `seam` or after
    it differs from those before.
    """
    length = fixed_size(name, size)
    n = x.size
    if not n:
        value = as_dtype(asarray(0 if fill_value is None else fill_value), x.dtype)
        size = length or 0
        return spread(value, (size,)), spread(INT32.type(0), (size,)), spread(np.bool_(0), (size,))
    order, first = _runs(x, 0, True)
    ordered = _taken(x, order)
    if seam is not None:
        before = ops.lt(part(order, 0, n - 1, 0, (n,)), INT32.type(seam))
        crosses = ops.bitwise_and(before, ops.ge(part(order, 1, n, 0, (n,)), INT32.type(seam)))
        crosses = concatenate(spread(np.bool_(False), (1,)), crosses, dimension=0)
        first = ops.bitwise_or(first, ops.bitwise_and(crosses, ops.ne(ordered, ordered)))
    (lines,) = places(ops.bitwise_and(first, keep(ordered)), length, n)
    size = lines.shape[0]
    real = ops.lt(lines, INT32.type(n))
    if size:
        start = part(lines, 0, 1, 0, (size,))
        lines = ops.select(real, lines, spread(ops.min(start, INT32.type(n - 1)), (size,)))
    values = _taken(ordered, lines)
    if fill_value is not None:
        fill = as_dtype(asarray(fill_value), x.dtype)
        values = ops.select(real, values, spread(fill, (size,)))
    elif size:
        # Where there is no first one, it is 0.
        some = spread(ops.lt(start, INT32.type(n)), (size,))
        values = ops.select(some, values, spread(x.dtype.type(0), (size,)))
    return values, _taken(order, lines), real


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The elements that differ of two arrays together, in ascending order.

    >>> import perspex.numpy as jnp
    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([3, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, y = _both("union1d", ar1, ar2)
    if fixed_size("union1d", size) is None:
        x, y = _known("union1d", x), _known("union1d", y)
    both = concatenate(x, y, dimension=0)
    return _unique("union1d", both, 0, True, size, fill_value).values


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The elements that two arrays have in common, in ascending order.

    Args:
      return_indices: return where each comes first in `ar1` and in `ar2`, too.

    Returns:
      A vector of the common dtype; with `return_indices`, it and two vectors of int32.

    >>> import perspex.numpy as jnp
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3]))
    Array([2, 3], dtype=int32)
    """
    x, y = _both("intersect1d", ar1, ar2)
    if fixed_size("intersect1d", size) is None:
        x, y = _known("intersect1d", x), _known("intersect1d", y)
    values, indices, real = _chosen("intersect1d", x, lambda v: _held(v, y), size, fill_value)
    if not return_indices:
        return values
    if not y.size or not x.size:
        return values, _public(indices), _public(indices)
    own = _taken(x, indices)
    order, _ = _runs(y, 0, True)
    others = _taken(order, ops.min(searchsorted(_taken(y, order), own), INT32.type(y.size - 1)))
    count = real.shape
    return (
        values,
        _public(ops.select(real, indices, spread(INT32.type(x.size), count))),
        _public(ops.select(real, others, spread(INT32.type(y.size), count))),
    )


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of the first array that are not in the second, in ascending order.

    Args:
      assume_unique: the elements of `ar1` differ: they are returned in the order they come in.
      fill_value: the value that fills up the result if there are fewer; 0 by default.

    Returns:
      A vector of the dtype of `ar1`.

    >>> import perspex.numpy as jnp
    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("setdiff1d", ar1, ar2)
    x, y = flat(asarray(ar1)), flat(asarray(ar2))
    weak = shaped(x).weak_type and (assume_unique or x.dtype.kind != "c")
    length = fixed_size("setdiff1d", size)
    if length is None:
        known = _known("setdiff1d", x)
        y = _known("setdiff1d", y, errors.NonConcreteBooleanIndexError)
        x = x if assume_unique else known
    fill = 0 if fill_value is None else fill_value
    if assume_unique and x.size:
        (kept,) = places(_isin(x, y, True), length, x.size)
        real = ops.lt(kept, INT32.type(x.size))
        value = spread(as_dtype(asarray(fill), x.dtype), kept.shape)
        out = ops.select(real, _taken(x, kept), value)
    else:
        out = _chosen("setdiff1d", x, lambda v: _isin(v, y, True), length, fill)[0]
    return convert(out, shaped(out).dtype, weak)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements that are in one of two arrays alone, in ascending order.

    >>> import perspex.numpy as jnp
    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([3, 2]))
    Array([1, 2], dtype=int32)
    """
    x, y = _both("setxor1d", ar1, ar2)
    if fixed_size("setxor1d", size) is None:
        x, y = _known("setxor1d", x), _known("setxor1d", y)

    def in_one(v: Any) -> Any:
        return ops.bitwise_or(ops.bitwise_xor(_held(v, x), _held(v, y)), ops.ne(v, v))

    both = concatenate(x, y, dimension=0)
    return _chosen("setxor1d", both, in_one, size, fill_value, seam=x.size)[0]


_WORDS = {
    "x": "an array or a number.",
    "ar1": "an array or a number.",
    "ar2": "an array or a number.",
    "assume_unique": "has no effect.",
    "size": "the number of elements to give: the first ones. It must be given while tracing.",
    "fill_value": "the value that fills up a shorter result; the first element by default.",
}

describe(
    [unique, unique_all, unique_counts, unique_inverse, unique_values]
    + [isin, union1d, intersect1d, setdiff1d, setxor1d],
    _WORDS,
    "TypeError: if an argument is not an array or a number.\n"
    "ValueError: for a negative `size`.\n"
    "ConcretizationTypeError: for traced arrays without `size`.",
    "A vector of the common dtype.",
)
