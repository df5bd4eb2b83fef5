"""Keys: making them, and making new ones from them.

A key is used once. `split` makes as many fresh ones as needed; `fold_in` makes one for a number,
such as the step of a loop. Keys are typed (`key`) or the arrays of their numbers (`PRNGKey`);
functions return the kind that they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import config, dtypes
from perspex.arguments.arrays import as_dtype
from perspex.arguments.shapes import iterated_shape
from perspex.arguments.types import Array, ArrayLike, DTypeLike
from perspex.ir.avals import ShapedArray, shaped
from perspex.ops.keys import (
    GENERATORS,
    Generator,
    generator_of,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)
from perspex.random import lineage
from perspex.random.arguments import default_generator, is_key, keys_aval
from perspex.random.generators import PRNGSpec
from perspex.random.sampling import on_key
from perspex.runtime import client
from perspex.runtime.dispatch import EVAL
from perspex.runtime.keys import KeyArray
from perspex.runtime.transfer import put
from perspex.tracing.trace import state

__all__ = [
    "Key",
    "PRNGKey",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "reuse",
    "split",
    "wrap_key_data",
]

_U32 = np.dtype("uint32")
_LOW = 0xFFFFFFFF


def Key(x: ArrayLike, /) -> Array:  # noqa: N802 - the name of a type in JAX
    """Return `x` itself: marks an argument as a typed key in annotated code.

    Args:
      x: anything.

    Returns:
      `x`.

    Raises:
      TypeError: if called without an argument.

    >>> from perspex import random
    >>> random.Key(random.key(0)).shape
    ()
    """
    return x  # type: ignore[return-value]


def _resolve(name: str, impl: Any, dtype: Any) -> Generator:
    """The generator that `impl` or `dtype` names."""
    if impl is not None and dtype is not None:
        raise ValueError(f"{name} takes `impl` or `dtype`, not both: they mean the same")
    given = dtype if impl is None else impl
    if given is None:
        return default_generator()
    if isinstance(given, dtypes.KeyType):
        return generator_of(given)
    if isinstance(given, Generator):
        return given
    if isinstance(given, PRNGSpec):
        return given.generator
    if isinstance(given, str):
        if given in GENERATORS:
            return GENERATORS[given]
        names = ", ".join([f'"{n}"' for n in GENERATORS])
        raise ValueError(f'{name}: unrecognized PRNG implementation "{given}"; there is {names}')
    raise TypeError(
        f"{name}: a PRNG implementation is given by its name or by the dtype of a key, "
        f"got {given!r} of type {type(given)}"
    )


def key_dtype(impl_spec: str | DTypeLike | None = None) -> dtypes.KeyType:
    """The dtype of keys of a generator.

    Args:
      impl_spec: the name of the generator, or a key dtype; the default generator if not given.

    Returns:
      The dtype, `key<fry>` for the generator threefry2x32.

    Raises:
      TypeError: if `impl_spec` is neither a name nor a key dtype.
      ValueError: if no generator has that name.

    >>> from perspex import random
    >>> random.key_dtype("threefry2x32")
    key<fry>
    """
    return _resolve("key_dtype", impl_spec, None).dtype


def key(
    seed: ArrayLike, *, impl: str | DTypeLike | None = None, dtype: DTypeLike | None = None
) -> Array:
    """A typed key from an integer.

    Args:
      seed: an integer, or an integer scalar array. Without `enable_x64` its low 32 bits count.
      impl: the name of the generator, such as `"threefry2x32"`; the default one if not given.
      dtype: the same, given as the dtype of a key.

    Returns:
      A key: an array of shape `()` and dtype `key<fry>`.

    Raises:
      TypeError: if `seed` is not a single integer, or `impl` is neither a name nor a dtype.
      ValueError: if `seed` is `None`, the generator is unknown, or both `impl` and `dtype` are
          given.
      OverflowError: if `seed` has more than 64 bits.

    References:
      J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, for threefry2x32.

    >>> from perspex import random
    >>> random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    made = _key("key", seed, _resolve("key", impl, dtype))
    if (record := lineage.recorder) is not None:
        record.add("key", None, made)
    return made


