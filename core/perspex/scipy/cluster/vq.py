"""Vector quantization."""

from __future__ import annotations

import perspex.numpy as pnp
from perspex import dtypes
from perspex.arguments.types import Array, ArrayLike
from perspex.numpy.promotion import promote_dtypes

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Nearest point of a code book for each observation.

    Args:
      obs: observations, of shape `(m, n)`; or `m` numbers.
      code_book: points of shape `(k, n)`; or `k` numbers.
      check_finite: has no effect.

    Returns:
      The indices of the nearest points, int32 of shape `(m,)`, of several the first; and their
      Euclidean distances, of shape `(m,)` and floating dtype.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for arrays of other ranks or of different `n`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy.cluster.vq import vq
    >>> vq(jnp.array([[0.0, 1.0], [4.0, 5.0]]), jnp.array([[4.0, 4.0], [0.0, 0.0]]))
    (Array([1, 0], dtype=int32), Array([1., 1.], dtype=float32))
    """
    obs, code_book = promote_dtypes("vq", obs, code_book, to=dtypes.to_inexact_dtype)
    shapes = pnp.shape(obs), pnp.shape(code_book)
    if len(shapes[0]) != len(shapes[1]) or not 1 <= len(shapes[0]) <= 2:
        raise ValueError(
            f"vq: observation and code_book should have the same rank, 1 or 2, got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    if shapes[0][1:] != shapes[1][1:]:
        raise ValueError(
            f"vq: points of {shapes[0][1]} components cannot be near to points of {shapes[1][1]}"
        )
    if len(shapes[0]) == 1:
        obs, code_book = pnp.asarray(obs)[:, None], pnp.asarray(code_book)[:, None]
    distances = pnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    nearest = pnp.argmin(distances, axis=-1)
    return nearest, pnp.min(distances, axis=-1)
