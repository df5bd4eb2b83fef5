"""Interpolation in arrays, as in `scipy.ndimage`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import dtypes, lax
from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused

__all__ = ["map_coordinates"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike] | ArrayLike,
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Values of an array between its elements.

    Differentiable with respect to `input` and, for `order=1`, to the coordinates.

    Args:
      input: an array of numbers with `n` axes.
      coordinates: `n` arrays of one shape, the index along each axis.
      order: 0 for the nearest element, 1 for linear interpolation.
      mode: what is outside: `"constant"`: `cval`; `"nearest"`: the elements at the border;
        `"wrap"`: the array again; `"mirror"`: its mirror image, the border not repeated;
        `"reflect"`: with the border repeated.
      cval: the value outside for `"constant"`.

    Returns:
      An array of the shape of the coordinates and the dtype of `input`.

    Raises:
      TypeError: if `input` is not an array or a number.
      ValueError: for another number of coordinates.
      NotImplementedError: for other orders and modes.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import ndimage
    >>> x = jnp.array([[0.0, 10.0], [20.0, 30.0]])
    >>> ndimage.map_coordinates(x, [jnp.array([0.5, 0.0]), jnp.array([0.5, 0.25])], order=1)
    Array([15. ,  2.5], dtype=float32)
    """
    x = arraylike("map_coordinates", input)
    axes = [pnp.asarray(c) for c in coordinates]  # type: ignore[union-attr]
    if len(axes) != x.ndim:
        raise ValueError(
            f"map_coordinates: coordinates must be a sequence of length input.ndim, but "
            f"{len(axes)} != {x.ndim}"
        )
    if mode not in _MODES:
        raise NotImplementedError(
            f"map_coordinates does not support mode {mode}; it is one of {', '.join(_MODES)}"
        )
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates requires order<=1, got {order}")
    return _mapped(x, tuple(axes), cval, linear=order == 1, mode=mode)


@fused(static=("linear", "mode"))
def _mapped(x: Any, coordinates: tuple[Any, ...], cval: Any, *, linear: bool, mode: str) -> Any:
    cval = pnp.asarray(cval, x.dtype)
    choices = [_neighbours(c, linear) for c in coordinates]
    total: Any = None
    for corner in itertools.product(*choices):
        inside: Any = None
        places = []
        for (index, _), n in zip(corner, x.shape, strict=True):
            if mode == "constant":
                valid = (index >= 0) & (index < n)
                inside = valid if inside is None else inside & valid
            places.append(_placed(index, n, mode))
        value = x[tuple(places)]
        if inside is not None:
            value = pnp.where(inside, value, cval)
        for _, weight in corner:
            value = value if weight is None else value * weight
        total = value if total is None else total + value
    return (_whole(total) if dtypes.issubdtype(x.dtype, np.integer) else total).astype(x.dtype)


def _whole(x: Any) -> Any:
    return x if dtypes.issubdtype(x.dtype, np.integer) else lax.round(x)


def _neighbours(coordinate: Any, linear: bool) -> list[tuple[Any, Any]]:
    """The indices along an axis next to a coordinate, and their weights."""
    index = dtypes.canonicalize_dtype(np.int32)
    if not linear:
        return [(_whole(coordinate).astype(index), None)]
    below = pnp.floor(coordinate)
    upper = coordinate - below
    low = below.astype(index)
    return [(low, 1 - upper), (low + 1, upper)]


def _placed(index: Any, n: int, mode: str) -> Any:
    """The index within the array for any index, as `mode` says."""
    if mode == "wrap":
        return index % n
    if mode == "mirror":
        period = max(2 * (n - 1), 1)
        return (n - 1) - abs(index % period - (n - 1))
    if mode == "reflect":
        # The mirrored array has twice the size: the border stands twice.
        period = 2 * n
        turned = index % period
        return pnp.where(turned < n, turned, period - 1 - turned)
    return pnp.clip(index, 0, n - 1)
