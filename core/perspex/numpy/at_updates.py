"""`x.at[index].set(y)` and its kin: new arrays with some elements updated.

What happens is what `x[index] = y` would do, with two differences: updates outside are dropped, and
where several updates meet one element all of them count (for `set`, one of them stands).

Where the places are known to be inside, as they are for most integers and slices, the new elements
are computed from a slice and written in one piece. All else is a scatter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from perspex import dtypes
from perspex.base import source
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.jitted.fused import fused
from perspex.numpy import indexers
from perspex.numpy.arithmetic import power, remainder, true_divide
from perspex.numpy.creation import asarray
from perspex.numpy.indexers import Index, Picks, Point, Span, parse
from perspex.numpy.indexing import FILL, PROMISED, evaluate, read, restored
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    arraylike,
    as_dtype,
    canonical_axis,
    check_arraylike,
    expand,
    filled,
    flat,
    spread,
)
from perspex.numpy.taking import fill
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
from perspex.ops.shape import rev, tile
from perspex.ops.structural import broadcast_in_dim, reshape
from perspex.ops.windows import GatherScatterMode, ScatterDimensionNumbers
from perspex.runtime.dispatch import EVAL
from perspex.tracing.array_methods import is_operand
from perspex.tracing.staging import stage
from perspex.tracing.trace import is_concrete, state

# What each update makes of an element and the value, and the scatter that does so for many.
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, value: value,
    "add": ops.add,
    "subtract": ops.sub,
    "multiply": ops.mul,
    "divide": true_divide,
    "power": power,
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


# ---- x.at[...] ----------------------------------------------------------------------------------


def at(x: Array) -> _IndexUpdateHelper:
    """What `x.at` is: indexed, it gives the updates of that part of `x`.

    >>> import perspex.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5)
    Array([0., 5., 0.], dtype=float32)
    """
    return _IndexUpdateHelper(x)


class _IndexUpdateHelper:
    """`x.at`, waiting for an index."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> _IndexUpdateRef:
        return _IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


