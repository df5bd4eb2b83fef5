"""Shapes that users give, and the common shape of several."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perspex.arguments.static import integers
from perspex.base.dimensions import is_static

_RULE = "sizes must be equal or 1, counted from the last axis"


# NumPy makes an array of each shape to find the common one, which takes 5 us.
@functools.lru_cache(maxsize=1024)
def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape by NumPy's rules; `ValueError` if there is none."""
    if all([is_static(shape) for shape in shapes]):
        return np.broadcast_shapes(*shapes)
    ndim = max(map(len, shapes))
    rows = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    found = []
    for sizes in zip(*rows, strict=True):
        others = {n for n in sizes if n != 1}
        if len(others) > 1:
            raise ValueError(f"shapes differ in an axis: {sizes}")
        found.append(others.pop() if others else 1)
    return tuple(found)


def canonical_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape from an integer or a sequence of them; they must be known while tracing.

    Raises `TypeError` for everything else, and for negative sizes.
    """
    ordered = hasattr(type(shape), "__getitem__") and not isinstance(shape, Mapping)
    if not ordered and np.iterable(shape):
        raise TypeError(
            f"{name} expected a sequence or a single integer for the shape, got {type(shape)}"
        )
    return iterated_shape(name, shape)


def iterated_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape from an integer or any iterable of them: generators and sets, too, as in `lax`."""
    if shape.__class__ is int:
        shape = (shape,)
    elif shape.__class__ is not tuple:
        scalar = not np.iterable(shape) and hasattr(shape, "__index__")
        if scalar or getattr(shape, "ndim", None) == 0:
            shape = (shape,)
    sizes = integers(name, "a shape", shape)
    for n in sizes:
        if n.__class__ is int and n < 0:
            raise TypeError(f"{name}: a shape has no negative sizes, got {sizes}")
    return sizes


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of `shapes` by NumPy's rules of broadcasting."""
    try:
        return common_shape(*shapes)
    except ValueError:
        kind = TypeError if len({len(s) for s in shapes}) == 1 else ValueError
        raise kind(
            f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}; "
            f"{_RULE}"
        ) from None


def joint_shape(shapes: Sequence[tuple[int, ...]], rule: str = _RULE) -> tuple[int, ...]:
    """The common shape of all; a `ValueError` that quotes the `rule` if there is none."""
    try:
        return common_shape(*shapes)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={list(shapes)}; {rule}"
        ) from None


def positive_sizes(name: str, sizes: Any) -> tuple[int, ...]:
    """Sizes of axes that may not be empty; `ValueError` for those below 1."""
    found = integers(name, "the sizes", sizes)
    if any(n < 1 for n in found):
        raise ValueError(f"{name}: Shape should be positive, got {found}")
    return found
