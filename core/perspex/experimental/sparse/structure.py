"""BCOO arrays made, read and put in order.

`bcoo_fromdense` and `bcoo_extract` read elements of a dense array, `bcoo_todense` adds them up in
one. The derivatives go the same ways: an element that is read passes its cotangent to its place.
An index that lies outside reads zero, and nothing is added there.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import lax
from perspex import numpy as pnp
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import BCOOProperties, validate, validate_indices
from perspex.experimental.sparse.formats import BCOO
from perspex.experimental.sparse.primitive import SparsePrimitive
from perspex.experimental.sparse.util import Shape, SparseInfo, check, nfold_vmap, stored_elements
from perspex.tracing.trace import is_concrete
from perspex.typing import DTypeLike

Permutation = Sequence[int]


def places(indices: Any, shape: Sequence[int], props: BCOOProperties) -> tuple[Any, ...]:
    """The index of each stored element in every batch axis and sparse axis, ready to index with."""
    n_batch, n_sparse = props.n_batch, props.n_sparse
    ones = [1] * (n_batch + 1)
    grids = []
    for axis, size in enumerate(shape[:n_batch]):
        along = [*ones]
        along[axis] = size
        grids.append(np.arange(size).reshape(along))
    return (*grids, *[indices[..., i] for i in range(n_sparse)])


class _ToDense(SparsePrimitive):
    name = "bcoo_todense"

    def compute(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
        props = validate(data, indices, spinfo.shape)
        at = places(indices, spinfo.shape, props)
        if not props.n_sparse:
            data = data.sum(props.n_batch, keepdims=bool(at), dtype=data.dtype)
            if not at:
                return data
        return pnp.zeros(spinfo.shape, data.dtype).at[at].add(data)


class _FromDense(SparsePrimitive):
    name = "bcoo_fromdense"
    multiple_results = True

    def compute(
        self, mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any
    ) -> tuple[Any, Any]:
        n_sparse = mat.ndim - n_batch - n_dense
        check(
            min(n_sparse, n_batch, n_dense) >= 0,
            f"bcoo_fromdense: {n_batch=} and {n_dense=} do not fit an array of shape {mat.shape}",
        )
        mask = mat != 0
        if n_dense:
            mask = mask.any(tuple(range(n_batch + n_sparse, mat.ndim)))
        counts = mask.sum(tuple(range(n_batch, mask.ndim)))[..., None]
        if n_sparse:

            def found(member: Any) -> Any:
                at = pnp.nonzero(member, size=nse, fill_value=member.shape)
                return pnp.stack([x.astype(index_dtype) for x in at], axis=-1)

            indices = nfold_vmap(found, n_batch, broadcasted=False)(mask)
        else:
            indices = pnp.zeros((*mask.shape[:n_batch], nse, 0), index_dtype)
        data = extract(indices, mat)
        there = (np.arange(nse) < counts).reshape((*data.shape[: n_batch + 1], *[1] * n_dense))
        return pnp.where(there, data, data.dtype.type(0)), indices


class _Extract(SparsePrimitive):
    name = "bcoo_extract"

    def compute(self, indices: Any, arr: Any, *, assume_unique: bool) -> Any:
        props = validate_indices(indices, arr.shape)
        at = places(indices, arr.shape, props)
        out = arr.at[at].get(mode="fill", fill_value=0) if at else arr[None]
        n_batch, nse = props.n_batch, props.nse
        if not props.n_sparse and nse != 1:
            out = pnp.broadcast_to(out, (*out.shape[:n_batch], nse, *out.shape[n_batch + 1 :]))
        if not assume_unique:
            first = nfold_vmap(_is_first, n_batch, broadcasted=False)(
                in_bounds_or_beyond(indices, arr.shape, props)
            )
            first = first.reshape((*first.shape, *[1] * props.n_dense))
            out = pnp.where(first, out, out.dtype.type(0))
        return out


class _Transpose(SparsePrimitive):
    name = "bcoo_transpose"
    multiple_results = True

    def compute(
        self, data: Any, indices: Any, *, permutation: Permutation, spinfo: SparseInfo
    ) -> tuple[Any, Any]:
        batch, sparse, dense = split_permutation(data, indices, permutation, spinfo.shape)
        n = len(batch)
        indices = indices[..., np.array(sparse, int)] if sparse else indices
        indices = indices.transpose((*batch, n, n + 1))
        return data.transpose((*batch, n, *[d + n + 1 for d in dense])), indices


class _SortIndices(SparsePrimitive):
    name = "bcoo_sort_indices"
    multiple_results = True

    def compute(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> tuple[Any, Any]:
        props = validate(data, indices, spinfo.shape)
        if not props.n_sparse:
            return data, indices
        rows, order = nfold_vmap(_sorted_rows, props.n_batch, broadcasted=False)(indices)
        return nfold_vmap(lambda d, p: d[p], props.n_batch)(data, order), rows


class _SumDuplicates(SparsePrimitive):
    name = "bcoo_sum_duplicates"
    multiple_results = True

    def compute(self, data: Any, indices: Any, *, spinfo: SparseInfo, nse: int) -> tuple[Any, Any]:
        props = validate(data, indices, spinfo.shape)
        n_batch = props.n_batch
        rows, groups, _ = unique_rows(indices, spinfo.shape, props)
        rows = with_nse(rows, nse, spinfo.shape, props)
        if not props.n_sparse:
            data = data.sum(n_batch, keepdims=True, dtype=data.dtype)
        sizes = zip(indices.shape[:n_batch], data.shape[:n_batch], strict=True)
        shape = (*map(max, sizes), nse, *data.shape[n_batch + 1 :])
        total = pnp.zeros(shape, data.dtype)
        if total.size and data.size:
            add = nfold_vmap(lambda x, at, y: x.at[at].add(y, mode="drop"), n_batch)
            total = add(total, groups, data)
        return total, rows


bcoo_todense_p = _ToDense()
bcoo_fromdense_p = _FromDense()
bcoo_extract_p = _Extract()
bcoo_transpose_p = _Transpose()
bcoo_sort_indices_p = _SortIndices()
bcoo_sum_duplicates_p = _SumDuplicates()


def beyond(shape: Sequence[int], props: BCOOProperties, dtype: Any) -> np.ndarray:
    """The indices of an element that does not count: the length of each sparse axis."""
    return np.array(shape[props.n_batch : props.n_batch + props.n_sparse], int).astype(dtype)


def in_bounds_or_beyond(indices: Any, shape: Sequence[int], props: BCOOProperties) -> Any:
    """The indices, those of elements that do not count all the same."""
    fill = beyond(shape, props, indices.dtype)
    return pnp.where((indices >= fill).any(-1, keepdims=True), fill, indices)


def _sorted_rows(rows: Any) -> tuple[Any, Any]:
    """Rows of integers in lexicographic order, and where each one was."""
    count, width = rows.shape
    columns = [rows[:, i] for i in range(width)]
    *found, order = lax.sort((*columns, lax.iota(rows.dtype, count)), num_keys=max(width, 1))
    return (pnp.stack(found, axis=-1) if found else rows), order


def _is_new(rows: Any) -> Any:
    """Which of the sorted rows differ from the one before them."""
    changed = (rows[1:] != rows[:-1]).any(-1)
    return pnp.concatenate([pnp.ones(min(1, rows.shape[0]), bool), changed])


def _is_first(rows: Any) -> Any:
    """Which of the rows stands nowhere before."""
    ordered, order = _sorted_rows(rows)
    return pnp.zeros(rows.shape[0], bool).at[order].set(_is_new(ordered))


def unique_rows(indices: Any, shape: Sequence[int], props: BCOOProperties) -> tuple[Any, Any, Any]:
    """The different indices in order, the number of each element's, and how many count.

    There are as many rows as there were; those left over lie beyond the array.
    """
    n_batch, n_sparse, _, nse = props
    if not n_sparse:
        batch = indices.shape[:n_batch]
        one = pnp.zeros((*batch, 1), np.int32)
        return pnp.zeros((*batch, 1, 0), indices.dtype), one, pnp.ones(batch, np.int32)
    fill = beyond(shape, props, indices.dtype)

    def unique(rows: Any) -> tuple[Any, Any, Any]:
        ordered, order = _sorted_rows(rows)
        new = _is_new(ordered)
        number = pnp.cumsum(new) - 1
        groups = pnp.zeros(nse, number.dtype).at[order].set(number)
        blank = pnp.broadcast_to(fill, (nse, n_sparse))
        counts = (new & (ordered < fill).all(-1)).sum()
        return blank.at[number].set(ordered), groups, counts

    given = in_bounds_or_beyond(indices, shape, props)
    return nfold_vmap(unique, n_batch, broadcasted=False)(given)


def with_nse(indices: Any, nse: int, shape: Sequence[int], props: BCOOProperties) -> Any:
    """Indices of another number of elements: the first of them, or more that do not count."""
    if nse <= indices.shape[-2]:
        return indices[..., :nse, :]
    more = (*indices.shape[:-2], nse - indices.shape[-2], indices.shape[-1])
    fill = pnp.broadcast_to(beyond(shape, props, indices.dtype), more)
    return pnp.concatenate([indices, fill], axis=-2)


def set_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with another number of stored elements, of which the last may be lost."""
    if mat.nse == nse:
        return mat
    props = validate(mat.data, mat.indices, mat.shape)
    n = mat.n_batch
    data = mat.data[(*[slice(None)] * n, slice(nse))]
    if nse > mat.nse:
        widths = [(0, 0)] * n + [(0, nse - mat.nse)] + [(0, 0)] * mat.n_dense
        data = pnp.pad(data, widths)
    indices = with_nse(mat.indices, nse, mat.shape, props)
    return BCOO((data, indices), **mat._info._asdict())


