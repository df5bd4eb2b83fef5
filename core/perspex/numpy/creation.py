"""Arrays from numbers, lists and NumPy arrays; arrays filled with a number; ranges.

`array` is for anything, `asarray` the same without a copy. What becomes of a value while a function
is traced is decided in `promotion.constant`: a literal or a constant of the program.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.ir.avals import PYTHON_SCALARS, ShapedArray, scalar_aval
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import divide, multiply, power, sign
from perspex.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    arraylike,
    as_dtype,
    broadcast_shapes,
    canonical_axis,
    canonical_shape,
    check_arraylike,
    concrete,
    constant,
    expand,
    filled,
    real_dtype,
    spread,
)
from perspex.numpy.transcendental import log10
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate, iota, stack
from perspex.ops.structural import broadcast_in_dim, convert, convert_element_type, move_axis
from perspex.runtime.dispatch import EVAL, device_put, put_like
from perspex.tracing.trace import state

# ---- From values --------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: DTypeLike = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
) -> Array:
    """An array from numbers, nested lists, NumPy arrays and arrays.

    Args:
      object: what to convert. Python numbers alone stay weakly typed, lists of them do not.
      dtype: the dtype of the result; the one that all elements promote to if not given.
      copy: give an array of its own even if `object` is one already.
      order: only `"K"` or None: memory has no order that a program could see.
      ndmin: axes of size one are put in front until there are so many.
      device: where to put the array; the default device if not given.

    Errors:
      `TypeError` for strings and other values that are not numbers; `ValueError` for None and for
      lists of unequal lengths; `OverflowError` for integers that do not fit the dtype.

    >>> import perspex.numpy as jnp
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if order not in ("K", None):
        raise NotImplementedError(f"array: order must be 'K', got {order!r}; memory has no order")
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "array")
    out = _converted(object, dtype, copy)
    if ndmin > out.ndim:
        out = expand(out, range(ndmin - out.ndim))
    return out if device is None else device_put(out, device)


def asarray(
    a: Any,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
) -> Array:
    """`array`, but an array that needs no conversion is returned as it is.

    >>> import perspex.numpy as jnp
    >>> x = jnp.arange(3)
    >>> jnp.asarray(x) is x
    True
    """
    return array(a, dtype, copy=bool(copy), order=order, device=device)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array; lists are refused.

    >>> import perspex.numpy as jnp
    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """`x` converted to `dtype`; `None` is the default floating dtype.

    Complex numbers lose their imaginary part, and are true unless both parts are 0.

    >>> import perspex.numpy as jnp
    >>> jnp.astype(jnp.array([0.5, 2.9]), int)
    Array([0, 2], dtype=int32)
    """
    dtype = dtypes.check_user_dtype(dtype, "astype")
    check_arraylike("astype", x)
    out = _converted(x, dtype, copy)
    return out if device is None else device_put(out, device)


def _converted(x: Any, dtype: Any, copy: bool) -> Any:
    """Anything as an array; of `dtype` unless that is None."""
    kind = x.__class__
    if kind in PYTHON_SCALARS:
        aval = scalar_aval(x) if dtype is None else ShapedArray((), dtype)
        return constant(x if dtype is None else np.asarray(x, dtype), aval)
    if hasattr(x, "aval"):
        return _from_array(x, dtype, copy)
    if kind is list or kind is tuple or isinstance(x, (list, tuple)):
        return _from_list(x, dtype)
    if x is None:
        raise ValueError("array: None is not a number; write jnp.nan for a missing value")
    return _from_host(x, dtype)


def _from_array(x: Any, dtype: Any, copy: bool) -> Any:
    aval = x.aval
    if dtype is None or (aval.dtype == dtype and not aval.weak_type):
        return ops.copy(x) if copy else x
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


def _from_host(x: Any, dtype: Any) -> Any:
    """From a NumPy array or what `numpy.asarray` makes one of: ranges, buffers, other libraries."""
    if not isinstance(x, (np.ndarray, np.generic)):
        x = np.asarray(x) if dtype is None else np.asarray(x, dtype)
    try:
        canonical = dtypes.dtype_of(x)
    except TypeError as error:
        raise TypeError(f"array: {x!r:.60} has no numbers: {error}") from None
    if dtype is None:
        dtype = canonical
        if dtype == dtypes.float0:
            return x
    elif x.dtype != dtype:
        x = x.astype(dtype)
    return constant(x, ShapedArray(x.shape, dtype))


# Arrays up to this size are read to put them together with numbers; larger ones stay on the device,
# and so do those that were put somewhere on purpose.
_READ_SIZE = 64
# Operands of one stacking: longer lists are put together in parts, which compile once.
_STACKED = 32


def _from_list(x: Any, dtype: Any) -> Any:
    leaves = list(_leaves(x))
    if any(leaf is None for leaf in leaves):
        raise ValueError("array: None is not a number; leave it out or write jnp.nan")
    if dtype is None:
        dtype = _common_dtype(leaves)
    arrays = [leaf for leaf in leaves if hasattr(leaf, "aval")]
    if arrays and not (state.trace is EVAL and all(map(_is_small, arrays))):
        return _stacked([_converted(element, dtype, False) for element in x])
    host = np.asarray(_read(x) if arrays else x, dtype)
    if host.dtype == object:
        raise TypeError(f"array: {x!r:.60} has elements that are not numbers")
    # Nobody else can write to it, so that the device may read it in place.
    host.flags.writeable = False
    return constant(host, ShapedArray(host.shape, dtype))


def _leaves(x: Any) -> Iterator[Any]:
    for element in x:
        if isinstance(element, (list, tuple)):
            yield from _leaves(element)
        else:
            yield element


def _common_dtype(leaves: Sequence[Any]) -> Any:
    """What the elements of a list promote to."""
    if not leaves:
        return dtypes.canonicalize_dtype(float)
    types = set(map(type, leaves))
    kinds = {dtypes.kind_of(t(0)) for t in types if t in PYTHON_SCALARS}
    for leaf in leaves if types - PYTHON_SCALARS.keys() else ():
        try:
            kinds.add(dtypes.kind_of(leaf))
        except TypeError:
            kinds.add(dtypes.kind_of(np.asarray(leaf)))
    return dtypes.promote(tuple(kinds))[0]


def _is_small(x: Any) -> bool:
    return not x.aval.is_extended and x.size <= _READ_SIZE and not x.committed


def _read(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_read(element) for element in x]
    return np.asarray(x) if hasattr(x, "aval") else x


def _stacked(arrays: list[Any]) -> Any:
    if len(arrays) <= _STACKED:
        return stack(*arrays, axis=0)
    parts = [stack(*arrays[i : i + _STACKED], axis=0) for i in range(0, len(arrays), _STACKED)]
    while len(parts) > 1:
        parts = [
            concatenate(*parts[i : i + _STACKED], dimension=0)
            for i in range(0, len(parts), _STACKED)
        ]
    return parts[0]


# ---- Filled with a number -----------------------------------------------------------------------


def zeros(shape: Any, dtype: DTypeLike = None, *, device: Any = None) -> Array:
    """Zeros.

    Args:
      shape: an integer or a sequence of them, known while tracing.
      dtype: the default floating dtype if not given.
      device: where to put the array; the default device if not given.

    >>> import perspex.numpy as jnp
    >>> jnp.zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    out = _repeated(0, canonical_shape("zeros", shape), _dtype_or_hint("zeros", shape, dtype))
    return out if device is None else device_put(out, device)


def ones(shape: Any, dtype: DTypeLike = None, *, device: Any = None) -> Array:
    """Ones; arguments as of `zeros`.

    >>> import perspex.numpy as jnp
    >>> jnp.ones((2,), int)
    Array([1, 1], dtype=int32)
    """
    out = _repeated(1, canonical_shape("ones", shape), _dtype_or_hint("ones", shape, dtype))
    return out if device is None else device_put(out, device)


def empty(shape: Any, dtype: DTypeLike = None, *, device: Any = None) -> Array:
    """Zeros: memory without a value does not exist here.

    >>> import perspex.numpy as jnp
    >>> jnp.empty((2,))
    Array([0., 0.], dtype=float32)
    """
    out = _repeated(0, canonical_shape("empty", shape), _dtype_or_hint("empty", shape, dtype))
    return out if device is None else device_put(out, device)


def full(
    shape: Any, fill_value: ArrayLike, dtype: DTypeLike = None, *, device: Any = None
) -> Array:
    """An array filled with a value.

    Args:
      shape: an integer or a sequence of them, known while tracing.
      fill_value: a number, or an array that broadcasts to `shape`.
      dtype: that of the value if not given; a Python number alone stays weakly typed.
      device: where to put the array; the default device if not given.

    >>> import perspex.numpy as jnp
    >>> jnp.full((2,), 7.0, jnp.float32)
    Array([7., 7.], dtype=float32)
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "full")
    out = _spread("full", fill_value, canonical_shape("full", shape), dtype)
    return out if device is None else device_put(out, device)