def PRNGKey(seed: ArrayLike, *, impl: str | DTypeLike | None = None) -> Array:  # noqa: N802 - the name in JAX
    """A key from an integer, as the array of its numbers.

    Args:
      seed: an integer, or an integer scalar array. Without `enable_x64` its low 32 bits count.
      impl: the name of the generator; the default one if not given.

    Returns:
      The numbers of the key: uint32 of shape `(2,)`. A typed key if `enable_custom_prng` is set.

    Raises:
      TypeError: if `seed` is not a single integer, or `impl` is neither a name nor a dtype.
      ValueError: if `seed` is `None` or the generator is unknown.
      OverflowError: if `seed` has more than 64 bits.

    >>> from perspex import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    made = _key("PRNGKey", seed, _resolve("PRNGKey", impl, None))
    if not config.enable_custom_prng.value:
        made = made.base if made.__class__ is KeyArray else random_unwrap(made)
    if (record := lineage.recorder) is not None:
        record.add("PRNGKey", None, made)
    return made


def _key(name: str, seed: Any, generator: Generator) -> Any:
    if isinstance(seed, int):
        seed = np.int64(seed)
    if isinstance(seed, np.integer):
        seed = seed.astype(dtypes.canonicalize_dtype(seed.dtype))
        if state.trace is EVAL and generator.repeats:
            return _key_on_host(seed, generator)
    if seed is None:
        raise ValueError(f"{name}: None is no seed; pass an integer")
    if is_key(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key")
    aval = shaped(seed)
    if aval.shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {aval.shape}; "
            "use vmap for batching"
        )
    return random_seed(seed, impl=generator)


def _key_on_host(seed: np.integer, generator: Generator) -> KeyArray:
    """The key of a number, without a program: none to compile, and nothing to wait for."""
    high = int(seed) >> 32 & _LOW if seed.itemsize == 8 else 0
    words = (high, int(seed) & _LOW) * generator.repeats
    numbers = np.array(words, _U32)
    numbers.flags.writeable = False
    base = put(numbers, client.default_device())
    return KeyArray(ShapedArray((), generator.dtype), base)


def key_data(keys: ArrayLike) -> Array:
    """The numbers of keys.

    Args:
      keys: typed keys of shape `(...)`, or the numbers of keys, which are returned as they are.

    Returns:
      uint32 of shape `(..., 2)`.

    Raises:
      TypeError: if `keys` is neither keys nor numbers of keys.

    >>> from perspex import random
    >>> random.key_data(random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    if keys.__class__ is KeyArray and state.trace is EVAL:
        return keys.base
    keys_aval("key_data", keys)
    if is_key(keys):
        return random_unwrap(keys)
    return random_unwrap(random_wrap(keys, impl=default_generator()))


def wrap_key_data(
    key_bits_array: ArrayLike,
    *,
    impl: str | DTypeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Typed keys from their numbers.

    Args:
      key_bits_array: uint32 of shape `(..., 2)`.
      impl: the name of the generator; the default one if not given.
      dtype: the same, given as the dtype of a key.

    Returns:
      Keys of shape `(...)`.

    Raises:
      TypeError: if `key_bits_array` has another dtype or shape, or `impl` is neither a
          name nor a dtype.
      ValueError: if the generator is unknown, or both `impl` and `dtype` are given.

    >>> import numpy as np
    >>> from perspex import random
    >>> random.wrap_key_data(np.array([0, 42], np.uint32)) == random.key(42)
    Array(True, dtype=bool)
    """
    generator = _resolve("wrap_key_data", impl, dtype)
    if not hasattr(key_bits_array, "dtype") or is_key(key_bits_array):
        raise TypeError(
            f"wrap_key_data: the numbers of keys are an array of dtype uint32, got "
            f"{type(key_bits_array)}" + (" of typed keys already" if is_key(key_bits_array) else "")
        )
    return random_wrap(key_bits_array, impl=generator)


def key_impl(keys: ArrayLike) -> str | PRNGSpec:
    """The name of the generator of keys.

    Args:
      keys: typed keys, or the numbers of keys of the default generator.

    Returns:
      The name, such as `"threefry2x32"`, which `impl` of `key` takes; for a generator of your own
      (`jax.extend.random.define_prng_impl`) what that gave.

    Raises:
      TypeError: if `keys` is neither keys nor numbers of keys.

    >>> from perspex import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    generator = generator_of(keys_aval("key_impl", keys).dtype)
    return generator.name if generator.name in GENERATORS else PRNGSpec(generator)


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys from a key, which should not be used any more.

    Args:
      key: one key, typed or raw.
      num: how many keys, or the shape of the array of keys.

    Returns:
      Keys of shape `(num,)` or `num`, typed if `key` is; raw keys have one more axis.

    Raises:
      TypeError: if `key` is not a key or `num` is neither a size nor a sequence of sizes.
      ValueError: if `key` is an array of keys.

    >>> from perspex import random
    >>> random.split(random.PRNGKey(42))
    Array([[1832780943,  270669613],
           [  64467757, 2916123636]], dtype=uint32)
    """
    return _split(key, iterated_shape("split", num))


@on_key("split", static=1, makes_keys=True)
def _split(key: Any, shape: tuple[int, ...]) -> Any:
    return random_split(key, shape=shape)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and a number: different numbers give different keys.

    Args:
      key: one key, typed or raw.
      data: an integer from 0 below 2**32, or a scalar array.

    Returns:
      A key, typed if `key` is.

    Raises:
      TypeError: if `key` is not a key or `data` is not a scalar.
      ValueError: if `key` is an array of keys, or `data` is `None` or a string.
      OverflowError: if `data` is a Python integer out of range.

    >>> from perspex import random
    >>> random.fold_in(random.PRNGKey(42), 7)
    Array([2547012911, 1371500959], dtype=uint32)
    """
    if data.__class__ is int and 0 <= data < 2**31:
        return _fold_in(key, data)  # C++ takes such numbers, 1 us faster than NumPy's
    if data is None or isinstance(data, str):
        raise ValueError(f"fold_in takes an integer to fold into the key, got {data!r}")
    if isinstance(data, int) and not 0 <= data < 2**32:
        raise OverflowError(
            f"fold_in: Python integer {data} out of bounds for uint32; reduce it modulo 2**32"
        )
    if np.ndim(data):
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)}; "
            "use vmap for batching"
        )
    # A number that is not an integer is truncated, as JAX does.
    data = np.uint32(int(data)) if isinstance(data, (int, float)) else data
    return _fold_in(key, data)


