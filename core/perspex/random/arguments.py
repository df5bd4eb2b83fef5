"""Checks of keys and of what several parameters say together."""

from __future__ import annotations

import warnings
from typing import Any

from perspex import config, dtypes
from perspex.arguments.shapes import common_shape
from perspex.base import source
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops.keys import GENERATORS, Generator, random_wrap
from perspex.tracing.array_methods import is_operand
from perspex.tracing.trace import typeof

Shape = tuple[int, ...]
METHODS = "exact", "approximate"

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
    if config.legacy_prng_key.value != "allow":
        _discourage(name)
    try:
        return random_wrap.typed((shaped(keys),), {"impl": default_generator()})
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _discourage(name: str) -> None:
    """What the flag `legacy_prng_key` asks for where a raw key is used."""
    said = (
        f"{name}: a legacy uint32 PRNG key array was passed; make keys with random.key(seed), or "
        "set the flag `legacy_prng_key` to 'allow'"
    )
    if config.legacy_prng_key.value == "error":
        raise ValueError(said)
    warnings.warn(said, UserWarning, stacklevel=source.stacklevel())


def check_single(name: str, key: Any) -> None:
    """Raise `ValueError` for an array of keys, `TypeError` for what is no key."""
    if keys_aval(name, key).shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape "
            f"{typeof(key).shape}; use vmap for batching"
        )


# ---- Parameters --------------------------------------------------------------------------------


def check_method(name: str, method: Any) -> None:
    """Refuse unknown methods."""
    if method not in METHODS:
        raise ValueError(f"method argument to `{name}` must be one of {METHODS}, got {method!r}")


def drawn_shape(name: str, shape: Shape | None, *shapes: Shape) -> Shape:
    """`shape`, to which those of the parameters must broadcast; `None`: what they broadcast to."""
    if not any(shapes):
        return () if shape is None else shape
    try:
        found = common_shape(*shapes, *(() if shape is None else (shape,)))
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
