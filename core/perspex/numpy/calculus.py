"""Differences, derivatives, integrals and interpolation of sampled functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, check_arraylike, expand, flat, spread
from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis
from perspex.arguments.glossary import describe
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike, Axis
from perspex.jitted.fused import fused
from perspex.numpy.arithmetic import absolute, add, divide, multiply, remainder, subtract
from perspex.numpy.axes import moveaxis
from perspex.numpy.creation import asarray
from perspex.numpy.indexing.parse import INT32, Index, Picks, Point
from perspex.numpy.indexing.read import read
from perspex.numpy.logic import not_equal
from perspex.numpy.promotion import promote_dtypes
from perspex.numpy.reductions import sum as sum_
from perspex.numpy.selection import where
from perspex.numpy.sorting import argsort, searchsorted
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate, part

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid"]

# ---- Differences --------------------------------------------------------------------------------


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences of neighbours along an axis; for booleans whether they differ.

    Args:
      a: an array of one axis or more.
      n: the number of times to take differences.
      prepend, append: values before and after the elements; a number or an array.

    Returns:
      An array of the dtype of `a`, by `n` elements shorter along the axis.

    Raises:
      TypeError: if an argument is not an array or a number.
      ValueError: for scalars, a negative `n`, and an axis that is not there.

    >>> import perspex.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    check_arraylike("diff", a)
    order = concrete("diff: n", operator.index, n)
    if order < 0:
        raise ValueError(f"diff: order must be non-negative but got {order}")
    if not order:
        return asarray(a)
    if not np.ndim(a):
        raise ValueError("diff requires input that is at least one dimensional, got a scalar")
    ends = [v for v in (prepend, append) if v is not None]
    check_arraylike("diff", *ends)
    return _diff(a, prepend, append, order, canonical_axis(axis, np.ndim(a)))


@fused(static=("n", "axis"))
def _diff(a: Any, prepend: Any, append: Any, n: int, axis: int) -> Any:
    parts = [v for v in (prepend, a, append) if v is not None]
    shape = np.shape(a)
    one = tuple([1 if d == axis else m for d, m in enumerate(shape)])
    parts = [v if np.ndim(v) else spread(asarray(v), one) for v in promote_dtypes("diff", *parts)]
    x = concatenate(*parts, dimension=axis) if len(parts) > 1 else asarray(parts[0])
    for _ in range(min(n, x.shape[axis])):
        m = x.shape[axis]
        after = part(x, min(1, m), m, axis, x.shape)
        before = part(x, 0, max(m - 1, 0), axis, x.shape)
        x = not_equal(after, before) if x.dtype == bool else ops.sub(after, before)
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences of neighbours among the elements in one axis.

    Args:
      ary: an array or a number.
      to_end, to_begin: values after and before them; converted to the dtype of `ary`.

    Returns:
      A vector of the dtype of `ary`.

    Raises:
      TypeError: if an argument is not an array or a number, and for booleans.

    >>> import perspex.numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    x = flat(arraylike("ediff1d", ary))
    if x.dtype == bool:
        raise TypeError(
            "ediff1d: booleans have no differences; convert them with astype, or use diff"
        )
    before, after = [
        [] if v is None else [flat(arraylike("ediff1d", v).astype(x.dtype))]
        for v in (to_begin, to_end)
    ]
    parts = [*before, diff(x), *after]
    return concatenate(*parts, dimension=0) if len(parts) > 1 else parts[0]


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: None = None
) -> Array | list[Array]:
    """Derivatives from central differences inside and one-sided differences at the edges.

    Args:
      f: samples, at least two along each axis.
      varargs: the distances of samples: one for all axes, or one for each; or, for an axis, the
        places of the samples.
      axis: the axis or axes; all by default.
      edge_order: not supported.

    Returns:
      An array of floats or complex numbers of the shape of `f`; for several axes a list of them.

    Raises:
      TypeError: if an argument is not an array, or the number of distances does not fit.
      ValueError: for too few samples, and an axis that is not there.
      NotImplementedError: for `edge_order`.

    >>> import perspex.numpy as jnp
    >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
    Array([1., 2., 4., 5.], dtype=float32)
    """
    check_arraylike("gradient", f, *varargs)
    if edge_order is not None:
        raise NotImplementedError("gradient: edge_order is not supported")
    axis = hashable_axis("gradient", axis)
    axes = canonical_axes(axis, np.ndim(f))
    spacing = varargs or (1.0,)
    if len(spacing) not in (1, len(axes)):
        raise TypeError(
            f"gradient: {len(spacing)} spacing arguments for {len(axes)} axes; give one for all, "
            "or one for each"
        )
    for d in axes:
        if np.shape(f)[d] < 2:
            raise ValueError(
                "gradient: at least 2 elements are required along each axis, got shape "
                f"{np.shape(f)}"
            )
    steps = spacing * len(axes) if len(spacing) == 1 else spacing
    for step, d in zip(steps, axes, strict=True):
        if np.ndim(step) > 1 or (np.ndim(step) and np.shape(step) != (np.shape(f)[d],)):
            raise ValueError(
                f"gradient: places of samples along axis {d} must be a vector of size "
                f"{np.shape(f)[d]}, got shape {np.shape(step)}"
            )
    out = _gradient(f, tuple(steps) if varargs else (), axes)
    return out[0] if len(axes) == 1 and (axis is not None or np.ndim(f) == 1) else list(out)


@fused(static=("axes",))
def _gradient(f: Any, steps: Any, axes: tuple[int, ...]) -> list[Any]:
    (x, *steps) = promote_dtypes("gradient", f, *steps, to=dtypes.to_inexact_dtype)
    x = asarray(x)
    steps = steps or [1.0] * len(axes)
    return [_derivative(x, h, d) for h, d in zip(steps, axes, strict=True)]


def _derivative(x: Any, step: Any, axis: int) -> Any:
    n, shape = x.shape[axis], x.shape

    def cut(start: int, stop: int) -> Any:
        return part(x, start, stop, axis, shape)

    others = [d for d in range(x.ndim) if d != axis]
    if not np.ndim(step):
        first, last = subtract(cut(1, 2), cut(0, 1)), subtract(cut(n - 1, n), cut(n - 2, n - 1))
        inner = multiply(subtract(cut(2, n), cut(0, n - 2)), 0.5)
        return divide(concatenate(first, inner, last, dimension=axis), step)
    h = diff(asarray(step))

    def gap(start: int, stop: int) -> Any:
        return expand(part(h, start, stop, 0, (n - 1,)), others)

    first = divide(subtract(cut(1, 2), cut(0, 1)), gap(0, 1))
    last = divide(subtract(cut(n - 1, n), cut(n - 2, n - 1)), gap(n - 2, n - 1))
    # The parabola through three neighbours, whose slope weighs both slopes by the other's width.
    left, right = gap(0, n - 2), gap(1, n - 1)
    before = divide(subtract(cut(1, n - 1), cut(0, n - 2)), left)
    after = divide(subtract(cut(2, n), cut(1, n - 1)), right)
    total = add(left, right)
    inner = divide(add(multiply(before, right), multiply(after, left)), total)
    return concatenate(*promote_dtypes("gradient", first, inner, last), dimension=axis)


# ---- Integrals ----------------------------------------------------------------------------------


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: samples, an array of one axis or more.
      x: their places, a vector or an array of the shape of `y`.
      dx: their distance, if `x` is not given.

    Returns:
      An array of floats or complex numbers without the axis.

    >>> import perspex.numpy as jnp
    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
    Array(2., dtype=float32)
    """
    check_arraylike("trapezoid", y, dx, *([] if x is None else [x]))
    return _trapezoid(y, x, dx, canonical_axis(axis, np.ndim(y)))


