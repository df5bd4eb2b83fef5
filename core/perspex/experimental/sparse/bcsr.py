"""Batched sparse arrays in compressed rows: functions on `BCSR`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import lax
from perspex import numpy as pnp
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import JAXSparse, validate_indices, validate_rows
from perspex.experimental.sparse.formats import BCOO, BCSR
from perspex.experimental.sparse.layout import bcoo_broadcast_in_dim, bcoo_concatenate
from perspex.experimental.sparse.primitive import SparsePrimitive
from perspex.experimental.sparse.products import DotDimensionNumbers, as_tuples, bcoo_dot_general_p
from perspex.experimental.sparse.structure import (
    bcoo_fromdense,
    bcoo_sum_duplicates,
    extract,
    todense,
)
from perspex.experimental.sparse.util import (
    Shape,
    SparseInfo,
    check,
    nfold_vmap,
    rows_of,
    stored_elements,
)
from perspex.typing import DTypeLike

__all__ = [
    "BCSR",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_dot_general_p",
    "bcsr_extract",
    "bcsr_extract_p",
    "bcsr_fromdense",
    "bcsr_fromdense_p",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "bcsr_todense_p",
]


def _bcoo_indices(indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """The BCOO indices of an array in compressed rows."""
    n_batch = validate_rows(indices, indptr, shape).n_batch

    def pairs(columns: Any, starts: Any) -> Any:
        return pnp.stack([rows_of(columns, starts), columns], axis=-1)

    return nfold_vmap(pairs, n_batch)(indices, indptr)


def _row_starts(indices: Any, shape: Sequence[int], dtype: Any) -> tuple[Any, Any]:
    """The columns of sorted BCOO indices, and where each row begins."""
    props = validate_indices(indices, shape)
    check(
        props.n_sparse == 2,
        f"an array in compressed rows must have 2 sparse dimensions, got {props.n_sparse}",
    )
    rows = shape[props.n_batch]

    def starts(row: Any) -> Any:
        counts = pnp.bincount(row, length=rows).astype(dtype)
        return pnp.concatenate([pnp.zeros(1, dtype), pnp.cumsum(counts, dtype=dtype)])

    found = nfold_vmap(starts, props.n_batch, broadcasted=False)(indices[..., 0])
    return indices[..., 1], found


class _FromDense(SparsePrimitive):
    name = "bcsr_fromdense"
    multiple_results = True

    def compute(
        self, mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any
    ) -> tuple[Any, Any, Any]:
        check(
            mat.ndim - n_dense - n_batch == 2,
            f"bcsr_fromdense: must have 2 sparse dimensions; shape {mat.shape} with {n_batch=} "
            f"and {n_dense=} has {mat.ndim - n_dense - n_batch}",
        )
        found = bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )
        return (found.data, *_row_starts(found.indices, mat.shape, index_dtype))


class _ToDense(SparsePrimitive):
    name = "bcsr_todense"

    def compute(self, data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
        return todense(data, _bcoo_indices(indices, indptr, spinfo.shape), spinfo)


class _Extract(SparsePrimitive):
    name = "bcsr_extract"

    def compute(self, indices: Any, indptr: Any, mat: Any) -> Any:
        return extract(_bcoo_indices(indices, indptr, mat.shape), mat)


class _DotGeneral(SparsePrimitive):
    name = "bcsr_dot_general"

    def compute(
        self,
        lhs_data: Any,
        lhs_indices: Any,
        lhs_indptr: Any,
        rhs: Any,
        *,
        dimension_numbers: Any,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        return bcoo_dot_general_p(
            lhs_data,
            _bcoo_indices(lhs_indices, lhs_indptr, lhs_spinfo.shape),
            rhs,
            dimension_numbers=dimension_numbers,
            preferred_element_type=preferred_element_type,
            lhs_spinfo=lhs_spinfo,
        )


bcsr_fromdense_p = _FromDense()
bcsr_todense_p = _ToDense()
bcsr_extract_p = _Extract()
bcsr_dot_general_p = _DotGeneral()


def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:
    """The array in compressed rows with the elements of a dense one that are not zero.

    Args:
      mat: an array, with two axes besides the batch axes and dense axes.
      nse: how many elements to store for each member of the batch; as many as it takes if not
        given. Inside of `jit` it must be given.
      n_batch: how many of the first axes are batch axes.
      n_dense: how many of the last axes are dense axes.
      index_dtype: the dtype of the indices.

    Returns:
      A BCSR array.

    Raises:
      ConcretizationTypeError: for a traced array without `nse`.
      ValueError: unless two axes are sparse.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.bcsr_fromdense(jnp.array([[0.0, 3.0], [4.0, 0.0]]))
    BCSR(float32[2, 2], nse=2)
    """
    mat = pnp.asarray(mat)
    count = stored_elements(mat, n_batch, n_dense) if nse is None else nse
    size = concrete("the nse argument of bcsr_fromdense", operator.index, count)
    parts = bcsr_fromdense_p(
        mat, nse=size, n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
    )
    return BCSR(parts, shape=mat.shape)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array that one in compressed rows stands for.

    Args:
      mat: a BCSR array.

    Returns:
      An array of the same shape and dtype.

    Raises:
      AttributeError: if `mat` is not a BCSR array.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.array([[0.0, 3.0]])))
    Array([[0., 3.]], dtype=float32)
    """
    return bcsr_todense_p(*mat._bufs, spinfo=mat._info)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array at the places of compressed rows.

    Args:
      indices: the columns.
      indptr: where each row begins.
      mat: a dense array.

    Returns:
      The data of a BCSR array.

    Raises:
      ValueError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> mat = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), mat)
    Array([2., 3.], dtype=float32)
    """
    return bcsr_extract_p(*[pnp.asarray(x) for x in (indices, indptr, mat)])


def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """A contraction of an array in compressed rows with a dense one: `lax.dot_general`.

    Args:
      lhs: a BCSR array or a dense one.
      rhs: a dense array.
      dimension_numbers: as in `bcoo_dot_general`.
      precision, out_sharding: without effect.
      preferred_element_type: the dtype of the result.

    Returns:
      A dense array.

    Raises:
      NotImplementedError: if `rhs` is sparse.
      TypeError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0.0, 3.0], [4.0, 0.0]]))
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> sparse.bcsr_dot_general(m, jnp.array([1.0, 2.0]), dimension_numbers=numbers)
    Array([6., 4.], dtype=float32)
    """
    numbers = as_tuples(dimension_numbers)
    preferred = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if isinstance(lhs, BCSR) and not isinstance(rhs, JAXSparse):
        return bcsr_dot_general_p(
            *lhs._bufs,
            pnp.asarray(rhs),
            dimension_numbers=numbers,
            preferred_element_type=preferred,
            lhs_spinfo=lhs._info,
        )
    if not isinstance(lhs, JAXSparse) and not isinstance(rhs, JAXSparse):
        return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred)
    raise NotImplementedError(
        "bcsr_dot_general is implemented for a BCSR array on the left and a dense one on the "
        f"right; got {type(lhs).__name__} and {type(rhs).__name__}. Call to_bcoo() before"
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """An array in compressed rows with each index once, and elements at the same place summed.

    Args:
      mat: a BCSR array.
      nse: how many elements to store; as many as it takes if not given. Inside of `jit` it must be
        given.

    Returns:
      A BCSR array.

    Raises:
      ValueError: for traced indices without `nse`.

    >>> from perspex.experimental import sparse
    >>> m = sparse.BCSR(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 2))
    >>> sparse.bcsr_sum_duplicates(m).data
    Array([3.], dtype=float32)
    """
    return bcsr_from_bcoo(bcoo_sum_duplicates(bcsr_to_bcoo(mat), nse=nse))


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Shape, broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """An array in compressed rows with more axes, along which it repeats.

    Args:
      mat: a BCSR array.
      shape: the shape of the result.
      broadcast_dimensions: which axis of the result each axis of `mat` is.
      sharding: without effect.

    Returns:
      A BCSR array.

    Raises:
      ValueError: if `broadcast_dimensions` does not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_broadcast_in_dim(m, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    out = bcoo_broadcast_in_dim(
        bcsr_to_bcoo(mat), shape=shape, broadcast_dimensions=broadcast_dimensions
    )
    return bcsr_from_bcoo(out)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays in compressed rows joined along an axis.

    Args:
      operands: BCSR arrays whose shapes are equal but for one axis.
      dimension: that axis, a batch axis or a sparse one.

    Returns:
      A BCSR array.

    Raises:
      ValueError: for operands with other kinds of axes.
      NotImplementedError: along a dense axis.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_concatenate([m, m], dimension=0).indptr.tolist()
    [0, 1, 2, 3, 4]
    """
    joined = bcoo_concatenate([bcsr_to_bcoo(x) for x in operands], dimension=dimension)
    return bcsr_from_bcoo(joined)


def bcsr_to_bcoo(mat: BCSR) -> BCOO:
    """The same array as a list of elements with their indices: `BCSR.to_bcoo`."""
    return BCOO((mat.data, _bcoo_indices(mat.indices, mat.indptr, mat.shape)), shape=mat.shape)


def bcsr_from_bcoo(mat: BCOO) -> BCSR:
    """A BCOO array with two sparse axes in compressed rows: `BCSR.from_bcoo`."""
    if mat.n_sparse != 2:
        raise NotImplementedError(f"BCSR.from_bcoo requires n_sparse=2; got {mat.n_sparse}")
    mat = mat if mat.indices_sorted else mat.sort_indices()
    rows = _row_starts(mat.indices, mat.shape, mat.indices.dtype)
    return BCSR((mat.data, *rows), shape=mat.shape)
