"""Checks of keys, shapes, dtypes and parameters, and what is done to parameters."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.errors import TracerIntegerConversionError
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ops.keys import GENERATORS, Generator, random_wrap
from perspex.ops.structural import broadcast_in_dim, convert_element_type
from perspex.tracing.array_methods import is_operand
from perspex.tracing.trace import typeof

Shape = tuple[int, ...]
METHODS = "exact", "approximate"

# By `enable_x64`.
_DEFAULT_FLOAT = np.dtype("float32"), np.dtype("float64")
_x64 = config.enable_x64.cell

# ---- Keys ---------------------------------------------------------------------------------------


def default_generator() -> Generator:
    """The generator of raw keys, and of keys made without `impl`."""
    return GENERATORS[config.default_prng_impl.value]


def is_key(x: Any) -> bool:
    """Whether `x` is a typed key."""
    return isinstance(getattr(x, "dtype", None), dtypes.KeyType)


def keys_aval(name: str, keys: Any) -> ShapedArray:
    """The type of `keys`, typed or raw, as typed keys. Raises `TypeError` for what is no key."""
    if is_key(keys):
        return keys.aval
    if not is_operand(keys):
        raise TypeError(
            f"{name}: unexpected PRNG key type {type(keys)}; make a key with random.key(seed)"
        )
    try:
        return random_wrap.typed((shaped(keys),), {"impl": default_generator()})
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def check_single(name: str, key: Any) -> None:
    """Raise `ValueError` for an array of keys, `TypeError` for what is no key."""
    if keys_aval(name, key).shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape "
            f"{typeof(key).shape}; use vmap for batching"
        )


# ---- Shapes and dtypes --------------------------------------------------------------------------


def as_shape(name: str, shape: Any) -> Shape:
    """`shape`, which may be a number or a sequence of numbers, as a tuple of Python integers."""
    if shape.__class__ is int and shape >= 0:
        return (shape,)
    if shape.__class__ is tuple:
        for n in shape:
            if n.__class__ is not int or n < 0:
                break
        else:
            return shape
    try:
        if isinstance(shape, int) or getattr(shape, "ndim", None) == 0:
            shape = (shape,)
        found = tuple([operator.index(n) for n in shape])
    except TracerIntegerConversionError:
        raise
    except TypeError as error:
        raise TypeError(
            f"{name}: a shape is a sequence of integers, got {shape!r} ({error})"
        ) from None
    if any(n < 0 for n in found):
        raise TypeError(f"{name}: a shape has no negative sizes, got {found}")
    return found


def float_dtype(name: str, dtype: Any) -> Any:
    """The dtype of floats: `dtype`, by default the default float."""
    if dtype is None:
        return _DEFAULT_FLOAT[_x64.value]
    return _checked(name, dtype, np.floating, "a float")


def inexact_dtype(name: str, dtype: Any) -> Any:
    """The dtype of floats or complex numbers: `dtype`, by default the default float."""
    if dtype is None:
        return _DEFAULT_FLOAT[_x64.value]
    return _checked(name, dtype, np.inexact, "a float or complex")


def integer_dtype(name: str, dtype: Any) -> Any:
    """The dtype of integers: `dtype`, by default the default integer."""
    return _checked(name, int if dtype is None else dtype, np.integer, "an int")


def _checked(name: str, dtype: Any, kind: type, allowed: str) -> Any:
    dtype = dtypes.check_user_dtype(dtype, name)
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {allowed} dtype, got {dtype.name}")
    return dtype


def check_method(name: str, method: Any) -> None:
    """Refuse unknown methods."""
    if method not in METHODS:
        raise ValueError(f"method argument to `{name}` must be one of {METHODS}, got {method!r}")


def no_sharding(name: str, out_sharding: Any) -> None:
    """Refuse a sharding of the result."""
    if out_sharding is not None:
        raise unsharded(name)


def unsharded(name: str) -> NotImplementedError:
    """The refusal of a sharding of the result."""
    return NotImplementedError(
        f"{name}: out_sharding is not supported; put the samples where they belong with device_put"
    )


def common_shape(name: str, shape: Shape | None, *shapes: Shape) -> Shape:
    """`shape`, to which those of the parameters must broadcast; `None`: what they broadcast to."""
    if not any(shapes):
        return () if shape is None else shape
    try:
        found = np.broadcast_shapes(*shapes, *(() if shape is None else (shape,)))
    except ValueError:
        found = None
    if found is None or shape not in (None, found):
        given = ", ".join(map(str, shapes))
        wanted = "each other" if shape is None else f"shape={shape}"
        raise ValueError(f"{name}: parameters of shape {given} do not broadcast to {wanted}")
    return found


def shape_of(x: Any) -> Shape:
    """The shape of an array or a number."""
    return () if x.__class__ is float else shaped(x).shape


def as_dtype(x: Any, dtype: Any) -> Any:
    """`x`, an array or a number, as a strongly typed value of `dtype`."""
    aval = shaped(x)
    if aval.dtype == dtype and not aval.weak_type:
        return x
    if isinstance(x, (np.generic, *PYTHON_SCALARS)):
        return dtype.type(x)
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


def spread(x: Any, shape: Shape) -> Any:
    """An array broadcast to `shape`; scalars stay scalars, which operations spread themselves."""
    given = shaped(x).shape
    if given in ((), shape):
        return x
    skip = len(shape) - len(given)
    if skip < 0 or any([n not in (1, m) for n, m in zip(given, shape[skip:], strict=True)]):
        raise TypeError(
            f"got incompatible shapes for broadcasting: {given} of a parameter and {shape} of the "
            "samples"
        )
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(skip, len(shape))))


def filled(x: Any, shape: Shape) -> Any:
    """An array or a scalar broadcast to `shape`."""
    x = spread(x, shape)
    if typeof(x).shape == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