def split_permutation(
    data: Any, indices: Any, permutation: Permutation, shape: Shape
) -> tuple[list[int], list[int], list[int]]:
    """How the batch axes, the sparse ones and the dense ones are permuted among themselves."""
    if not isinstance(permutation, (tuple, list, np.ndarray)):
        raise TypeError(
            f"transpose permutation must be a tuple/list/ndarray, got {type(permutation)}."
        )
    order = [int(p) for p in permutation]
    if sorted(order) != list(range(len(shape))):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions: got {order} for "
            f"shape {shape}"
        )
    n_batch, n_sparse, _, _ = validate(data, indices, shape)
    kinds = {"batch": range(n_batch), "dense": range(n_batch + n_sparse, len(shape))}
    for kind, axes in kinds.items():
        if sorted(order[axes.start : axes.stop]) != list(axes):
            raise NotImplementedError(
                f"transpose permutation cannot permute {kind} axes with non-{kind} axes; got "
                f"permutation {order} with {kind} axes {list(axes)}. Call update_layout before"
            )
    middle = n_batch + n_sparse
    return (
        order[:n_batch],
        [p - n_batch for p in order[n_batch:middle]],
        [p - middle for p in order[middle:]],
    )


def todense(data: Any, indices: Any, spinfo: SparseInfo) -> Any:
    """The dense array that the parts of a BCOO array stand for."""
    return bcoo_todense_p(pnp.asarray(data), pnp.asarray(indices), spinfo=spinfo)