@fused(static=("axis",))
def _trapezoid(y: Any, x: Any, dx: Any, axis: int) -> Any:
    if x is None:
        (y,) = promote_dtypes("trapezoid", y, to=dtypes.to_inexact_dtype)
        step = arraylike("trapezoid", dx)
        values = moveaxis(y, axis, -1)
    else:
        y, places = promote_dtypes("trapezoid", y, x, to=dtypes.to_inexact_dtype)
        values = moveaxis(y, axis, -1)
        step = diff(places if np.ndim(places) == 1 else moveaxis(places, axis, -1))
    n, last = values.shape[-1], values.ndim - 1
    pairs = add(
        part(values, min(1, n), n, last, values.shape),
        part(values, 0, max(n - 1, 0), last, values.shape),
    )
    return multiply(sum_(multiply(step, pairs), axis=-1), 0.5)


# ---- Interpolation ------------------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The piecewise linear function through given points.

    Args:
      x: the places where to evaluate it, an array or a number.
      xp: the places of the points, a vector in ascending order.
      fp: their values, a vector of the same size.
      left, right: the value before the first and after the last point: a number, or
        `"extrapolate"` for the line through the outermost two; by default the outermost value.
      period: the period of the function; then `xp` need not ascend.

    Returns:
      An array of floats or complex numbers of the shape of `x`.

    Raises:
      TypeError: if `x`, `xp` or `fp` is not an array or a number.
      ValueError: if `xp` and `fp` are not vectors of one size, for complex `x` or `xp`, or for
        another text as `left`.
      IndexError: if there are no points.

    >>> import perspex.numpy as jnp
    >>> jnp.interp(1.5, jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 30.0]))
    Array(20., dtype=float32)
    """
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(
                f"interp: {name} must be a number, None or 'extrapolate', got {value!r}"
            )
    check_arraylike("interp", x, xp, fp)
    if np.shape(xp) != np.shape(fp) or np.ndim(xp) != 1:
        raise ValueError(
            "interp: xp and fp must be one-dimensional arrays of equal size, got shapes "
            f"{np.shape(xp)} and {np.shape(fp)}"
        )
    if not np.size(xp):
        raise IndexError("interp: there are no points: index 0 is out of bounds for xp of size 0")
    beyond = (left == "extrapolate", right == "extrapolate")
    low, high = (None if isinstance(v, str) else v for v in (left, right))
    return _interp(x, xp, fp, low, high, period, (bool(beyond[0]), bool(beyond[1])))


@fused(static=("extrapolate",))
def _interp(
    x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, extrapolate: tuple[bool, bool]
) -> Any:
    x, xp = promote_dtypes("interp", x, xp, to=dtypes.to_inexact_dtype)
    if x.dtype.kind == "c":
        raise ValueError("interp: x and xp must be real: complex numbers do not lie on a line")
    (fp,) = promote_dtypes("interp", fp, to=dtypes.to_inexact_dtype)
    if period is not None:
        period = absolute(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = _at(xp, order), _at(fp, order)
        n = xp.shape[0]

        def around(v: Any, by: Any) -> Any:
            ends = subtract(part(v, n - 1, n, 0, (n,)), by), v, add(part(v, 0, 1, 0, (n,)), by)
            return concatenate(*promote_dtypes("interp", *ends), dimension=0)

        xp, fp = around(xp, period), around(fp, 0)
        left = right = None
        extrapolate = (False, False)
    n = xp.shape[0]
    upper = searchsorted(xp, x, side="right")
    upper = ops.clamp(INT32.type(min(1, n - 1)), upper, INT32.type(n - 1))
    lower = ops.max(ops.sub(upper, INT32.type(1)), INT32.type(0))
    x0, f0 = _at(xp, lower), _at(fp, lower)
    width, rise = subtract(_at(xp, upper), x0), subtract(_at(fp, upper), f0)
    # Points at one place are a step; `where` keeps its width of 0 out of the division.
    tiny = np.spacing(dtypes.finfo(xp.dtype).eps).item()
    step = ops.le(absolute(width), xp.dtype.type(tiny))
    slope = divide(subtract(x, x0), where(step, 1, width))
    out = where(step, f0, add(f0, multiply(slope, rise)))
    if not extrapolate[0]:
        first = _at(fp, INT32.type(0)) if left is None else left
        out = where(ops.lt(*promote_dtypes("interp", x, _at(xp, INT32.type(0)))), first, out)
    if not extrapolate[1]:
        final = _at(fp, INT32.type(n - 1)) if right is None else right
        out = where(ops.gt(*promote_dtypes("interp", x, _at(xp, INT32.type(n - 1)))), final, out)
    return out


def _at(x: Any, places: Any) -> Any:
    if isinstance(places, np.generic):
        return part(x, int(places), int(places) + 1, 0, x.shape).reshape(())
    return read(x, Index((Picks(places) if places.ndim else Point(places),)))


describe(
    [diff, ediff1d, trapezoid],
    {"axis": "the axis."},
    "TypeError: if an argument is not an array or a number.\n"
    "ValueError: for an axis that is not there.",
)
