"""Products of groups of rows, each with a matrix of its own: layers of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import aval_of
from perspex.arguments.refused import check_unsharded
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.lax.linear import PrecisionLike, dot_general
from perspex.ops import elementwise as ops
from perspex.ops.cumulative import cumsum
from perspex.ops.shape import iota
from perspex.ops.structural import broadcast_in_dim, convert, full_like, reduce_sum

__all__ = ["ragged_dot"]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: None = None,
) -> Array:
    """Rows in consecutive groups, each group times its own matrix.

    Every row is multiplied by every matrix and one product is kept: the work is `g` times that of
    one product of matrices, which suits few groups.

    Args:
      lhs: an array of shape `(m, k)`.
      rhs: an array of shape `(g, k, n)`.
      group_sizes: `g` integers: how many rows each group has. Rows behind the last give zeros.
      precision, preferred_element_type: as for `dot_general`.
      group_offset, out_sharding: must be `None`.

    Returns:
      An array of shape `(m, n)`.

    Raises:
      TypeError: for other shapes, and group sizes that are not integers.
      NotImplementedError: for a `group_offset` or a sharding.

    >>> import numpy as np
    >>> from perspex import lax
    >>> experts = np.array([[[1.0], [1.0]], [[10.0], [10.0]]])
    >>> lax.ragged_dot(np.ones((3, 2)), experts, np.array([1, 2]))
    Array([[ 2.],
           [20.],
           [20.]], dtype=float32)
    """
    check_unsharded("ragged_dot", out_sharding)
    if group_offset is not None:
        raise NotImplementedError("ragged_dot: group_offset is not supported; leave it out")
    rows, matrices, sizes = [aval_of("ragged_dot", v) for v in (lhs, rhs, group_sizes)]
    if rows.ndim != 2 or matrices.ndim != 3 or sizes.shape != matrices.shape[:1]:
        raise TypeError(
            "ragged_dot takes lhs of shape (m, k), rhs of shape (g, k, n) and g group sizes; got "
            f"{rows.shape}, {matrices.shape} and {sizes.shape}"
        )
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(f"ragged_dot: group_sizes must be integers, got {sizes.dtype.name}")
    products: Any = dot_general(
        lhs, rhs, (((1,), (1,)), ((), ())), precision, preferred_element_type
    )  # (m, g, n)
    shape = (rows.shape[0], matrices.shape[0])
    ends = cumsum(group_sizes, axis=0, reverse=False)
    starts = ops.sub(ends, group_sizes)
    place = iota(dtype=sizes.dtype, shape=shape, dimension=0)
    first, behind = [
        broadcast_in_dim(v, shape=shape, broadcast_dimensions=(1,)) for v in (starts, ends)
    ]
    mine = ops.bitwise_and(ops.le(first, place), ops.lt(place, behind))
    mask = broadcast_in_dim(mine, shape=products.shape, broadcast_dimensions=(0, 1))
    kept = ops.select(mask, products, full_like(products, 0))
    return convert(reduce_sum(kept, axes=(1,)), products.dtype)
