"""What all sparse formats share: errors, the facts about a matrix, batches that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.api.mapping import vmap
from perspex.ops.structural import squeeze

__all__ = [
    "CuSparseEfficiencyWarning",
    "Shape",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "nfold_vmap",
]

Shape: TypeAlias = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """A step would store many more numbers than the sparse array has."""


class SparseEfficiencyWarning(UserWarning):
    """A step stores many more numbers than the sparse array has."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """In JAX, a step that its GPU library lacks. Perspex has one form for all platforms."""


class SparseInfo(NamedTuple):
    """What is known about a sparse array besides its numbers and their places."""

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


def nfold_vmap(
    fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0
) -> Callable[..., Any]:
    """Map a function of arrays over its first `N` axes.

    Args:
      fun: a function of arrays, which returns an array or a tuple of arrays.
      N: how many axes to map over.
      broadcasted: whether an axis of length 1 fits every length.
      in_axes: 0, or for each argument 0 or `None` for one that is the same for all examples.

    Returns:
      A function of arrays with `N` more axes.

    Raises:
      ValueError: for axes whose lengths do not fit.

    >>> import perspex.numpy as jnp
    >>> nfold_vmap(jnp.dot, 1)(jnp.ones((3, 2)), jnp.ones((1, 2)))
    Array([2., 2., 2.], dtype=float32)
    """
    for _ in range(N):
        fun = _broadcasting(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun


def _broadcasting(fun: Callable[..., Any], in_axes: Any) -> Callable[..., Any]:
    def mapped(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) else in_axes
        sizes = {x.shape[0] for x, at in zip(args, axes, strict=True) if at is not None} - {1}
        if len(sizes) > 1:
            raise ValueError(f"batches of sizes {sorted(sizes)} do not broadcast")
        if not sizes:
            return vmap(fun, axes)(*args)
        one = [at is not None and x.shape[0] == 1 for x, at in zip(args, axes, strict=True)]
        given = [squeeze(x, dimensions=(0,)) if o else x for x, o in zip(args, one, strict=True)]
        return vmap(fun, tuple(None if o else at for o, at in zip(one, axes, strict=True)))(*given)

    return mapped


def check(fits: bool, message: str, kind: type[Exception] = ValueError) -> None:
    """Raise an error unless something fits."""
    if not fits:
        raise kind(message)


def cut(xs: Sequence[Any], *sizes: int) -> list[tuple[Any, ...]]:
    """The first, the next, ..., and the remaining elements of a sequence."""
    parts, start = [], 0
    for size in sizes:
        parts.append(tuple(xs[start : start + size]))
        start += size
    return [*parts, tuple(xs[start:])]


def without(count: int, *gone: Sequence[int]) -> list[int]:
    """The numbers below `count` that stand in none of the sequences."""
    left = set(range(count)).difference(*gone)
    return sorted(left)


def axis_of(axis: int, ndim: int) -> int:
    """An axis from the front; `ValueError` if there is none."""
    check(-ndim <= axis < ndim, f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def check_indices(indices: Any, what: str = "indices") -> None:
    """Raise `TypeError` unless an array holds integers."""
    check(
        dtypes.issubdtype(indices.dtype, np.integer),
        f"{what} of a sparse array must be integers, got {indices.dtype.name}",
        TypeError,
    )


def stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """The number of elements to store for each batch: the most that any has."""
    mask = pnp.asarray(mat) != 0
    if n_dense:
        mask = mask.any(tuple(range(mask.ndim - n_dense, mask.ndim)))
    return mask.sum(tuple(range(n_batch, mask.ndim))).max(initial=0)


def rows_of(indices: Any, indptr: Any) -> Any:
    """The row of each element of a matrix in compressed rows.

    An element beyond the last row that `indptr` tells of gets the number of rows.
    """
    return pnp.cumsum(pnp.zeros_like(indices).at[indptr].add(1)) - 1