def zeros_like(a: Any, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None) -> Array:
    """Zeros with the shape and dtype of `a`, or those that are given instead.

    >>> import perspex.numpy as jnp
    >>> jnp.zeros_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device)


def ones_like(a: Any, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None) -> Array:
    """Ones with the shape and dtype of `a`, or those that are given instead.

    >>> import perspex.numpy as jnp
    >>> jnp.ones_like(jnp.arange(2))
    Array([1, 1], dtype=int32)
    """
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(
    prototype: Any, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None
) -> Array:
    """Zeros with the shape and dtype of `prototype`, or those that are given instead.

    >>> import perspex.numpy as jnp
    >>> jnp.empty_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    """An array filled with a value, with the shape and dtype of `a` or those given instead.

    >>> import perspex.numpy as jnp
    >>> jnp.full_like(jnp.arange(2), 5)
    Array([5, 5], dtype=int32)
    """
    shape, dtype, weak = _described("full_like", a, dtype, shape)
    out = _spread("full_like", fill_value, shape, dtype, weak)
    return put_like(out, a) if device is None else device_put(out, device)


def _dtype_or_hint(name: str, shape: Any, dtype: Any) -> Any:
    if isinstance(dtype, int) and isinstance(shape, int) and not isinstance(dtype, bool):
        raise TypeError(
            f"{name}: {dtype} is not a dtype. Did you write {name}({shape}, {dtype}) "
            f"for {name}(({shape}, {dtype})), with one tuple for the shape?"
        )
    return dtypes.check_user_dtype(dtype, name)


def _described(name: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    """Shape, dtype and weak type for an array like `a`, which may be a mere description."""
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_arraylike(name, a)
    given, weak = dtypes.kind_of(a)
    if dtype is not None:
        given, weak = dtypes.check_user_dtype(dtype, name), False
    return np.shape(a) if shape is None else canonical_shape(name, shape), given, weak


def _like(name: str, a: Any, value: int, dtype: Any, shape: Any, device: Any) -> Any:
    shape, dtype, weak = _described(name, a, dtype, shape)
    out = _repeated(value, shape, dtype, weak)
    return put_like(out, a) if device is None else device_put(out, device)


@fused(static=("value", "shape", "dtype", "weak"))
def _repeated(value: int, shape: tuple[int, ...], dtype: Any, weak: bool = False) -> Any:
    if dtype == dtypes.float0:
        return np.zeros(shape, dtype)
    number = constant(value, ShapedArray((), dtype, True)) if weak else dtype.type(value)
    return spread(number, shape) if weak else filled(number, shape)


def _spread(name: str, value: Any, shape: tuple[int, ...], dtype: Any, weak: bool = False) -> Any:
    check_arraylike(name, value)
    if dtype is None:
        dtype, weak = dtypes.kind_of(value)
    return _spread_as(value, shape, dtype, weak)


@fused(static=("shape", "dtype", "weak"))
def _spread_as(value: Any, shape: tuple[int, ...], dtype: Any, weak: bool) -> Any:
    return spread(as_dtype(value, dtype, weak), shape)


# ---- Ranges -------------------------------------------------------------------------------------


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
) -> Array:
    """`start, start + step, ...` up to but without `stop`; `arange(stop)` begins at 0.

    Args:
      start, stop, step: real numbers, known while tracing.
      dtype: that of the numbers if not given.
      device: where to put the array; the default device if not given.

    Errors:
      `ValueError` for complex numbers and arrays; `ZeroDivisionError` for a step of 0.

    >>> import perspex.numpy as jnp
    >>> jnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int32)
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "arange")
    if start is None:
        raise TypeError("arange: the first argument must be a real number, not None")
    first = "the argument of arange" if stop is None else "start of arange"
    start, stop = _known(first, start), _known("stop of arange", stop)
    step = _known("step of arange", step)
    if dtype is None:
        dtype = dtypes.result_type(*[x for x in (start, stop, step) if x is not None])
    if stop is None:
        start, stop = 0, start
    if step is None:
        size = int(np.ceil(stop - start))
        # The start counts only where it is not 0, and so does the step.
        out = _range(None if start == 0 else start, None, max(0, size), dtype)
    else:
        out = _range(start, step, max(0, int(np.ceil((stop - start) / step))), dtype)
    return out if device is None else device_put(out, device)


def _known(what: str, x: Any) -> Any:
    """A real number as Python or NumPy knows it; `what` in the messages."""
    if x is None or x.__class__ in (int, float):
        return x
    check_arraylike(what, x)
    if np.ndim(x) != 0:
        raise ValueError(f"{what} must be a scalar, got shape {np.shape(x)}")
    host = concrete(what, np.asarray, x)[()] if hasattr(x, "aval") else x
    if np.iscomplexobj(host):
        raise ValueError(f"{what} must be a real number, got {host}")
    return host


@fused(static=("size", "dtype"))
def _range(start: Any, step: Any, size: int, dtype: Any) -> Any:
    # Narrow floats would lose the last digits of the products.
    narrow = dtypes.issubdtype(dtype, np.floating) and dtypes.itemsize_bits(dtype) < 32
    working = np.dtype("float32") if narrow and step is not None else dtype
    out = iota(dtype=working, shape=(size,), dimension=0)
    if step is not None:
        out = ops.mul(as_dtype(step, working), out)
    if start is not None:
        out = ops.add(as_dtype(start, working), out)
    return convert(out, dtype)


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array | tuple[Array, Array]:
    """`num` numbers at equal distances from `start` to `stop`.

    Args:
      start, stop: numbers, or arrays that broadcast.
      num: how many, known while tracing.
      endpoint: whether `stop` is the last one, or comes after it.
      retstep: return the distance too; NaN where there is none.
      dtype: a floating dtype that holds the numbers if not given; integers are rounded down.
      axis: the axis of the samples in the result.
      device: where to put the array; the default device if not given.

    Errors:
      `ValueError` for a negative `num`.

    >>> import perspex.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = concrete("linspace: num", operator.index, num)
    axis = concrete("linspace: axis", operator.index, axis)
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "linspace")
    out = _linspace(start, stop, num, bool(endpoint), bool(retstep), dtype, axis)
    return out if device is None else device_put(out, device)


