"""BCOO arrays in another shape: other kinds of axes, more axes, fewer axes, joined, reversed."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import lax
from perspex import numpy as pnp
from perspex.experimental.sparse.base import validate
from perspex.experimental.sparse.formats import BCOO
from perspex.experimental.sparse.structure import beyond, set_nse, split_permutation
from perspex.experimental.sparse.util import (
    Shape,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    axis_of,
    check,
    cut,
    nfold_vmap,
)


def _joined(x: Any, axis: int, count: int) -> Any:
    """An array with `count` axes, from `axis` on, made one."""
    shape = x.shape
    size = math.prod(shape[axis : axis + count])
    return x.reshape((*shape[:axis], size, *shape[axis + count :]))


def _dense_to_sparse(data: Any, indices: Any, n_batch: int, count: int) -> tuple[Any, Any]:
    """The first `count` dense axes become the last sparse ones."""
    sizes = data.shape[n_batch + 1 : n_batch + 1 + count]
    more = np.indices(sizes).reshape(count, -1).T.astype(indices.dtype)
    nse, total = indices.shape[-2], len(more)
    *front, _, width = indices.shape
    old = pnp.broadcast_to(indices[..., None, :], (*front, nse, total, width))
    new = pnp.broadcast_to(more, (*front, nse, total, count))
    indices = pnp.concatenate([old, new], axis=-1)
    return _joined(data, n_batch, count + 1), _joined(indices, len(front), 2)


def _batch_to_sparse(data: Any, indices: Any, n_batch: int, count: int) -> tuple[Any, Any]:
    """The last `count` batch axes become the first sparse ones."""
    first, last = n_batch - count, n_batch
    sizes = np.broadcast_shapes(data.shape[first:last], indices.shape[first:last])
    nse, width = indices.shape[-2:]
    grid = np.moveaxis(np.indices((*sizes, nse))[:-1], 0, -1).astype(indices.dtype)
    front = indices.shape[:first]
    old = pnp.broadcast_to(indices, (*front, *sizes, nse, width))
    new = pnp.broadcast_to(grid, (*front, *sizes, nse, count))
    indices = pnp.concatenate([new, old], axis=-1)
    data = pnp.broadcast_to(data, (*data.shape[:first], *sizes, *data.shape[last:]))
    return _joined(data, first, count + 1), _joined(indices, first, count + 1)


def _sparse_to_dense(
    data: Any, indices: Any, n_batch: int, count: int, sizes: Shape
) -> tuple[Any, Any]:
    """The last `count` sparse axes, of the given sizes, become the first dense ones."""

    def spread(element: Any, at: Any) -> tuple[Any, Any]:
        place = tuple([at[i] for i in range(at.shape[0] - count, at.shape[0])])
        blank = pnp.zeros((*sizes, *element.shape), element.dtype)
        return blank.at[place].set(element), at[:-count]

    return nfold_vmap(spread, n_batch + 1)(data, indices)


def _sparse_to_batch(
    data: Any, indices: Any, n_batch: int, count: int, sizes: Shape
) -> tuple[Any, Any]:
    """The first `count` sparse axes, of the given sizes, become the last batch ones."""

    def spread(numbers: Any, at: Any) -> tuple[Any, Any]:
        nse = at.shape[0]
        place = (*[at[:, i] for i in range(count)], np.arange(nse))
        blank = pnp.zeros((*sizes, nse, *numbers.shape[1:]), numbers.dtype)
        rest = pnp.broadcast_to(at[:, count:], (*sizes, nse, at.shape[1] - count))
        return blank.at[place].set(numbers), rest

    return nfold_vmap(spread, n_batch)(data, indices)


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """A sparse array with other numbers of batch and dense axes.

    An axis that becomes sparse costs indices. One that becomes a batch or a dense axis costs a zero
    for each element in the rest of it, unless its length is 1.

    Args:
      mat: a BCOO array.
      n_batch, n_dense: how many axes of these kinds the result has; as many as before if not given.
      on_inefficient: what to do where the result stores many more numbers: `"error"`, `"warn"`, or
        `None` for nothing.

    Returns:
      A BCOO array that stands for the same array.

    Raises:
      SparseEfficiencyError: where the result stores many more numbers.
      ValueError: for numbers that are negative, or more than there are axes.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_update_layout(sparse.eye(3, n_batch=1), n_batch=0)
    BCOO(float32[3, 3], nse=3)
    """
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    check(
        on_inefficient in ("error", "warn", None),
        f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None]",
    )
    check(n_batch >= 0, f"n_batch must be non-negative; got {n_batch}")
    check(n_dense >= 0, f"n_dense must be non-negative; got {n_dense}")
    check(
        n_batch + n_dense <= mat.ndim,
        f"sum of {n_batch=} and {n_dense=} cannot be larger than mat.ndim={mat.ndim}",
    )
    shape, now_batch, now_dense = mat.shape, mat.n_batch, mat.n_dense
    new_dense = shape[mat.ndim - n_dense : mat.ndim - now_dense]
    new_batch = shape[now_batch:n_batch]
    for kind, before, after, sizes in (
        ("n_dense", now_dense, n_dense, new_dense),
        ("n_batch", now_batch, n_batch, new_batch),
    ):
        if any(size > 1 for size in sizes):
            _inefficient(
                f"For matrix of shape {shape}, increasing {kind} from {before} to {after} results "
                "in inefficient storage.",
                on_inefficient,
            )
    data, indices = mat.data, mat.indices
    if n_dense < now_dense:
        data, indices = _dense_to_sparse(data, indices, now_batch, now_dense - n_dense)
    if n_batch < now_batch:
        data, indices = _batch_to_sparse(data, indices, now_batch, now_batch - n_batch)
        now_batch = n_batch
    if n_dense > now_dense:
        more = n_dense - now_dense
        data, indices = _sparse_to_dense(data, indices, now_batch, more, new_dense)
    if n_batch > now_batch:
        more = n_batch - now_batch
        data, indices = _sparse_to_batch(data, indices, now_batch, more, new_batch)
    return BCOO((data, indices), shape=shape)


def _inefficient(message: str, how: str | None) -> None:
    advice = "set the on_inefficient argument of bcoo_update_layout to"
    if how == "error":
        raise SparseEfficiencyError(f"{message} To disable this error, {advice} 'warn' or None.")
    if how == "warn":
        message = f"{message} To disable this warning, {advice} None."
        warnings.warn(message, SparseEfficiencyWarning, stacklevel=3)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Shape, broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """A sparse array with more axes, along which it repeats.

    Args:
      mat: a BCOO array.
      shape: the shape of the result.
      broadcast_dimensions: which axis of the result each axis of `mat` is. New axes in front of the
        sparse ones are batch axes. New sparse axes must have length 1.
      sharding: as in `lax.broadcast_in_dim`; without effect.

    Returns:
      A BCOO array.

    Raises:
      ValueError: if `broadcast_dimensions` does not fit, or mixes axes of several kinds.
      NotImplementedError: for new sparse axes longer than 1.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_broadcast_in_dim(sparse.eye(2), shape=(5, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[5, 2, 2], nse=2, n_batch=1)
    """
    shape = tuple(shape)
    check(
        len(broadcast_dimensions) == mat.ndim,
        f"bcoo_broadcast_in_dim: shape {mat.shape} and {broadcast_dimensions=} must have the same "
        "length",
    )
    n_batch, n_sparse, n_dense, nse = validate(mat.data, mat.indices, mat.shape)
    batch, sparse, dense = cut(broadcast_dimensions, n_batch, n_sparse)
    ndim = len(shape)
    for names, before, after in (
        ("batch and sparse", batch, sparse),
        ("sparse and dense", sparse, dense),
    ):
        check(
            max(before, default=0) <= min(after, default=ndim),
            f"Cannot mix {names} dimensions during broadcast_in_dim: {broadcast_dimensions=}",
        )
    new_batch = min((*sparse, *dense), default=ndim)
    new_dense = ndim - min(dense) if n_dense else 0
    new_sparse = ndim - new_batch - new_dense
    middle = new_batch + new_sparse
    if math.prod(mat.shape[n_batch : n_batch + n_sparse]) != math.prod(shape[new_batch:middle]):
        raise NotImplementedError("bcoo_broadcast_in_dim: new sparse axes of lengths other than 1")
    data, indices = mat.data, mat.indices
    if (new_batch, new_dense) != (n_batch, n_dense):
        data = lax.broadcast_in_dim(
            data,
            (*shape[:new_batch], nse, *shape[middle:]),
            (*batch, new_batch, *[axis + 1 - new_sparse for axis in dense]),
        )
        indices = lax.broadcast_in_dim(
            indices, (*shape[:new_batch], nse, n_sparse), (*batch, new_batch, new_batch + 1)
        )
    if new_sparse != n_sparse:
        columns = [axis - new_batch for axis in sparse]
        wide = pnp.zeros((*shape[:new_batch], nse, new_sparse), indices.dtype)
        indices = wide.at[..., np.array(columns, int)].set(indices) if columns else wide
    return BCOO((data, indices), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Sparse arrays joined along an axis.

    Args:
      operands: BCOO arrays whose shapes are equal but for one axis, with equally many axes of each
        kind.
      dimension: that axis, a batch axis or a sparse one.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for operands that are not BCOO arrays, or that have other kinds of axes.
      TypeError: for shapes that do not fit.
      NotImplementedError: along a dense axis, and for batches that broadcast.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=0)
    BCOO(float32[4, 2], nse=4)
    """
    dimension = operator.index(dimension)
    operands = list(operands)
    check(
        all(isinstance(x, BCOO) for x in operands),
        f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}",
    )
    shape = _concatenated([x.shape for x in operands], dimension)
    check(
        len({x.n_dense for x in operands}) == 1,
        "bcoo_concatenate requires inputs to have matching dense dimensions.",
    )
    if len({x.dtype for x in operands}) > 1:
        names = [x.dtype.name for x in operands]
        raise TypeError(f"bcoo_concatenate: arrays of {names}; convert them to one dtype")
    if {x.n_batch for x in operands} == {0, 1}:
        operands = _aligned(operands)
    check(
        len({x.n_batch for x in operands}) == 1,
        "bcoo_concatenate requires inputs to have matching batch dimensions.",
    )
    n_batch, n_sparse = operands[0].n_batch, operands[0].n_sparse
    axes = [i for i in range(n_batch) if i != dimension]
    for parts in ([x.indices for x in operands], [x.data for x in operands]):
        if len({tuple([part.shape[i] for i in axes]) for part in parts}) > 1:
            raise NotImplementedError("concatenation of arrays with broadcasted batch indices")
    if dimension < n_batch:
        nse = max(x.nse for x in operands)
        operands = [set_nse(x, nse) for x in operands]
        indices = pnp.concatenate([x.indices for x in operands], axis=dimension)
        data = pnp.concatenate([x.data for x in operands], axis=dimension)
    elif dimension < n_batch + n_sparse:
        offsets = np.cumsum([0, *[x.shape[dimension] for x in operands[:-1]]])
        moved = [
            x.indices.at[..., dimension - n_batch].add(x.indices.dtype.type(offset))
            for x, offset in zip(operands, offsets, strict=True)
        ]
        indices = pnp.concatenate(moved, axis=n_batch)
        data = pnp.concatenate([x.data for x in operands], axis=n_batch)
    else:
        raise NotImplementedError("bcoo_concatenate: concatenation along dense dimensions")
    return BCOO((data, indices), shape=shape)


