"""Reading and writing slices at places computed while running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.axes import canonical_axis
from perspex.arguments.dtypes import check_equal_dtypes
from perspex.arguments.glossary import describe
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, Shape
from perspex.jitted.fused import fused
from perspex.lax.joining import unstack
from perspex.lax.shape import expand_dims, squeeze
from perspex.ops import dynamic
from perspex.ops.elementwise import add, lt, select
from perspex.ops.structural import convert, scalar_like
from perspex.tracing.trace import typeof

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim",
]  # fmt: skip


def _starts(
    name: str, shape: tuple[int, ...], starts: Sequence[Any], wrap: Sequence[bool]
) -> list[Any]:
    """Start indices of one dtype, those that count from the end made to count from the front."""
    avals = [typeof(s) for s in starts]
    for aval in avals:
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(f"{name}: start indices must be integers, got {aval.dtype.name}")
    if any(a.shape for a in avals):
        found = ", ".join([str(a.shape) for a in avals])
        raise TypeError(f"{name}: start indices must be scalars, got shapes {found}")
    if any(a.dtype != avals[0].dtype for a in avals):
        found = ", ".join([a.dtype.name for a in avals])
        raise TypeError(f"{name}: start indices must be integers of one dtype, got {found}")
    dtype = avals[0].dtype if avals else np.dtype("int32")
    if any(n > int(dtypes.iinfo(dtype).max) for n in shape):
        dtype = np.dtype("int32")  # so that a size can be added to a negative index
        starts = [convert(s, dtype) for s in starts]
    out = []
    for start, size, negative in zip(starts, shape, wrap, strict=True):
        if isinstance(start, (int, np.integer)):
            start = dtype.type(start + size if start < 0 else start)
        elif negative and not dtypes.issubdtype(dtype, np.unsignedinteger):
            below = lt(start, scalar_like(start, 0))
            start = select(below, add(convert(start, dtype), scalar_like(start, size)), start)
        out.append(start)
    return out


def _separate(name: str, starts: Any, ndim: int) -> tuple[Any, ...]:
    """One start for each axis, from a sequence or an array of them."""
    if hasattr(starts, "ndim") and starts.ndim == 1:
        starts = list(starts) if isinstance(starts, np.ndarray) else unstack(starts)
    elif hasattr(starts, "ndim") or not isinstance(starts, (tuple, list)):
        raise TypeError(f"{name}: start indices must be a sequence of scalars, got {starts!r}")
    if len(starts) != ndim:
        raise ValueError(
            f"{name}: length of start indices must match the number of axes of the operand, got "
            f"{len(starts)} for {ndim}"
        )
    return tuple(starts)


def _wraps(name: str, allow: bool | Sequence[bool], starts: Sequence[Any]) -> tuple[bool, ...]:
    """Whether each start may count from the end; a known negative one that may not is an error."""
    flags = [allow] * len(starts) if isinstance(allow, (bool, np.bool_)) else list(allow)
    for start, flag in zip(starts, flags, strict=True):
        if not flag and isinstance(start, (int, np.integer)) and start < 0:
            raise ValueError(
                f"{name}: start index {start} is out of bounds with allow_negative_indices=False"
            )
    return tuple(map(bool, flags))


@fused(static=("slice_sizes", "wrap"))
def _dynamic_slice(operand: Any, starts: Any, slice_sizes: Any, wrap: Any) -> Any:
    starts = _starts("dynamic_slice", typeof(operand).shape, starts, wrap)
    return dynamic.dynamic_slice(operand, *starts, slice_sizes=slice_sizes)


def dynamic_slice(
    operand: Array | np.ndarray,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The slice of a static size that starts at indices computed while running.

    A start is moved until the slice lies inside the operand.

    Args:
      operand: an array.
      start_indices: one integer scalar for each axis, or an array of them.
      slice_sizes: the size of the slice along each axis.
      allow_negative_indices: whether negative starts count from the end; for all axes or each.

    Returns:
      An array of shape `slice_sizes` and the dtype of the operand.

    Raises:
      TypeError: if the sizes do not fit, or the starts are not integers of one dtype.
      ValueError: for a wrong number of starts.

    >>> from perspex import lax, numpy as jnp
    >>> lax.dynamic_slice(jnp.arange(5), (4,), (2,))
    Array([3, 4], dtype=int32)
    """
    ndim = typeof(operand).ndim
    starts = _separate("dynamic_slice", start_indices, ndim)
    wrap = _wraps("dynamic_slice", allow_negative_indices, starts)
    sizes = integers("dynamic_slice", "slice_sizes", slice_sizes)
    return _dynamic_slice(operand, starts, sizes, wrap)


