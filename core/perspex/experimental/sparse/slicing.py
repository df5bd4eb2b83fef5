"""Parts of BCOO arrays, and sums over axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes, lax
from perspex import numpy as pnp
from perspex.api.mapping import vmap
from perspex.api.shapes import ShapeDtypeStruct, eval_shape
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import validate
from perspex.experimental.sparse.formats import BCOO
from perspex.experimental.sparse.layout import bcoo_reshape, bcoo_squeeze, bcoo_update_layout
from perspex.experimental.sparse.structure import bcoo_transpose, beyond, summed
from perspex.experimental.sparse.util import Shape, SparseInfo, check, cut


def _kept(mat: BCOO, data: Any, indices: Any, keep: Any, shape: Shape) -> BCOO:
    """The array of the elements marked `keep`, the others zero; no more than fit into the shape."""
    keep = keep.reshape((*keep.shape, *[1] * mat.n_dense))
    data = pnp.where(keep, data, data.dtype.type(0))
    room = math.prod(shape[mat.n_batch : mat.n_batch + mat.n_sparse])
    if mat.nse > room:
        data, indices = summed(data, indices, SparseInfo(shape), room)
    return BCOO((data, indices), shape=shape)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """A part of a sparse array, with the same number of axes.

    Args:
      mat: a BCOO array.
      start_indices, limit_indices: for each axis the first index, and the index after the last.
      strides: for each axis how far one index is from the next; 1 if not given.

    Returns:
      A BCOO array. It stores at most as many elements as its sparse axes have places.

    Raises:
      TypeError: if `mat` is not a BCOO array.
      ValueError: for indices that do not fit the array, or strides that are not positive.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_slice(sparse.eye(3), start_indices=(0, 0), limit_indices=(2, 3)).todense()
    Array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    _check_bcoo("bcoo_slice", mat)
    starts = [operator.index(i) for i in start_indices]
    limits = [operator.index(i) for i in limit_indices]
    steps = [1] * mat.ndim if strides is None else [operator.index(i) for i in strides]
    check(
        len(starts) == len(limits) == len(steps) == mat.ndim,
        f"bcoo_slice: indices and strides must have size mat.ndim={mat.ndim}; got {starts}, "
        f"{limits}, {steps}",
    )
    check(all(s > 0 for s in steps), f"strides must be positive integers; got {steps}")
    check(
        all(0 <= a <= b <= n for a, b, n in zip(starts, limits, mat.shape, strict=True)),
        f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and "
        f"shape={mat.shape}",
    )
    slices = [slice(*s) for s in zip(starts, limits, steps, strict=True)]
    shape = tuple([-((a - b) // s) for a, b, s in zip(starts, limits, steps, strict=True)])
    n_batch, n_sparse = mat.n_batch, mat.n_sparse
    batch, _, dense = cut(slices, n_batch, n_sparse)
    parts = []
    for x in (mat.data, mat.indices):
        whole = [n != size for n, size in zip(x.shape, mat.shape[:n_batch], strict=False)]
        parts.append([slice(None) if w else s for w, s in zip(whole, batch, strict=True)])
    data = mat.data[(*parts[0], slice(None), *dense)]
    indices = mat.indices[tuple(parts[1])] if n_batch else mat.indices
    if not n_sparse:
        return BCOO((data, indices), shape=shape)
    first, end, step = [
        np.array(cut(values, n_batch, n_sparse)[1]).astype(indices.dtype)
        for values in (starts, limits, steps)
    ]
    inside = (indices >= first) & (indices < end) & ((indices - first) % step == 0)
    keep = inside.all(-1, keepdims=True)
    fill = np.array(cut(shape, n_batch, n_sparse)[1]).astype(indices.dtype)
    indices = pnp.where(keep, (indices - first) // step, fill)
    return _kept(mat, data, indices, keep[..., 0], shape)


def bcoo_dynamic_slice(
    mat: BCOO, start_indices: Sequence[ArrayLike], slice_sizes: Sequence[int]
) -> BCOO:
    """A part of a sparse array that begins at indices known only when the program runs.

    Args:
      mat: a BCOO array.
      start_indices: for each axis the first index, a scalar of integers. As in `lax.dynamic_slice`,
        a slice that would reach beyond the array is moved into it.
      slice_sizes: the shape of the result.

    Returns:
      A BCOO array.

    Raises:
      TypeError: if `mat` is not a BCOO array, for sizes that do not fit, and for indices that are
        not scalars of integers.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 1), (1, 2)).todense()
    Array([[1., 0.]], dtype=float32)
    """
    _check_bcoo("bcoo_dynamic_slice", mat)
    sizes = tuple([operator.index(n) for n in slice_sizes])
    starts = [pnp.asarray(i) for i in start_indices]
    check(
        len(starts) == len(sizes) == mat.ndim
        and all(0 <= n <= size for n, size in zip(sizes, mat.shape, strict=True))
        and all(i.shape == () and dtypes.issubdtype(i.dtype, np.integer) for i in starts),
        "bcoo_dynamic_slice: give an integer index and a size that is less than or equal to the "
        f"operand's for each axis of shape {mat.shape}; got {start_indices} and {slice_sizes}",
        TypeError,
    )
    n_batch, n_sparse = mat.n_batch, mat.n_sparse
    batch, sparse, dense = cut(starts, n_batch, n_sparse)
    batch_sizes, sparse_sizes, dense_sizes = cut(sizes, n_batch, n_sparse)

    def sliced(x: Any, more: Sequence[Any], more_sizes: Sequence[int]) -> Any:
        front, lengths = [], []
        for axis, (start, size) in enumerate(zip(batch, batch_sizes, strict=True)):
            repeats = x.shape[axis] != mat.shape[axis]
            front.append(0 if repeats else start)
            lengths.append(1 if repeats else size)
        return lax.dynamic_slice(x, [*front, *more], [*lengths, *more_sizes])

    data = sliced(mat.data, [0, *dense], [mat.nse, *dense_sizes])
    indices = sliced(mat.indices, [0, 0], [mat.nse, n_sparse])
    if not n_sparse:
        return BCOO((data, indices), shape=sizes)
    lengths = np.array(mat.shape[n_batch : n_batch + n_sparse]).astype(indices.dtype)
    length = np.array(sparse_sizes).astype(indices.dtype)
    first = pnp.stack([i.astype(indices.dtype) for i in sparse])
    first = pnp.clip(pnp.where(first < 0, first + lengths, first), 0, lengths - length)
    keep = ((indices >= first) & (indices < first + length)).all(-1, keepdims=True)
    indices = pnp.where(keep, indices - first, length)
    return _kept(mat, data, indices, keep[..., 0], sizes)


def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """Slices of a sparse array: `lax.gather`.

    Args:
      operand: a BCOO array.
      start_indices, dimension_numbers, slice_sizes: as in `lax.gather`.
      unique_indices, indices_are_sorted, fill_value: without effect.
      mode: `None` or `"promise_in_bounds"`.

    Returns:
      A BCOO array.

    Raises:
      NotImplementedError: for other modes.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.eye(3)[jnp.array([2, 0])].todense()
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    promised = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if lax.GatherScatterMode.from_any(promised if mode is None else mode) != promised:
        raise NotImplementedError(
            f"bcoo_gather: {mode=} is not supported; use 'promise_in_bounds', or todense()"
        )

    def dense(x: Any, at: Any) -> Any:
        return lax.gather(x, at, dimension_numbers, slice_sizes, mode=promised)

    out = eval_shape(
        dense,
        ShapeDtypeStruct(operand.shape, operand.dtype),
        ShapeDtypeStruct(start_indices.shape, start_indices.dtype),
    )
    starts: list[Any] = [start_indices.dtype.type(0)] * operand.ndim
    axes: list[int | None] = [None] * operand.ndim
    sizes = list(operand.shape)
    for i, axis in enumerate(dimension_numbers.start_index_map):
        starts[axis] = start_indices[..., i].ravel()
        sizes[axis] = slice_sizes[axis]
        axes[axis] = 0

    def one(at: Any) -> BCOO:
        part = bcoo_dynamic_slice(operand, at, sizes)
        return bcoo_squeeze(part, dimensions=dimension_numbers.collapsed_slice_dims)

    result = vmap(one, in_axes=(axes,))(starts)
    new_sizes = (*start_indices.shape[:-1], *result.shape[1:])
    result = bcoo_reshape(result, new_sizes=new_sizes, dimensions=tuple(range(result.ndim)))
    if result.ndim:
        offsets = dimension_numbers.offset_dims
        batch = [axis for axis in range(len(out.shape)) if axis not in offsets]
        order = [int(axis) for axis in np.argsort([*batch, *offsets])]
        if sorted(order[: len(batch)]) != list(range(len(batch))):
            result = bcoo_update_layout(result, n_batch=0)
        result = bcoo_transpose(result, permutation=order)
    return result.reshape(out.shape).astype(out.dtype)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum of a sparse array over some axes.

    Args:
      mat: a BCOO array.
      axes: the axes.

    Returns:
      A BCOO array without them. Elements that come to lie at the same place are not added up yet.

    Raises:
      ValueError: for axes that do not exist.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)
    """
    n_batch, n_sparse, _, nse = validate(mat.data, mat.indices, mat.shape)
    gone = sorted({operator.index(axis) for axis in axes})
    check(
        all(0 <= axis < mat.ndim for axis in gone),
        f"bcoo_reduce_sum: axes {gone} are out of bounds for shape {mat.shape}",
    )
    data, indices = mat.data, mat.indices
    data = data.sum(tuple([axis - n_sparse + 1 for axis in gone if axis >= n_batch + n_sparse]))
    if n_sparse:
        fill = beyond(mat.shape, validate(mat.data, indices, mat.shape), indices.dtype)
        counts = (indices < fill).all(-1)
        counts = counts.reshape((*counts.shape, *[1] * (data.ndim - counts.ndim)))
        data = pnp.where(counts, data, data.dtype.type(0))
    kept = [i for i in range(n_sparse) if i + n_batch not in gone]
    indices = indices[..., np.array(kept, int)] if kept else indices[..., :0]
    batch = [axis for axis in gone if axis < n_batch]
    for axis in batch:
        size = mat.shape[axis]
        if data.shape[axis] == indices.shape[axis] == 1:
            data = data * data.dtype.type(size)
        elif data.shape[axis] == 1:
            data = pnp.broadcast_to(data, (*data.shape[:axis], size, *data.shape[axis + 1 :]))
        elif indices.shape[axis] == 1:
            data = data.sum(axis, keepdims=True)
    left = [axis for axis in range(n_batch) if axis not in batch]

    def merged(x: Any) -> Any:
        front = [x.shape[axis] for axis in left]
        total = nse * math.prod([x.shape[axis] for axis in batch])
        x = x.transpose((*left, *batch, *range(n_batch, x.ndim)))
        return x.reshape((*front, total, *x.shape[n_batch + 1 :]))

    shape = tuple([size for axis, size in enumerate(mat.shape) if axis not in gone])
    return BCOO((merged(data), merged(indices)), shape=shape)


def _check_bcoo(what: str, mat: Any) -> None:
    check(isinstance(mat, BCOO), f"{what}: input must be a BCOO array, got {type(mat)}", TypeError)