def _concatenated(shapes: Sequence[Shape], dimension: int) -> Shape:
    """The shape of arrays joined along an axis; the errors of `lax.concatenate`."""
    check(bool(shapes), "concatenate expects at least one operand, got 0.")
    first = shapes[0]
    rests = {(*s[:dimension], *s[dimension + 1 :]) for s in shapes}
    if len({len(s) for s in shapes}) > 1 or not 0 <= dimension < len(first) or len(rests) > 1:
        raise TypeError(
            f"bcoo_concatenate: arrays of shapes {list(shapes)} do not fit along {dimension=}"
        )
    total = sum(s[dimension] for s in shapes)
    return (*first[:dimension], total, *first[dimension + 1 :])


def _aligned(operands: list[BCOO]) -> list[BCOO]:
    """The operands with as many batch axes, where those that differ have length 1."""
    for n_batch in (0, 1):
        if all(x.shape[0] == 1 for x in operands if x.n_batch == n_batch):
            return [bcoo_update_layout(x, n_batch=1 - n_batch) for x in operands]
    return operands


def bcoo_reshape(
    mat: BCOO,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: Any = None,
) -> BCOO:
    """A sparse array in another shape.

    Args:
      mat: a BCOO array.
      new_sizes: the new shape. Batch axes, sparse axes and dense axes are reshaped by themselves.
      dimensions: an order of the axes to bring them in before; batch axes, sparse axes and dense
        axes change places only among themselves.
      sharding: as in `lax.reshape`; without effect.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for a shape that mixes axes of several kinds.
      NotImplementedError: for batches that broadcast.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_reshape(sparse.eye(4), new_sizes=(2, 8)).indices.tolist()
    [[0, 0], [0, 5], [1, 2], [1, 7]]
    """
    n_batch, n_sparse, _, nse = validate(mat.data, mat.indices, mat.shape)
    parts = {mat.indices.shape[:n_batch], mat.data.shape[:n_batch]}
    if parts != {mat.shape[:n_batch]}:
        raise NotImplementedError("reshape of arrays with broadcasted batch dimensions.")
    sizes = tuple([operator.index(n) for n in new_sizes])
    order = tuple(range(mat.ndim)) if dimensions is None else tuple(dimensions)
    batch, sparse, dense = split_permutation(mat.data, mat.indices, order, mat.shape)
    batch_shape, sparse_shape, _ = cut(mat.shape, n_batch, n_sparse)
    batch_size, sparse_size = math.prod(batch_shape), math.prod(sparse_shape)
    totals = np.cumprod(sizes)
    for kind, size, ends in (
        ("batch and sparse", batch_size, batch_size),
        ("sparse and dense", sparse_size, batch_size * sparse_size),
    ):
        check(
            size == 1 or ends in totals,
            f"bcoo_reshape: new shape cannot mix {kind} dimensions; got shape {mat.shape} and new "
            f"shape {sizes} with n_batch={n_batch}, n_dense={mat.n_dense}",
        )
    first = int(np.searchsorted(totals, batch_size, side="right"))
    last = int(np.searchsorted(totals, batch_size * sparse_size, side="right"))
    front, middle, back = sizes[:first], sizes[first:last], sizes[last:]
    data = mat.data.transpose((*batch, n_batch, *[axis + n_batch + 1 for axis in dense]))
    data = data.reshape((*front, nse, *back))
    indices = mat.indices.transpose((*batch, n_batch, n_batch + 1))
    indices = indices.reshape((*front, nse, n_sparse))
    if not middle:
        indices = pnp.zeros((*front, nse, 0), indices.dtype)
    elif sparse_shape:
        lengths = tuple([sparse_shape[i] for i in sparse])
        columns = tuple([indices[..., i] for i in sparse])
        flat = pnp.ravel_multi_index(columns, lengths, mode="clip")
        inside = pnp.stack(pnp.unravel_index(flat, middle), axis=-1).astype(indices.dtype)
        fill = np.array(sparse_shape).astype(indices.dtype)
        gone = (indices >= fill).any(-1, keepdims=True)
        indices = pnp.where(gone, np.array(middle).astype(indices.dtype), inside)
    else:
        indices = pnp.zeros((*front, nse, len(middle)), indices.dtype)
    return BCOO((data, indices), shape=sizes)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A sparse array with some axes reversed.

    Args:
      operand: a BCOO array.
      dimensions: the axes.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for axes that do not exist.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_rev(sparse.eye(2), (0,)).todense()
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    ndim, n_batch, n_sparse = operand.ndim, operand.n_batch, operand.n_sparse
    axes = [operator.index(axis) for axis in dimensions]
    if len(set(axes)) < len(axes):
        raise ValueError(f"bcoo_rev: dimensions must be unique, got {axes}")
    for axis in axes:
        check(0 <= axis < ndim, f"bcoo_rev: axis {axis} is out of bounds for {ndim} dimensions")
    batch = [axis for axis in axes if axis < n_batch]
    sparse = [axis - n_batch for axis in axes if n_batch <= axis < n_batch + n_sparse]
    dense = [axis + 1 - n_sparse for axis in axes if axis >= n_batch + n_sparse]
    data = lax.rev(operand.data, [*batch, *dense])
    indices = lax.rev(operand.indices, batch)
    if sparse:
        props = validate(operand.data, operand.indices, operand.shape)
        fill = beyond(operand.shape, props, indices.dtype)
        turned = np.isin(np.arange(n_sparse), sparse)
        indices = pnp.where(turned, fill - 1 - indices, indices)
        indices = pnp.where(indices < 0, fill, indices)
    return BCOO((data, indices), shape=operand.shape)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A sparse array without some axes of length 1.

    Args:
      arr: a BCOO array.
      dimensions: the axes.

    Returns:
      A BCOO array.

    Raises:
      ValueError: for axes that do not exist, or that are longer.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,))
    BCOO(float32[3], nse=1)
    """
    axes = [axis_of(operator.index(axis), arr.ndim) for axis in dimensions]
    check(
        all(arr.shape[axis] == 1 for axis in axes),
        "cannot select an axis to squeeze out which has size not equal to one, got shape "
        f"{arr.shape} and dimensions {axes}",
    )
    n_batch, n_sparse = arr.n_batch, arr.n_sparse
    batch = tuple([axis for axis in axes if axis < n_batch])
    dense = tuple([axis - n_sparse + 1 for axis in axes if axis >= n_batch + n_sparse])
    kept = [i for i in range(n_sparse) if i + n_batch not in axes]
    indices = arr.indices if len(kept) == n_sparse else arr.indices[..., np.array(kept, int)]
    return BCOO(
        (lax.squeeze(arr.data, batch + dense), lax.squeeze(indices, batch)),
        shape=tuple([size for axis, size in enumerate(arr.shape) if axis not in axes]),
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )
