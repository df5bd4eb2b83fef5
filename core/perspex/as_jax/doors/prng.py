"""`jax.extend.random`: the generators of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex.ops.bits import threefry2x32 as threefry2x32_p
from perspex.ops.keys import RBG as rbg_prng_impl  # noqa: N811 - the names in JAX
from perspex.ops.keys import THREEFRY as threefry_prng_impl  # noqa: N811
from perspex.ops.keys import UNSAFE_RBG as unsafe_rbg_prng_impl  # noqa: N811
from perspex.random.generators import define_prng_impl as define_prng_impl
from perspex.random.keys import key

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip


def seed_with_impl(impl: Any, seed: Any) -> Any:
    """A key of a generator from an integer."""
    return key(seed, impl=impl)


def random_seed(seeds: Any, impl: Any) -> Any:
    """Keys of a generator from integers."""
    return key(seeds, impl=impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The hash of counters under a key.

    Args:
      keypair: two uint32.
      count: uint32 of any shape, which are hashed in pairs, one of each half.

    Returns:
      uint32 in the shape of `count`.

    Raises:
      TypeError: for another dtype.

    >>> threefry_2x32(np.zeros(2, "uint32"), pnp.zeros(2, "uint32"))
    Array([1797259609, 2579123966], dtype=uint32)
    """
    first, second = keypair
    found = [np.dtype(getattr(x, "dtype", type(x))).name for x in (first, second, count)]
    if found != ["uint32"] * 3:
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {found}")
    flat = pnp.ravel(count)
    size = flat.shape[0]
    padded = pnp.concatenate([flat, pnp.zeros(size % 2, "uint32")])
    hashed = threefry2x32_p(first, second, *pnp.split(padded, 2))
    return pnp.concatenate(hashed)[:size].reshape(pnp.shape(count))
