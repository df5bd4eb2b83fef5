"""Operands: which values are arrays, and the array of a type, dtype or shape made from one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.types import Array, ArrayLike
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ops.structural import broadcast_in_dim, convert, convert_element_type, reshape
from perspex.runtime.dispatch import constant
from perspex.tracing.array_methods import declared_array, is_operand
from perspex.tracing.staging import JaxprTracer
from perspex.tracing.trace import Reference


def check_arraylike(name: str, *args: Any) -> None:
    """Raise `TypeError` for lists, strings and other values that are not arrays or numbers."""
    for i, arg in enumerate(args):
        if arg.__class__ is not JaxprTracer and not is_operand(declared_array(arg)):
            at = f" at position {i}" if len(args) > 1 else ""
            remedy = (
                "; convert it with jnp.array(...)"
                if isinstance(arg, (list, tuple, range))
                else "; read its value with `ref[...]`"
                if isinstance(arg, Reference)
                else "; pass an array or a number"
            )
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(arg)}{at}{remedy}"
            )


def arraylike(name: str, x: Any) -> Array:
    """One operand as an array of ours; `TypeError` for lists and other values."""
    if hasattr(x, "aval"):
        return x
    check_arraylike(name, x)
    return as_array(declared_array(x))


def aval_of(name: str, x: Any) -> ShapedArray:
    """The type of an operand; a `TypeError` with the name of the function if it has none."""
    try:
        return shaped(x)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def as_array(x: ArrayLike) -> Array:
    """An array of ours from what `check_arraylike` lets through."""
    return x if hasattr(x, "aval") else constant(x, shaped(x))  # type: ignore[return-value]


def scalar(x: Any, dtype: np.dtype) -> Any:
    """A number of Python as one of a dtype. An integer that does not fit wraps, as arrays do.

    Raises `OverflowError` if it does not fit the default integer dtype either.
    """
    try:
        return dtype.type(x)
    except OverflowError:
        if not dtypes.issubdtype(dtype, np.integer):
            raise
        return np.asarray(x, shaped(x).dtype).astype(dtype)[()]


def as_dtype(x: Any, dtype: np.dtype, weak: bool = False) -> Array:
    """`x` as `dtype`: a number becomes a number of that dtype, an array is converted if need be."""
    if x.__class__ in PYTHON_SCALARS:
        return constant(x, ShapedArray((), dtype, True)) if weak else scalar(x, dtype)
    aval = getattr(x, "aval", None)
    if aval is None:
        if not weak:
            if not hasattr(x, "dtype"):  # a subclass of Python's numbers, such as an IntEnum
                return scalar(x, dtype)
            return x.astype(dtype) if x.dtype != dtype else x
    elif aval.dtype == dtype and aval.weak_type == weak:
        return x
    return convert_element_type(x, new_dtype=dtype, weak_type=weak)


def with_weak_cotangents(operation: Callable[..., Array], *args: Any) -> Array:
    """The result of an operation; cotangents of weakly typed arguments are weakly typed.

    Its derivative has products that are strong beside a strong argument. So the arguments are
    converted, and their cotangents are converted back.
    """
    avals = [shaped(x) for x in args]
    out = operation(*[as_dtype(x, a.dtype) for x, a in zip(args, avals, strict=True)])
    return as_dtype(out, avals[0].dtype, all(a.weak_type for a in avals))


def like(x: Any, value: Any) -> Array:
    """The number `value` in the dtype of `x`; weakly typed if `x` is a weakly typed scalar."""
    aval = getattr(x, "aval", None)
    if aval is not None and aval.weak_type and not aval.shape:
        return constant(value, aval)
    return x.dtype.type(value)


def weak_like(x: Any, value: Any) -> Array:
    """The number `value` in the dtype of `x`; weakly typed if `x` is, whatever its shape."""
    aval = getattr(x, "aval", None)
    if aval is not None and aval.weak_type:
        return constant(value, ShapedArray((), aval.dtype, True))
    return x.dtype.type(value)


def spread(
    x: Any, shape: tuple[int, ...], error: type[Exception] = ValueError, sharding: Any = None
) -> Array:
    """`x` repeated to fill `shape`, cut as `sharding` says; an equation unless it has that shape.

    Raises `error` if the shapes do not fit.
    """
    given = np.shape(x)
    if given == shape and sharding is None:
        return as_array(x)
    skip = len(shape) - len(given)
    if skip < 0 or any([n not in (1, m) for n, m in zip(given, shape[skip:], strict=True)]):
        raise error(f"incompatible shapes for broadcasting: {given} to {shape}")
    dims = tuple(range(skip, len(shape)))
    if sharding is not None:
        return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims, sharding=sharding)
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def spread_array(x: Any, shape: tuple[int, ...], error: type[Exception] = ValueError) -> Any:
    """`x` repeated to fill `shape`; scalars stay scalars, which operations spread themselves."""
    return spread(x, shape, error) if np.shape(x) else x


def expand(x: Any, axes: Sequence[int]) -> Array:
    """`x` with axes of size one put in, at the places `axes` of the result."""
    if not axes:
        return x
    shape, kept = _expanded(x.shape, tuple(axes))
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept)


@functools.lru_cache(maxsize=1024)
def _expanded(given: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The shape with the new axes, and the places of the old ones in it."""
    kept = tuple([i for i in range(len(given) + len(axes)) if i not in axes])
    sizes = dict(zip(kept, given, strict=True))
    return tuple([sizes.get(i, 1) for i in range(len(given) + len(axes))]), kept


def flat(x: Any) -> Array:
    """The elements in one axis."""
    return x if x.ndim == 1 else reshape(x, new_sizes=(x.size,))


def inexact_operands(name: str, *xs: Any) -> list[Any]:
    """The operands of `name`; those that are not inexact are converted to floats."""
    out = []
    for x in xs:
        aval = aval_of(name, x)
        if not aval.is_extended and not dtypes.issubdtype(aval.dtype, np.inexact):
            x = convert(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)
        out.append(x)
    return out
