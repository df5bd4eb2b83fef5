"""`BCOO` and `BCSR`: sparse arrays with batch and dense axes, and what `vmap` does to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex import tree
from perspex.api.mapping import Container, containers
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import (
    JAXSparse,
    batched_facts,
    check_aux,
    check_batch,
    diagonal,
    methods,
    unflattened,
    validate,
    validate_rows,
)
from perspex.experimental.sparse.util import Shape, SparseInfo, check, cut
from perspex.typing import DTypeLike

__all__ = ["BCOO", "BCSR"]

Index = DTypeLike


@tree.register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array as a list of elements with their indices, for each member of a batch.

    The axes are, in this order, `n_batch` batch axes, `n_sparse` sparse axes and `n_dense` dense
    axes. Every member of the batch stores the same number of elements, `nse`. An element whose
    indices lie outside of the array does not count; elements at the same place are summed.

    Args:
      args: `(data, indices)`. `data` has the shape `[*batch, nse, *dense]`, and `indices`, of
        integers, the shape `[*batch, nse, n_sparse]`. A batch axis of length 1 stands for any.
      shape: the shape of the array.
      indices_sorted, unique_indices: what is known about the indices.

    Raises:
      ValueError: for parts whose shapes do not fit.
      TypeError: for indices that are not integers.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.sparse import BCOO
    >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]))
    >>> m
    BCOO(float32[2, 3], nse=3)
    >>> m.indices.tolist()
    [[0, 1], [1, 0], [1, 2]]
    >>> m @ jnp.ones(3)
    Array([2., 5.], dtype=float32)
    """

    indices: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        super().__init__(args, shape=shape)
        self.data, self.indices = map(pnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        validate(self.data, self.indices, self.shape)

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, Any]:
        return self.data, self.indices

    @property
    def nse(self) -> int:
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        return self.data.ndim - 1 - self.n_batch

    def _facts(self) -> str:
        return batched_facts(self)

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: Index = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The array with the elements of a dense one that are not zero: see `bcoo_fromdense`."""
        return methods.bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Index | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The array that a sparse matrix of SciPy holds."""
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCOO.from_scipy_sparse with n_dense or n_batch; call update_layout on the result"
            )
        mat = mat.tocoo()
        indices = pnp.column_stack((mat.row, mat.col)).astype(index_dtype or np.int32)
        return cls((pnp.asarray(mat.data), indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        n_sparse = len(shape) - n_dense - n_batch
        check(
            min(n_sparse, n_dense, n_batch, nse) >= 0,
            f"empty: {shape=}, {n_dense=}, {n_batch=} and {nse=} leave no array; all must be "
            "non-negative, and n_batch + n_dense at most the number of axes",
        )
        front, middle, back = cut(shape, n_batch, n_sparse)
        data = pnp.zeros((*front, nse, *back), dtype)
        beyond = pnp.asarray(np.array(middle, int), index_dtype)
        indices = pnp.broadcast_to(beyond, (*front, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        check(
            min(2 - n_batch - n_dense, n_dense, n_batch) >= 0,
            f"eye: a matrix of shape {(N, M)} cannot have {n_batch=} and {n_dense=}",
        )
        rows, cols = diagonal(N, M, k, index_dtype)
        if not rows.size:
            layout = {"n_batch": n_batch, "n_dense": n_dense}
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, **layout)
        if n_dense or n_batch > 1:
            layout = {"n_batch": n_batch, "n_dense": n_dense}
            dense = pnp.eye(N, M, k, dtype=dtype)
            return cls.fromdense(dense, index_dtype=index_dtype, **layout)
        if n_batch == 0:
            data = pnp.ones(rows.size, dtype)
            indices = pnp.column_stack([rows, cols])
        else:
            column = np.arange(N) + k
            inside = (column >= 0) & (column < M)
            data = pnp.where(inside, pnp.ones(N, dtype), 0)[:, None]
            indices = pnp.asarray(np.where(inside, column, M), index_dtype)[:, None, None]
        flags = {"indices_sorted": True, "unique_indices": True}
        return cls((data, indices), shape=(N, M), **flags)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """The array with other numbers of batch and dense axes: see `bcoo_update_layout`."""
        return methods.bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with sorted indices, each of them once.

        Args:
          nse: how many elements to store; as many as it takes if not given. Inside of `jit` it must
            be given. Elements beyond `nse` are dropped.
          remove_zeros: whether to drop elements that are zero. The derivative of that is that of
            the elements that stay.
        """
        if remove_zeros:
            return methods.bcoo_eliminate_zeros(self, nse=nse)
        return methods.bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self) -> BCOO:
        """The array with sorted indices."""
        return methods.bcoo_sort_indices(self)

    def todense(self) -> Array:
        return methods.bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        perm = list(range(self.ndim)[::-1] if axes is None else axes)
        out = methods.bcoo_transpose(self, permutation=perm)
        first, last = self.n_batch, self.n_batch + self.n_sparse
        out.indices_sorted = self.indices_sorted and perm[first:last] == list(range(first, last))
        return out

    def reshape(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array with the same elements in another shape."""
        return methods.reshape(self, *args, **kwargs)

    def astype(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array with its numbers converted to another dtype."""
        return methods.astype(self, *args, **kwargs)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum over all axes, or over some."""
        return methods.sum(self, *args, **kwargs)

    def tree_flatten(self) -> tuple[tuple[Any, Any], dict[str, Any]]:
        return (self.data, self.indices), self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> BCOO:
        check_aux("BCOO", aux_data, SparseInfo._fields)
        return unflattened(cls, aux_data, ("data", "indices"), children)

    def __abs__(self) -> Any:
        return methods.absolute(self)

    def __neg__(self) -> Any:
        return methods.negative(self)

    def __pos__(self) -> Any:
        return methods.positive(self)

    def __matmul__(self, other: Any) -> Any:
        return methods.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return methods.matmul(other, self)

    def __mul__(self, other: Any) -> Any:
        return methods.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return methods.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return methods.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return methods.divide(other, self)

    def __add__(self, other: Any) -> Any:
        return methods.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return methods.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return methods.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return methods.subtract(other, self)

    def __pow__(self, other: Any) -> Any:
        return methods.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return methods.rpower(self, other)

    def __getitem__(self, item: Any) -> Any:
        return methods.getitem(self, item)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self.shape[0])])

    def __gt__(self, other: Any) -> Any:
        return methods.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return methods.greater_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return methods.less(self, other)

    def __le__(self, other: Any) -> Any:
        return methods.less_equal(self, other)

    def __eq__(self, other: object) -> Any:
        return methods.equal(self, other)

    def __ne__(self, other: object) -> Any:
        return methods.not_equal(self, other)


@tree.register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array in compressed rows, for each member of a batch.

    The axes are `n_batch` batch axes, two sparse ones and `n_dense` dense ones.

    Args:
      args: `(data, indices, indptr)`. `data` has the shape `[*batch, nse, *dense]`, `indices`, the
        columns, `[*batch, nse]`, and `indptr`, where each row begins, `[*batch, rows + 1]`.
      shape: the shape of the array.
      indices_sorted, unique_indices: what is known about the indices.

    Raises:
      ValueError: for parts whose shapes do not fit.
      TypeError: for indices that are not integers.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental.sparse import BCSR
    >>> m = BCSR.fromdense(jnp.array([[0.0, 2.0], [1.0, 4.0]]))
    >>> m.indptr.tolist()
    [0, 1, 3]
    >>> m @ jnp.ones(2)
    Array([2., 5.], dtype=float32)
    """

    indices: Any
    indptr: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        super().__init__(args, shape=shape)
        self.data, self.indices, self.indptr = map(pnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        n_batch, _, nse = validate_rows(self.indices, self.indptr, self.shape)
        check_batch("data", self.data.shape[:n_batch], self.shape[:n_batch])
        if self.data.shape[n_batch:] != (nse, *self.shape[n_batch + 2 :]):
            raise ValueError(
                f"data of shape {self.data.shape} does not fit indices of shape "
                f"{self.indices.shape} in an array of shape {self.shape}"
            )

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    @property
    def nse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        return 2

    @property
    def n_dense(self) -> int:
        return self.data.ndim - self.indices.ndim

    def _facts(self) -> str:
        return batched_facts(self)

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: Index = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The array with the elements of a dense one that are not zero: see `bcsr_fromdense`."""
        return methods.bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array that a BCOO array with two sparse axes holds, sorted if it is not."""
        return methods.bcsr_from_bcoo(arr)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Index | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The array that a sparse matrix of SciPy holds."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse with n_dense or n_batch")
        check(mat.ndim == 2, f"BCSR.from_scipy_sparse takes a matrix, got {mat.ndim} dimensions")
        mat = mat.tocsr()
        indices, indptr = [
            pnp.asarray(x).astype(index_dtype or np.int32) for x in (mat.indices, mat.indptr)
        ]
        return cls((pnp.asarray(mat.data), indices, indptr), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCSR:
        sizes = min(n_dense, n_batch, nse)
        check(sizes >= 0, f"empty: negative {n_dense=}, {n_batch=} or {nse=} for {shape=}")
        check(
            len(shape) - n_dense - n_batch == 2,
            f"empty: a BCSR array has two sparse axes; {shape=} with {n_dense=} and {n_batch=} "
            f"has {len(shape) - n_dense - n_batch}",
        )
        front, (rows, columns), back = cut(shape, n_batch, 2)
        data = pnp.zeros((*front, nse, *back), dtype)
        indices = pnp.full((*front, nse), columns, index_dtype)
        indptr = pnp.zeros((*front, rows + 1), index_dtype)
        return cls((data, indices, indptr), shape=shape)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with sorted indices, each of them once: see `BCOO.sum_duplicates`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def todense(self) -> Array:
        return methods.bcsr_todense(self)

    def to_bcoo(self) -> BCOO:
        """The same array as a list of elements with their indices."""
        return methods.bcsr_to_bcoo(self)

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> BCSR:
        check_aux("BCSR", aux_data, SparseInfo._fields)
        return unflattened(cls, aux_data, ("data", "indices", "indptr"), children)

    def __matmul__(self, other: Any) -> Any:
        return methods.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return methods.matmul(other, self)

    def __getitem__(self, item: Any) -> Any:
        return methods.getitem(self, item)


def _example(mat: Any, axis: int) -> Any:
    """One example of a batch of sparse arrays, whose parts are examples already."""
    name = type(mat).__name__
    if not 0 <= axis <= mat.n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for {name} array with n_batch={mat.n_batch + 1}. "
            "in_axes for batched sparse arrays must be one of their batch dimensions."
        )
    return _with_shape(mat, mat.shape[:axis] + mat.shape[axis + 1 :])


def _batch(mat: Any, axis: int, size: int) -> Any:
    """The batch of sparse arrays of which `mat` is an example."""
    if not 0 <= axis <= mat.n_batch:
        raise ValueError(
            f"{type(mat).__name__}: cannot add out_axis={axis} for an array with "
            f"n_batch={mat.n_batch}. Batch axes must be a contiguous block of leading dimensions."
        )
    return _with_shape(mat, (*mat.shape[:axis], size, *mat.shape[axis:]))


def _with_shape(mat: Any, shape: Shape) -> Any:
    parts, facts = mat.tree_flatten()
    return type(mat).tree_unflatten({**facts, "shape": shape}, parts)


containers[BCOO] = containers[BCSR] = Container(_example, _batch)
