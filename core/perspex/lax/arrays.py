"""What the functions of `lax` check before they bind: array arguments, axes, shapes, dtypes.

`lax` is strict where `numpy` is generous: nothing is promoted, and lists are not arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.types import Array
from perspex.ir.avals import ShapedArray
from perspex.ops.structural import convert, convert_element_type
from perspex.tracing import array_type
from perspex.tracing.trace import typeof


def as_array(x: Any) -> Array:
    """`x` as an array of ours: what a function returns that leaves its argument as it is."""
    if isinstance(x, array_type.Array):
        return x
    aval = typeof(x)
    return convert_element_type(x, new_dtype=aval.dtype, weak_type=aval.weak_type)


def aval_of(name: str, x: Any) -> ShapedArray:
    """The type of an operand; a `TypeError` with the name of the function if it has none."""
    try:
        return typeof(x)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def integers(name: str, what: str, values: Any) -> tuple[int, ...]:
    """A sequence of integers that are known while tracing; `TypeError` for anything else."""
    if values.__class__ is tuple and all([v.__class__ is int for v in values]):
        return values
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: {what} must be a sequence of integers, got {values!r}")
    try:
        return tuple([operator.index(v) for v in values])
    except TypeError:
        if any(hasattr(v, "_trace") for v in values):
            raise
        raise TypeError(
            f"{name}: {what} must be a 1D sequence of concrete integers, got {values}"
        ) from None


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape: one integer or a sequence of them, none negative."""
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    sizes = integers(name, "the shape", shape)
    if any(n < 0 for n in sizes):
        raise TypeError(f"{name}: a shape must not have negative entries, got {sizes}")
    return sizes


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front; `ValueError` if there is no such axis."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise ValueError(f"{name}: axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def axes_of(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; `ValueError` if one is missing or comes twice."""
    found = tuple([axis_of(name, a, ndim) for a in axes])
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: repeated axis in {tuple(axes)}")
    return found


def dtype_of(name: str, dtype: Any) -> Any:
    """The dtype that a user names; `ValueError` for `None`."""
    if dtype is None:
        raise ValueError(f"{name}: dtype must be specified")
    return dtypes.check_user_dtype(dtype, name)


def check_unsharded(name: str, sharding: Any) -> None:
    """Raise `NotImplementedError` if the caller asks for a sharding, as meshes with types take."""
    if sharding is not None:
        raise NotImplementedError(
            f"{name}: out_sharding is not supported; constrain the result with "
            "lax.with_sharding_constraint"
        )


def check_equal_dtypes(name: str, avals: Sequence[ShapedArray]) -> None:
    """Raise `TypeError` unless all dtypes are equal."""
    if any(a.dtype != avals[0].dtype for a in avals):
        found = ", ".join([a.dtype.name for a in avals])
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {found}; convert them, "
            "or use the function of `perspex.numpy`, which promotes"
        )


def inexact_operands(name: str, *xs: Any) -> list[Any]:
    """The operands of `name`; those that are not inexact are converted to floats."""
    out = []
    for x in xs:
        aval = aval_of(name, x)
        if not aval.is_extended and not dtypes.issubdtype(aval.dtype, np.inexact):
            x = convert(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)
        out.append(x)
    return out
