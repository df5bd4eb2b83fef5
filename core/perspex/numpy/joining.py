"""Arrays put together along an axis, and taken apart: concatenate, stack, block, split."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, flat
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.refused import check_no_out
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ir.avals import shaped
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.axes import moveaxis
from perspex.numpy.creation import asarray
from perspex.numpy.promotion import promote_dtypes, strong
from perspex.numpy.shaping import reshape
from perspex.ops.shape import concatenate as concatenate_p
from perspex.ops.shape import split as split_p
from perspex.ops.shape import stack as stack_p
from perspex.ops.shape import unstack as unstack_p
from perspex.ops.windows import ScatterDimensionNumbers
from perspex.tracing.array_methods import declared_array

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
    "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip

_LANES = ScatterDimensionNumbers((), (0,), (0,))


# ---- Joining ------------------------------------------------------------------------------------


def _is_array(arrays: Any) -> bool:
    """Whether a sequence of arrays is given as one array, whose first axis counts them."""
    return isinstance(arrays, np.ndarray) or hasattr(arrays, "aval")


def _joined_dtype(name: str, arrays: Sequence[Any], dtype: Any) -> Sequence[Any]:
    if dtype is None:
        return promote_dtypes(name, *arrays)
    target = dtypes.check_user_dtype(dtype, name)
    return [as_dtype(asarray(x), target) for x in arrays]


def concatenate(
    arrays: Sequence[ArrayLike] | Array, axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an existing axis.

    Args:
      arrays: arrays that agree in all other axes; they are promoted to one dtype. An array
        stands for what its first axis counts.
      axis: the axis; None joins the elements of each array in one axis.

    Returns:
      One array.

    Raises:
      TypeError: for lists in place of arrays, and for shapes that differ in another axis.
      ValueError: for no arrays, for scalars, and for an axis that does not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.concatenate([jnp.arange(2), jnp.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    return _concatenated("concatenate", arrays, axis, dtype)


def _concatenated(name: str, arrays: Any, axis: int | None, dtype: Any = None) -> Any:
    if _is_array(arrays):
        return _merged(name, asarray(arrays), axis, dtype)
    given = tuple(arrays)
    if not given:
        raise ValueError("Need at least one array to concatenate.")
    check_arraylike(name, *given)
    given = tuple([declared_array(x) for x in given])
    if axis is None:
        given, axis = tuple([flat(asarray(x)) for x in given]), 0
    ndim = np.ndim(given[0])
    if not ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return _join(given, canonical_axis(axis, ndim), dtype)


@fused(static=("axis", "dtype"))
def _join(arrays: Any, axis: int, dtype: Any) -> Any:
    joined = _joined_dtype("concatenate", arrays, dtype)
    weak = all([shaped(x).weak_type for x in joined])
    return as_dtype(concatenate_p(*map(strong, joined), dimension=axis), joined[0].dtype, weak)


def _merged(name: str, x: Any, axis: int | None, dtype: Any) -> Any:
    """Concatenate what the first axis of an array counts: two axes become one."""
    if x.ndim < 2:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    if not x.shape[0]:
        raise ValueError("Need at least one array to concatenate.")
    at = 0 if axis is None else canonical_axis(axis, x.ndim - 1)
    shape = list(x.shape[1:])
    shape[at] *= x.shape[0]
    out = reshape(x, -1) if axis is None else reshape(moveaxis(x, 0, at), tuple(shape))
    return out if dtype is None else as_dtype(out, dtypes.check_user_dtype(dtype, name))


def concat(arrays: Sequence[ArrayLike] | Array, /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis: `concatenate` by its name in the array API.

    Args:
      arrays: arrays that agree in all other axes; they are promoted to one dtype.
      axis: the axis; None joins the elements of each array in one axis.

    Returns:
      One array.

    Raises:
      TypeError: for lists in place of arrays, and for shapes that differ in another axis.
      ValueError: for no arrays, for scalars, and for an axis that does not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.concat([jnp.zeros((1, 2)), jnp.ones((1, 2))], axis=1)
    Array([[0., 0., 1., 1.]], dtype=float32)
    """
    return _concatenated("concat", arrays, axis)


