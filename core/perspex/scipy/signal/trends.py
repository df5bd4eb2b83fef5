"""Signals without their trends."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex.arguments.arrays import arraylike, as_dtype
from perspex.arguments.axes import canonical_axis
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import inexact

__all__ = ["detrend"]


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Array:
    """Data without its mean, or without the line that fits it best.

    Args:
      data: an array of numbers.
      axis: the axis along which to fit.
      type: `"linear"` to subtract the line of least squares, or `"constant"` for the mean.
      bp: for `"linear"`, the indices where pieces with lines of their own begin.
      overwrite_data: must be `None`; arrays are not overwritten.

    Returns:
      An array of the shape of `data`, of floating or complex dtype.

    Raises:
      TypeError: if `data` is not an array or a number.
      ValueError: for an unknown type, an axis that does not exist, and pieces that begin outside of
        the data.
      NotImplementedError: if `overwrite_data` is given.

    >>> import perspex.numpy as jnp
    >>> from perspex.scipy import signal
    >>> signal.detrend(jnp.array([1.0, 3.0, 5.0])).round(3)
    Array([0., 0., 0.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data must be None; arrays do not change")
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError(f"Trend type must be 'linear' or 'constant'. Got {type!r}")
    x = arraylike("detrend", data)
    place = canonical_axis(axis, x.ndim)
    n = x.shape[place]
    points = (bp,) if isinstance(bp, (int, np.integer)) else tuple(bp)
    starts = sorted({0, n, *[operator.index(p) for p in points]})
    if starts[0] < 0 or starts[-1] > n:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis, "
            f"{n}; got {bp}"
        )
    return _detrended(x, axis=place, linear=type[0] == "l", starts=tuple(starts))


@fused(static=("axis", "linear", "starts"))
def _detrended(x: Any, *, axis: int, linear: bool, starts: tuple[int, ...]) -> Any:
    x = inexact("detrend", x)
    if not linear:
        return x - pnp.mean(x, axis, keepdims=True)
    x = pnp.moveaxis(x, axis, -1)
    pieces = [_off_line(x[..., a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    out = pieces[0] if len(pieces) == 1 else pnp.concatenate(pieces, -1)
    return as_dtype(pnp.moveaxis(out, -1, axis), x.dtype, x.weak_type)


def _off_line(x: Any) -> Any:
    """`x` minus the line of least squares, whose slope comes from centred places."""
    n = x.shape[-1]
    x = x - pnp.mean(x, -1, keepdims=True)
    place = pnp.arange(n, dtype=x.real.dtype) - (n - 1) / 2
    spread = n * (n * n - 1) / 12 if n > 1 else 1  # the sum of place ** 2
    slope = pnp.sum(x * place, -1, keepdims=True) / spread
    return x - slope * place
