"""Axes that users give: counted from the front, distinct, and hashable."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from perspex import errors
from perspex.arguments.static import concrete
from perspex.arguments.types import Axis


def canonical_axis(axis: Any, ndim: int, name: str = "") -> int:
    """The axis counted from the front; NumPy's `AxisError` if there is no such axis.

    That is a `ValueError` and an `IndexError`: JAX raises the one or the other. The message begins
    with `name` if there is one.
    """
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(
            f"{name and f'{name}: '}axis {index} is out of bounds for array of dimension {ndim}"
        )
    return index + ndim if index < 0 else index


def canonical_axes(axis: Axis, ndim: int, name: str = "") -> tuple[int, ...]:
    """The axes counted from the front, all of them for `None`; `ValueError` for duplicates."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, int):
        return (canonical_axis(axis, ndim, name),)
    given = axis if isinstance(axis, (tuple, list, np.ndarray)) else (axis,)
    axes = tuple([canonical_axis(a, ndim, name) for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name and f'{name}: '}duplicate value in 'axis': {axis}")
    return axes


def hashable_axis(name: str, axis: Any) -> Any:
    """`axis` as an integer, a tuple of them or `None`: what a static argument can be."""
    if axis is None or axis.__class__ is int:
        return axis
    what = f"{name}: axis"
    try:
        return concrete(what, operator.index, axis)
    except errors.ConcretizationTypeError:
        raise
    except TypeError:
        if not isinstance(axis, Iterable):
            raise TypeError(
                f"{name}: axis must be an integer, a sequence of integers or None, "
                f"got {axis!r} of type {type(axis).__name__}"
            ) from None
    return tuple([concrete(what, operator.index, a) for a in axis])
