"""Gather and scatter: windows of an array at places computed while running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from perspex.arguments.dtypes import check_equal_dtypes
from perspex.arguments.glossary import describe
from perspex.arguments.static import integers
from perspex.arguments.types import Array, ArrayLike, Shape
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.lax.joining import unstack
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
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

__all__ = [
    "gather", "index_take", "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_sub",
]  # fmt: skip


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
    fill_value: ArrayLike | None = None,
) -> Array:
    """The windows of the operand that start at the given indices: XLA's gather.

    Args:
      operand: an array.
      start_indices: integers; the last axis holds index vectors.
      dimension_numbers: which axes are which.
      slice_sizes: the size of a window along each axis of the operand.
      unique_indices: a promise that no window is read twice.
      indices_are_sorted: a promise that the index vectors are in ascending order.
      mode: what happens to windows outside: `"clip"` moves them inside, `"fill"` reads
        `fill_value`; `"promise_in_bounds"`, the default, leaves it to the platform.
      fill_value: the number for `"fill"`. If not given: NaN, the least signed or the greatest
        unsigned integer, or True.

    Returns:
      An array of the dtype of the operand; `dimension_numbers` says which axes run over windows.

    Raises:
      TypeError: if axes and sizes do not fit.
      ValueError: for indices that are not integers, and for an unknown mode.

    >>> from perspex import lax, numpy as jnp
    >>> rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    parsed = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else _mode(mode)
    fill = None
    if parsed is GatherScatterMode.FILL_OR_DROP:
        if fill_value is None:
            fill = default_fill(typeof(operand).dtype)
        else:
            fill = FillValue(fill_value.item() if isinstance(fill_value, Array) else fill_value)
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

    Raises:
      TypeError: if the indices are not integers.
      ValueError: if the numbers of vectors and axes differ.

    >>> from perspex import lax, numpy as jnp
    >>> lax.index_take(jnp.arange(6).reshape(3, 2), (jnp.array([0, 4]),), (0,))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    shape = typeof(src).shape
    given: Any = idxs
    given = unstack(given) if hasattr(given, "ndim") else given
    columns = []
    for index, axis in zip(given, axes, strict=True):
        index = convert(index, np.dtype("int32")) if typeof(index).dtype == bool else index
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


class Scatter(Protocol):
    """A function that writes into windows of an array."""

    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array: ...


_SCATTER_DOC = """{says}: XLA's scatter.

    {note}

    Args:
      updates: the windows, of the dtype of the operand.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      TypeError: if axes, sizes or dtypes do not fit.
      ValueError: for indices that are not integers, and for an unknown mode.

    >>> from perspex import lax, numpy as jnp
    >>> at, numbers = jnp.array([[1], [3]]), lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.{name}(jnp.ones(4), at, jnp.array([3.0, 2.0]), numbers)
    Array([{result}], dtype=float32)
    """


def _scattering(row: Primitive, says: str, result: str, note: str = "") -> Scatter:
    """The function for a primitive that scatters; `result` is what the example shows."""

    def face(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        check_equal_dtypes(name, [typeof(operand), typeof(updates)])
        return row(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=_canonical(ScatterDimensionNumbers, dimension_numbers),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=_mode(mode),
        )

    name = row.name.replace("-", "_")
    face.__name__ = face.__qualname__ = name
    note = note or "Several updates of one element all count."
    face.__doc__ = _SCATTER_DOC.format(says=says, note=note, name=name, result=result)
    return face


scatter = _scattering(
    ops.scatter,
    "The operand with windows replaced by the updates",
    "1., 3., 1., 2.",
    "Of several updates of one element, the platform chooses which it writes.",
)
scatter_add = _scattering(
    ops.scatter_add, "The operand with the updates added to its windows", "1., 4., 1., 3."
)
scatter_sub = _scattering(
    ops.scatter_sub,
    "The operand with the updates subtracted from its windows",
    " 1., -2.,  1., -1.",
)
scatter_mul = _scattering(
    ops.scatter_mul, "The operand with its windows multiplied by the updates", "1., 3., 1., 2."
)
scatter_min = _scattering(
    ops.scatter_min, "The lesser of the operand and the updates in its windows", "1., 1., 1., 1."
)
scatter_max = _scattering(
    ops.scatter_max, "The greater of the operand and the updates in its windows", "1., 3., 1., 2."
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

    It has no derivative: write `x.at[i].set(func(x[i]))` for one.

    Args:
      func: a function from a scalar of the dtype of the operand to another; it captures no arrays.
        It is applied once for each window that an element is in.
      update_shape: the shape that updates would have.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      TypeError: if axes or sizes do not fit, `func` captures an array, or does not return a scalar
        of the dtype of the operand.
      ValueError: for an unknown mode.

    >>> from perspex import lax, numpy as jnp
    >>> at, numbers = jnp.array([[1], [3]]), lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.arange(4.0), at, lambda x: -x, numbers, update_shape=(2,))
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
    return ops.scatter(
        operand,
        scatter_indices,
        zeros(ShapedArray(integers("scatter_apply", "update_shape", update_shape), aval.dtype)),
        dimension_numbers=_canonical(ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=_mode(mode),
        update_jaxpr=ClosedJaxpr(jaxpr, consts),
    )


# ---- Documentation ------------------------------------------------------------------------------

describe(
    (*(scatter, scatter_add, scatter_sub, scatter_mul, scatter_min, scatter_max), scatter_apply),
    {
        "operand": "an array.",
        "scatter_indices": "integers; the last axis holds the index vectors where windows start.",
        "dimension_numbers": "which axes are which.",
        "indices_are_sorted": "a promise that the index vectors are in ascending order.",
        "unique_indices": "a promise that no element is in two windows.",
        "mode": 'what happens to windows outside: `"drop"`, the default, leaves them out,\n'
        '`"clip"` moves them inside, `"promise_in_bounds"` leaves it to the platform.',
    },
)
