"""XLA's generator of random bits, as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import aval_of
from perspex.arguments.sharded import OutSharding, lying
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ops import rbg
from perspex.ops.rbg import RandomAlgorithm as RandomAlgorithm

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_uniform"]


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Random numbers between two bounds, from a generator of XLA that has no key.

    Who asks again gets others, where the compiled program is another or runs again or not: that is
    for the platform to say. `random.uniform` gives the same numbers for the same key.

    Args:
      a: the lower bound, a scalar: a float, or an integer of 32 or 64 bits.
      b: the upper bound, a scalar of the same dtype, which is not drawn.
      shape: the shape of the numbers.

    Returns:
      An array of the shape, and of the dtype of the bounds.

    Raises:
      ValueError: if the bounds have two dtypes, or are not scalars.
      TypeError: for another dtype.

    >>> from perspex import lax
    >>> lax.rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    """
    for bound in (a, b):
        aval_of("rng_uniform", bound)
    drawn: Any = rbg.rng_uniform(a, b, shape=integers("rng_uniform", "shape", shape))
    out: Array = drawn
    return out


def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """Random bits by XLA, and the key for the next ones.

    The numbers may be others on another platform or in another version; `random.bits` gives the
    same everywhere. A batch under `vmap` is drawn from its first key.

    Args:
      key: four uint32.
      shape: the shape of the bits.
      dtype: an unsigned integer dtype.
      algorithm: a `RandomAlgorithm`; by default the choice of the platform.
      out_sharding: how the bits lie along explicit axes of the mesh of `set_mesh`.

    Returns:
      The next key, and an array of shape `shape`.

    Raises:
      TypeError: if the key is something else, and for another dtype.

    >>> from perspex import lax, numpy as jnp
    >>> key, bits = lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (3,))
    >>> bits.shape, bits.dtype
    ((3,), dtype('uint32'))
    """
    after, bits = rbg.rng_bit_generator(
        key,
        shape=integers("rng_bit_generator", "shape", shape),
        dtype=dtypes.check_user_dtype(dtype, "rng_bit_generator"),
        algorithm=RandomAlgorithm(algorithm),
    )
    return after, lying("rng_bit_generator", out_sharding, bits)