def _method(operation: str, summary: str, example: str) -> Callable[..., Any]:
    """The method for one operation; integers that are inside have a program of their own."""

    def update(
        self: Any,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        x, index = self.array, self.index
        if not is_operand(values):
            values = asarray(values)
        eager = state.trace is EVAL
        if eager and index.__class__ is int and mode is None and wrap_negative_indices:
            shape = x.shape
            if shape and -shape[0] <= index < shape[0]:
                return update_row.fast(x, index, values)
        one = not np.ndim(values)
        if eager and one and is_mask(index) and index.shape == x.shape[: index.ndim]:
            return _masked(x, index, values, operation)
        parsed = parse(index, x.shape)
        options = Options(
            operation,
            GatherScatterMode.from_any(mode),
            wrap_negative_indices,
            bool(unique_indices),
            bool(indices_are_sorted),
            indexers.is_inside(parsed, indexers.grow(x.shape, parsed.grown), wrap_negative_indices),
        )
        if eager:
            return evaluate(_update, x, parsed, values, options)
        return updated(x, parsed, values, options)

    def row(x: Any, place: Any, values: Any) -> Any:
        index = Index((Point(place), *indexers.whole(x.shape[1:])))
        return updated(x, index, values, Options(operation, inside=True))

    row.__name__ = f"{operation}_row"
    update_row = fused(row)
    update.__name__, update.__qualname__ = operation, f"_IndexUpdateRef.{operation}"
    update.__doc__ = f"""{summary}

        Args:
          values: what broadcasts to the shape of `x[index]`.

        Errors:
          `ValueError` for shapes that do not broadcast and for unknown modes; those of `x[index]`.

        >>> import perspex.numpy as jnp
        {example}
        """
    return update


class _IndexUpdateRef:
    """`x.at[index]`, waiting for what to do there.

    All updates take the keywords

    * `indices_are_sorted`, `unique_indices`: promises about arrays of integers in the index, which
      may be used to go faster;
    * `mode`: what happens outside: nothing by default, which has the names `"drop"` and `"fill"`;
      `"clip"` updates the nearest element, `"promise_in_bounds"` leaves it open;
    * `wrap_negative_indices`: negative integers count from the end.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    set = _method(
        "set",
        "The array with `values` in that place, converted to its dtype.",
        """>>> jnp.arange(4).at[1:3].set(7)
        Array([0, 7, 7, 3], dtype=int32)""",
    )
    add = _method(
        "add",
        "The array with `values` added there.",
        """>>> jnp.zeros(3).at[jnp.array([0, 2, 2])].add(1)
        Array([1., 0., 2.], dtype=float32)""",
    )
    subtract = _method(
        "subtract",
        "The array with `values` subtracted there.",
        """>>> jnp.arange(3).at[0].subtract(5)
        Array([-5,  1,  2], dtype=int32)""",
    )
    multiply = mul = _method(
        "multiply",
        "The array with the elements there multiplied by `values`.",
        """>>> jnp.arange(3).at[1:].multiply(10)
        Array([ 0, 10, 20], dtype=int32)""",
    )
    divide = _method(
        "divide",
        "The array, as floats, with the elements there divided by `values`.",
        """>>> jnp.arange(3).at[1].divide(4)
        Array([0.  , 0.25, 2.  ], dtype=float32)""",
    )
    power = _method(
        "power",
        "The array with the elements there raised to the power `values`.",
        """>>> jnp.arange(4).at[2:].power(2)
        Array([0, 1, 4, 9], dtype=int32)""",
    )
    min = _method(
        "min",
        "The array with the lesser of the elements and `values` there.",
        """>>> jnp.arange(4).at[1:].min(2)
        Array([0, 1, 2, 2], dtype=int32)""",
    )
    max = _method(
        "max",
        "The array with the greater of the elements and `values` there.",
        """>>> jnp.arange(4).at[:2].max(1)
        Array([1, 1, 2, 3], dtype=int32)""",
    )

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`x[index]`, with a choice of what is read outside.

        Args:
          indices_are_sorted: promises that the places ascend.
          unique_indices: promises that no place comes twice.
          mode: `"fill"` (or `"drop"`) reads `fill_value` outside; `"clip"` and the default the
            nearest element.
          fill_value: the default is NaN for floats, the least integer, the greatest unsigned one.
          wrap_negative_indices: negative integers count from the end.

        >>> import perspex.numpy as jnp
        >>> jnp.arange(3).at[5].get(mode="fill", fill_value=-1)
        Array(-1, dtype=int32)
        """
        how = PROMISED if mode is None else GatherScatterMode.from_any(mode)
        promises = (bool(unique_indices), bool(indices_are_sorted))
        options = (how, fill(fill_value), wrap_negative_indices, promises)
        parsed = parse(self.index, self.array.shape)
        if state.trace is EVAL:
            return evaluate(_get, self.array, parsed, options)
        return _read_with(self.array, parsed, options)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements there replaced by `func` of them, element by element.

        Where an array of integers names an element twice, `func` is applied twice. That has no
        derivative; promise `unique_indices` if it does not happen.

        Errors:
          `TypeError` if `func` changes the shape; `NotImplementedError` if it closes over arrays
          and the index may name an element twice.

        >>> import perspex.numpy as jnp
        >>> jnp.arange(3.0).at[1:].apply(jnp.square)
        Array([0., 1., 4.], dtype=float32)
        """
        keywords: dict[str, Any] = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
            "wrap_negative_indices": wrap_negative_indices,
        }
        parsed = parse(self.index, self.array.shape)
        if indexers.is_advanced(parsed) and not unique_indices and not is_mask(self.index):
            how = GatherScatterMode.from_any(mode)
            return _applied(self.array, parsed, func, how, wrap_negative_indices)
        old = self.get(**keywords)
        new = func(old)
        if np.shape(new) != old.shape:
            raise TypeError(
                f"apply: the function must work element by element, but it made an array of shape "
                f"{np.shape(new)} of one of shape {old.shape}"
            )
        return self.set(new, **keywords)


def is_mask(index: Any) -> bool:
    """Whether an index is one concrete array of booleans."""
    array = hasattr(index, "dtype") and is_concrete(index)
    return array and index.dtype == bool and index.ndim > 0


@fused(static=("options", "pattern"))
def _get(x: Any, places: Any, options: Any, pattern: Any) -> Any:
    return _read_with(x, restored(places, pattern), options)


def _read_with(x: Any, index: Index, options: Any) -> Any:
    mode, fill_value, wrap, (unique, is_sorted) = options
    return read(
        x, index, mode, fill_value, wrap, unique_indices=unique, indices_are_sorted=is_sorted
    )


# ---- What an update does ------------------------------------------------------------------------


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
def _update(x: Any, places: Any, values: Any, options: Options, pattern: Any) -> Any:
    return updated(x, restored(places, pattern), values, options)


@fused(static=("operation",))
def _masked(x: Any, mask: Any, value: Any, operation: str) -> Any:
    """The update of the elements that a mask picks by one value: a choice, not a scatter."""
    dtype, weak = x.dtype, x.aval.weak_type
    x, value = _prepared(x, value, operation)
    new = _OPERATIONS[operation](x, value)
    x = as_dtype(x, new.dtype)
    mask = broadcast_in_dim(mask, shape=x.shape, broadcast_dimensions=tuple(range(mask.ndim)))
    out = ops.select(mask, spread(new, x.shape), x)
    return out if operation == "divide" else as_dtype(out, dtype, weak)


def updated(x: Any, index: Index, value: Any, options: Options) -> Any:
    """`x` with what the parsed index names updated."""
    shape, dtype, weak = x.shape, x.dtype, x.aval.weak_type
    x, value = _prepared(x, value, options.operation)
    if index.grown:
        x = expand(x, index.grown)
    if options.inside and not indexers.is_advanced(index) and not indexers.is_strided(index):
        out = _written(x, index, value, options)
    else:
        out = _scattered(x, index, value, options)
    if index.grown:
        out = reshape(out, new_sizes=shape)
    return out if options.operation == "divide" else as_dtype(out, dtype, weak)


def _prepared(x: Any, value: Any, operation: str) -> tuple[Any, Any]:
    """Array and value at the dtype at which they meet."""
    given, other = x.aval, shaped(value)
    if (given.is_extended or other.is_extended) and (
        operation != "set" or given.dtype != other.dtype
    ):
        raise TypeError(
            f"x.at[...].{operation}: array of dtype {given.dtype.name} and value of dtype "
            f"{other.dtype.name}; elements that are typed keys can be set to keys, nothing else"
        )
    meeting, _ = dtypes.promote(((given.dtype, given.weak_type), (other.dtype, other.weak_type)))
    if operation == "divide":
        meeting = dtypes.to_inexact_dtype(meeting)
    elif meeting != given.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={other.dtype.name} to dtype={given.dtype.name}; convert the value with "
            "astype. This will become an error",
            FutureWarning,
            stacklevel=source.stacklevel(),
        )
    if operation == "set":
        return x, _as_value(value, given.dtype)
    return as_dtype(x, meeting), _as_value(value, meeting)


def _as_value(x: Any, dtype: Any) -> Any:
    """A value as `dtype`; integers wrap round, of complex numbers the real part is taken."""
    if hasattr(x, "aval"):
        return as_dtype(x, dtype)
    host = np.asarray(x)
    if host.dtype.kind == "c" and not dtypes.issubdtype(dtype, np.complexfloating):
        host = host.real
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
            starts.append(indexers.wrapped(e.place, n))
            block.append(1)
            continue
        start, size, step, _ = e  # type: ignore[misc]
        if step < 0 and size > 1:
            backwards.append(len(block))
            start = indexers.add_number(start, 1 - size)
        starts.append(start)
        block.append(size)
        result.append(size)
    value = fitted(value, tuple(result))
    if np.ndim(value):
        value = reshape(value, new_sizes=tuple(block)) if result != block else value
        value = rev(value, dimensions=tuple(backwards)) if backwards else value
    combine = _OPERATIONS[options.operation]
    if tuple(block) == x.shape:
        return spread(combine(x, value), x.shape)
    places = indexers.starts(starts)
    old = x
    if options.operation != "set":
        old = dynamic_slice(x, *places, slice_sizes=tuple(block))
    new = spread(combine(old, value), tuple(block))
    return dynamic_update_slice(as_dtype(x, new.dtype), new, *places)


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
    if operation in ("divide", "power"):
        ones = filled(x.dtype.type(1), x.shape)
        factors = _scattered(ones, index, value, options._replace(operation="multiply"))
        return _OPERATIONS[operation](x, factors)
    w = indexers.windows(index, x.shape, options.wrap)
    value = fitted(value, w.shape)
    if 0 in w.shape:
        return x
    return _SCATTERS[operation](
        x, w.indices, _window_values(value, w), **_scatter_params(w, index, options)
    )


def _window_values(value: Any, w: indexers.Windows) -> Any:
    """The value as updates of a scatter: of the shape of the windows, without new axes."""
    shape = tuple([n for i, n in enumerate(w.shape) if i not in w.new])
    if not np.ndim(value):
        return spread(value, shape)
    value = reshape(value, new_sizes=shape) if w.new else value
    return rev(value, dimensions=w.reversed) if w.reversed else value


def _scatter_params(w: indexers.Windows, index: Index, options: Options) -> dict[str, Any]:
    alone = not indexers.is_advanced(index)
    return {
        "dimension_numbers": ScatterDimensionNumbers(w.offset, w.collapsed, w.index_map),
        "indices_are_sorted": options.is_sorted or (alone and indexers.ascends(index)),
        "unique_indices": options.unique or alone,
        "mode": options.mode,
    }


def _applied(x: Any, index: Index, func: Any, mode: GatherScatterMode, wrap: bool) -> Any:
    """`func` applied to each element as often as the index names it."""
    shape = x.shape
    if index.grown:
        x = expand(x, index.grown)
    w = indexers.windows(index, x.shape, wrap)
    if 0 in w.shape:
        return x
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


# ---- Functions ----------------------------------------------------------------------------------


def _check_not_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"{name} cannot modify arrays in-place: arrays are immutable. "
            "Pass inplace=False, and use the array that it returns"
        )


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """The array with the elements `ind`, counted in one axis, replaced by `v`.

    Args:
      a: the array.
      ind: integers.
      v: the new elements; repeated if they are fewer.
      mode: what happens outside: `"clip"` takes the first and the last element, also for negative
        integers, and `"wrap"` goes round; None clips too, but negative integers count from the end.
      inplace: must be False, because arrays never change.

    Errors:
      `ValueError` for `inplace=True` and unknown modes.

    >>> import perspex.numpy as jnp
    >>> jnp.put(jnp.arange(4), jnp.array([0, 9]), -1, inplace=False)
    Array([-1,  1,  2, -1], dtype=int32)
    """
    _check_not_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    if mode == "raise":
        raise NotImplementedError('put: mode="raise" is not supported; use "clip" or "wrap"')
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode should be one of 'wrap' or 'clip'; got {mode!r}")
    return _put(a, ind, v, mode)


@fused(static=("mode",))
def _put(a: Any, ind: Any, v: Any, mode: Any) -> Any:
    x, places, values = (arraylike("put", arg) for arg in (a, ind, v))
    if not x.size or not places.size or not values.size:
        return x
    places, values = flat(places), flat(values)
    if mode == "wrap":
        places = remainder(places, x.size)
    elif mode == "clip":
        places = ops.max(places, places.dtype.type(0))
    n = places.size
    if values.size < n:
        values = tile(values, reps=(-(-n // values.size),))
    values = read(values, Index((Span(0, n, 1, n),)))
    how = GatherScatterMode.CLIP
    out = updated(flat(x), Index((Picks(places),)), values, Options("set", how))
    return reshape(out, new_sizes=x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: Any = None,
) -> Array:
    """The array that has `values` where `take_along_axis` would read.

    Args:
      arr: the array.
      indices: integers; as many axes as `arr`, of the same sizes or 1 except along `axis`.
      values: what broadcasts to the shape of `indices`.
      axis: the axis to write along; None writes to the elements in one axis.
      inplace: must be False, because arrays never change.
      mode: what happens outside, as for `x.at`.

    Errors:
      `ValueError` for `inplace=True` and shapes that do not fit; `TypeError` for other indices.

    >>> import perspex.numpy as jnp
    >>> x = jnp.zeros((2, 3))
    >>> jnp.put_along_axis(x, jnp.array([[0], [2]]), 9, axis=1, inplace=False)
    Array([[9., 0., 0.],
           [0., 0., 9.]], dtype=float32)
    """
    _check_not_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    return _put_along_axis(arr, indices, values, axis, GatherScatterMode.from_any(mode))


@fused(static=("axis", "mode"))
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any, mode: Any) -> Any:
    x, places = arraylike("put_along_axis", arr), arraylike("put_along_axis", indices)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise TypeError(f"put_along_axis: indices must be integers, got {places.dtype.name}")
    shape = x.shape
    if axis is None:
        x, axis = flat(x), 0
    if places.ndim != x.ndim:
        raise ValueError(
            "put_along_axis: indices and arr must have the same number of dimensions; "
            f"{places.ndim} vs. {x.ndim}"
        )
    axis = canonical_axis(axis, x.ndim)
    picks = []
    for d, n in enumerate(x.shape):
        lane = np.arange(n, dtype=np.int32).reshape([n if k == d else 1 for k in range(x.ndim)])
        picks.append(Picks(places if d == axis else lane))
    out = updated(x, Index(tuple(picks)), values, Options("set", mode))
    return reshape(out, new_sizes=shape)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """The array with `val` on its diagonal.

    Args:
      a: an array of two axes, or of more that have one size.
      val: a number, or numbers for the diagonal from its start, repeated if they are fewer.
      wrap: not supported.
      inplace: must be False, because arrays never change.

    Errors:
      `NotImplementedError` for `inplace=True` and `wrap=True`; `ValueError` for other shapes.

    >>> import perspex.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 3)), 7, inplace=False)
    Array([[7., 0., 0.],
           [0., 7., 0.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("fill_diagonal: arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported")
    check_arraylike("fill_diagonal", a, val)
    shape = np.shape(a)
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal: array must be at least 2-d, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) != 1:
        raise ValueError(f"fill_diagonal: all axes must be of equal length, got shape {shape}")
    return _fill_diagonal(a, val)


@fused
def _fill_diagonal(a: Any, val: Any) -> Any:
    x, values = arraylike("fill_diagonal", a), arraylike("fill_diagonal", val)
    n = min(x.shape)
    if not n or not values.size:
        return x
    if values.ndim:
        values = flat(values)
        values = tile(values, reps=(-(-n // values.size),))
        values = read(values, Index((Span(0, n, 1, n),)))
    places = Picks(np.arange(n, dtype=np.int32))
    options = Options("set", unique=True, is_sorted=True)
    return updated(x, Index((places,) * x.ndim), values, options)
