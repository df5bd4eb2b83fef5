"""Elements by number: `take` and its kin, and arrays that serve as indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, flat, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.refused import check_no_out
from perspex.arguments.shapes import canonical_shape
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.arithmetic import remainder
from perspex.numpy.einsum import einsum
from perspex.numpy.indexing.parse import INT32, Index, Picks, Point, mask_places, place_dtype, whole
from perspex.numpy.indexing.read import FILL, PROMISED, read, read_along
from perspex.numpy.indexing.windows import wrapped
from perspex.numpy.promotion import promote_all
from perspex.numpy.selection import known, where
from perspex.ops import elementwise as ops
from perspex.ops.shape import iota
from perspex.ops.structural import convert
from perspex.ops.windows import FillValue, GatherScatterMode

__all__ = [
    "diag_indices", "diag_indices_from", "index_exp", "ix_", "ravel_multi_index", "s_", "take",
    "take_along_axis", "unravel_index",
]  # fmt: skip

# A mode of `take_along_axis` alone.
ONE_HOT = "one_hot"

# ---- take ---------------------------------------------------------------------------------------


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take elements by number along an axis.

    Args:
      a: the array to read.
      indices: integers, an array of any shape; its axes take the place of `axis`.
      axis: the axis to read along; None reads from the elements in one axis.
      mode: what happens outside: `"fill"` (the default) gives `fill_value`, `"clip"` the nearest
        element, and then nothing counts from the end; `"wrap"` starts again at the other end.

    Returns:
      An array of the dtype of `a`.

    Raises:
      TypeError: for lists.
      ValueError: for indices that are not integers, another mode, or an axis that does not exist.
      IndexError: for an axis of size zero.
      NotImplementedError: for `mode="raise"`, and if `out` is given.

    >>> import perspex.numpy as jnp
    >>> jnp.take(jnp.arange(0, 50, 10), jnp.array([3, -1]))
    Array([30, 40], dtype=int32)
    """
    check_no_out("take", out)
    check_arraylike("take", a, indices)
    return _take(
        a, indices, axis, mode, bool(unique_indices), bool(indices_are_sorted), fill(fill_value)
    )


@fused(static=("axis", "mode", "unique", "is_sorted", "fill_value"))
def _take(
    a: Any, indices: Any, axis: Any, mode: Any, unique: bool, is_sorted: bool, fill_value: Any
) -> Any:
    a = arraylike("take", a)
    places = arraylike("take", indices)
    if not (places.dtype == bool or dtypes.issubdtype(places.dtype, np.integer)):
        raise ValueError(
            f"take: indices must have an integer type, got {places.dtype.name}; "
            "convert them with astype(int)"
        )
    if places.dtype == bool:
        places = convert(places, INT32)
    a, axis = (flat(a), 0) if axis is None else (a, canonical_axis(axis, a.ndim))
    n = a.shape[axis]
    if n == 0 and places.size:
        raise IndexError("take: cannot take elements from an empty axis")
    if mode not in (None, "fill", "clip", "wrap"):
        if mode == "raise":
            raise NotImplementedError(
                'take: mode="raise" is not supported: whether an index is outside is known only '
                'after running; use "fill", "clip" or "wrap"'
            )
        raise ValueError(f'take: mode must be "fill", "clip" or "wrap", got {mode!r}')
    if mode == "wrap":
        places = remainder(places, n)
    entry = Picks(places) if places.ndim else Point(places)
    entries = (*whole(a.shape[:axis]), entry, *whole(a.shape[axis + 1 :]))
    promises: Any = {"unique_indices": unique, "indices_are_sorted": is_sorted}
    if mode in (None, "fill"):
        return read(a, Index(entries), FILL, fill_value, **promises)
    how = GatherScatterMode.CLIP if mode == "clip" else PROMISED
    return read(a, Index(entries), how, wrap=False, **promises)


