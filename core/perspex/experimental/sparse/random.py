"""Random sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex import random as draws
from perspex.api.mapping import vmap
from perspex.arguments.static import concrete
from perspex.arguments.types import Array
from perspex.experimental.sparse.formats import BCOO
from perspex.experimental.sparse.util import check, cut
from perspex.typing import DTypeLike

__all__ = ["random_bcoo"]


def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = pnp.float_,
    indices_dtype: DTypeLike | None = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = draws.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array with random numbers at random places.

    Args:
      key: a PRNG key.
      shape: the shape.
      dtype: the dtype of the numbers.
      indices_dtype: the dtype of the indices; that of integers if not given.
      nse: how many elements to store for each member of the batch, or which part of them.
      n_batch: how many of the first axes are batch axes.
      n_dense: how many of the last axes are dense axes.
      unique_indices: whether all elements lie at different places.
      sorted_indices: whether to sort the indices.
      generator: what draws the numbers: a function of `key`, `shape` and `dtype`.
      **kwds: more arguments of the generator.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for numbers of axes or elements that do not fit the shape.

    >>> import perspex
    >>> from perspex.experimental import sparse
    >>> sparse.random_bcoo(perspex.random.key(0), (5, 10))
    BCOO(float32[5, 10], nse=10)
    """
    shape = tuple([operator.index(n) for n in shape])
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    n_sparse = len(shape) - n_batch - n_dense
    check(min(n_batch, n_dense, n_sparse) >= 0, f"Invalid {n_batch=}, {n_dense=} for shape {shape}")
    batch, sparse, dense = cut(shape, n_batch, n_sparse)
    size = math.prod(sparse)
    check(0 <= nse < size, f"got {nse=}, expected to be between 0 and {size}")
    count = (
        math.ceil(nse * size)
        if 0 < nse < 1
        else concrete("nse of random_bcoo", operator.index, nse)
    )
    index_dtype = dtypes.canonicalize_dtype(int if indices_dtype is None else indices_dtype)
    check(
        size <= np.iinfo(index_dtype).max,
        f"indices_dtype={index_dtype.name} does not have enough range for {size} elements",
    )

    def drawn(one: Any) -> Any:
        if not sparse:
            return pnp.zeros((count, n_sparse), index_dtype)
        flat = draws.choice(one, size, shape=(count,), replace=not unique_indices)
        return pnp.stack(pnp.unravel_index(flat.astype(index_dtype), sparse), axis=-1)

    dtype = dtypes.canonicalize_dtype(dtype)
    keys = draws.split(key, math.prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)
    indices = vmap(drawn)(keys[1:]).reshape((*batch, count, n_sparse))
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat
