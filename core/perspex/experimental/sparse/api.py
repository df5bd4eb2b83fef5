"""Sparse arrays of any format: `todense`, `empty`, `eye`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from perspex import numpy as pnp
from perspex import tree
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import JAXSparse
from perspex.experimental.sparse.coo import COO
from perspex.experimental.sparse.csr import CSC, CSR
from perspex.experimental.sparse.formats import BCOO, BCSR
from perspex.experimental.sparse.primitive import SparsePrimitive
from perspex.experimental.sparse.util import check
from perspex.typing import DTypeLike

__all__ = ["empty", "eye", "todense", "todense_p"]

_FORMATS: dict[str, Any] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


class _ToDense(SparsePrimitive):
    """`tree` is the structure of the array of any format, whose parts are the operands."""

    name = "todense"

    def compute(self, *parts: Any, tree: Any) -> Any:
        whole = tree.unflatten(parts)
        return whole.todense() if isinstance(whole, JAXSparse) else whole


todense_p = _ToDense()


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """The dense array that a sparse one stands for; a dense one as it is.

    Args:
      arr: a sparse array of any format, or a dense array. Inside of `sparsify`, what is traced.

    Returns:
      A dense array.

    Raises:
      TypeError: for anything else.

    >>> from perspex.experimental import sparse
    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    parts, structure = tree.flatten(arr)
    return todense_p(*map(pnp.asarray, parts), tree=structure)


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse array of zeros, which stores nothing.

    Args:
      shape: the shape.
      dtype: the dtype of the numbers; float32 if not given.
      index_dtype: the dtype of the indices.
      sparse_format: `"bcoo"`, `"bcsr"`, `"coo"`, `"csr"` or `"csc"`.
      **kwds: `n_batch`, `n_dense` and `nse` for the first two.

    Returns:
      A sparse array.

    Raises:
      ValueError: for another format, and for a shape that the format does not have.

    >>> from perspex.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    shape = tuple([operator.index(n) for n in shape])
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
      N: the number of rows.
      M: the number of columns; as many as rows if not given.
      k: which diagonal: 0 is the main one, and a positive number one above it.
      dtype: the dtype of the numbers; float32 if not given.
      index_dtype: the dtype of the indices.
      sparse_format: `"bcoo"`, `"coo"`, `"csr"` or `"csc"`.
      **kwds: `n_batch` and `n_dense` for the first.

    Returns:
      A sparse array.

    Raises:
      ValueError: for another format.
      ConcretizationTypeError: for traced numbers.

    >>> from perspex.experimental import sparse
    >>> sparse.eye(2, 3, k=1).indices.tolist()
    [[0, 1], [1, 2]]
    """
    given = {"N": N, "M": N if M is None else M, "k": k}
    sizes = {name: concrete(f"{name} of eye", operator.index, n) for name, n in given.items()}
    check(sparse_format != "bcsr", "eye: there is no sparse_format='bcsr'; use BCSR.from_bcoo")
    return _format(sparse_format)._eye(**sizes, dtype=dtype, index_dtype=index_dtype, **kwds)


def _format(name: str) -> Any:
    check(
        name in _FORMATS,
        f"sparse_format={name!r} not recognized; must be one of {list(_FORMATS)}",
    )
    return _FORMATS[name]