def fill(value: Any) -> FillValue | None:
    """A fill value as a static argument."""
    if value is None:
        return None
    return FillValue(value.item() if hasattr(value, "item") else value)


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """Take elements along an axis, by other numbers at each place of the other axes.

    Args:
      arr: the array to read.
      indices: integers; as many axes as `arr`, of the same sizes or 1 except along `axis`.
      axis: the axis to read along; None reads from the elements in one axis.
      mode: what happens outside: `"fill"` (the default), `"clip"` or `"promise_in_bounds"`;
        `"one_hot"` multiplies by ones and zeros, which may be faster, and gives 0 outside.

    Returns:
      An array of the dtype of `arr` and, along `axis`, of the size of `indices`.

    Raises:
      TypeError: for lists, and for indices that are not integers.
      ValueError: for shapes that do not fit, another mode, or an axis that does not exist.

    >>> import perspex.numpy as jnp
    >>> x = jnp.array([[3, 1, 2], [9, 7, 8]])
    >>> jnp.take_along_axis(x, jnp.argmin(x, axis=1, keepdims=True), axis=1)
    Array([[1],
           [7]], dtype=int32)
    """
    check_arraylike("take_along_axis", arr, indices)
    how = mode if mode == ONE_HOT else GatherScatterMode.from_any(mode)
    return _take_along_axis(arr, indices, axis, how, fill(fill_value), wrap_negative_indices)


