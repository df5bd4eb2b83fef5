"""Generators of your own: keys of a new kind, given by four functions of their numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from perspex.api.mapping import vmap
from perspex.ops.keys import Generator
from perspex.tracing.trace import typeof

Shape = tuple[int, ...]


class PRNGSpec:
    """Names a generator that has no name of its own: `impl=` of `random.key` takes it."""

    __slots__ = ("generator",)

    def __init__(self, generator: Generator) -> None:
        self.generator = generator

    def __repr__(self) -> str:
        return f"PRNGSpec({self.generator.name!r})"

    def __str__(self) -> str:
        return self.generator.tag

    def __hash__(self) -> int:
        return hash(self.generator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PRNGSpec) and self.generator is other.generator


def define_prng_impl(
    *,
    key_shape: Shape,
    seed: Callable[[Any], Any],
    split: Callable[[Any, Shape], Any],
    random_bits: Callable[[Any, int, Shape], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGSpec:
    """A generator of random numbers, for `impl=` of `random.key` and `random.wrap_key_data`.

    Args:
      key_shape: the shape of one key, an array of uint32.
      seed: the key of an integer.
      split: `split(key, shape)` gives new keys, of shape `(*shape, *key_shape)`.
      random_bits: `random_bits(key, bit_width, shape)` gives unsigned integers of 8, 16, 32 or 64
        bits, of shape `shape`.
      fold_in: `fold_in(key, number)` gives a new key.
      name: what `repr` shows.
      tag: how dtypes and programs show it: `key<tag>`.

    Returns:
      What stands for the generator. The same arguments give an equal one.

    >>> import perspex.numpy as pnp
    >>> from perspex import random
    >>> def mixed(key, n):
    ...     return (key + n) * 1664525 ^ (key + n) >> 16
    >>> knuth = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda number: mixed(pnp.zeros(1, "uint32"), number.astype("uint32")),
    ...     split=lambda key, shape: mixed(key, pnp.arange(shape[0], dtype="uint32")[:, None]),
    ...     random_bits=lambda key, width, shape: mixed(
    ...         key, pnp.arange(shape[0], dtype="uint32")
    ...     ).astype(f"uint{width}"),
    ...     fold_in=lambda key, number: mixed(key, number.astype("uint32")),
    ...     tag="knuth",
    ... )
    >>> random.key(3, impl=knuth).dtype
    key<knuth>
    """
    return PRNGSpec(_defined(tuple(key_shape), seed, split, random_bits, fold_in, name, tag))


@functools.cache
def _defined(
    key_shape: Shape,
    seed: Callable[..., Any],
    split: Callable[..., Any],
    random_bits: Callable[..., Any],
    fold_in: Callable[..., Any],
    name: str,
    tag: str,
) -> Generator:
    """A generator whose functions take any number of keys."""
    rank = len(key_shape)

    def each(function: Callable[..., Any], ndim: int) -> Callable[..., Any]:
        for _ in range(ndim):
            function = vmap(function)
        return function

    def of_keys(function: Callable[..., Any], keys: Any) -> Any:
        return each(function, typeof(keys).ndim - rank)(keys)

    def folded(keys: Any, data: Any) -> Any:
        batch, ndim = typeof(keys).ndim - rank, typeof(data).ndim
        if not batch:
            return each(lambda number: fold_in(keys, number), ndim)(data)
        if not ndim:
            return each(lambda key: fold_in(key, data), batch)(keys)
        return each(fold_in, ndim)(keys, data)

    return Generator(
        name,
        tag,
        key_shape,
        seed=lambda seeds: each(seed, typeof(seeds).ndim)(seeds),
        split=lambda keys, *, shape, **_: of_keys(lambda key: split(key, shape), keys),
        fold_in=folded,
        random_bits=lambda keys, *, bit_width, shape, **_: of_keys(
            lambda key: random_bits(key, bit_width, shape), keys
        ),
        built_in=False,
    )
