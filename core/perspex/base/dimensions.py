"""Sizes of axes: integers, or what stands for one while a function is exported.

A symbolic size (`export.expressions.Dimension`) is in no ordinary program. Code that accepts both
calls `size` where it would have called `operator.index`.
"""

from __future__ import annotations

import operator
from typing import Any


class Symbolic:
    """The base of sizes that are expressions of unknown ones."""

    __slots__ = ()

    def extreme(self, name: str, other: Any) -> Any:
        """The greater (`max`) or the smaller (`min`) of this size and another."""
        raise NotImplementedError

    def __jax_array__(self) -> Any:
        """The value, as an array in the program that is traced."""
        raise NotImplementedError


def size(n: Any) -> Any:
    """The integer that `n` is, or `n` itself if it is symbolic; `TypeError` for anything else."""
    return n if isinstance(n, Symbolic) else operator.index(n)


def is_static(shape: Any) -> bool:
    """Whether all sizes of a shape are integers."""
    return not any(isinstance(n, Symbolic) for n in shape)


def least(one: Any, two: Any) -> Any:
    """The smaller of two sizes, as an expression where it is not known which."""
    if isinstance(one, Symbolic):
        return one.extreme("min", two)
    return two.extreme("min", one) if isinstance(two, Symbolic) else min(one, two)


def greatest(one: Any, two: Any) -> Any:
    """The greater of two sizes, as an expression where it is not known which."""
    if isinstance(one, Symbolic):
        return one.extreme("max", two)
    return two.extreme("max", one) if isinstance(two, Symbolic) else max(one, two)


def is_known(n: Any) -> bool:
    """Whether a place is no array: an integer or a symbolic size."""
    return n.__class__ is int or isinstance(n, Symbolic)


def may_exceed(n: Any, limit: int) -> bool:
    """Whether a size is greater than `limit`, or could be."""
    return isinstance(n, Symbolic) or n > limit


def is_at_least(n: Any, limit: int) -> bool:
    """Whether a size is known to be at least `limit`."""
    return not isinstance(n, Symbolic) and n >= limit


def slice_of(item: slice, n: Any) -> tuple[Any, Any, int, Any]:
    """Start, stop and step, as in `slice.indices`, and how many elements these are.

    >>> slice_of(slice(None, None, -2), 5)
    (4, -1, -2, 3)
    """
    sizes = (n, item.start, item.stop)
    if not any(isinstance(x, Symbolic) for x in sizes):
        start, stop, step = item.indices(n)
        return start, stop, step, len(range(start, stop, step))
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def bound(x: Any, default: Any) -> Any:
        if x is None:
            return default
        x = size(x)
        return greatest(low, least(x + n if x < 0 else x, high))

    first, last = (low, high) if step > 0 else (high, low)
    start, stop = bound(item.start, first), bound(item.stop, last)
    distance = stop - start if step > 0 else start - stop
    count = greatest((distance + abs(step) - 1) // abs(step), 0)
    return start, stop, step, count