@fused(static=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(
    arr: Any, indices: Any, axis: Any, mode: Any, fill_value: Any, wrap: bool
) -> Any:
    x = arraylike("take_along_axis", arr)
    places = arraylike("take_along_axis", indices)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise TypeError(f"take_along_axis indices must be of integer type, got {places.dtype.name}")
    if axis is None:
        if places.ndim != 1:
            raise ValueError(
                f"take_along_axis indices must be 1D if axis=None, got shape {places.shape}"
            )
        x, axis = flat(x), 0
    if places.ndim != x.ndim:
        raise ValueError(
            "take_along_axis: indices and arr must have the same number of dimensions; "
            f"{places.ndim} vs. {x.ndim}"
        )
    axis = canonical_axis(axis, x.ndim)
    if mode == ONE_HOT and x.shape[axis]:
        return _multiplied(x, wrapped(places, x.shape[axis]) if wrap else places, axis)
    return read_along(x, places, axis, mode, fill_value, wrap)


def _multiplied(x: Any, places: Any, axis: int) -> Any:
    """The elements along an axis as a product with ones where they are."""
    n = x.shape[axis]
    shape = (*places.shape, n)
    numbers = iota(dtype=places.dtype, shape=shape, dimension=places.ndim)
    hot = ops.eq(spread(expand(places, (places.ndim,)), shape), numbers)
    before, after = list(range(axis)), list(range(axis, x.ndim - 1))
    place, summed = x.ndim, x.ndim + 1
    return einsum(
        hot,
        [*before, place, *after, summed],
        x,
        [*before, summed, *after],
        [*before, place, *after],
        precision="highest",
        preferred_element_type=x.dtype,
    )


# ---- Indices ------------------------------------------------------------------------------------


class IndexExpression:
    """`s_[1:3, ::2]` is what stands between the brackets; `index_exp` makes it a tuple always.

    >>> import perspex.numpy as jnp
    >>> jnp.s_[1:3]
    slice(1, 3, None)
    >>> jnp.index_exp[1:3]
    (slice(1, 3, None),)
    """

    __slots__ = ("always_tuple",)

    def __init__(self, always_tuple: bool) -> None:
        self.always_tuple = always_tuple

    def __getitem__(self, index: Any) -> Any:
        return (index,) if self.always_tuple and not isinstance(index, tuple) else index


s_ = IndexExpression(always_tuple=False)
index_exp = IndexExpression(always_tuple=True)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Arrays that index the grid of all combinations of the given places.

    Args:
      args: arrays of one axis, integers or masks; masks must be concrete.

    Returns:
      A tuple of int32 arrays that broadcast to the grid; integers keep their dtype.

    Raises:
      TypeError: for lists.
      ValueError: for arrays without exactly one axis.
      NonConcreteBooleanIndexError: for traced masks.

    >>> import perspex.numpy as jnp
    >>> jnp.arange(12).reshape(3, 4)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))]
    Array([[ 1,  3],
           [ 9, 11]], dtype=int32)
    """
    check_arraylike("ix_", *args)
    out = []
    for k, arg in enumerate(args):
        x = arraylike("ix_", arg)
        if x.ndim != 1:
            raise ValueError(f"ix_: arguments must be 1-dimensional, got shape {x.shape}")
        if x.size == 0:
            x = convert(x, place_dtype())
        elif x.dtype == bool:
            x = arraylike("ix_", mask_places(x, x.shape, 0, k)[0])
        out.append(expand(x, [d for d in range(len(args)) if d != k]))
    return tuple(out)


def unravel_index(indices: ArrayLike, shape: ArrayLike | Sequence[ArrayLike]) -> tuple[Array, ...]:
    """The coordinates of elements that are counted as if the array had one axis.

    Args:
      indices: integers; those outside are moved inside, negative ones count from the end.
      shape: the shape of the array; its sizes may be traced.

    Returns:
      For each axis an array of the shape of `indices`.

    Raises:
      TypeError: for lists, and for sizes that are not numbers.
      ValueError: for sizes that are not scalars.

    >>> import perspex.numpy as jnp
    >>> jnp.unravel_index(jnp.array([7, -1]), (3, 4))
    (Array([1, 2], dtype=int32), Array([3, 3], dtype=int32))
    """
    check_arraylike("unravel_index", indices)
    try:
        sizes = tuple(shape)  # type: ignore[arg-type]
    except TypeError:
        sizes = (shape,)
    whole_numbers = dtypes.issubdtype(dtypes.kind_of(indices)[0], np.integer)
    if whole_numbers and all(isinstance(n, int) and n >= 0 for n in sizes):
        return tuple(_unravel_index(indices, tuple([int(n) for n in sizes])))
    if any(np.ndim(n) for n in sizes):
        raise ValueError(f"unravel_index: the sizes of a shape are scalars, got {shape!r}")
    check_arraylike("unravel_index", *sizes)
    return tuple(_unravel_traced(indices, list(sizes)))


@fused
def _unravel_traced(indices: Any, sizes: Any) -> list[Any]:
    """The coordinates, where not all sizes are known integers."""
    rest = arraylike("unravel_index", indices)
    places = []
    for n in reversed(sizes):
        rest, place = divmod(rest, n)
        places.append(place)
    # What is left over is -1 for the elements that count from the end.
    low = 0 if dtypes.issubdtype(rest.dtype, np.unsignedinteger) else -1
    return [
        where(rest > 0, n - 1, where(rest < low, 0, place))
        for n, place in zip(sizes, reversed(places), strict=True)
    ]


@fused(static=("shape",))
def _unravel_index(indices: Any, shape: tuple[int, ...]) -> list[Any]:
    x = arraylike("unravel_index", indices)
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"unravel_index: indices must be integers, got {x.dtype.name}")
    dtype, weak = x.dtype, x.aval.weak_type
    total = math.prod(shape)
    rest = wrapped(x, total)
    if dtypes.iinfo(rest.dtype).max < total:
        rest = convert(rest, INT32)
    number = rest.dtype.type
    rest = ops.clamp(number(0), rest, number(max(total - 1, 0)))
    out = []
    for n in reversed(shape):
        out.append(as_dtype(ops.rem(rest, number(max(n, 1))), dtype, weak))
        rest = ops.div(rest, number(max(n, 1)))
    return out[::-1]


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The numbers of elements, counted as if the array had one axis, from their coordinates.

    Args:
      multi_index: for each axis the coordinates, integers of shapes that broadcast.
      dims: the shape of the array.
      mode: `"raise"` looks at the coordinates, which must be concrete; `"wrap"`, `"clip"` and
        `"ignore"` do not; or a sequence of these for the axes.
      order: `"C"` if the last axis changes fastest, `"F"` if the first one does.
      dtype: an integer dtype for the result; that of the coordinates if not given.

    Returns:
      An array of integers.

    Raises:
      TypeError: for lists in place of arrays, and for booleans.
      ValueError: for coordinates outside, for other numbers, and for unknown modes and orders.
      ConcretizationTypeError: for traced coordinates with `mode="raise"`.

    >>> import perspex.numpy as jnp
    >>> jnp.ravel_multi_index((1, 2), (3, 4))
    Array(6, dtype=int32)
    """
    check_arraylike("ravel_multi_index", *multi_index)
    shape = canonical_shape("ravel_multi_index", dims)
    if len(shape) != len(multi_index):
        raise ValueError(f"ravel_multi_index: {len(multi_index)} coordinates for {len(shape)} dims")
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    for m in modes:
        if m not in ("raise", "wrap", "clip", "ignore"):
            raise ValueError(
                f"ravel_multi_index: mode must be 'raise', 'wrap', 'clip' or 'ignore', got {m!r}"
            )
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    for x, n, m in zip(multi_index, shape, modes, strict=True):
        if m == "raise":
            _check_coordinates(x, n)
    target = np.dtype(dtypes.canonicalize_dtype(dtype or dtypes.result_type(*multi_index)))
    if target.kind != "b" and not dtypes.issubdtype(target, np.integer):
        raise ValueError(f"ravel_multi_index: dtype must be an integer type, got {target.name}")
    if any(shaped(x).dtype == bool for x in multi_index):
        raise TypeError("ravel_multi_index: coordinates must be integers, got booleans")
    return _ravel_multi_index(tuple(multi_index), shape, modes, order, target)


