"""Products of block-scaled numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import aval_of
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ir.avals import ShapedArray
from perspex.lax.linear import DotDimensionNumbers, dimensions
from perspex.ops import scaled as ops
from perspex.ops.structural import broadcast_in_dim

__all__ = ["scaled_dot"]


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of two arrays, each times its scales: one scale for a block of numbers.

    Operands and scales become bfloat16 before they are multiplied. It has no derivative.

    Args:
      lhs, rhs: arrays with the same number of axes.
      lhs_scale, rhs_scale: arrays with the axes of their operand. Along contracting axes they have
        fewer elements, by a factor of two or more, each for a block. 1 if not given.
      dimension_numbers: as for `dot_general`; by default the last axis of `lhs` is contracted with
        the last but one of `rhs`, and the axes before are batch axes.
      preferred_element_type: the dtype of the result; bfloat16 if not given.

    Returns:
      An array with the batch axes, the other axes of `lhs`, and those of `rhs`.

    Raises:
      TypeError: for shapes that do not fit.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x, scale = np.ones((1, 4), np.float32), np.full((1, 2), 2.0, np.float32)
    >>> lax.scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type=np.float32)
    Array([[8.]], dtype=float32)
    """
    x, y = aval_of("scaled_dot", lhs), aval_of("scaled_dot", rhs)
    if dimension_numbers is None:
        if x.ndim < 2:
            raise TypeError(
                f"scaled_dot: lhs must have two axes or more, got shape {x.shape}; "
                "give dimension_numbers"
            )
        batch = tuple(range(x.ndim - 2))
        dimension_numbers = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    numbers = dimensions(dimension_numbers)
    contract = numbers[0]
    primitive: Any = ops.scaled_dot
    wanted = ml_dtypes.bfloat16 if preferred_element_type is None else preferred_element_type
    out: Array = primitive(
        lhs,
        rhs,
        _ones(x, contract[0]) if lhs_scale is None else lhs_scale,
        _ones(y, contract[1]) if rhs_scale is None else rhs_scale,
        dimension_numbers=numbers,
        preferred_element_type=dtypes.check_user_dtype(wanted),
    )
    return out


def _ones(aval: ShapedArray, contract: tuple[int, ...]) -> Any:
    shape = tuple([1 if i in contract else n for i, n in enumerate(aval.shape)])
    one = np.ones((), ml_dtypes.float8_e8m0fnu)
    return broadcast_in_dim(one, shape=shape, broadcast_dimensions=())
