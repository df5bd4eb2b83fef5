"""Interpolation on grids, as in `scipy.interpolate`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex import tree
from perspex.arguments.arrays import arraylike, check_arraylike
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function that interpolates values given on a rectangular grid.

    It is a pytree of the grid, the values and the fill value, so that it may be an argument of
    transformed functions. It is differentiable with respect to all three, and by `"linear"` with
    respect to the points at which it is called.

    Args:
      points: one array for each of the `n` axes of the grid: the coordinates along that axis, in
        strictly increasing order, which is not checked.
      values: an array whose first `n` axes are those of the grid, of shape
        `(m_1, ..., m_n, ...)`. Integers become floats.
      method: `"linear"`, in each cell of the grid along each axis, or `"nearest"`.
      bounds_error: must be false: a compiled program cannot raise.
      fill_value: what a point outside the grid gives; `None` extrapolates.

    Raises:
      TypeError: if `values`, `fill_value` or one of `points` is not an array or a number.
      ValueError: for another method, more axes than `values` has, or a fill value whose dtype
        `values` cannot hold.
      NotImplementedError: for `bounds_error=True`.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy.interpolate import RegularGridInterpolator
    >>> grid = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0])
    >>> values = jnp.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    >>> RegularGridInterpolator(grid, values)(jnp.array([[1.5, 4.5], [3.0, 5.0]]))
    Array([25., 60.], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        _check_method(method)
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: bounds_error=True has no effect in a compiled program; "
                "leave it out, and look for the fill value (NaN) in the result"
            )
        self.method = method
        self.bounds_error = bounds_error
        check_arraylike("RegularGridInterpolator", values)
        if len(points) > np.ndim(values):
            raise ValueError(
                f"RegularGridInterpolator: there are {len(points)} point arrays, but values has "
                f"{np.ndim(values)} dimensions"
            )
        self.values = inexact("RegularGridInterpolator", values)
        self.fill_value = None
        if fill_value is not None:
            self.fill_value = arraylike("RegularGridInterpolator", fill_value)
            dtype = self.fill_value.dtype
            if not pnp.can_cast(dtype, self.values.dtype, casting="same_kind"):
                raise ValueError(
                    f"RegularGridInterpolator: a fill_value of dtype {dtype} does not fit among "
                    f"values of dtype {self.values.dtype}; pass None or a number of that type"
                )
        check_arraylike("RegularGridInterpolator", *points)
        self.grid = tuple([pnp.asarray(p) for p in points])

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The interpolated values at points.

        Args:
          xi: points, of shape `(..., n)`; or a tuple of `n` arrays, the coordinates of the points
            along each axis, which broadcast. A vector is one point, or for `n = 1` many.
          method: instead of the method that the interpolator was made with.

        Returns:
          An array of the shape of the points without their last axis, followed by the axes that
          `values` has beyond the grid.

        Raises:
          ValueError: for another method, or points of another number of coordinates.
        """
        method = self.method if method is None else method
        _check_method(method)
        points = _coordinates(xi, len(self.grid))
        if points.shape[-1] != len(self.grid):
            raise ValueError(
                f"RegularGridInterpolator: the requested sample points xi have dimension "
                f"{points.shape[-1]}, but this RegularGridInterpolator has dimension "
                f"{len(self.grid)}"
            )
        return _interpolated(self.grid, self.values, self.fill_value, points, method=method)


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise ValueError(
            f"RegularGridInterpolator: method {method!r} is not defined; it is one of "
            f"{', '.join(_METHODS)}"
        )


def _coordinates(xi: Any, ndim: int) -> Array:
    """The points as an array of shape `(..., ndim)`."""
    if isinstance(xi, tuple) and len(xi) == 1:
        (xi,) = xi
    if isinstance(xi, tuple):
        return pnp.stack(pnp.broadcast_arrays(*xi), axis=-1).astype(float)
    points = pnp.asarray(arraylike("RegularGridInterpolator", xi))
    return points.reshape(-1, ndim) if points.ndim == 1 else points


@fused(static=("method",))
def _interpolated(grid: Any, values: Any, fill_value: Any, points: Any, *, method: str) -> Any:
    beyond = values.ndim - len(grid)

    def spread(weight: Any) -> Any:
        return weight.reshape(weight.shape + (1,) * beyond)

    lows, parts, outside = [], [], pnp.zeros(points.shape[:-1], bool)
    for i, axis in enumerate(grid):
        x = points[..., i]
        low = pnp.clip(pnp.searchsorted(axis, x) - 1, 0, axis.size - 2)
        lows.append(low)
        # Where the point is in its cell, from 0 to 1; beyond them outside the grid.
        parts.append((x - axis[low]) / (axis[low + 1] - axis[low]))
        outside |= (x < axis[0]) | (x > axis[-1])
    if method == "nearest":
        nearest = [pnp.where(part <= 0.5, i, i + 1) for i, part in zip(lows, parts, strict=True)]
        total = values[tuple(nearest)]
    else:
        total = pnp.asarray(0.0)
        for corner in itertools.product((0, 1), repeat=len(grid)):
            weight = pnp.asarray(1.0)
            for upper, part in zip(corner, parts, strict=True):
                weight *= part if upper else 1 - part
            at = tuple([low + upper for low, upper in zip(lows, corner, strict=True)])
            total += values[at] * spread(weight)
    return total if fill_value is None else pnp.where(spread(outside), fill_value, total)


def _flatten(x: RegularGridInterpolator) -> tuple[Any, Any]:
    return (x.grid, x.values, x.fill_value), (x.method, x.bounds_error)


def _unflatten(aux: Any, children: Any) -> RegularGridInterpolator:
    # Without the checks: the leaves of a tree may be anything.
    made = object.__new__(RegularGridInterpolator)
    made.grid, made.values, made.fill_value = children
    made.method, made.bounds_error = aux
    return made


tree.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
