"""XLA's generator of random bits, as it is."""

from __future__ import annotations

import numpy as np

from perspex import dtypes
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Shape
from perspex.ops import rbg
from perspex.ops.rbg import RandomAlgorithm as RandomAlgorithm

__all__ = ["RandomAlgorithm", "rng_bit_generator"]


def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
) -> tuple[Array, Array]:
    """Random bits by XLA, and the key for the next ones.

    The numbers may be others on another platform or in another version; `random.bits` gives the
    same everywhere. A batch under `vmap` is drawn from its first key.

    Args:
      key: four uint32.
      shape: the shape of the bits.
      dtype: an unsigned integer dtype.
      algorithm: a `RandomAlgorithm`; by default the choice of the platform.

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
    return after, bits