def stack(
    arrays: Sequence[ArrayLike] | Array,
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays of one shape along a new axis.

    Args:
      arrays: arrays or numbers; they are promoted to one dtype. An array stands for what its first
        axis counts.
      axis: the place of the new axis, in the result.

    Returns:
      An array with one axis more.

    Raises:
      TypeError: for lists in place of arrays.
      ValueError: for no arrays, for shapes that differ, and for an axis that does not exist.
      NotImplementedError: if `out` is given.

    >>> import perspex.numpy as jnp
    >>> jnp.stack([jnp.arange(2), jnp.zeros(2)])
    Array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
    check_no_out("stack", out)
    if _is_array(arrays):
        x = asarray(arrays)
        moved = moveaxis(x, 0, canonical_axis(axis, x.ndim))
        return moved if dtype is None else as_dtype(moved, dtypes.check_user_dtype(dtype, "stack"))
    if not len(arrays):
        raise ValueError("Need at least one array to stack.")
    check_arraylike("stack", *arrays)
    shapes = [np.shape(x) for x in arrays]
    if any([s != shapes[0] for s in shapes]):
        raise ValueError(
            f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}."
        )
    return _stack(tuple(arrays), canonical_axis(axis, len(shapes[0]) + 1), dtype)


@fused(static=("axis", "dtype"))
def _stack(arrays: Any, axis: int, dtype: Any) -> Any:
    return stack_p(*_joined_dtype("stack", arrays, dtype), axis=axis)


def _at_least(name: str, tup: Any, ndim: int) -> list[Any]:
    """The arrays with axes put in front until there are `ndim`."""
    if _is_array(tup):
        tup = unstack_p(asarray(tup), axis=0)
    check_arraylike(name, *tup)
    if not len(tup):
        raise ValueError("Need at least one array to concatenate.")
    arrays = [asarray(x) for x in tup]
    return [expand(x, range(ndim - x.ndim)) for x in arrays]


def hstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike | None = None) -> Array:
    """Join arrays side by side: along the second axis, or along the only one.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.

    Returns:
      One array of the dtype that they promote to.

    >>> import perspex.numpy as jnp
    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    arrays = _at_least("hstack", tup, 1)
    return _concatenated("hstack", arrays, 0 if arrays[0].ndim == 1 else 1, dtype)


def vstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis; vectors become rows.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.

    Returns:
      One array of the dtype that they promote to.

    >>> import perspex.numpy as jnp
    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return _concatenated("vstack", _at_least("vstack", tup, 2), 0, dtype)


def dstack(tup: Sequence[ArrayLike] | Array, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.

    Returns:
      One array of the dtype that they promote to.

    >>> import perspex.numpy as jnp
    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)]).shape
    (1, 2, 2)
    """
    arrays = [expand(x, (2,)) if x.ndim == 2 else x for x in _at_least("dstack", tup, 2)]
    return _concatenated("dstack", arrays, 2, dtype)


