"""Sorting and the greatest elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import aval_of
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.ops import sorting as ops

__all__ = ["approx_max_k", "approx_min_k", "sort", "sort_key_val", "top_k"]


@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> tuple[Array, ...]: ...
@overload
def sort(
    operand: ArrayLike, dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> Array: ...
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort along an axis; several arrays together, by the first of them.

    NaNs come last, complex numbers go by real part first.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the axis to sort along.
      is_stable: keep the order of equal elements.
      num_keys: how many of the arrays to go by; the later ones count where the earlier are equal.

    Returns:
      The array or the tuple of arrays, rearranged.

    Raises:
      TypeError: for no arrays or different shapes.
      ValueError: for an axis that is not there or a wrong number of keys.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.sort((np.array([2, 0, 1]), np.array([10, 20, 30])))
    (Array([0, 1, 2], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("sort requires at least one operand, got an empty sequence")
    axis = canonical_axis(dimension, aval_of("sort", operands[0]).ndim, "sort")
    keys = operator.index(num_keys)
    out = ops.sort(*operands, dimension=axis, is_stable=bool(is_stable), num_keys=keys)
    return tuple(out) if several else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort `keys` along an axis, and `values` with them.

    Args:
      keys: an array of numbers or booleans.
      values: an array of the same shape.
      dimension: the axis to sort along.
      is_stable: keep the order of equal keys.

    Returns:
      The sorted keys and the rearranged values, arrays of the same shapes and dtypes.

    Raises:
      TypeError: for different shapes.
      ValueError: for an axis that is not there.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.sort_key_val(np.array([3.0, 1.0]), np.array([10, 20]))
    (Array([1., 3.], dtype=float32), Array([20, 10], dtype=int32))
    """
    ordered, moved = sort((keys, values), dimension=dimension, is_stable=is_stable)
    return ordered, moved


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """The `k` greatest elements along an axis, in descending order, and where they are.

    Of equal elements the first come first. NaNs are greatest.

    Args:
      operand: an array of real numbers or booleans, with at least `k` elements along `axis`.
      k: how many elements to find.
      axis: the axis to go along.
      is_stable: keep the order of equal elements.

    Returns:
      A list of the elements and their int32 positions, both with size `k` along `axis`.

    Raises:
      ValueError: for a wrong `k` or axis, or for complex numbers.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.top_k(np.array([3, 1, 4, 1, 5]), 2)
    [Array([5, 4], dtype=int32), Array([4, 2], dtype=int32)]
    """
    at = canonical_axis(axis, aval_of("top_k", operand).ndim, "top_k")
    return ops.top_k(operand, axis=at, is_stable=bool(is_stable), k=operator.index(k))


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` greatest elements along an axis, some of which may be missing; here none is.

    Accelerators that find most of them faster are allowed to. On a CPU the answer is exact.

    Args:
      aggregate_to_topk: `False` asks for candidates that are left to be sorted: here, all elements.

    Returns:
      A list of the elements, in descending order, and their int32 positions.

    Raises:
      ValueError: for a wrong `k`, axis or target, or numbers that are not floats.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.approx_max_k(np.array([3.0, 1.0, 4.0]), 2)
    [Array([4., 3.], dtype=float32), Array([2, 0], dtype=int32)]
    """
    return _approximately(
        "approx_max_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` least elements along an axis, some of which may be missing; here none is.

    Accelerators that find most of them faster are allowed to. On a CPU the answer is exact.

    Args:
      aggregate_to_topk: `False` asks for candidates that are left to be sorted: here, all elements.

    Returns:
      A list of the elements, in ascending order, and their int32 positions.

    Raises:
      ValueError: for a wrong `k`, axis or target, or numbers that are not floats.

    >>> import numpy as np
    >>> from perspex import lax
    >>> lax.approx_min_k(np.array([3.0, 1.0, 4.0]), 2)
    [Array([1., 3.], dtype=float32), Array([1, 0], dtype=int32)]
    """
    return _approximately(
        "approx_min_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def _approximately(
    name: str,
    operand: ArrayLike,
    k: int,
    axis: int,
    recall_target: float,
    whole_size: int,
    aggregate: bool,
) -> list[Array]:
    aval = aval_of(name, operand)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError(f"{name}: operand must be a floating type, got {aval.dtype.name}")
    at = canonical_axis(axis, aval.ndim, name)
    if not 0 <= operator.index(k) <= aval.shape[at]:
        raise ValueError(
            f"{name}: k must be smaller than the size of reduction_dim {aval.shape[at]}, got {k}"
        )
    if not 0 < recall_target <= 1:
        raise ValueError(f"{name}: recall_target must be between 0 and 1, got {recall_target}")
    found: list[Array] = ops.approx_top_k(
        operand,
        k=operator.index(k),
        reduction_dimension=operator.index(axis),
        recall_target=recall_target,
        is_max_k=name == "approx_max_k",
        reduction_input_size_override=operator.index(whole_size),
        aggregate_to_topk=bool(aggregate),
    )
    return found


describe(
    (approx_max_k, approx_min_k),
    {
        "operand": "an array of floats, with at least `k` elements along `reduction_dimension`.",
        "k": "how many elements to find.",
        "reduction_dimension": "the axis to go along.",
        "recall_target": "the part of them that must be found, between 0 and 1.",
        "reduction_input_size_override": "the size of the whole, where `operand` is a part of it.",
    },
)
