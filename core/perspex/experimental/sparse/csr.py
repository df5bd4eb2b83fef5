"""`CSR` and `CSC`, matrices in compressed rows or columns. Prefer `BCSR`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import numpy as pnp
from perspex import tree
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import JAXSparse, check_aux, diagonal, unflattened
from perspex.experimental.sparse.coo import check_product, matmul_operands, product
from perspex.experimental.sparse.primitive import SparsePrimitive
from perspex.experimental.sparse.util import Shape, check, rows_of
from perspex.typing import DTypeLike

__all__ = [
    "CSC",
    "CSR",
    "csr_fromdense",
    "csr_fromdense_p",
    "csr_matmat",
    "csr_matmat_p",
    "csr_matvec",
    "csr_matvec_p",
    "csr_todense",
    "csr_todense_p",
]


class _Compressed(JAXSparse):
    """A matrix of which one axis is compressed; `_major` says which."""

    indices: Any
    indptr: Any
    _major: ClassVar[int]

    def __init__(
        self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int]
    ) -> None:
        super().__init__(args, shape=shape)
        self.data, self.indices, self.indptr = map(pnp.asarray, args)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        check(len(shape) == 2, f"{cls.__name__} must have ndim=2; got {shape=}")
        indptr = pnp.zeros(shape[cls._major] + 1, index_dtype)
        return cls((pnp.zeros(0, dtype), pnp.zeros(0, index_dtype), indptr), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        along = diagonal(N, M, k, index_dtype)
        counts = pnp.bincount(along[cls._major], length=(N, M)[cls._major])
        starts = pnp.concatenate([pnp.zeros(1, counts.dtype), pnp.cumsum(counts)])
        parts = (pnp.ones(along[0].size, dtype), along[1 - cls._major], starts.astype(index_dtype))
        return cls(parts, shape=(N, M))

    def _turned(self, kind: type[JAXSparse], axes: Sequence[int] | None) -> Any:
        check(axes is None, f"{type(self).__name__}.transpose takes no axes: a matrix has two")
        return kind(self._bufs, shape=self.shape[::-1])

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], dict[str, Any]]:
        return self._bufs, {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Any:
        check_aux(cls.__name__, aux_data, ("shape",))
        return unflattened(cls, aux_data, ("data", "indices", "indptr"), children)

    def __matmul__(self, other: Any) -> Any:
        data, other, vector = matmul_operands(self.data, other)
        turn = self._major == 1
        shape = self.shape[::-1] if turn else self.shape
        multiply = csr_matvec_p if vector else csr_matmat_p
        return multiply(data, self.indices, self.indptr, other, shape=shape, transpose=turn)


@tree.register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix in compressed rows. `BCSR` can do more.

    Args:
      args: `(data, indices, indptr)`: numbers, columns, and where each row begins.
      shape: the shape of the matrix.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.sparse import CSR
    >>> m = CSR.fromdense(jnp.array([[0.0, 2.0], [1.0, 4.0]]))
    >>> m.indptr.tolist()
    [0, 1, 3]
    >>> m @ jnp.ones(2)
    Array([2., 5.], dtype=float32)
    """

    _major = 0

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> CSR:
        """The matrix with the elements of a dense one that are not zero: see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def todense(self) -> Array:
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        return self._turned(CSC, axes)


@tree.register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix in compressed columns.

    Args:
      args: `(data, indices, indptr)`: numbers, rows, and where each column begins.
      shape: the shape of the matrix.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.sparse import CSC
    >>> m = CSC.fromdense(jnp.array([[0.0, 2.0], [1.0, 4.0]]))
    >>> m.indptr.tolist()
    [0, 1, 3]
    >>> m @ jnp.ones(2)
    Array([2., 5.], dtype=float32)
    """

    _major = 1

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> CSC:
        """The matrix with the elements of a dense one that are not zero."""
        return csr_fromdense(pnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    def todense(self) -> Array:
        return csr_todense(self.T).T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        return self._turned(CSR, axes)


def _check_parts(data: Any, indices: Any, indptr: Any, shape: Shape) -> None:
    check(
        data.ndim == 1 and data.shape == indices.shape and indptr.shape == (shape[0] + 1,),
        f"data of shape {data.shape}, indices of shape {indices.shape} and indptr of shape "
        f"{indptr.shape} are no matrix of shape {shape} in compressed rows",
    )
    check(
        indices.dtype == indptr.dtype,
        f"indices of {indices.dtype.name} and indptr of {indptr.dtype.name} must have one dtype",
        TypeError,
    )


class _ToDense(SparsePrimitive):
    name = "csr_todense"

    def compute(self, data: Any, indices: Any, indptr: Any, *, shape: Shape) -> Any:
        _check_parts(data, indices, indptr, shape)
        return pnp.zeros(shape, data.dtype).at[rows_of(indices, indptr), indices].add(data)


class _FromDense(SparsePrimitive):
    name = "csr_fromdense"
    multiple_results = True

    def compute(self, mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
        check(mat.ndim == 2, f"csr_fromdense: takes a matrix, got shape {mat.shape}")
        rows = mat.shape[0]
        row, col = pnp.nonzero(mat, size=nse, fill_value=(rows, 0))
        there = pnp.arange(nse) < (mat != 0).sum()
        data = pnp.where(there, mat[row, col], mat.dtype.type(0))
        ends = pnp.cumsum(pnp.bincount(row, length=rows))
        indptr = pnp.concatenate([pnp.zeros(1, ends.dtype), ends])
        return data, col.astype(index_dtype), indptr.astype(index_dtype)


class _Matvec(SparsePrimitive):
    name = "csr_matvec"
    ndim = 1

    def compute(
        self, data: Any, indices: Any, indptr: Any, other: Any, *, shape: Shape, transpose: bool
    ) -> Any:
        _check_parts(data, indices, indptr, shape)
        check_product(data, other, shape, transpose, self.ndim)
        return product(data, rows_of(indices, indptr), indices, other, shape, transpose)


class _Matmat(_Matvec):
    name = "csr_matmat"
    ndim = 2


csr_todense_p = _ToDense()
csr_fromdense_p = _FromDense()
csr_matvec_p = _Matvec()
csr_matmat_p = _Matmat()


def csr_todense(mat: CSR) -> Array:
    """The dense matrix that one in compressed rows stands for.

    Args:
      mat: a CSR matrix.

    Returns:
      A matrix of the same shape and dtype.

    Raises:
      ValueError: for parts that do not fit.

    >>> from perspex.experimental import sparse
    >>> sparse.csr_todense(sparse.eye(2, sparse_format="csr"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return csr_todense_p(*mat._bufs, shape=mat.shape)


def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """The matrix in compressed rows with the elements of a dense one that are not zero.

    Args:
      mat: a matrix.
      nse: how many elements to store; as many as it takes if not given. Inside of `jit` it must be
        given.
      index_dtype: the dtype of the indices.

    Returns:
      A CSR matrix.

    Raises:
      ConcretizationTypeError: for a traced matrix without `nse`.
      ValueError: unless `mat` is a matrix.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.csr_fromdense(jnp.array([[0.0, 3.0]]))
    CSR(float32[1, 2], nse=1)
    """
    mat = pnp.asarray(mat)
    count = (mat != 0).sum() if nse is None else nse
    size = concrete("the nse argument of csr_fromdense", operator.index, count)
    return CSR(csr_fromdense_p(mat, nse=size, index_dtype=np.dtype(index_dtype)), shape=mat.shape)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """A matrix in compressed rows times a vector.

    Args:
      mat: a CSR matrix.
      v: a vector of the same dtype.
      transpose: multiply by the transpose of `mat`.

    Returns:
      A vector.

    Raises:
      ValueError: for shapes that do not fit.
      TypeError: for another dtype.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.csr_matvec(sparse.eye(2, sparse_format="csr"), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return csr_matvec_p(*mat._bufs, pnp.asarray(v), shape=mat.shape, transpose=transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """A matrix in compressed rows times a dense matrix.

    Args:
      mat: a CSR matrix.
      B: a matrix of the same dtype.
      transpose: multiply by the transpose of `mat`.

    Returns:
      A matrix.

    Raises:
      ValueError: for shapes that do not fit.
      TypeError: for another dtype.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.csr_matmat(sparse.eye(2, sparse_format="csr"), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return csr_matmat_p(*mat._bufs, pnp.asarray(B), shape=mat.shape, transpose=transpose)
