"""Numbers at equal distances, or in equal proportions: `arange`, `linspace` and their kin."""

from __future__ import annotations

import operator
from typing import Any, Literal, overload

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, check_arraylike, expand, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.shapes import broadcast_shapes
from perspex.arguments.sharded import OutSharding, asked
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, DTypeLike, Placement
from perspex.base.dimensions import Symbolic, greatest, size
from perspex.jitted.fused import fused
from perspex.numpy import words
from perspex.numpy.arithmetic import divide, multiply, power, sign
from perspex.numpy.transcendental import log10
from perspex.ops import elementwise as ops
from perspex.ops.elementwise import real_dtype
from perspex.ops.shape import concatenate, iota
from perspex.ops.structural import broadcast_in_dim, convert, move_axis, size_as
from perspex.runtime.dispatch import device_put

__all__ = ["arange", "geomspace", "linspace", "logspace"]

_INT32 = np.dtype("int32")


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The numbers `start, start + step, ...` below `stop`; `arange(stop)` begins at 0.

    Args:
      start, stop, step: real numbers, known while tracing.
      dtype: that of the numbers if not given.
      device: where to put the array; the default device if not given.
      out_sharding: how it lies along explicit axes of the mesh of `set_mesh`.

    Returns:
      An array of one axis.

    Raises:
      ValueError: for complex numbers, and for arrays with axes.
      TypeError: for None in place of `start`, and for lists.
      ZeroDivisionError: for a step of 0.
      ConcretizationTypeError: for traced numbers.

    >>> import perspex.numpy as jnp
    >>> jnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int32)
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "arange")
    if start is None:
        raise TypeError("arange: the first argument must be a real number, not None")
    first = "the argument of arange" if stop is None else "start of arange"
    low, high = _known(first, start), _known("stop of arange", stop)
    step = _known("step of arange", step)
    if dtype is None:
        dtype = dtypes.result_type(*[x for x in (low, high, step) if x is not None])
    if high is None:
        low, high = 0, low
    params = asked("arange", out_sharding, "sharding")
    if step is None:
        count = _steps(high - low, 1)
        # The start counts only where it is not 0, and so does the step.
        out = _range(None if low == 0 else low, None, count, dtype, **params)
    else:
        out = _range(low, step, _steps(high - low, step), dtype, **params)
    return out if device is None else device_put(out, device)


def _steps(distance: Any, step: Any) -> Any:
    """How many steps it takes to come so far; none backwards."""
    if isinstance(distance, Symbolic) or isinstance(step, Symbolic):
        return greatest(-(-distance // step), 0)
    return max(0, int(np.ceil(distance / step)))


def _known(what: str, x: Any) -> Any:
    """A real number as Python or NumPy knows it; `what` in the messages."""
    if x is None or x.__class__ in (int, float) or isinstance(x, Symbolic):
        return x
    check_arraylike(what, x)
    if np.ndim(x) != 0:
        raise ValueError(f"{what} must be a scalar, got shape {np.shape(x)}")
    host = concrete(what, np.asarray, x)[()] if hasattr(x, "aval") else x
    if np.iscomplexobj(host):
        raise ValueError(f"{what} must be a real number, got {host}")
    return host


@fused(static=("size", "dtype", "sharding"))
def _range(start: Any, step: Any, size: int, dtype: Any, sharding: Any = None) -> Any:
    # Narrow floats would lose the last digits of the products.
    narrow = dtypes.issubdtype(dtype, np.floating) and dtypes.itemsize_bits(dtype) < 32
    working = np.dtype("float32") if narrow and step is not None else dtype
    params = {} if sharding is None else {"sharding": sharding}
    out = iota(dtype=working, shape=(size,), dimension=0, **params)
    if step is not None:
        out = ops.mul(as_dtype(step, working), out)
    if start is not None:
        out = ops.add(as_dtype(start, working), out)
    return convert(out, dtype)


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array: ...


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Placement = None,
) -> tuple[Array, Array]: ...


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Any:
    """`num` numbers at equal distances from `start` to `stop`.

    Returns:
      An array with the new axis of size `num` at `axis`; with `retstep`, the distance beside it.

    >>> import perspex.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = concrete("linspace: num", size, num)
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
        return samples, spread(working.type(np.nan), shape)
    return samples, ops.div(ops.sub(stop, start), size_as(gaps, working))


def _samples(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> Any:
    """Weighted means of both ends: exact at the start, as near as can be at the end."""
    dtype, part = start.dtype, real_dtype(start.dtype)
    gaps = num - 1 if endpoint else num
    first = expand(start, (axis,))
    single = start
    if num == 1:
        return first
    shape = (*start.shape[:axis], gaps if num else 0, *start.shape[axis:])
    if num == 0:
        return spread(dtype.type(0), shape)
    ticks = iota(dtype=part, shape=shape, dimension=axis)
    share = convert(ops.div(ticks, size_as(gaps, part)), dtype)
    step = ops.div(stop, size_as(gaps, dtype))
    if start.shape:
        kept = tuple([i for i in range(len(shape)) if i != axis])
        start = broadcast_in_dim(start, shape=shape, broadcast_dimensions=kept)
        step = broadcast_in_dim(step, shape=shape, broadcast_dimensions=kept)
    samples = ops.add(
        ops.mul(start, ops.sub(dtype.type(1), share)), ops.mul(step, convert(ticks, dtype))
    )
    if endpoint:
        if isinstance(num, Symbolic):  # of a single number, the last one is the first one
            stop = ops.select(ops.eq(size_as(gaps, _INT32), _INT32.type(0)), single, stop)
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
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`base` to the power of `num` numbers at equal distances from `start` to `stop`.

    Args:
      start, stop: the exponents at both ends, numbers or arrays that broadcast.
      base: a number or an array that broadcasts.

    Returns:
      An array with the new axis of size `num` at `axis`.

    >>> import perspex.numpy as jnp
    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    num = concrete("logspace: num", size, num)
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
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers in equal proportions from `start` to `stop`.

    Args:
      start, stop: numbers or arrays that broadcast, of one sign and not 0; else the result is NaN.

    Returns:
      An array with the new axis of size `num` at `axis`.

    >>> import perspex.numpy as jnp
    >>> jnp.round(jnp.geomspace(1, 1000, 4))
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    num = concrete("geomspace: num", size, num)
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


_BAD_NUM = """ValueError: for a negative `num`, and for an axis that does not exist.
TypeError: for lists, a `num` that is not an integer, and shapes that do not fit.
ConcretizationTypeError: for a traced `num`."""
describe((arange,), words.SAMPLES)
describe(
    (linspace,),
    {
        **words.SAMPLES,
        "start": "the first number, or an array of them.",
        "stop": "the last number, or an array of them; both broadcast.",
        "retstep": "return the distance too; NaN where there is none.",
        "dtype": "the dtype of the result, floating by default; integers are rounded down.",
    },
    _BAD_NUM,
)
describe((logspace, geomspace), words.SAMPLES, _BAD_NUM)
