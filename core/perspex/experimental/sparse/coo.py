"""`COO`, the plain list of elements of a matrix with rows and columns. Prefer `BCOO`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import lax, tree
from perspex import numpy as pnp
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import JAXSparse, check_aux, diagonal, unflattened
from perspex.experimental.sparse.primitive import SparsePrimitive
from perspex.experimental.sparse.util import Shape, check
from perspex.typing import DTypeLike

__all__ = [
    "COO",
    "COOInfo",
    "coo_fromdense",
    "coo_fromdense_p",
    "coo_matmat",
    "coo_matmat_p",
    "coo_matvec",
    "coo_matvec_p",
    "coo_todense",
    "coo_todense_p",
]


class COOInfo(NamedTuple):
    """What is known about a COO matrix besides its numbers and their places."""

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


@tree.register_pytree_node_class
class COO(JAXSparse):
    """A sparse matrix as three lists: numbers, rows and columns. `BCOO` can do more.

    Args:
      args: `(data, row, col)`.
      shape: the shape of the matrix.
      rows_sorted, cols_sorted: what is known about the indices.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.sparse import COO
    >>> m = COO.fromdense(jnp.array([[0.0, 2.0], [1.0, 4.0]]))
    >>> m
    COO(float32[2, 2], nse=3)
    >>> m @ jnp.ones(2)
    Array([2., 5.], dtype=float32)
    """

    row: Any
    col: Any
    _rows_sorted: bool
    _cols_sorted: bool

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:
        super().__init__(args, shape=shape)
        self.data, self.row, self.col = map(pnp.asarray, args)
        self._rows_sorted = rows_sorted
        self._cols_sorted = cols_sorted

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.row, self.col

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> COO:
        """The matrix with the elements of a dense one that are not zero: see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        check(len(shape) == 2, f"COO must have ndim=2; got {shape=}")
        none = pnp.zeros(0, index_dtype)
        parts = (pnp.zeros(0, dtype), none, none)
        return cls(parts, shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        rows, cols = diagonal(N, M, k, index_dtype)
        parts = (pnp.ones(rows.size, dtype), rows, cols)
        return cls(parts, shape=(N, M), rows_sorted=True, cols_sorted=True)

    def _sort_indices(self) -> COO:
        if self._rows_sorted:
            return self
        row, col, data = lax.sort((self.row, self.col, self.data), num_keys=2)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    def todense(self) -> Array:
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        if axes is not None:
            raise NotImplementedError("COO.transpose takes no axes: a matrix has two")
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> COO:
        check_aux("COO", aux_data, COOInfo._fields)
        facts = {
            "shape": aux_data["shape"],
            "_rows_sorted": aux_data["rows_sorted"],
            "_cols_sorted": aux_data["cols_sorted"],
        }
        return unflattened(cls, facts, ("data", "row", "col"), children)

    def __matmul__(self, other: Any) -> Any:
        data, other, vector = matmul_operands(self.data, other)
        mat = COO((data, self.row, self.col), **self._info._asdict())
        return coo_matvec(mat, other) if vector else coo_matmat(mat, other)


def matmul_operands(data: Any, other: Any) -> tuple[Any, Any, bool]:
    """Numbers and a dense vector or matrix at one dtype, and whether it is a vector."""
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects; use BCOO")
    other = pnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}; use BCOO")
    dtype = pnp.result_type(data, other)
    return data.astype(dtype), other.astype(dtype), other.ndim == 1


def check_product(data: Any, other: Any, shape: Shape, transpose: bool, ndim: int) -> None:
    """Raise an error unless a matrix and a dense array can be multiplied."""
    length = shape[0] if transpose else shape[1]
    check(
        len(shape) == 2 and other.ndim == ndim and other.shape[0] == length,
        f"a sparse matrix of shape {shape}, {transpose=}, times an array of shape {other.shape}; "
        f"it must have {ndim} dimensions, the first of length {length}",
    )
    check(
        data.dtype == other.dtype,
        f"a sparse matrix of {data.dtype.name} times an array of {other.dtype.name}; convert one "
        "with astype",
        TypeError,
    )


def product(data: Any, row: Any, col: Any, other: Any, shape: Shape, transpose: bool) -> Any:
    """A sparse matrix, or its transpose, times a dense vector or matrix."""
    if transpose:
        row, col, shape = col, row, shape[::-1]
    found = data.reshape((-1, *[1] * (other.ndim - 1))) * other[col]
    return pnp.zeros((shape[0], *other.shape[1:]), found.dtype).at[row].add(found)


class _ToDense(SparsePrimitive):
    name = "coo_todense"

    def compute(self, data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Any:
        return pnp.zeros(spinfo.shape, data.dtype).at[row, col].add(data)


class _FromDense(SparsePrimitive):
    name = "coo_fromdense"
    multiple_results = True

    def compute(self, mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
        check(mat.ndim == 2, f"coo_fromdense: takes a matrix, got shape {mat.shape}")
        row, col = pnp.nonzero(mat, size=nse)
        there = pnp.arange(nse) < (mat != 0).sum()
        data = pnp.where(there, mat[row, col], mat.dtype.type(0))
        return data, row.astype(index_dtype), col.astype(index_dtype)


class _Matvec(SparsePrimitive):
    name = "coo_matvec"
    ndim = 1

    def compute(
        self, data: Any, row: Any, col: Any, other: Any, *, spinfo: COOInfo, transpose: bool
    ) -> Any:
        check_product(data, other, spinfo.shape, transpose, self.ndim)
        return product(data, row, col, other, spinfo.shape, transpose)


class _Matmat(_Matvec):
    name = "coo_matmat"
    ndim = 2


coo_todense_p = _ToDense()
coo_fromdense_p = _FromDense()
coo_matvec_p = _Matvec()
coo_matmat_p = _Matmat()


def coo_todense(mat: COO) -> Array:
    """The dense matrix that a COO matrix stands for.

    Args:
      mat: a COO matrix.

    Returns:
      A matrix of the same shape and dtype.

    Raises:
      AttributeError: if `mat` is not a COO matrix.

    >>> from perspex.experimental import sparse
    >>> sparse.coo_todense(sparse.eye(2, sparse_format="coo"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return coo_todense_p(*mat._bufs, spinfo=mat._info)


def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """The COO matrix with the elements of a dense one that are not zero.

    Args:
      mat: a matrix.
      nse: how many elements to store; as many as it takes if not given. Inside of `jit` it must be
        given.
      index_dtype: the dtype of the indices.

    Returns:
      A COO matrix with sorted rows.

    Raises:
      ConcretizationTypeError: for a traced matrix without `nse`.
      ValueError: unless `mat` is a matrix.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.coo_fromdense(jnp.array([[0.0, 3.0]]))
    COO(float32[1, 2], nse=1)
    """
    mat = pnp.asarray(mat)
    count = (mat != 0).sum() if nse is None else nse
    size = concrete("the nse argument of coo_fromdense", operator.index, count)
    parts = coo_fromdense_p(mat, nse=size, index_dtype=np.dtype(index_dtype))
    return COO(parts, shape=mat.shape, rows_sorted=True)


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """A COO matrix times a vector.

    Args:
      mat: a COO matrix.
      v: a vector of the same dtype.
      transpose: multiply by the transpose of `mat`.

    Returns:
      A vector.

    Raises:
      ValueError: for shapes that do not fit.
      TypeError: for another dtype.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.coo_matvec(sparse.eye(2, sparse_format="coo"), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return coo_matvec_p(*mat._bufs, pnp.asarray(v), spinfo=mat._info, transpose=transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """A COO matrix times a dense matrix.

    Args:
      mat: a COO matrix.
      B: a matrix of the same dtype.
      transpose: multiply by the transpose of `mat`.

    Returns:
      A matrix.

    Raises:
      ValueError: for shapes that do not fit.
      TypeError: for another dtype.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.coo_matmat(sparse.eye(2, sparse_format="coo"), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return coo_matmat_p(*mat._bufs, pnp.asarray(B), spinfo=mat._info, transpose=transpose)