def extract(indices: Any, arr: Any, assume_unique: bool = True) -> Any:
    """The elements of a dense array at BCOO indices."""
    return bcoo_extract_p(indices, arr, assume_unique=bool(assume_unique))


def transposed(data: Any, indices: Any, permutation: Permutation, spinfo: SparseInfo) -> Any:
    """The parts of a BCOO array with its axes permuted."""
    split_permutation(data, indices, permutation, spinfo.shape)
    order = tuple([int(p) for p in permutation])
    if order == tuple(range(len(order))):
        return data, indices
    return bcoo_transpose_p(data, indices, permutation=order, spinfo=spinfo)


def summed(data: Any, indices: Any, spinfo: SparseInfo, nse: int | None) -> Any:
    """The parts of a BCOO array with each index once."""
    if nse is None:
        props = validate(data, indices, spinfo.shape)
        if not is_concrete(indices):
            raise ValueError(
                "bcoo_sum_duplicates: nse must be specified when using the function within jit, "
                "vmap, and other transformations: how many indices differ is not known there"
            )
        counts = unique_rows(indices, spinfo.shape, props)[2]
        nse = 1 if not props.n_sparse else int(counts.max(initial=0))
    else:
        nse = concrete("nse argument of bcoo_sum_duplicates", operator.index, nse)
    return bcoo_sum_duplicates_p(data, indices, spinfo=spinfo, nse=nse)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array that a sparse one stands for.

    Args:
      mat: a BCOO array.

    Returns:
      An array of the same shape and dtype. Elements at the same place are summed.

    Raises:
      AttributeError: if `mat` is not a sparse array.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return todense(mat.data, mat.indices, mat._info)