def _along(name: str, x: Any, index: Any, axis: Any) -> tuple[int, tuple[Any, ...]]:
    """The axis from the front, and starts that are 0 along the others."""
    axis = canonical_axis(axis, typeof(x).ndim, name)
    aval = typeof(index)
    if aval.shape:
        raise TypeError(f"{name}: the index must be a scalar, got shape {aval.shape}")
    zero = aval.dtype.type(0)
    return axis, tuple([index if i == axis else zero for i in range(typeof(x).ndim)])


def dynamic_slice_in_dim(
    operand: Array | np.ndarray,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A slice along one axis that starts at an index computed while running.

    Args:
      operand: an array.
      start_index: an integer scalar. It is moved until the slice lies inside the operand.
      slice_size: the size of the slice.
      axis: the axis to slice; the others are taken whole.

    Returns:
      An array of the dtype of the operand, with size `slice_size` along `axis`.

    Raises:
      TypeError: if the size does not fit, or the start is not an integer scalar.
      ValueError: if there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 3)
    Array([1, 2, 3], dtype=int32)
    """
    axis, starts = _along("dynamic_slice_in_dim", operand, start_index, axis)
    sizes = list(typeof(operand).shape)
    sizes[axis] = slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Array | np.ndarray,
    index: int | Array,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand at one index of an axis, computed while running.

    Args:
      operand: an array.
      index: an integer scalar. One that is out of bounds counts as the nearest that is not.
      axis: the axis to index.
      keepdims: keep the axis, with size one.

    Returns:
      An array of the dtype of the operand.

    Raises:
      TypeError: if the index is not an integer scalar.
      ValueError: if there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.dynamic_index_in_dim(jnp.arange(6).reshape(3, 2), 1, keepdims=False)
    Array([2, 3], dtype=int32)
    """
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (axis,))


@fused(static=("wrap",))
def _dynamic_update_slice(operand: Any, update: Any, starts: Any, wrap: Any) -> Any:
    starts = _starts("dynamic_update_slice", typeof(operand).shape, starts, wrap)
    return dynamic.dynamic_update_slice(operand, update, *starts)


def dynamic_update_slice(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The operand with a slice replaced that starts at indices computed while running.

    A start is moved until the update lies inside the operand.

    Args:
      operand: an array.
      update: an array of its dtype and rank, no larger.
      start_indices: one integer scalar for each axis, or an array of them.
      allow_negative_indices: whether negative starts count from the end; for all axes or each.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      TypeError: if dtypes disagree, the update does not fit, or the starts are not integers of one
        dtype.
      ValueError: for a wrong number of starts.

    >>> from perspex import lax, numpy as jnp
    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = typeof(operand).ndim
    check_equal_dtypes("dynamic_update_slice", [typeof(operand), typeof(update)])
    starts = _separate("dynamic_update_slice", start_indices, ndim)
    wrap = _wraps("dynamic_update_slice", allow_negative_indices, starts)
    return _dynamic_update_slice(operand, update, starts, wrap)


def dynamic_update_slice_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand with a slice along one axis replaced.

    Args:
      operand: an array.
      update: an array of its dtype and rank, no larger; it starts at 0 along the other axes.
      start_index: an integer scalar. It is moved until the update lies inside the operand.
      axis: the axis that `start_index` is for.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      TypeError: if dtypes disagree, the update does not fit, or the start is not an integer scalar.
      ValueError: if there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, axis=0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    _, starts = _along("dynamic_update_slice_in_dim", operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand with the elements at one index of an axis replaced.

    Args:
      operand: an array.
      update: an array of its dtype, with or without the axis.
      index: an integer scalar. One that is out of bounds counts as the nearest that is not.
      axis: the axis to index.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      TypeError: if dtypes disagree, the update does not fit, or the index is not an integer scalar.
      ValueError: if there is no such axis.

    >>> from perspex import lax, numpy as jnp
    >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 2)), jnp.ones(2), 1, axis=0)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    axis = canonical_axis(axis, typeof(operand).ndim, "dynamic_update_index_in_dim")
    if typeof(update).ndim == typeof(operand).ndim - 1:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


describe(
    (dynamic_slice_in_dim, dynamic_index_in_dim)
    + (dynamic_update_slice_in_dim, dynamic_update_index_in_dim),
    {"allow_negative_indices": "whether a negative index counts from the end."},
)
