"""Products with BCOO arrays: elementwise, contractions, convolutions.

A contraction of a sparse array with a dense one reads the dense array where the sparse one has
elements, multiplies, and adds the products up in the result. A contraction of two dense arrays of
which only some elements are wanted, which is the derivative of that with respect to the elements,
reads both arrays at the wanted places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from perspex import lax
from perspex import numpy as pnp
from perspex.api.shapes import ShapeDtypeStruct, eval_shape
from perspex.arguments.types import Array, ArrayLike
from perspex.experimental.sparse.base import validate, validate_indices
from perspex.experimental.sparse.formats import BCOO
from perspex.experimental.sparse.layout import bcoo_update_layout
from perspex.experimental.sparse.primitive import SparsePrimitive
from perspex.experimental.sparse.structure import beyond, extract, places, summed
from perspex.experimental.sparse.util import SparseInfo, check, nfold_vmap, without
from perspex.lax.windows import padtype_to_pads

Axes = tuple[int, ...]
DotDimensionNumbers: TypeAlias = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def as_tuples(numbers: DotDimensionNumbers) -> tuple[tuple[Axes, Axes], tuple[Axes, Axes]]:
    """Dimension numbers with tuples of integers, for params."""
    (a, b), (c, d) = numbers
    return (tuple(map(int, a)), tuple(map(int, b))), (tuple(map(int, c)), tuple(map(int, d)))


def dot_type(
    lhs: tuple[Any, Any], rhs: tuple[Any, Any], numbers: DotDimensionNumbers, preferred: Any = None
) -> ShapeDtypeStruct:
    """The shape and dtype of `lax.dot_general`, for operands given by shape and dtype."""

    def dot(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, numbers, preferred_element_type=preferred)

    return eval_shape(dot, ShapeDtypeStruct(*lhs), ShapeDtypeStruct(*rhs))


def _expanded(x: Any, at: int, count: int) -> Any:
    return x.reshape((*x.shape[:at], *[1] * count, *x.shape[at:]))


class _DotGeneral(SparsePrimitive):
    name = "bcoo_dot_general"

    def compute(
        self,
        lhs_data: Any,
        lhs_indices: Any,
        rhs: Any,
        *,
        dimension_numbers: Any,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        shape = lhs_spinfo.shape
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        out = dot_type(
            (shape, lhs_data.dtype),
            (rhs.shape, rhs.dtype),
            dimension_numbers,
            preferred_element_type,
        )
        props = validate(lhs_data, lhs_indices, shape)
        n_batch, n_sparse, n_dense, nse = props
        if max(lhs_batch, default=-1) >= n_batch:
            raise NotImplementedError(
                "bcoo_dot_general batch dimensions must be among the batch dimensions in the "
                f"sparse representation; got {lhs_batch=}, {n_batch=}. Call update_layout before"
            )
        if max(lhs_contract, default=-1) >= n_batch + n_sparse:
            raise NotImplementedError(
                f"bcoo_dot_general: contracting over dense dimensions: {lhs_contract=}. Call "
                "update_layout before"
            )
        at = places(lhs_indices, shape, props)
        rhs_free = without(rhs.ndim, rhs_contract, rhs_batch)
        read = tuple([at[axis] for axis in (*lhs_batch, *lhs_contract)])
        rhs = rhs.transpose((*rhs_batch, *rhs_contract, *rhs_free)).astype(out.dtype)
        picked = rhs.at[read].get(mode="fill", fill_value=0) if read else rhs
        # Shapes of the product: [*batch, nse, *dense of lhs, *free of rhs].
        front = picked.ndim - len(rhs_free)
        picked = _expanded(picked, 0, n_batch + 1 - front) if front <= n_batch else picked
        data = lhs_data.astype(out.dtype)
        data = data.reshape((*data.shape, *[1] * len(rhs_free)))
        product = data * _expanded(picked, n_batch + 1, n_dense)
        free = without(n_batch + n_sparse, lhs_contract, lhs_batch)
        whole = (*shape[:n_batch], nse, *product.shape[n_batch + 1 :])
        product = pnp.broadcast_to(product, whole)
        if not any(axis >= n_batch for axis in free):
            gone = [*without(n_batch, lhs_batch, free), n_batch]
            total = product.sum(tuple(gone), dtype=out.dtype)
            left = sorted((*lhs_batch, *free))
            order = [left.index(axis) for axis in (*lhs_batch, *free)]
            return total.transpose((*order, *range(len(order), total.ndim)))
        write = tuple([at[axis] for axis in (*lhs_batch, *free)])
        return pnp.zeros(out.shape, out.dtype).at[write].add(product, mode="drop")


class _DotGeneralSampled(SparsePrimitive):
    name = "bcoo_dot_general_sampled"

    def compute(self, A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
        (a_contract, b_contract), (a_batch, b_batch) = dimension_numbers
        out = dot_type((A.shape, A.dtype), (B.shape, B.dtype), dimension_numbers)
        props = validate_indices(indices, out.shape)
        if props.n_dense:
            highest = lax.Precision.HIGHEST
            return extract(indices, lax.dot_general(A, B, dimension_numbers, precision=highest))
        at = places(indices, out.shape, props)
        a_free = without(A.ndim, a_contract, a_batch)
        b_free = without(B.ndim, b_contract, b_batch)
        shared, last = len(a_batch), len(a_batch) + len(a_free)
        a = A.transpose((*a_batch, *a_free, *a_contract)).astype(out.dtype)
        b = B.transpose((*b_batch, *b_free, *b_contract)).astype(out.dtype)
        count = props.n_batch + 1
        rows = _at(a, at[:last], count)
        columns = _at(b, (*at[:shared], *at[last:]), count)
        product = rows * columns
        total = product.sum(tuple(range(count, product.ndim)), dtype=out.dtype)
        return pnp.broadcast_to(total, (*out.shape[: props.n_batch], props.nse))


def _at(x: Any, index: tuple[Any, ...], count: int) -> Any:
    """`x` at arrays of indices, as an array with `count` axes for them."""
    found = x.at[index].get(mode="fill", fill_value=0) if index else x
    used = found.ndim - (x.ndim - len(index))
    return _expanded(found, 0, count - used)


class _SpDotGeneral(SparsePrimitive):
    name = "bcoo_spdot_general"
    multiple_results = True

    def compute(
        self,
        lhs_data: Any,
        lhs_indices: Any,
        rhs_data: Any,
        rhs_indices: Any,
        *,
        lhs_spinfo: SparseInfo,
        rhs_spinfo: SparseInfo,
        dimension_numbers: Any,
        preferred_element_type: Any,
    ) -> tuple[Any, Any]:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        lhs_shape, rhs_shape = lhs_spinfo.shape, rhs_spinfo.shape
        out = dot_type(
            (lhs_shape, lhs_data.dtype),
            (rhs_shape, rhs_data.dtype),
            dimension_numbers,
            preferred_element_type,
        )
        lhs = validate(lhs_data, lhs_indices, lhs_shape)
        rhs = validate(rhs_data, rhs_indices, rhs_shape)
        for props, contract, batch in (
            (lhs, lhs_contract, lhs_batch),
            (rhs, rhs_contract, rhs_batch),
        ):
            _check_sparse_product(props, contract, batch)
        lhs_sizes = [lhs_shape[axis] for axis in lhs_contract]
        lhs_free = without(lhs.n_sparse, [axis - lhs.n_batch for axis in lhs_contract])
        rhs_free = without(rhs.n_sparse, [axis - rhs.n_batch for axis in rhs_contract])
        if rhs.n_batch > len(rhs_batch) and lhs_free:
            raise ValueError(
                "bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims "
                "on lhs; call update_layout before"
            )
        nse = (lhs.nse if lhs_free else 1) * (rhs.nse if rhs_free else 1)
        nse = min(nse, math.prod(out.shape[lhs.n_batch + rhs.n_batch - len(lhs_batch) :]))
        inner = (
            *[lhs_shape[axis + lhs.n_batch] for axis in lhs_free],
            *[rhs_shape[axis + rhs.n_batch] for axis in rhs_free],
        )
        lhs_at = np.array([axis - lhs.n_batch for axis in lhs_contract], int)
        rhs_at = np.array([axis - rhs.n_batch for axis in rhs_contract], int)

        def dot(x: Any, i: Any, y: Any, j: Any) -> tuple[Any, Any]:
            ours, theirs = i[:, None, lhs_at], j[None, :, rhs_at]
            sizes = np.array(lhs_sizes, int).astype(i.dtype)
            same = ((ours == theirs) & (ours < sizes)).all(-1)
            product = pnp.where(same, x[:, None] * y[None, :], 0).ravel().astype(out.dtype)
            pairs = (x.shape[0], y.shape[0])
            dtype = pnp.result_type(i, j)
            wide = [
                pnp.broadcast_to(i[:, None, np.array(lhs_free, int)], (*pairs, len(lhs_free))),
                pnp.broadcast_to(j[None, :, np.array(rhs_free, int)], (*pairs, len(rhs_free))),
            ]
            at = pnp.concatenate([part.astype(dtype) for part in wide], axis=-1)
            at = at.reshape((math.prod(pairs), len(inner)))
            return summed(product, at, SparseInfo(inner), nse)

        f = nfold_vmap(dot, rhs.n_batch - len(rhs_batch), in_axes=(None, None, 0, 0))
        f = nfold_vmap(f, lhs.n_batch - len(lhs_batch), in_axes=(0, 0, None, None))
        f = nfold_vmap(f, len(lhs_batch))
        data, indices = f(
            _batch_first(lhs_data, lhs_batch, lhs.n_batch),
            _batch_first(lhs_indices, lhs_batch, lhs.n_batch),
            _batch_first(rhs_data, rhs_batch, rhs.n_batch),
            _batch_first(rhs_indices, rhs_batch, rhs.n_batch),
        )
        return data, indices


def _check_sparse_product(props: Any, contract: Axes, batch: Axes) -> None:
    n_batch, n_sparse, n_dense, _ = props
    if n_dense:
        raise NotImplementedError("bcoo_spdot_general with dense dimensions; call update_layout")
    if max(batch, default=-1) >= n_batch:
        raise NotImplementedError(
            "bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse "
            f"representation; got {batch} with {n_batch=}"
        )
    if any(not n_batch <= axis < n_batch + n_sparse for axis in contract):
        raise NotImplementedError(
            "bcoo_spdot_general only supports contraction of sparse indices; got axes "
            f"{contract} with {n_batch=}"
        )


def _batch_first(x: Any, batch: Axes, n_batch: int) -> Any:
    return x.transpose((*batch, *without(n_batch, batch), *range(n_batch, x.ndim)))


bcoo_dot_general_p = _DotGeneral()
bcoo_dot_general_sampled_p = _DotGeneralSampled()
bcoo_spdot_general_p = _SpDotGeneral()


def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """A contraction of arrays of which one or both are sparse: `lax.dot_general`.

    Args:
      lhs, rhs: BCOO arrays or dense ones.
      dimension_numbers: `((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))`. Batch dimensions
        must be batch axes of the sparse array; dense axes cannot be contracted.
      precision, out_sharding: without effect.
      preferred_element_type: the dtype of the result.

    Returns:
      A BCOO array if both are sparse, otherwise a dense array.

    Raises:
      NotImplementedError: for axes of a kind that cannot be contracted.
      TypeError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general(sparse.eye(2), jnp.arange(2.0), dimension_numbers=numbers)
    Array([0., 1.], dtype=float32)
    """
    numbers = as_tuples(dimension_numbers)
    preferred = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        out = dot_type((lhs.shape, np.float32), (rhs.shape, np.float32), numbers)
        parts = bcoo_spdot_general_p(
            *lhs._bufs,
            *rhs._bufs,
            lhs_spinfo=lhs._info,
            rhs_spinfo=rhs._info,
            dimension_numbers=numbers,
            preferred_element_type=preferred,
        )
        return BCOO(parts, shape=out.shape)
    if isinstance(lhs, BCOO):
        return bcoo_dot_general_p(
            *lhs._bufs,
            pnp.asarray(rhs),
            dimension_numbers=numbers,
            preferred_element_type=preferred,
            lhs_spinfo=lhs._info,
        )
    if isinstance(rhs, BCOO):
        contract, batch = numbers
        turned = (contract[::-1], batch[::-1])
        out = bcoo_dot_general(rhs, lhs, dimension_numbers=turned, preferred_element_type=preferred)
        shared = len(batch[0])
        end = rhs.ndim - len(contract[0])
        return out.transpose((*range(shared), *range(end, out.ndim), *range(shared, end)))
    return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred)


def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: DotDimensionNumbers
) -> Array:
    """Some elements of a contraction of two dense arrays.

    Args:
      A, B: dense arrays.
      indices: BCOO indices of the elements in the result of `lax.dot_general`.
      dimension_numbers: as in `lax.dot_general`.

    Returns:
      The elements: the data of a BCOO array.

    Raises:
      TypeError: for shapes that do not fit.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> a, at = jnp.arange(4.0).reshape(2, 2), jnp.array([[1, 1]])
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general_sampled(a, a, at, dimension_numbers=numbers)
    Array([11.], dtype=float32)
    """
    numbers = as_tuples(dimension_numbers)
    given = [pnp.asarray(x) for x in (A, B, indices)]
    return bcoo_dot_general_sampled_p(*given, dimension_numbers=numbers)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays.

    Args:
      lhs, rhs: BCOO arrays with equally many axes and dense axes. An axis of length 1 repeats.

    Returns:
      A BCOO array that stores an element for each pair of elements.

    Raises:
      TypeError: for different numbers of axes.
      NotImplementedError: for different numbers of dense axes.

    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2)).todense()
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    check(
        lhs.ndim == rhs.ndim,
        "bcoo_multiply_sparse: arrays must have same number of dimensions, got "
        f"{lhs.shape}, {rhs.shape}",
        TypeError,
    )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            f"bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: {lhs}, {rhs}"
        )
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs_shape, rhs_shape = lhs.shape[n_batch:], rhs.shape[n_batch:]

    def product(x: Any, i: Any, y: Any, j: Any) -> tuple[Any, Any]:
        one = bcoo_update_layout(BCOO((x, i), shape=lhs_shape), n_batch=0)
        two = bcoo_update_layout(BCOO((y, j), shape=rhs_shape), n_batch=0)
        both = [
            axis for axis in range(one.n_sparse) if lhs_shape[axis] != 1 and rhs_shape[axis] != 1
        ]
        ours, theirs = one.indices[:, None], two.indices[None, :]
        at = np.array(both, int)
        same = (ours[..., at] == theirs[..., at]).all(-1)
        pairs = one.nse * two.nse
        a, b = pnp.nonzero(same, size=pairs, fill_value=(one.nse, two.nse))

        def read(values: Any, where: Any, fill: Any) -> Any:
            return values.at[where].get(mode="fill", fill_value=fill)

        data = read(one.data, a, 0) * read(two.data, b, 0)
        indices = pnp.maximum(
            read(one.indices, a, max(lhs_shape, default=0)),
            read(two.indices, b, max(rhs_shape, default=0)),
        )
        return data, indices

    parts = nfold_vmap(product, n_batch)(*lhs._bufs, *rhs._bufs)
    return BCOO(parts, shape=np.broadcast_shapes(lhs.shape, rhs.shape))


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The elements of the elementwise product of a sparse array and a dense one.

    Args:
      sp_mat: a BCOO array.
      v: a dense array whose shape broadcasts to that of `sp_mat`.

    Returns:
      The data of a BCOO array with the indices of `sp_mat`.

    Raises:
      NotImplementedError: if the product had another shape than `sp_mat`.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    v = pnp.asarray(v)
    data, indices, shape = sp_mat.data, sp_mat.indices, sp_mat.shape
    if not v.ndim:
        return data * v
    if v.shape == shape:
        return data * extract(indices, v)
    if np.broadcast_shapes(v.shape, shape) != shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the "
            f"output shape matches the sparse matrix shape. Got {shape=}, v.shape={v.shape}"
        )
    v = _expanded(v, 0, len(shape) - v.ndim)

    def product(numbers: Any, at: Any, dense: Any) -> Any:
        columns = [at[:, i] for i in range(at.shape[1])]
        return (
            numbers * dense[tuple([0 if dense.shape[i] == 1 else c for i, c in enumerate(columns)])]
        )

    return nfold_vmap(product, sp_mat.n_batch)(data, indices, v)


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """A convolution along one axis, without strides: `lax.conv_general_dilated`.

    Args:
      lhs, rhs: a BCOO array and a kernel, which may be dense, of shape `(1, 1, length)`.
      window_strides, lhs_dilation, rhs_dilation: all 1.
      padding: as in `lax.conv_general_dilated`.
      dimension_numbers, precision, preferred_element_type, out_sharding: as there.
      feature_group_count, batch_group_count: 1.

    Returns:
      A BCOO array.

    Raises:
      NotImplementedError: for strides, dilation, groups, and other shapes.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([[[1.0, 0.0, 2.0]]]))
    >>> sparse.bcoo_conv_general_dilated(
    ...     x, jnp.array([[[1.0, 10.0]]]), window_strides=(1,), padding=[(0, 0)]
    ... ).todense()
    Array([[[ 1., 20.]]], dtype=float32)
    """
    if lhs.ndim != 3 or {lhs.shape[:2], rhs.shape[:2]} != {(1, 1)}:
        raise NotImplementedError(
            f"bcoo convolution of shapes {lhs.shape} and {rhs.shape}; both must be (1, 1, length)"
        )
    for what, values in (
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
        ("non-unit window_strides", window_strides),
        ("non-unit group counts", (feature_group_count, batch_group_count)),
    ):
        if values is not None and any(n != 1 for n in values):
            raise NotImplementedError(f"bcoo convolution with {what}")
    sizes = (lhs.shape[2],), (rhs.shape[2],)
    pads = padtype_to_pads(*sizes, (1,), padding) if isinstance(padding, str) else padding
    ((low, high),) = [(int(a), int(b)) for a, b in pads]
    dtypes = [x.indices.dtype for x in (lhs, rhs) if isinstance(x, BCOO)] or [np.dtype("int32")]
    x, i = _as_vector(lhs, dtypes[0])
    y, j = _as_vector(rhs, dtypes[0])
    data = (x[:, None] * y[None, :]).ravel()
    indices = (i[:, None] + (low - j)[None, :]).ravel()
    left = indices < 0
    data = pnp.where(left, 0, data)[None, None]
    indices = pnp.where(left, 0, indices)[None, None, :, None]
    length = max(0, lhs.shape[2] + low + high - rhs.shape[2] + 1)
    return BCOO((data, indices), shape=(1, 1, length))


def _as_vector(mat: Any, dtype: Any) -> tuple[Any, Any]:
    """The elements of an array of shape `(1, 1, length)`, and where they are."""
    if not isinstance(mat, BCOO):
        return mat[0, 0], pnp.arange(mat.shape[2], dtype=dtype)
    mat = mat.update_layout(n_batch=2, n_dense=0)
    data, at = mat.data[0, 0], mat.indices[0, 0, :, 0]
    fill = beyond(mat.shape, validate(mat.data, mat.indices, mat.shape), at.dtype)
    return pnp.where(at < fill, data, 0), at
