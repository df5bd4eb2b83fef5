"""Reductions of rows by segment, as in `jax.ops`.

Row `i` of the data belongs to segment `segment_ids[i]`. In the kernel, and under
`perspex.as_jax`, these are `jax.ops.segment_sum` and its siblings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import check_arraylike
from perspex.arguments.glossary import describe
from perspex.arguments.sharded import WORDS, OutSharding
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.numpy.creation import asarray, full
from perspex.ops.reductions import highest, lowest

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segments(
    name: str,
    method: str,
    empty: Callable[[np.dtype], Any],
    summary: str,
    example: str,
    printed: str,
) -> Callable[..., Array]:
    """A reduction by the `method` of `x.at[...]`; a segment without rows has the number `empty`."""

    def reduction(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        check_arraylike(name, data, segment_ids)
        data, ids = asarray(data), asarray(segment_ids)
        if not dtypes.issubdtype(ids.dtype, np.integer):
            raise TypeError(f"{name}: segment_ids must be of integers, got {ids.dtype.name}")
        if ids.ndim != 1 or data.shape[:1] != ids.shape:
            raise ValueError(
                f"{name}: segment_ids must be a vector with a number for each row of data, got "
                f"shape {ids.shape} for data of shape {data.shape}"
            )
        if num_segments is None:
            greatest = concrete(f"{name}: num_segments", int, ids.max() if ids.size else -1)
            num_segments = greatest + 1
        count = concrete(f"{name}: num_segments", operator.index, num_segments)
        if count < 0:
            raise ValueError(f"{name}: num_segments must not be negative, got {count}")
        if bucket_size is not None and bucket_size < 1:
            raise ValueError(f"{name}: bucket_size must be positive, got {bucket_size}")
        out = full((count, *data.shape[1:]), empty(data.dtype), data.dtype)
        if not count:
            return out
        return getattr(out.at[ids], method)(
            data,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=False,
            out_sharding=out_sharding,
        )

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = (
        f"{summary}\n\n>>> import perspex.numpy as jnp\n>>> ids = jnp.array([0, 0, 2, 0])\n"
        f">>> {example}\n{printed}\n"
    )
    return reduction


# fmt: off
segment_sum = _segments("segment_sum", "add", lambda dtype: 0,
    "The sum of the rows of each segment; 0 for a segment without rows.",
    "segment_sum(jnp.array([1.0, 2.0, 3.0, 4.0]), ids)", "Array([7., 0., 3.], dtype=float32)")
segment_prod = _segments("segment_prod", "multiply", lambda dtype: 1,
    "The product of the rows of each segment; 1 for a segment without rows.",
    "segment_prod(jnp.array([1.0, 2.0, 3.0, 4.0]), ids)", "Array([8., 1., 3.], dtype=float32)")
segment_max = _segments("segment_max", "max", lowest,
    "The greatest element of each segment; the lowest number for a segment without rows.",
    "segment_max(jnp.array([1.0, 2.0, 3.0, 4.0]), ids)", "Array([  4., -inf,   3.], dtype=float32)")
segment_min = _segments("segment_min", "min", highest,
    "The least element of each segment; the highest number for a segment without rows.",
    "segment_min(jnp.array([1.0, 2.0, 3.0, 4.0]), ids)", "Array([ 1., inf,  3.], dtype=float32)")
# fmt: on

describe(
    [segment_sum, segment_prod, segment_max, segment_min],
    {
        "data": "an array of shape `(n, ...)`.",
        "segment_ids": "integers of shape `(n,)`: the segment of each row. Rows of segments\n"
        "outside `[0, num_segments)` are left out.",
        "num_segments": "the number of segments; by default up to the greatest number, which must\n"
        "then be known: give it under `jit`.",
        "indices_are_sorted": "promise that `segment_ids` ascend.",
        "unique_indices": "promise that no number comes twice.",
        "bucket_size": "has no effect: all rows are reduced in one operation.",
        "mode": "how to treat rows outside, as for `x.at[...]`.",
        "out_sharding": WORDS,
    },
    "TypeError: if `segment_ids` is not of integers, or an argument not an array.\n"
    "ValueError: for shapes that do not fit, a negative `num_segments` or `bucket_size`.\n"
    "ConcretizationTypeError: for traced `segment_ids` without `num_segments`.",
    "An array of shape `(num_segments, ...)` with the dtype of `data`.",
)