@fused(static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    start, stop, dtype, working = _bounds("linspace", start, stop, dtype)
    shape = broadcast_shapes("linspace", start.shape, stop.shape)
    start, stop = spread(start, shape), spread(stop, shape)
    axis = canonical_axis(axis, len(shape) + 1)
    samples = _samples(start, stop, num, endpoint, axis)
    whole = dtypes.issubdtype(dtype, np.integer)
    samples = convert(ops.floor(samples) if whole else samples, dtype)
    if not retstep:
        return samples
    gaps = num - 1 if endpoint else num
    if num == 0 or gaps == 0:
        return samples, filled(working.type(np.nan), shape)
    return samples, ops.div(ops.sub(stop, start), working.type(gaps))


def _samples(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> Any:
    """Weighted means of both ends: exact at the start, as near as can be at the end."""
    dtype, part = start.dtype, real_dtype(start.dtype)
    gaps = num - 1 if endpoint else num
    first = expand(start, (axis,))
    if num == 1:
        return first
    shape = (*start.shape[:axis], gaps if num else 0, *start.shape[axis:])
    if num == 0:
        return filled(dtype.type(0), shape)
    ticks = iota(dtype=part, shape=shape, dimension=axis)
    share = convert(ops.div(ticks, part.type(gaps)), dtype)
    step = ops.div(stop, dtype.type(gaps))
    if start.shape:
        kept = tuple([i for i in range(len(shape)) if i != axis])
        start = broadcast_in_dim(start, shape=shape, broadcast_dimensions=kept)
        step = broadcast_in_dim(step, shape=shape, broadcast_dimensions=kept)
    samples = ops.add(
        ops.mul(start, ops.sub(dtype.type(1), share)), ops.mul(step, convert(ticks, dtype))
    )
    if endpoint:
        samples = concatenate(samples, expand(stop, (axis,)), dimension=axis)
    return samples


def _bounds(name: str, start: Any, stop: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Both ends in the dtype to compute in; the dtype of the result, and that to compute in."""
    check_arraylike(name, start, stop)
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    working = dtypes.to_inexact_dtype(dtype)
    return _strong(start, working), _strong(stop, working), dtype, working


def _strong(x: Any, dtype: Any) -> Any:
    return arraylike("", as_dtype(x, dtype))


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """`base` to the power of `linspace(start, stop, num, endpoint)`; arguments as there.

    >>> import perspex.numpy as jnp
    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    num = concrete("logspace: num", operator.index, num)
    axis = concrete("logspace: axis", operator.index, axis)
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "logspace")
    return _logspace(start, stop, base, num, bool(endpoint), dtype, axis)


@fused(static=("num", "endpoint", "dtype", "axis"))
def _logspace(
    start: Any, stop: Any, base: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> Any:
    start, stop, dtype, _ = _bounds("logspace", start, stop, dtype)
    return convert(power(base, linspace(start, stop, num, endpoint, axis=axis)), dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """`num` numbers in equal proportions from `start` to `stop`; arguments as of `linspace`.

    >>> import perspex.numpy as jnp
    >>> jnp.round(jnp.geomspace(1, 1000, 4))
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    num = concrete("geomspace: num", operator.index, num)
    axis = concrete("geomspace: axis", operator.index, axis)
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "geomspace")
    return _geomspace(start, stop, num, bool(endpoint), dtype, axis)


@fused(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    start, stop, dtype, _ = _bounds("geomspace", start, stop, dtype)
    unit = sign(start)
    exponents = linspace(log10(ops.div(start, unit)), log10(divide(stop, unit)), num, endpoint)
    out = multiply(unit, power(10.0, exponents))
    return convert(move_axis(out, 0, canonical_axis(axis, out.ndim)), dtype)


# ---- From buffers and files ---------------------------------------------------------------------


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array from the bytes of a buffer; arguments as of `numpy.frombuffer`.

    >>> import perspex.numpy as jnp
    >>> jnp.frombuffer(bytes([1, 0, 2, 0]), jnp.int16)
    Array([1, 2], dtype=int16)
    """
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array from numbers in a text; arguments as of `numpy.fromstring`.

    >>> import perspex.numpy as jnp
    >>> jnp.fromstring("1 2", int, sep=" ")
    Array([1, 2], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Refused: reading an iterator has effects that a traced program would lose.

    Use `jnp.asarray(np.fromiter(...))`.
    """
    raise NotImplementedError(
        "fromiter reads an iterator, which a traced program would do only once; "
        "use jnp.asarray(np.fromiter(...))"
    )


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Refused: reading a file has effects that a traced program would lose.

    Use `jnp.asarray(np.fromfile(...))`.
    """
    raise NotImplementedError(
        "fromfile reads a file, which a traced program would do only once; "
        "use jnp.asarray(np.fromfile(...))"
    )


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """What `save` wrote, as an array; other contents as `numpy.load` gives them."""
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    # NumPy's format has no name for bfloat16.
    return asarray(out.view(dtypes.bfloat16) if out.dtype == np.dtype("V2") else out)


save = np.save
savez = np.savez
