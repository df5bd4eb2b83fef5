"""`jax.extend.random`: the generators of random numbers."""

from __future__ import annotations

from typing import Any

from perspex.ops.bits import threefry2x32 as threefry2x32_p
from perspex.ops.keys import RBG as rbg_prng_impl  # noqa: N811 - the names in JAX
from perspex.ops.keys import THREEFRY as threefry_prng_impl  # noqa: N811
from perspex.ops.keys import UNSAFE_RBG as unsafe_rbg_prng_impl  # noqa: N811
from perspex.random.keys import key

__all__ = [
    "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]  # fmt: skip


def seed_with_impl(impl: Any, seed: Any) -> Any:
    """A key of a generator from an integer."""
    return key(seed, impl=impl.name)


def random_seed(seeds: Any, impl: Any) -> Any:
    """Keys of a generator from integers."""
    return key(seeds, impl=impl.name)