def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:
    """The sparse array with the elements of a dense one that are not zero.

    Args:
      mat: an array.
      nse: how many elements to store for each member of the batch; as many as it takes if not
        given. Inside of `jit` it must be given. Elements beyond it are dropped.
      n_batch: how many of the first axes are batch axes.
      n_dense: how many of the last axes are dense axes.
      index_dtype: the dtype of the indices.

    Returns:
      A `BCOO` array with sorted, unique indices.

    Raises:
      ConcretizationTypeError: for a traced array without `nse`.
      ValueError: for more batch and dense axes than there are.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_fromdense(jnp.array([0.0, 3.0, 0.0, 4.0]))
    BCOO(float32[4], nse=2)
    """
    mat = pnp.asarray(mat)
    count = stored_elements(mat, n_batch, n_dense) if nse is None else nse
    size = concrete("the nse argument of bcoo_fromdense", operator.index, count)
    parts = bcoo_fromdense_p(
        mat, nse=size, n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
    )
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the places that a sparse one stores.

    Args:
      sparr: a BCOO array, whose indices count.
      arr: a dense array of the same shape.
      assume_unique: read a value for every index. If false, only the first of several equal indices
        gets the value, the others zero. By default whether the indices are known to be unique.

    Returns:
      A BCOO array with the indices of `sparr`.

    Raises:
      TypeError: if `sparr` is not a BCOO array.
      ValueError: for arrays of different shapes.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_extract(sparse.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data
    Array([1., 4.], dtype=float32)
    """
    check(
        isinstance(sparr, BCOO),
        f"bcoo_extract: the first argument must be a BCOO array, got {type(sparr)}",
        TypeError,
    )
    arr = pnp.asarray(arr)
    check(arr.shape == sparr.shape, f"bcoo_extract: shape mismatch: {sparr.shape}, {arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    return BCOO((extract(sparr.indices, arr, unique), sparr.indices), **sparr._info._asdict())


def bcoo_transpose(mat: BCOO, *, permutation: Permutation) -> BCOO:
    """A sparse array with its axes in another order.

    Args:
      mat: a BCOO array.
      permutation: which axis of `mat` each axis of the result is. Batch axes, sparse axes and dense
        axes can change places only among themselves.

    Returns:
      A BCOO array.

    Raises:
      TypeError: if `permutation` does not permute the axes.
      NotImplementedError: if it mixes axes of several kinds.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0)).shape
    (3, 2)
    """
    parts = transposed(mat.data, mat.indices, permutation, mat._info)
    shape = tuple([mat.shape[p] for p in permutation])
    return BCOO(parts, shape=shape, unique_indices=mat.unique_indices)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A sparse array with its indices in lexicographic order.

    Args:
      mat: a BCOO array.

    Returns:
      A BCOO array with the same elements.

    Raises:
      AttributeError: if `mat` is not a BCOO array.

    >>> from perspex.experimental import sparse
    >>> m = sparse.BCOO(([1.0, 2.0], [[1], [0]]), shape=(2,))
    >>> sparse.bcoo_sort_indices(m).data
    Array([2., 1.], dtype=float32)
    """
    parts = bcoo_sort_indices_p(mat.data, mat.indices, spinfo=mat._info)
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A sparse array with each index once, in order, and elements at the same place summed.

    Args:
      mat: a BCOO array.
      nse: how many elements to store; as many as it takes if not given. Inside of `jit` it must be
        given. Elements beyond it are dropped.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for traced indices without `nse`.

    >>> from perspex.experimental import sparse
    >>> m = sparse.BCOO(([1.0, 2.0, 3.0], [[1], [0], [1]]), shape=(2,))
    >>> sparse.bcoo_sum_duplicates(m).data
    Array([2., 4.], dtype=float32)
    """
    parts = summed(mat.data, mat.indices, mat._info, nse)
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """A sparse array with each index once and without elements that are zero.

    Args:
      mat: a BCOO array.
      nse: how many elements to store; as many as it takes if not given.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for traced arrays without `nse`.

    >>> from perspex.experimental import sparse
    >>> from perspex.experimental.sparse.bcoo import bcoo_eliminate_zeros
    >>> bcoo_eliminate_zeros(sparse.BCOO(([1.0, 0.0], [[1], [0]]), shape=(2,)))
    BCOO(float32[2], nse=1)
    """
    props = validate(mat.data, mat.indices, mat.shape)
    n_batch = props.n_batch
    zero = (mat.data == 0).all(tuple(range(n_batch + 1, mat.data.ndim)))
    shared = tuple([i for i in range(n_batch) if mat.indices.shape[i] == 1])
    zero = zero.all(shared, keepdims=True) if shared else zero
    fill = beyond(mat.shape, props, mat.indices.dtype)
    drop = nfold_vmap(lambda at, gone: pnp.where(gone[:, None], fill, at), n_batch)
    return bcoo_sum_duplicates(BCOO((mat.data, drop(mat.indices, zero)), shape=mat.shape), nse)