def _check_coordinates(x: Any, n: int) -> None:
    what = 'ravel_multi_index with mode="raise"'
    host = known(what, x, 'use mode="wrap", "clip" or "ignore".')
    if np.any((host < 0) | (host >= n)):
        raise ValueError(
            f"ravel_multi_index: coordinates must lie in [0, {n}), got {host.tolist()}"
        )


@fused(static=("dims", "modes", "order", "dtype"))
def _ravel_multi_index(places: Any, dims: Any, modes: Any, order: str, dtype: np.dtype) -> Any:
    total: Any = dtype.type(0)
    stride = 1
    axes = range(len(dims)) if order == "F" else range(len(dims) - 1, -1, -1)
    for d in axes:
        x = arraylike("ravel_multi_index", places[d])
        if not dtypes.issubdtype(x.dtype, np.integer):
            raise ValueError(f"ravel_multi_index: coordinates must be integers, got {x.dtype.name}")
        x = convert(x, dtype)
        if modes[d] == "wrap":
            x = remainder(x, dims[d])
        elif modes[d] == "clip":
            x = ops.clamp(dtype.type(0), x, dtype.type(dims[d] - 1))
        total = ops.add(*promote_all("ravel_multi_index", total, ops.mul(x, dtype.type(stride))))
        stride *= dims[d]
    return total


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Arrays that index a diagonal.

    Args:
      n: the size of each axis.
      ndim: the number of axes.

    Returns:
      A tuple of `ndim` int32 arrays of shape `(n,)`.

    Raises:
      TypeError: for arguments that are not integers.
      ValueError: for negative ones.

    >>> import perspex.numpy as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = operator.index(n), operator.index(ndim)
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}")
    return (iota(dtype=place_dtype(), shape=(n,), dimension=0),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Arrays that index the diagonal of an array.

    Args:
      arr: an array of two axes or more, which have one size.

    Returns:
      A tuple of int32 arrays, one for each axis.

    Raises:
      TypeError: if `arr` is not an array.
      ValueError: for fewer than two axes, and for axes of different sizes.

    >>> import perspex.numpy as jnp
    >>> jnp.diag_indices_from(jnp.zeros((2, 2)))[0]
    Array([0, 1], dtype=int32)
    """
    check_arraylike("diag_indices_from", arr)
    shape = np.shape(arr)
    if len(shape) < 2:
        raise ValueError(f"diag_indices_from: array must be at least 2-d, got shape {shape}")
    if len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: all axes must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


describe((take, take_along_axis), words.INDEXED)
