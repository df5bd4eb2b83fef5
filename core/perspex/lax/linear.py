"""Products of matrices and of arrays with more axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from perspex import dtypes
from perspex.arguments.arrays import aval_of
from perspex.arguments.sharded import OutSharding, asked
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ops import linear as ops
from perspex.ops.precision import DotAlgorithm, DotAlgorithmPreset, Precision, canonical_precision

__all__ = ["DotDimensionNumbers", "PrecisionLike", "batch_matmul", "dot", "dot_general"]

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""`((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`: the axes of a `dot_general`."""

PrecisionLike = (
    str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
    | None
)
"""What says how products are computed: a `Precision`, its name, a pair for both operands, an
algorithm, the name of a preset, or nothing."""


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Sums of products over contracting axes, for each index of the batch axes.

    Args:
      lhs, rhs: arrays. Of two dtypes, the one with the wider range is that of the product.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, axes in
        corresponding order.
      precision: how exactly accelerators multiply, or a `DotAlgorithm` or `DotAlgorithmPreset`;
        `default_matmul_precision` if not given.
      preferred_element_type: the dtype to accumulate in, which is that of the result.
      out_sharding: how the result lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array with the batch axes, the other axes of `lhs`, and those of `rhs`.

    Raises:
      TypeError: for axes that are not there or do not match, or a preferred type that is too
        narrow.
      ValueError: for an unknown precision, and when compiling for an algorithm that the platform
        does not have.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x = np.arange(6.0).reshape(2, 3)
    >>> lax.dot_general(x, x, (((1,), (1,)), ((), ())))
    Array([[ 5., 14.],
           [14., 50.]], dtype=float32)
    """
    return ops.dot_general(
        lhs,
        rhs,
        dimension_numbers=dimensions(dimension_numbers),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_dtype(preferred_element_type),
        **asked("dot_general", out_sharding),
    )


def dimensions(given: Any) -> ops.Dimensions:
    """A user's dimension numbers; `TypeError` if they are none."""
    try:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = given
        contract = _axes(lhs_contract), _axes(rhs_contract)
        return ops.Dimensions((contract, (_axes(lhs_batch), _axes(rhs_batch))))
    except (TypeError, ValueError):
        raise TypeError(
            "dot_general: dimension_numbers must be ((lhs_contracting, rhs_contracting), "
            f"(lhs_batch, rhs_batch)), sequences of integers; got {given!r}"
        ) from None


def _axes(axes: Any) -> tuple[int, ...]:
    if isinstance(axes, Sequence):
        return tuple([operator.index(a) for a in axes])
    return (operator.index(axes),)


def preferred_dtype(dtype: Any) -> Any:
    """The dtype that a user prefers for a product; `None` says nothing."""
    # Not `check_user_dtype`: a float64 that is not enabled becomes float32 without a warning.
    return None if dtype is None else dtypes.canonicalize_dtype(dtype)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of two vectors or matrices; `dot_general` when given `dimension_numbers`.

    Args:
      lhs, rhs: arrays of one or two axes; the last of `lhs` has the size of the first of `rhs`.
      dimension_numbers, precision, preferred_element_type, out_sharding: as for `dot_general`.

    Returns:
      An array with the axes of `lhs` but the last, and of `rhs` but the first.

    Raises:
      ValueError: for operands of other shapes without `dimension_numbers`, or an unknown precision.
      TypeError: as `dot_general`.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.dot(np.array([1, 2]), np.array([[3], [4]]))
    Array([11], dtype=int32)
    """
    if dimension_numbers is None:
        left, right = aval_of("dot", lhs).shape, aval_of("dot", rhs).shape
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise ValueError(
                "dot: dimension_numbers must be given where the operands are not vectors or "
                f"matrices that fit each other; got shapes {left} and {right}"
            )
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Products of matrices, the last two axes, for each index of the leading axes.

    Args:
      lhs: an array of shape `(..., n, k)`.
      rhs: an array of shape `(..., k, m)` with the same leading sizes.
      precision: as for `dot_general`.

    Returns:
      An array of shape `(..., n, m)`.

    Raises:
      ValueError: for fewer than two axes or different numbers of axes.
      TypeError: for sizes that do not match.

    >>> import numpy as np
    >>> from perspex import lax
    >>> x = np.ones((5, 2, 3))
    >>> lax.batch_matmul(x, x.swapaxes(1, 2)).shape
    (5, 2, 2)
    """
    left, right = aval_of("batch_matmul", lhs).ndim, aval_of("batch_matmul", rhs).ndim
    if left != right or left < 2:
        raise ValueError(
            "batch_matmul: both operands must have the same number of axes, two or more; got "
            f"{left} and {right}"
        )
    batch = tuple(range(left - 2))
    return dot_general(lhs, rhs, (((left - 1,), (left - 2,)), (batch, batch)), precision)