def column_stack(tup: Sequence[ArrayLike] | Array) -> Array:
    """Join arrays along the second axis; vectors become columns.

    Args:
      tup: arrays or numbers; an array stands for what its first axis counts.

    Returns:
      One array of the dtype that they promote to.

    >>> import perspex.numpy as jnp
    >>> jnp.column_stack([jnp.arange(2), jnp.zeros((2, 1))])
    Array([[0., 0.],
           [1., 0.]], dtype=float32)
    """
    arrays = [expand(x, (1,)) if x.ndim == 1 else x for x in _at_least("column_stack", tup, 1)]
    return _concatenated("column_stack", arrays, 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append values to an array.

    Args:
      arr: an array or a number.
      values: what to append; without an axis of any shape.
      axis: the axis to append along; None appends the elements of both in one axis.

    Returns:
      An array of the dtype that both promote to.

    Raises:
      TypeError: for lists, and for shapes that differ in another axis.
      ValueError: for an axis that does not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.append(jnp.arange(3), 7)
    Array([0, 1, 2, 7], dtype=int32)
    """
    return _concatenated("append", [arr, values], axis)


def block(arrays: ArrayLike | Sequence[Any]) -> Array:
    """Assemble an array from nested lists of blocks.

    The innermost lists go along the last axis, the lists around them along the one before.

    Args:
      arrays: an array or number, or lists, nested to one depth, of them.

    Returns:
      One array of the dtype that the blocks promote to.

    Raises:
      TypeError: for blocks that do not fit or are not arrays or numbers.
      ValueError: for tuples, empty lists, and uneven depths.

    >>> import perspex.numpy as jnp
    >>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    depth = _depth(arrays)

    def largest(x: Any) -> int:
        return max([largest(y) for y in x]) if isinstance(x, list) else np.ndim(x)

    ndim = max(largest(arrays), depth)

    def assembled(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            check_arraylike("block", x)
            x = asarray(x)
            return expand(x, range(ndim - x.ndim))
        parts = [assembled(y, level + 1) for y in x]
        return _concatenated("block", parts, ndim - depth + level)

    return assembled(arrays, 0)


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise ValueError(f"block does not allow tuples, only nested lists; got {arrays}")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block does not allow empty list arguments")
    depths = {_depth(x) for x in arrays}
    if len(depths) > 1:
        raise ValueError("block: mismatched list depths; blocks must all be nested equally deep")
    return 1 + depths.pop()


# ---- Splitting ----------------------------------------------------------------------------------


def split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int], axis: int = 0
) -> list[Array]:
    """Split an array into consecutive parts of equal size, or at given places.

    Args:
      ary: the array.
      indices_or_sections: how many parts of equal size, or where the parts after the first begin.
      axis: the axis to split.

    Returns:
      A list of arrays.

    >>> import perspex.numpy as jnp
    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int], axis: int = 0
) -> list[Array]:
    """Split an array into consecutive parts; where the sizes differ, the first ones are longer.

    Args:
      ary: the array.
      indices_or_sections: how many parts, or where the parts after the first begin.
      axis: the axis to split.

    Returns:
      A list of arrays.

    >>> import perspex.numpy as jnp
    >>> [x.size for x in jnp.array_split(jnp.arange(5), 3)]
    [2, 2, 1]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """Split an array along the second axis, or along the only one.

    Returns:
      A list of arrays.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """Split an array along the first axis.

    Returns:
      A list of arrays.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.vsplit(jnp.zeros((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """Split an array along the third axis.

    Returns:
      A list of arrays.

    >>> import perspex.numpy as jnp
    >>> [x.shape for x in jnp.dsplit(jnp.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


def _split(name: str, ary: Any, sections: Any, axis: int) -> list[Any]:
    x = arraylike(name, ary)
    axis = canonical_axis(axis, x.ndim)
    n = x.shape[axis]
    if np.ndim(sections) == 0:
        count = concrete(f"the sections of {name}", int, sections)
        if count <= 0:
            raise ValueError(f"{name}: the number of sections must be positive, got {count}")
        size, rest = divmod(n, count)
        if rest and name != "array_split":
            raise ValueError(
                f"{name}: array split does not result in an equal division: rest is {rest} for "
                f"{count} parts of axis {axis} of shape {x.shape}; array_split allows it"
            )
        sizes = [size + 1] * rest + [size] * (count - rest)
    else:
        given = [concrete(f"the indices of {name}", operator.index, i) for i in sections]
        bounds = [0, *[min(max(i + n if i < 0 else i, 0), n) for i in given], n]
        sizes = [high - low for low, high in zip(bounds[:-1], bounds[1:], strict=True)]
        if any(s < 0 for s in sizes):
            raise ValueError(f"{name}: the indices must ascend, got {given}")
    return split_p(x, sizes=tuple(sizes), axis=axis)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Take an array apart along an axis.

    Args:
      x: an array with at least one axis.
      axis: the axis to take apart.

    Returns:
      A tuple of arrays without that axis.

    Raises:
      TypeError: if `x` is not an array or a number.
      ValueError: for an axis that does not exist.

    >>> import perspex.numpy as jnp
    >>> jnp.unstack(jnp.arange(4).reshape(2, 2))
    (Array([0, 1], dtype=int32), Array([2, 3], dtype=int32))
    """
    array = arraylike("unstack", x)
    return tuple(unstack_p(array, axis=canonical_axis(axis, array.ndim)))


describe(
    (concatenate, stack, hstack, vstack, dstack, column_stack),
    words.JOINED,
    "TypeError: for lists in place of arrays, and for shapes that do not fit.\n"
    "ValueError: for no arrays.",
)
describe(
    (split, array_split, hsplit, vsplit, dsplit),
    {
        "ary": "the array.",
        "indices_or_sections": "how many parts of equal size, or where the parts after the first\n"
        "begin.",
    },
    "TypeError: if `ary` is not an array.\n"
    "ValueError: for no parts, parts of unequal size, indices that do not ascend, a missing axis.\n"
    "ConcretizationTypeError: for traced indices.",
)
