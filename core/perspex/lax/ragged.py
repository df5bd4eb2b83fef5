"""Products of groups of rows, each with a matrix of its own: layers of experts."""

from __future__ import annotations

import functools
from typing import Any

from perspex.arguments.arrays import aval_of
from perspex.arguments.sharded import OutSharding, decided
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.lax.linear import PrecisionLike, preferred_dtype
from perspex.ops import ragged as ops
from perspex.ops.precision import canonical_precision
from perspex.ops.ragged import RaggedDotDimensionNumbers

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]

_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Rows in consecutive groups, each group times its own matrix.

    Every row is multiplied by every matrix, or by zero: the work is `g` times that of one product
    of matrices, which suits few groups.

    Args:
      lhs: an array of shape `(m, k)`.
      rhs: an array of shape `(g, k, n)`.
      group_sizes: `g` integers: how many rows each group has. Rows behind the last give zeros.
      precision, preferred_element_type: as for `dot_general`.
      group_offset, out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array of shape `(m, n)`.

    Raises:
      TypeError: for other shapes, and group sizes that are not integers.
      NotImplementedError: for a `group_offset`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> experts = np.array([[[1.0], [1.0]], [[10.0], [10.0]]])
    >>> lax.ragged_dot(np.ones((3, 2)), experts, np.array([1, 2]))
    Array([[ 2.],
           [20.],
           [20.]], dtype=float32)
    """
    rows, matrices, sizes = [aval_of("ragged_dot", v) for v in (lhs, rhs, group_sizes)]
    if rows.ndim != 2 or matrices.ndim != 3 or sizes.shape != matrices.shape[:1]:
        raise TypeError(
            "ragged_dot takes lhs of shape (m, k), rhs of shape (g, k, n) and g group sizes; got "
            f"{rows.shape}, {matrices.shape} and {sizes.shape}"
        )
    return ragged_dot_general(
        lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sums of products in which one axis of `lhs` is in consecutive groups.

    With batch axes `b`, and one axis of each kind:

    * the ragged axis `m` is kept: `[b, m, k]` and `[g, b, k, n]` give `[b, m, n]`; each group has
      its own matrices, and rows behind the last group give zeros;
    * the ragged axis `k` is contracted: `[b, m, k]` and `[b, k, n]` give `[g, b, m, n]`, the sum
      over each group;
    * the ragged axis `b` is a batch axis: `[b, m, k]` and `[b, k, n]` give `[b, m, n]`, whatever
      the groups are.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers: how long each group is. Of shape `(g,)`, or with the sizes of the batch
        axes and the other axes before the ragged one in front.
      ragged_dot_dimension_numbers: which axis is what.
      precision, preferred_element_type: as for `dot_general`.
      group_offset: must be `None`.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`. The compiler
        decides how all else lies.

    Returns:
      An array of the shape above.

    Raises:
      TypeError: for axes that are not there or do not match, and group sizes that are not integers.
      NotImplementedError: for a `group_offset`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> numbers = lax.RaggedDotDimensionNumbers((([0], [0]), ([], [])), [0], [])
    >>> lax.ragged_dot_general(np.ones((3, 1)), np.ones((3, 1)), np.array([1, 2]), numbers)
    Array([[[1.]],
    <BLANKLINE>
           [[2.]]], dtype=float32)
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general: group_offset is not supported; leave it out")
    for operand in (lhs, rhs, group_sizes):
        aval_of("ragged_dot_general", operand)
    multiply: Any = functools.partial(
        ops.ragged_dot_general,
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_dtype(preferred_element_type),
    )
    out: Array = decided(out_sharding, multiply, lhs, rhs, group_sizes)
    return out
