"""`r_` and `c_`: arrays put together by indexing, and `mask_indices`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.arguments.arrays import expand
from perspex.arguments.axes import canonical_axis
from perspex.arguments.types import Array
from perspex.numpy.axes import transpose
from perspex.numpy.creation import asarray, ones
from perspex.numpy.joining import concatenate
from perspex.numpy.ranges import arange, linspace
from perspex.numpy.selection import nonzero

__all__ = ["c_", "mask_indices", "r_"]


class Concatenator:
    """What is between the brackets, one after another: arrays, numbers, and slices as ranges.

    `start:stop:step` is an `arange`; with an imaginary step, `start:stop:5j`, five points of a
    `linspace`. A string in front gives up to three integers: the axis to concatenate along, the
    least number of axes of each part, and where axes that parts have go among these.

    >>> import perspex.numpy as jnp
    >>> jnp.r_[1:4, 0, jnp.array([7])]
    Array([1, 2, 3, 0, 7], dtype=int32)
    >>> jnp.c_[jnp.arange(2), jnp.zeros(2)]
    Array([[0., 0.],
           [1., 0.]], dtype=float32)
    """

    __slots__ = ("axis", "name", "ndmin", "trans1d")

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self.name, self.axis, self.ndmin, self.trans1d = name, axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        if items and isinstance(items[0], str):
            try:
                given = [int(word) for word in items.pop(0).split(",")]
                axis, ndmin, trans1d = (*given, *(axis, ndmin, trans1d)[len(given) :])
            except ValueError:
                raise ValueError(
                    f"{self.name}: the string in front must hold up to three integers, as in "
                    f"'0,2,-1', got {key[0] if isinstance(key, tuple) else key!r}"
                ) from None
        parts = [_placed(_part(item), ndmin, trans1d) for item in items]
        if not parts:
            raise ValueError(f"{self.name}: there is nothing to concatenate")
        return concatenate(parts, axis=canonical_axis(axis, parts[0].ndim))


def _part(item: Any) -> Any:
    if not isinstance(item, slice):
        return asarray(item)
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    if isinstance(step, complex):
        return linspace(start, item.stop, int(abs(step)))
    return arange(start, item.stop, step)


def _placed(x: Any, ndmin: int, trans1d: int) -> Any:
    """A part with axes in front until there are `ndmin`, its own where `trans1d` says."""
    if not x.ndim:
        return expand(x, range(ndmin))
    own = x.ndim
    if own >= ndmin:
        return x
    x = expand(x, range(ndmin - own))
    if trans1d == -1:
        return x
    first = trans1d if trans1d >= 0 else trans1d + ndmin - own + 1
    order = list(range(ndmin - own))
    order[first:first] = range(ndmin - own, ndmin)
    return transpose(x, order)


r_ = Concatenator("r_", axis=0, ndmin=1, trans1d=-1)
c_ = Concatenator("c_", axis=-1, ndmin=2, trans1d=0)


def mask_indices(
    n: int, mask_func: Callable[[Array, int], Array], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Arrays that index the elements that a function such as `triu` keeps of a square array.

    Args:
      n: the size of the two axes.
      mask_func: `mask_func(x, k)` sets elements of `x`, of shape `(n, n)`, to zero.
      k: passed on to `mask_func`.
      size: how many places to give, as for `nonzero`; needed while tracing.

    Returns:
      Two int32 arrays: the rows and columns of the elements that are not zero.

    Raises:
      TypeError: for an `n` that is negative or not an integer.
      ConcretizationTypeError: for a traced mask without `size`.

    >>> import perspex.numpy as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    side = operator.index(n)
    return nonzero(mask_func(ones((side, side), np.int32), k), size=size)
