"""All partial results of an associative operation, in logarithmic depth.

The recursion after Blelloch, "Prefix sums and their applications" (1990): combine neighbours, scan
the half as many values, and combine again for the places in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perspex.ops.elementwise import add, bitwise_or
from perspex.ops.shape import concatenate, pad, slice
from perspex.tracing.trace import typeof


def prefixes(
    combine: Callable[[Sequence[Any], Sequence[Any]], list[Any]],
    xs: Sequence[Any],
    length: int,
    axis: int,
) -> list[Any]:
    """The combinations of the first 1, 2, 3, ... elements of arrays of `length` along an axis.

    `combine` takes two lists of arrays, cut along the axis, and returns one.
    """
    if length < 2:
        return list(xs)
    # Pairs (x0 x1), (x2 x3), ..., and the results after each of them: those at the odd places.
    pairs = combine(
        [_every(x, axis, 0, length - 1) for x in xs], [_every(x, axis, 1, length) for x in xs]
    )
    odd = prefixes(combine, pairs, length // 2, axis)
    # An even place has the one before it and its own element.
    before = [_every(x, axis, 0, (length - 1) // 2, 1) for x in odd]
    even = combine(before, [_every(x, axis, 2, length) for x in xs])
    first = [_every(x, axis, 0, 1, 1) for x in xs]
    even = [concatenate(x, y, dimension=axis) for x, y in zip(first, even, strict=True)]
    return [_interleaved(x, y, axis, length) for x, y in zip(even, odd, strict=True)]


def _every(x: Any, axis: int, start: int, stop: int, step: int = 2) -> Any:
    """The elements along `axis` from `start` to `stop`, in steps."""
    shape = typeof(x).shape
    starts, stops, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], stops[axis], steps[axis] = min(start, stop), stop, step
    return slice(x, start_indices=tuple(starts), limit_indices=tuple(stops), strides=tuple(steps))


def _interleaved(even: Any, odd: Any, axis: int, length: int) -> Any:
    """The two in turns: each takes every other place, and zeros do not count."""
    aval = typeof(even)
    zero = aval.dtype.type(0)
    none = (0, 0, 0)

    def at_every_other(x: Any, low: int, high: int) -> Any:
        around = [none] * aval.ndim
        around[axis] = (low, high, 1)
        return pad(x, zero, padding_config=tuple(around))

    left, right = at_every_other(even, 0, 1 - length % 2), at_every_other(odd, 1, length % 2)
    return bitwise_or(left, right) if aval.dtype == bool else add(left, right)
