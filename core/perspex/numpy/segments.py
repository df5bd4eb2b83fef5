"""Reductions of rows by segment: what `jax.ops` holds.

Row `i` of the data belongs to segment `segment_ids[i]`. In the kernel, and under
`perspex.as_jax`, these are `jax.ops.segment_sum` and its siblings.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.numpy.creation import asarray, full
from perspex.numpy.promotion import Array, ArrayLike, check_arraylike, concrete
from perspex.ops.reductions import highest, lowest


def _reduced(
    name: str,
    method: str,
    initial: Any,
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: Any,
) -> Array:
    check_arraylike(name, data, segment_ids)
    data, ids = asarray(data), asarray(segment_ids)
    if not dtypes.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"{name}: segment_ids must be of integers, got {ids.dtype.name}")
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ValueError(
            f"{name}: segment_ids must be a vector with a number for each row of data, got shape "
            f"{ids.shape} for data of shape {data.shape}"
        )
    if num_segments is None:
        greatest = concrete(f"{name}: num_segments", int, ids.max() if ids.size else -1)
        num_segments = greatest + 1
    count = concrete(f"{name}: num_segments", operator.index, num_segments)
    if count < 0:
        raise ValueError(f"{name}: num_segments must not be negative, got {count}")
    if bucket_size is not None and bucket_size < 1:
        raise ValueError(f"{name}: bucket_size must be positive, got {bucket_size}")
    empty = full((count, *data.shape[1:]), initial(data.dtype), data.dtype)
    if not count:
        return empty
    return getattr(empty.at[ids], method)(
        data,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        wrap_negative_indices=False,
    )


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The sum of the rows of each segment; zero for a segment without rows.

    Args:
      data: an array of shape `(n, ...)`.
      segment_ids: integers of shape `(n,)`: the segment of each row. Rows of segments outside
        `[0, num_segments)` are left out.
      num_segments: how many segments there are; by default up to the greatest number, which must
        then be known, so under `jit` give it.
      indices_are_sorted: promise that the numbers ascend.
      unique_indices: promise that no number comes twice.
      bucket_size: accepted as in JAX, where it bounds how many rows are added at a time; here the
        rows are always reduced in one operation.
      mode: what becomes of rows outside, as for `x.at[...]`.

    Returns:
      An array of shape `(num_segments, ...)` with the dtype of `data`.

    Errors:
      `TypeError` for numbers that are no integers, `ValueError` for shapes that do not fit,
      `ConcretizationTypeError` for traced numbers without `num_segments`.

    >>> import perspex.numpy as jnp
    >>> segment_sum(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([0, 0, 2, 1]))
    Array([3., 4., 3.], dtype=float32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_sum", "add", _zero, data, segment_ids, num_segments, *options)


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The product of the rows of each segment, one for a segment without; else as `segment_sum`.

    >>> import perspex.numpy as jnp
    >>> segment_prod(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([0, 0, 2, 0]))
    Array([8., 1., 3.], dtype=float32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_prod", "multiply", _one, data, segment_ids, num_segments, *options)


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The greatest row of each segment, the lowest number for one without; else as `segment_sum`.

    >>> import perspex.numpy as jnp
    >>> segment_max(jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 0, 2]))
    Array([  2., -inf,   3.], dtype=float32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_max", "max", lowest, data, segment_ids, num_segments, *options)


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The least row of each segment, the highest number for one without; else as `segment_sum`.

    >>> import perspex.numpy as jnp
    >>> segment_min(jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 0, 2]))
    Array([ 1., inf,  3.], dtype=float32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _reduced("segment_min", "min", highest, data, segment_ids, num_segments, *options)


def _zero(dtype: np.dtype) -> Any:
    return 0


def _one(dtype: np.dtype) -> Any:
    return 1
