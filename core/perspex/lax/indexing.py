"""Reading and writing at places computed while running: dynamic slices, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.jitted.fused import fused
from perspex.lax.arrays import ArrayLike, Shape, axis_of, check_equal_dtypes, integers
from perspex.lax.shape import expand_dims, squeeze, unstack
from perspex.ops import dynamic
from perspex.ops import indexing as ops
from perspex.ops.elementwise import add, lt, rem, select
from perspex.ops.shape import concatenate
from perspex.ops.structural import convert, reshape, scalar_like, zeros
from perspex.ops.windows import (
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
)
from perspex.runtime.array import Array
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

# ---- Dynamic slices -----------------------------------------------------------------------------


def _starts(
    name: str, shape: tuple[int, ...], starts: Sequence[Any], wrap: Sequence[bool]
) -> list[Any]:
    """Start indices of one dtype, those that count from the end made to count from the front."""
    avals = [typeof(s) for s in starts]
    for aval in avals:
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(f"{name}: start indices must be integers, got {aval.dtype.name}")
    if any(a.shape for a in avals):
        found = ", ".join([str(a.shape) for a in avals])
        raise TypeError(f"{name}: start indices must be scalars, got shapes {found}")
    if any(a.dtype != avals[0].dtype for a in avals):
        found = ", ".join([a.dtype.name for a in avals])
        raise TypeError(f"{name}: start indices must be integers of one dtype, got {found}")
    dtype = avals[0].dtype if avals else np.dtype("int32")
    if any(n > int(dtypes.iinfo(dtype).max) for n in shape):
        dtype = np.dtype("int32")  # so that a size can be added to a negative index
        starts = [convert(s, dtype) for s in starts]
    out = []
    for start, size, negative in zip(starts, shape, wrap, strict=True):
        if isinstance(start, (int, np.integer)):
            start = dtype.type(start + size if start < 0 else start)
        elif negative and not dtypes.issubdtype(dtype, np.unsignedinteger):
            below = lt(start, scalar_like(start, 0))
            start = select(below, add(convert(start, dtype), scalar_like(start, size)), start)
        out.append(start)
    return out


def _separate(name: str, starts: Any, ndim: int) -> tuple[Any, ...]:
    """One start for each axis, from a sequence or an array of them."""
    if hasattr(starts, "ndim") and starts.ndim == 1:
        starts = list(starts) if isinstance(starts, np.ndarray) else unstack(starts)
    elif hasattr(starts, "ndim") or not isinstance(starts, (tuple, list)):
        raise TypeError(f"{name}: start indices must be a sequence of scalars, got {starts!r}")
    if len(starts) != ndim:
        raise ValueError(
            f"{name}: length of start indices must match the number of axes of the operand, got "
            f"{len(starts)} for {ndim}"
        )
    return tuple(starts)


def _wraps(name: str, allow: bool | Sequence[bool], starts: Sequence[Any]) -> tuple[bool, ...]:
    """Whether each start may count from the end; a known negative one that may not is an error."""
    flags = [allow] * len(starts) if isinstance(allow, (bool, np.bool_)) else list(allow)
    for start, flag in zip(starts, flags, strict=True):
        if not flag and isinstance(start, (int, np.integer)) and start < 0:
            raise ValueError(
                f"{name}: start index {start} is out of bounds with allow_negative_indices=False"
            )
    return tuple(map(bool, flags))


@fused(static=("slice_sizes", "wrap"))
def _dynamic_slice(operand: Any, starts: Any, slice_sizes: Any, wrap: Any) -> Any:
    starts = _starts("dynamic_slice", typeof(operand).shape, starts, wrap)
    return dynamic.dynamic_slice(operand, *starts, slice_sizes=slice_sizes)


def dynamic_slice(
    operand: Array | np.ndarray,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The slice of a static size that starts at indices computed while running.

    A start is moved until the slice lies inside the operand.

    Args:
      operand: an array.
      start_indices: one integer scalar for each axis, or an array of them.
      slice_sizes: the size of the slice along each axis.
      allow_negative_indices: whether negative starts count from the end; for all axes or each.

    Errors:
      `TypeError` if the sizes do not fit or the starts are no integers of one dtype, `ValueError`
      for a wrong number of starts.

    >>> import perspex.numpy as jnp
    >>> dynamic_slice(jnp.arange(5), (4,), (2,))
    Array([3, 4], dtype=int32)
    """
    ndim = typeof(operand).ndim
    starts = _separate("dynamic_slice", start_indices, ndim)
    wrap = _wraps("dynamic_slice", allow_negative_indices, starts)
    sizes = integers("dynamic_slice", "slice_sizes", slice_sizes)
    return _dynamic_slice(operand, starts, sizes, wrap)


def _along(name: str, x: Any, index: Any, axis: Any) -> tuple[int, tuple[Any, ...]]:
    """The axis from the front, and starts that are 0 along the others."""
    axis = axis_of(name, axis, typeof(x).ndim)
    aval = typeof(index)
    if aval.shape:
        raise TypeError(f"{name}: the index must be a scalar, got shape {aval.shape}")
    zero = aval.dtype.type(0)
    return axis, tuple([index if i == axis else zero for i in range(typeof(x).ndim)])


def dynamic_slice_in_dim(
    operand: Array | np.ndarray,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_slice` along one axis; the others are taken whole.

    >>> import perspex.numpy as jnp
    >>> dynamic_slice_in_dim(jnp.arange(5), 1, 3)
    Array([1, 2, 3], dtype=int32)
    """
    axis, starts = _along("dynamic_slice_in_dim", operand, start_index, axis)
    sizes = list(typeof(operand).shape)
    sizes[axis] = slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Array | np.ndarray,
    index: int | Array,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand at one index of an axis, which stays with size one if `keepdims`.

    >>> import perspex.numpy as jnp
    >>> dynamic_index_in_dim(jnp.arange(6).reshape(3, 2), 1, keepdims=False)
    Array([2, 3], dtype=int32)
    """
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (axis,))


@fused(static=("wrap",))
def _dynamic_update_slice(operand: Any, update: Any, starts: Any, wrap: Any) -> Any:
    starts = _starts("dynamic_update_slice", typeof(operand).shape, starts, wrap)
    return dynamic.dynamic_update_slice(operand, update, *starts)


def dynamic_update_slice(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The operand with the slice that starts at `start_indices` replaced by `update`.

    A start is moved until the update lies inside the operand.

    Args:
      operand: an array.
      update: an array of its dtype and rank, no larger.
      start_indices: one integer scalar for each axis, or an array of them.
      allow_negative_indices: whether negative starts count from the end; for all axes or each.

    Errors:
      `TypeError` if dtypes disagree, the update does not fit or the starts are no integers of one
      dtype, `ValueError` for a wrong number of starts.

    >>> import perspex.numpy as jnp
    >>> dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = typeof(operand).ndim
    check_equal_dtypes("dynamic_update_slice", [typeof(operand), typeof(update)])
    starts = _separate("dynamic_update_slice", start_indices, ndim)
    wrap = _wraps("dynamic_update_slice", allow_negative_indices, starts)
    return _dynamic_update_slice(operand, update, starts, wrap)


def dynamic_update_slice_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_update_slice` along one axis; the update starts at 0 along the others.

    >>> import perspex.numpy as jnp
    >>> dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, axis=0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    _, starts = _along("dynamic_update_slice_in_dim", operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand with what is at one index of an axis replaced.

    `update` may lack that axis.

    >>> import perspex.numpy as jnp
    >>> dynamic_update_index_in_dim(jnp.zeros((2, 2)), jnp.ones(2), 1, axis=0)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    axis = axis_of("dynamic_update_index_in_dim", axis, typeof(operand).ndim)
    if typeof(update).ndim == typeof(operand).ndim - 1:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


# ---- Gather -------------------------------------------------------------------------------------


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """The windows of the operand that start at the given indices: XLA's gather.

    Args:
      operand: an array.
      start_indices: integers; the last axis holds index vectors.
      dimension_numbers: which axes are which.
      slice_sizes: the size of a window along each axis of the operand.
      unique_indices: a promise that no window is read twice.
      indices_are_sorted: a promise that the index vectors are in ascending order.
      mode: what becomes of windows outside: `"clip"` moves them inside, `"fill"` reads
        `fill_value`; `"promise_in_bounds"`, the default, leaves it to the platform.
      fill_value: the number for `"fill"`; NaN, the least signed or the greatest unsigned integer,
        or True if not given.

    Errors:
      `TypeError` if axes and sizes do not fit, `ValueError` for an unknown mode.

    >>> import perspex.numpy as jnp
    >>> rows = GatherDimensionNumbers((1,), (0,), (0,))
    >>> gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    parsed = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else _mode(mode)
    fill = None
    if parsed is GatherScatterMode.FILL_OR_DROP:
        if fill_value is None:
            fill = default_fill(typeof(operand).dtype)
        else:
            fill = FillValue(fill_value.item() if hasattr(fill_value, "aval") else fill_value)
    return ops.gather(
        operand,
        start_indices,
        dimension_numbers=_canonical(GatherDimensionNumbers, dimension_numbers),
        slice_sizes=integers("gather", "slice_sizes", slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=parsed,
        fill_value=fill,
    )


_mode = GatherScatterMode.from_any


def _canonical(kind: Any, numbers: Any) -> Any:
    if not isinstance(numbers, kind):
        raise TypeError(f"dimension_numbers must be {kind.__name__}, got {type(numbers).__name__}")
    return kind(*[integers(kind.__name__, name, dims) for name, dims in numbers._asdict().items()])


def index_take(src: Array, idxs: Array | Sequence[Array], axes: Sequence[int]) -> Array:
    """The elements of `src` at index vectors, one vector of indices for each of `axes`.

    Indices out of range wrap around.

    Args:
      src: an array.
      idxs: integer arrays of shape `(n,)`, one for each of `axes`.
      axes: axes of `src`.

    Returns:
      An array of shape `(n, ...)` with the other axes of `src` after the first.

    >>> import perspex.numpy as jnp
    >>> index_take(jnp.arange(6).reshape(3, 2), (jnp.array([0, 4]),), (0,))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    shape = typeof(src).shape
    given: Any = idxs
    given = unstack(given) if hasattr(given, "ndim") else given
    columns = []
    for index, axis in zip(given, axes, strict=True):
        size = scalar_like(index, shape[axis])
        left = rem(index, size)
        left = select(lt(left, scalar_like(left, 0)), add(left, size), left)
        columns.append(reshape(left, new_sizes=(*typeof(left).shape, 1)))
    vectors = concatenate(*columns, dimension=1)
    return gather(
        src,
        vectors,
        GatherDimensionNumbers(
            tuple(range(1, len(shape) - len(axes) + 1)), tuple(sorted(axes)), tuple(axes)
        ),
        tuple([1 if i in axes else n for i, n in enumerate(shape)]),
    )


# ---- Scatter ------------------------------------------------------------------------------------


def _scatter(
    primitive: Any,
    operand: Any,
    indices: Any,
    updates: Any,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    **params: Any,
) -> Array:
    check_equal_dtypes(primitive.name.replace("-", "_"), [typeof(operand), typeof(updates)])
    return primitive(
        operand,
        indices,
        updates,
        dimension_numbers=_canonical(ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=_mode(mode),
        **params,
    )


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with windows replaced by the updates: XLA's scatter.

    Where several updates are for one element, which of them is written is up to the platform.

    Args:
      operand: an array.
      scatter_indices: integers; the last axis holds the index vectors at which windows start.
      updates: the windows, of the dtype of the operand.
      dimension_numbers: which axes are which.
      indices_are_sorted: a promise that the index vectors are in ascending order.
      unique_indices: a promise that no element is in two windows.
      mode: what becomes of windows outside: `"drop"`, the default, leaves them out, `"clip"` moves
        them inside, `"promise_in_bounds"` leaves it to the platform.

    Errors:
      `TypeError` if axes, sizes or dtypes do not fit, `ValueError` for an unknown mode.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(jnp.zeros(4), at, jnp.array([1.0, 2.0]), numbers)
    Array([0., 1., 0., 2.], dtype=float32)
    """
    return _scatter(
        ops.scatter,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with the updates added to its windows.

    Arguments and errors are those of `scatter`. Updates of one element all count.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(jnp.zeros(4), at, jnp.array([1.0, 2.0]), numbers)
    Array([0., 1., 0., 2.], dtype=float32)
    """
    return _scatter(
        ops.scatter_add,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with the updates subtracted from its windows.

    Arguments and errors are those of `scatter`. Updates of one element all count.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(jnp.zeros(4), at, jnp.array([1.0, 2.0]), numbers)
    Array([ 0., -1.,  0., -2.], dtype=float32)
    """
    return _scatter(
        ops.scatter_sub,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with its windows multiplied by the updates.

    Arguments and errors are those of `scatter`. Updates of one element all count.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(jnp.ones(4), at, jnp.array([1.0, 2.0]), numbers)
    Array([1., 1., 1., 2.], dtype=float32)
    """
    return _scatter(
        ops.scatter_mul,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The lesser of the operand and the updates in its windows.

    Arguments and errors are those of `scatter`. Updates of one element all count.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(jnp.zeros(4), at, jnp.array([1.0, 2.0]), numbers)
    Array([0., 0., 0., 0.], dtype=float32)
    """
    return _scatter(
        ops.scatter_min,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The greater of the operand and the updates in its windows.

    Arguments and errors are those of `scatter`. Updates of one element all count.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(jnp.zeros(4), at, jnp.array([1.0, 2.0]), numbers)
    Array([0., 1., 0., 2.], dtype=float32)
    """
    return _scatter(
        ops.scatter_max,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_apply(
    operand: Array,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with `func` applied to the elements of its windows.

    Args:
      func: a function of a scalar of the dtype of the operand that gives another; it captures no
        arrays. It is applied once for each window that an element is in.
      update_shape: the shape that updates would have.

    The other arguments and the errors are those of `scatter`; also `TypeError` if `func` gives
    something else. There is no derivative: write `x.at[i].set(func(x[i]))` for one.

    >>> import perspex.numpy as jnp
    >>> at = jnp.array([[1], [3]])
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(jnp.arange(4.0), at, lambda x: -x, numbers, update_shape=(2,))
    Array([ 0., -1.,  2., -3.], dtype=float32)
    """
    aval = typeof(operand)
    scalar = ShapedArray((), aval.dtype)
    jaxpr, consts = stage(lambda x, _: [func(x)], [scalar, scalar], "scatter_apply")
    if consts:
        raise TypeError(
            "scatter_apply: func must not capture arrays, got one of type "
            f"{typeof(consts[0]).str_short()}; capture numbers"
        )
    (out,) = jaxpr.outvars
    if out.aval.strip_weak_type() != scalar:
        raise TypeError(
            f"scatter_apply: func must give a scalar of dtype {aval.dtype.name}, got "
            f"{out.aval.str_short()}"
        )
    return _scatter(
        ops.scatter,
        operand,
        scatter_indices,
        zeros(ShapedArray(integers("scatter_apply", "update_shape", update_shape), aval.dtype)),
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
        update_jaxpr=ClosedJaxpr(jaxpr, consts),
    )
