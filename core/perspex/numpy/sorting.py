"""Sorting, ordering and searching along axes.

NaNs come last, `-0.0` and `0.0` are equal, complex numbers go by real part, then imaginary part.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_array, as_dtype, check_arraylike
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.base.dimensions import is_at_least
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy.creation import array
from perspex.numpy.promotion import promote_dtypes
from perspex.ops import elementwise as ops
from perspex.ops import sorting
from perspex.ops.shape import concatenate, iota, rev
from perspex.ops.structural import broadcast_in_dim, convert, reduce_sum, reshape

__all__ = [
    "argpartition", "argsort", "lexsort", "partition", "searchsorted", "sort", "sort_complex",
    "top_k",
]  # fmt: skip


def _check_options(name: str, kind: Any, order: Any) -> None:
    if order is not None:
        raise TypeError(f"{name}: `order` is for arrays with fields, which do not exist here")
    if kind is not None:
        raise TypeError(f"{name}: `kind` is not supported; use stable=True or stable=False")


@fused(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in ascending order along an axis.

    Returns:
      An array of the shape and dtype of `a`; a vector for `axis=None`.

    >>> import perspex.numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _check_options("sort", kind, order)
    a = arraylike("sort", a)
    if axis is None:
        a, axis = reshape(a, new_sizes=(a.size,)), 0
    axis = canonical_axis(axis, a.ndim)
    (out,) = sorting.sort(a, dimension=axis, is_stable=stable, num_keys=1)
    return rev(out, dimensions=(axis,)) if descending else out


@fused(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions of the elements in ascending order along an axis.

    Args:
      dtype: the dtype of the positions, the default one for integers if not given.

    Returns:
      An array of the shape of `a`; a vector for `axis=None`.

    >>> import perspex.numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_options("argsort", kind, order)
    a = arraylike("argsort", a)
    if axis is None:
        a, axis = reshape(a, new_sizes=(a.size,)), 0
    axis = canonical_axis(axis, a.ndim)
    index = np.dtype(dtypes.canonicalize_dtype("int64") if dtype is None else dtype)
    places = iota(dtype=index, shape=a.shape, dimension=axis)
    # Descending: reversed after, and if equal elements keep their order, also before.
    if descending and stable:
        a, places = (rev(x, dimensions=(axis,)) for x in (a, places))
    _, out = sorting.sort(a, places, dimension=axis, is_stable=stable, num_keys=1)
    return rev(out, dimensions=(axis,)) if descending else out


@fused(static=("k", "axis", "mode", "sorted"))
def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The `k` greatest elements along an axis, or the least, best first, and where they are.

    Args:
      a: an array of reals, of one axis or more.
      k: the number of elements.
      axis: the axis.
      mode: `"largest"` or `"smallest"`.
      sorted: has no effect: the elements are always in order.

    Returns:
      Two arrays with `k` elements along the axis: the elements, and their positions as int32.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for another `mode`, a `k` beyond the axis, an axis that is not there, and for
        the greatest complex numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.top_k(jnp.array([3, 1, 2]), 2)
    (Array([3, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    a = arraylike("top_k", a)
    axis = canonical_axis(axis, a.ndim)
    if mode == "largest":
        values, places = sorting.top_k(a, k=k, axis=axis, is_stable=True)
        return values, places
    if not 0 <= k <= a.shape[axis]:
        raise ValueError(f"top_k: k={k} is out of bounds for an axis of {a.shape[axis]}")
    places = iota(dtype=np.dtype("int32"), shape=a.shape, dimension=axis)
    values, places = sorting.sort(a, places, dimension=axis, is_stable=True, num_keys=1)
    index = (slice(None),) * axis + (slice(0, k),)
    return values[index], places[index]


def lexsort(
    keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16
) -> Array:
    """The positions that sort by several keys; the last key counts most.

    Args:
      keys: arrays of one shape, or an array whose first axis holds them.
      axis: the axis.
      batch_size: for JAX, which sorts by so many keys at once; here all are sorted at once.

    Returns:
      An array of int32 of the shape of a key.

    Raises:
      TypeError: if there is no key, or a key is not an array.
      ValueError: for keys of different shapes, an axis that is not there, and a `batch_size` below
        one.

    >>> import perspex.numpy as jnp
    >>> jnp.lexsort((jnp.array([0, 1, 0]), jnp.array([2, 1, 1])))
    Array([2, 1, 0], dtype=int32)
    """
    if batch_size < 1:
        raise ValueError(f"lexsort: batch_size must be positive, got {batch_size}")
    parts: list[ArrayLike] = list(keys)  # type: ignore[arg-type]
    if not parts:
        raise TypeError("lexsort needs at least one key")
    check_arraylike("lexsort", *parts)
    shapes = {np.shape(k) for k in parts}
    if len(shapes) > 1:
        raise ValueError(f"lexsort: keys must have one shape, got {sorted(shapes)}")
    return _lexsort(*parts, axis=axis)


@fused(static=("axis",))
def _lexsort(*keys: Any, axis: int) -> Any:
    parts = [as_array(k) for k in keys]
    if parts[0].ndim == 0:
        return array(0, dtype=dtypes.canonicalize_dtype("int64"))
    axis = canonical_axis(axis, parts[0].ndim)
    places = iota(dtype=np.dtype("int32"), shape=parts[0].shape, dimension=axis)
    out = sorting.sort(
        *reversed(parts), places, dimension=axis, is_stable=True, num_keys=len(parts)
    )
    return convert(out[-1], dtypes.canonicalize_dtype("int64"))


def sort_complex(a: ArrayLike) -> Array:
    """The elements along the last axis in ascending order, as complex numbers.

    Args:
      a: an array of one axis or more.

    Returns:
      An array of the shape of `a`: complex128 for 64-bit types and complex128, otherwise complex64.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: for a scalar.

    >>> import perspex.numpy as jnp
    >>> jnp.sort_complex(jnp.array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    a = sort(a)
    return convert(a, dtypes.to_complex_dtype(a.dtype))


@fused(static=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements with the `kth` smallest in its place: none greater before it, none less after.

    Returns:
      An array of the shape and dtype of `a`.

    >>> import perspex.numpy as jnp
    >>> jnp.partition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    a = arraylike("partition", a)
    return sorting.sort(
        a, dimension=_partition_axis("partition", a, kth, axis), is_stable=True, num_keys=1
    )[0]


@fused(static=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions of the elements in the order in which `partition` puts them.

    Returns:
      An array of int32 of the shape of `a`.

    >>> import perspex.numpy as jnp
    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    a = arraylike("argpartition", a)
    axis = _partition_axis("argpartition", a, kth, axis)
    places = iota(dtype=np.dtype("int32"), shape=a.shape, dimension=axis)
    order = sorting.sort(a, places, dimension=axis, is_stable=True, num_keys=1)[1]
    return as_dtype(order, places.dtype, shaped(a).weak_type)


def _partition_axis(name: str, a: Any, kth: Any, axis: int) -> int:
    if a.dtype.kind == "c":
        raise NotImplementedError(f"{name} is not defined for complex numbers; use sort")
    axis, kth = canonical_axis(axis, a.ndim), concrete(f"{name}: kth", operator.index, kth)
    if not -a.shape[axis] <= kth < a.shape[axis]:
        raise ValueError(f"{name}: kth={kth} is out of bounds for an axis of {a.shape[axis]}")
    return axis


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Where each `v` would go in the sorted vector `a` for it to stay sorted.

    Args:
      a: a vector in ascending order, or one that `sorter` brings into it.
      v: an array or a number; both are promoted.
      side: `"left"` of equal elements, or `"right"` of them.
      sorter: positions that sort `a`, as `argsort` gives them.
      method: has no effect: `"scan"`, `"scan_unrolled"`, `"sort"` and `"compare_all"` of JAX.

    Returns:
      An array of int32 from 0 to `len(a)`, of the shape of `v`.

    Raises:
      TypeError: if `a` or `v` is not an array or a number.
      ValueError: if `a` is not a vector, and for another `side` or `method`.

    >>> import perspex.numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 5]))
    Array([1, 4], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ValueError(f"searchsorted: unknown method {method!r}")
    check_arraylike("searchsorted", a, v)
    if np.ndim(a) != 1:
        raise ValueError(f"searchsorted: `a` must have one axis, got the shape {np.shape(a)}")
    if sorter is not None:
        check_arraylike("searchsorted", sorter)
        a = sorting.take_along(as_array(a), as_array(sorter), 0)
    return _searchsorted(a, v, side=side)


# Up to here every element is compared with every other; beyond, both are sorted together.
_COMPARED = 1 << 14


@fused(static=("side",))
def _searchsorted(a: Any, v: Any, side: str) -> Any:
    a, v = [as_array(x) for x in promote_dtypes("searchsorted", a, v)]
    n, m, shape = a.size, v.size, v.shape
    index = np.dtype("int32")
    v = reshape(v, new_sizes=(m,)) if v.ndim != 1 else v
    if not is_at_least(n * m, _COMPARED + 1):
        rows = broadcast_in_dim(v, shape=(m, n), broadcast_dimensions=(0,))
        columns = broadcast_in_dim(a, shape=(m, n), broadcast_dimensions=(1,))
        before = (
            _before(columns, rows) if side == "left" else ops.bitwise_not(_before(rows, columns))
        )
        out = reduce_sum(convert(before, index), axes=(1,))
    else:
        # The rank among all, less the rank among `v`: how many of `a` come first.
        parts = (v, a) if side == "left" else (a, v)
        both = concatenate(*parts, dimension=0)
        places = iota(dtype=index, shape=(n + m,), dimension=0)
        _, order = sorting.sort(both, places, dimension=0, is_stable=True, num_keys=1)
        _, rank = sorting.sort(order, places, dimension=0, is_stable=True, num_keys=1)
        mine = rank[:m] if side == "left" else rank[n:]
        among = iota(dtype=index, shape=(m,), dimension=0)
        _, own = sorting.sort(v, among, dimension=0, is_stable=True, num_keys=1)
        _, own = sorting.sort(own, among, dimension=0, is_stable=True, num_keys=1)
        out = ops.sub(mine, own)
    return reshape(out, new_sizes=shape) if shape != (m,) else out


def _before(x: Any, y: Any) -> Any:
    """`x` before `y` in sorting order: less, or a number before a NaN."""
    less = ops.lt(x, y) if x.dtype.kind != "c" else _complex_before(x, y)
    if x.dtype.kind not in "fc" and "float" not in x.dtype.name:
        return less
    nan = ops.ne(y, y)
    return ops.bitwise_or(less, ops.bitwise_and(nan, ops.eq(x, x)))


def _complex_before(x: Any, y: Any) -> Any:
    by_real = ops.lt(ops.real(x), ops.real(y))
    by_imag = ops.bitwise_and(ops.eq(ops.real(x), ops.real(y)), ops.lt(ops.imag(x), ops.imag(y)))
    return ops.bitwise_or(by_real, by_imag)


_WORDS = {
    "a": "an array of one axis or more.",
    "axis": "the axis; `None` takes the elements in one axis.",
    "kind": "not supported; see `stable`.",
    "order": "not supported: arrays have no fields.",
    "stable": "equal elements stay in their order.",
    "descending": "sort from the greatest to the least.",
    "kth": "the position, which must be known while tracing; counted from the end if negative.",
}
_NO_ARRAY = "TypeError: if `a` is not an array"

describe(
    [sort, argsort],
    _WORDS,
    f"{_NO_ARRAY}, and for `kind` and `order`.\nValueError: for an axis that is not there.",
)
describe(
    [partition, argpartition],
    {**_WORDS, "axis": "the axis."},
    f"{_NO_ARRAY}.\nValueError: for an axis or a `kth` that is not there.\n"
    "NotImplementedError: for complex numbers.",
)
