"""What an update of a part of an array is made of.

Where the places are known to be inside, as they are for most integers and slices, the new elements
are computed from a slice and written in one piece. All else is a scatter.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import as_dtype, expand, spread
from perspex.base import source
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import power_of_arrays, true_divide
from perspex.numpy.indexing.parse import Index, Point
from perspex.numpy.indexing.read import FILL, restored
from perspex.numpy.indexing.windows import (
    Windows,
    add_number,
    as_starts,
    ascends,
    is_advanced,
    is_strided,
    windows,
    wrapped,
)
from perspex.ops import elementwise as ops
from perspex.ops.dynamic import dynamic_slice, dynamic_update_slice
from perspex.ops.indexing import (
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from perspex.ops.memory import like_primal
from perspex.ops.shape import rev
from perspex.ops.structural import broadcast_in_dim, reshape
from perspex.ops.windows import GatherScatterMode, ScatterDimensionNumbers
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

# What each update makes of an element and the value, and the scatter that does so for many.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, value: value,
    "add": ops.add,
    "subtract": ops.sub,
    "multiply": ops.mul,
    "divide": true_divide,
    "power": power_of_arrays,
    "min": ops.min,
    "max": ops.max,
}
_SCATTERS = {
    "set": scatter,
    "add": scatter_add,
    "subtract": scatter_sub,
    "multiply": scatter_mul,
    "min": scatter_min,
    "max": scatter_max,
}


# Updates whose value becomes one of the dtype of the array before it is used, as in JAX. Their
# result has the dtype that the function gives: floats for `divide`.
_FREE = ("divide", "power")


class Options(NamedTuple):
    """How to update: the operation, and what the keywords of the methods say.

    `inside` promises that no integer in the index is outside.
    """

    operation: str
    mode: GatherScatterMode = FILL
    wrap: bool = True
    unique: bool = False
    is_sorted: bool = False
    inside: bool = False


@fused(static=("options", "pattern"))
def update_program(x: Any, places: Any, values: Any, options: Options, pattern: Any) -> Any:
    return updated(x, restored(places, pattern), values, options)


@fused(static=("operation",))
def masked(x: Any, mask: Any, value: Any, operation: str) -> Any:
    """The update of the elements that a mask picks by one value: a choice, not a scatter."""
    dtype, weak = x.dtype, x.aval.weak_type
    x, value = _prepared(x, value, operation)
    new = OPERATIONS[operation](x, _as_value(value, dtype) if operation in _FREE else value)
    x = as_dtype(x, new.dtype)
    mask = broadcast_in_dim(mask, shape=x.shape, broadcast_dimensions=tuple(range(mask.ndim)))
    out = ops.select(mask, spread(new, x.shape), x)
    return _as_result(out, operation, dtype, weak)


def updated(x: Any, index: Index, value: Any, options: Options) -> Any:
    """`x` with what the parsed index names updated."""
    given, shape, dtype, weak = x, x.shape, x.dtype, x.aval.weak_type
    x, value = _prepared(x, value, options.operation)
    if index.grown:
        x = expand(x, index.grown)
    if options.inside and not is_advanced(index) and not is_strided(index):
        out = _written(x, index, value, options)
    else:
        out = _scattered(x, index, value, options)
    if out is x:  # the index names no element, and none is rounded in another dtype
        return given
    if index.grown:
        out = reshape(out, new_sizes=shape)
    return _as_result(out, options.operation, dtype, weak)


def _as_result(x: Any, operation: str, dtype: Any, weak: bool) -> Any:
    """A result as the dtype of the array; of complex numbers the real part is taken."""
    if operation in _FREE:  # `power` of integers is never weak
        return as_dtype(x, x.dtype, weak and (operation != "power" or x.dtype.kind not in "iu"))
    narrows = x.dtype.kind == "c" and dtype.kind != "c"
    return as_dtype(ops.real(x) if narrows else x, dtype, weak)


def check_cast(x: Any, value: Any) -> None:
    """Warn if `value` does not fit the dtype of the array that it updates.

    Whoever calls an update says so, not its program: that is traced for the first caller alone.
    """
    dtype, kind = x.dtype, value.__class__
    if kind not in PYTHON_SCALARS:
        if getattr(value, "dtype", None) == dtype:
            return
        kind = dtypes.kind_of(value)
    if _fits(kind, dtype):
        return
    other = dtypes.kind_of(value)[0]
    warnings.warn(
        "scatter inputs have incompatible types: cannot safely cast value from "
        f"dtype={other.name} to dtype={dtype.name}; convert the value with astype. This will "
        "become an error",
        FutureWarning,
        stacklevel=source.stacklevel(),
    )
    if other.kind == "c" and dtype.kind != "c":
        warnings.warn(
            "Casting complex values to real discards the imaginary part; take value.real",
            np.exceptions.ComplexWarning,
            stacklevel=source.stacklevel(),
        )


@functools.cache
def _fits(kind: Any, dtype: np.dtype) -> bool:
    """Whether a value of the kind, a dtype with its weakness or a type of Python, loses nothing."""
    if kind is int:
        return dtype.kind != "b"
    other = dtypes.kind_of(kind()) if isinstance(kind, type) else kind
    if dtypes.issubdtype(dtype, dtypes.extended) or dtypes.issubdtype(other[0], dtypes.extended):
        return True
    return dtypes.promote(((dtype, False), other))[0] == dtype


def _prepared(x: Any, value: Any, operation: str) -> tuple[Any, Any]:
    """Array and value at the dtype at which they meet; for `divide` and `power`, the value."""
    given, other = x.aval, shaped(value)
    if (given.is_extended or other.is_extended) and (
        operation != "set" or given.dtype != other.dtype
    ):
        raise TypeError(
            f"x.at[...].{operation}: array of dtype {given.dtype.name} and value of dtype "
            f"{other.dtype.name}; elements that are typed keys can be set to keys, nothing else"
        )
    if operation == "set":
        return x, _as_value(value, given.dtype)
    meeting, _ = dtypes.promote(((given.dtype, given.weak_type), (other.dtype, other.weak_type)))
    return x if operation in _FREE else as_dtype(x, meeting), _as_value(value, meeting)


def _as_value(x: Any, dtype: Any) -> Any:
    """A value as `dtype`; integers wrap round, of complex numbers the real part is taken."""
    narrows = not dtypes.issubdtype(dtype, np.complexfloating)
    if hasattr(x, "aval"):
        x = ops.real(x) if narrows and x.dtype.kind == "c" else x
        return as_dtype(x, dtype)
    host = np.asarray(x)
    host = host.real if narrows and host.dtype.kind == "c" else host
    with np.errstate(all="ignore"):
        return host.astype(dtype)[()]


def _written(x: Any, index: Index, value: Any, options: Options) -> Any:
    """The update of a block inside `x`, in one piece."""
    starts: list[Any] = []
    block, result, backwards = [], [], []
    sizes = iter(x.shape)
    for e in index.entries:
        if e is None:
            result.append(1)
            continue
        n = next(sizes)
        if e.__class__ is Point:
            starts.append(wrapped(e.place, n))
            block.append(1)
            continue
        start, size, step, _ = e  # type: ignore[misc]
        if step < 0 and size > 1:
            backwards.append(len(block))
            start = add_number(start, 1 - size)
        starts.append(start)
        block.append(size)
        result.append(size)
    value = fitted(value, tuple(result))
    if 0 in block and options.operation not in _FREE:
        return x
    if np.ndim(value):
        value = reshape(value, new_sizes=tuple(block)) if result != block else value
        value = rev(value, dimensions=tuple(backwards)) if backwards else value
    combine = OPERATIONS[options.operation]
    value = _as_value(value, x.dtype) if options.operation in _FREE else value
    if tuple(block) == x.shape:
        return spread(combine(x, _beside(x, value)), x.shape)
    places = as_starts(starts)
    old = x
    if options.operation != "set":
        old = dynamic_slice(x, *places, slice_sizes=tuple(block))
    new = _beside(x, spread(combine(old, _beside(x, value)), tuple(block)))
    return dynamic_update_slice(as_dtype(x, new.dtype), new, *places)


def _beside(x: Any, value: Any) -> Any:
    """The value in the memory of `x`, as scatter leaves it to XLA to fetch it from another."""
    if not (ShapedArray.are_spaces_used and np.ndim(value)):
        return value
    return like_primal(value, typeof(x))


def fitted(value: Any, shape: tuple[int, ...]) -> Any:
    """A value spread over `shape`, scalars left as they are; `ValueError` if it does not fit."""
    given = np.shape(value)
    if not given:
        return value
    if len(given) > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={given} shape={shape}; "
            "the value of an update must broadcast to the shape of `x[index]`"
        )
    if any([m not in (1, n) for m, n in zip(reversed(given), reversed(shape), strict=False)]):
        raise ValueError(
            f"Incompatible shapes for broadcasting: the value has shape {given} and `x[index]` "
            f"has shape {shape}"
        )
    return spread(value, shape)


def _scattered(x: Any, index: Index, value: Any, options: Options) -> Any:
    operation = options.operation
    if operation in _FREE:
        ones = spread(value.dtype.type(1), x.shape)
        factors = _scattered(ones, index, value, options._replace(operation="multiply"))
        return OPERATIONS[operation](x, _as_value(factors, x.dtype))
    w = windows(index, x.shape, options.wrap)
    value = fitted(value, w.shape)
    if 0 in w.shape or not x.size:
        return x
    return _SCATTERS[operation](
        x, w.indices, _window_values(value, w), **_scatter_params(w, index, options)
    )


def _window_values(value: Any, w: Windows) -> Any:
    """The value as updates of a scatter: of the shape of the windows, without new axes."""
    shape = tuple([n for i, n in enumerate(w.shape) if i not in w.new])
    if not np.ndim(value):
        return spread(value, shape)
    value = reshape(value, new_sizes=shape) if w.new else value
    return rev(value, dimensions=w.reversed) if w.reversed else value


def _scatter_params(w: Windows, index: Index, options: Options) -> dict[str, Any]:
    alone = not is_advanced(index)
    return {
        "dimension_numbers": ScatterDimensionNumbers(w.offset, w.collapsed, w.index_map),
        "indices_are_sorted": options.is_sorted or (alone and ascends(index)),
        "unique_indices": options.unique or alone,
        "mode": options.mode,
    }


def applied(x: Any, index: Index, func: Any, mode: GatherScatterMode, wrap: bool) -> Any:
    """`func` applied to each element as often as the index names it."""
    shape = x.shape
    if index.grown:
        x = expand(x, index.grown)
    w = windows(index, x.shape, wrap)
    if 0 in w.shape or not x.size:
        return reshape(x, new_sizes=shape) if index.grown else x
    aval = ShapedArray((), x.dtype)
    jaxpr, consts = stage(lambda old, _: [as_dtype(func(old), x.dtype)], [aval, aval], "apply")
    if consts:
        raise NotImplementedError(
            "apply: the function closes over arrays, and the index may name an element twice; "
            "promise unique_indices=True, or write x.at[index].set(f(x[index]))"
        )
    if jaxpr.outvars[0].aval.shape:
        raise TypeError(
            "apply: the function must work element by element, but it made an array of shape "
            f"{jaxpr.outvars[0].aval.shape} of a scalar"
        )
    out = scatter(
        x,
        w.indices,
        _window_values(x.dtype.type(0), w),
        update_jaxpr=ClosedJaxpr(jaxpr, []),
        **_scatter_params(w, index, Options("apply", mode, wrap)),
    )
    return reshape(out, new_sizes=shape) if index.grown else out