@on_key("fold_in", makes_keys=True)
def _fold_in(key: Any, data: Any) -> Any:
    return random_fold_in(key, as_dtype(data, _U32))


def clone(key: ArrayLike) -> Array:
    """The same key, marked as one to be used once more.

    Args:
      key: keys, typed or raw.

    Returns:
      Keys equal to `key`. A record of keys counts them as fresh ones.

    Raises:
      TypeError: if `key` is not an array or a number.

    >>> from perspex import random
    >>> k = random.key(0)
    >>> random.clone(k) == k
    Array(True, dtype=bool)
    """
    made = random_clone(key)
    if (record := lineage.recorder) is not None:
        record.add("clone", key, made)
    return made


def reuse(key: ArrayLike) -> Array:
    """The same key, marked as one that is used again on purpose.

    The notices of a notebook about keys that are used again leave it out from then on: for an
    evaluation that draws the same noise each time, say. The flag `debug_key_reuse` takes the result
    for a clone, which may be used once.

    Args:
      key: keys, typed or raw.

    Returns:
      Keys equal to `key`.

    Raises:
      TypeError: if `key` is not an array or a number.

    >>> from perspex import random
    >>> noise = random.reuse(random.key(0))
    >>> random.normal(noise) == random.normal(noise)
    Array(True, dtype=bool)
    """
    made = random_clone(key)
    if (record := lineage.recorder) is not None:
        record.add("reuse", key, made)
    return made
