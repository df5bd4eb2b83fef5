"""What the functions here do with keys, shapes and dtypes before they draw.

Every function of a key is one program when it is called eagerly, which jaxlib's C++ repeats by
itself; the key is looked at when the program is traced, and not again.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.errors import TracerIntegerConversionError
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.jitted.compiled import Compiled, build
from perspex.jitted.signature import Options
from perspex.ops.keys import GENERATORS, Generator, random_unwrap, random_wrap
from perspex.ops.structural import broadcast_in_dim, convert_element_type
from perspex.random import lineage
from perspex.runtime.dispatch import EVAL, fast_callable
from perspex.tracing.array_methods import is_operand
from perspex.tracing.staging import JaxprTrace
from perspex.tracing.trace import state, typeof

Shape = tuple[int, ...]

# By `enable_x64`.
_DEFAULT_FLOAT = np.dtype("float32"), np.dtype("float64")

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


def on_key(name: str, static: int = 0, makes_keys: bool = False) -> Callable[..., Any]:
    """Make a function of a typed key and other arguments, the last `static` of them not arrays.

    Called eagerly, or transformed eagerly, the function is one program; while something is traced
    it is part of that. With `makes_keys` its result is keys, as typed as the key was.
    """

    def decorate(draw: Callable[..., Any]) -> Callable[..., Any]:
        def program(key: Any, *arguments: Any) -> Any:
            check_single(name, key)
            typed = is_key(key)
            before, lineage.inside.program = lineage.inside.program, True
            try:
                if typed:
                    return draw(key, *arguments)
                out = draw(random_wrap(key, impl=default_generator()), *arguments)
            finally:
                lineage.inside.program = before
            if makes_keys and not config.enable_custom_prng.value:
                return random_unwrap(out)
            return out

        program.__name__ = name
        count = draw.__code__.co_argcount
        numbers = tuple(range(count - static, count))
        fast = _eager(name, program, Options(numbers, inline=True))
        whole, _ = build(program, Options(numbers))

        def transformed(key: Any, *arguments: Any) -> Any:
            check_single(name, key)
            return (program if isinstance(state.trace, JaxprTrace) else whole)(key, *arguments)

        @functools.wraps(draw)
        def call(key: Any, *arguments: Any) -> Any:
            run = fast if state.trace is EVAL else transformed
            record = lineage.recorder
            if record is None or lineage.inside.program:
                return run(key, *arguments)
            out = run(key, *arguments)
            record.add(name, key, out if makes_keys else None, 2)
            return out

        return call

    return decorate


def _eager(name: str, program: Callable[..., Any], options: Options) -> Any:
    """The C++ callable of a function of a key, which looks at the key before anything else."""
    owner = Compiled(program, options)

    def miss(key: Any, *arguments: Any) -> Any:
        check_single(name, key)
        return owner.miss(key, *arguments)

    return fast_callable(name, program, miss, options.static_argnums, key=options)


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


def float_dtype(name: str, dtype: Any, kind: type = np.floating) -> Any:
    """The dtype of the samples: `dtype`, by default the default float."""
    if dtype is None:
        return _DEFAULT_FLOAT[config.enable_x64.value]
    dtype = dtypes.check_user_dtype(dtype, name)
    if not dtypes.issubdtype(dtype, kind):
        allowed = "a float" if kind is np.floating else "a float or complex"
        raise ValueError(f"dtype argument to `{name}` must be {allowed} dtype, got {dtype.name}")
    return dtype


def no_sharding(name: str, out_sharding: Any) -> None:
    """Refuse a sharding of the result."""
    if out_sharding is not None:
        raise NotImplementedError(
            f"{name}: out_sharding is not supported; put the samples where they belong with "
            "device_put"
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


def spread(name: str, x: Any, shape: Shape) -> Any:
    """An array broadcast to `shape`; scalars stay scalars, which operations spread themselves."""
    given = shaped(x).shape
    if given in ((), shape):
        return x
    if len(given) > len(shape) or any(
        n not in (1, m) for n, m in zip(given[::-1], shape[::-1], strict=False)
    ):
        raise TypeError(f"{name}: got incompatible shapes for broadcasting: {given} and {shape}")
    dims = tuple(range(len(shape) - len(given), len(shape)))
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)
