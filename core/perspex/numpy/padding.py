"""`pad`: more elements at both ends of each axis, in NumPy's ways of choosing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, as_dtype, spread
from perspex.arguments.axes import canonical_axis
from perspex.arguments.static import concrete
from perspex.arguments.types import Array, ArrayLike
from perspex.base.dimensions import is_known, size
from perspex.jitted.fused import fused
from perspex.numpy import quantiles, reductions, statistics
from perspex.numpy.axes import expand_dims, squeeze
from perspex.numpy.creation import asarray
from perspex.numpy.ranges import linspace
from perspex.ops import elementwise as ops
from perspex.ops.shape import concatenate, part, rev, tile
from perspex.ops.shape import pad as pad_p

__all__ = ["pad"]

# The keywords that each mode takes, with their defaults.
_KEYWORDS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reductions.max,
    "mean": statistics.mean,
    "median": quantiles.median,
    "minimum": reductions.min,
}
Widths = tuple[tuple[int, int], ...]


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any] | Mapping[int, Any],
    mode: str = "constant",
    **kwargs: Any,
) -> Array:
    """Pad an array at both ends of each axis.

    Args:
      array: the array.
      pad_width: how many: `((before, after), ...)` for each axis, one pair for all, or a number.
      mode: what they are:
        `"constant"`: the numbers `constant_values`, 0 by default;
        `"edge"`: the first and the last element;
        `"linear_ramp"`: numbers on a line from the edge to `end_values`, 0 by default;
        `"maximum"`, `"mean"`, `"median"`, `"minimum"`: of `stat_length` elements, or of all;
        `"reflect"`, `"symmetric"`: the elements mirrored at the edge, without and with the edge
        itself; `reflect_type="odd"` subtracts them from twice the edge;
        `"wrap"`: the elements from the other end; `"empty"`: anything.
      kwargs: the keywords named above; values are given as `pad_width` is.

    Returns:
      An array of the dtype of `array`.

    Raises:
      TypeError: if `array` is not an array or a number, and for widths that are not integers.
      ValueError: for negative widths, unknown keywords, and edges of empty axes.
      NotImplementedError: for other modes.
      ConcretizationTypeError: for traced widths.

    >>> import perspex.numpy as jnp
    >>> jnp.pad(jnp.arange(3), (1, 2), mode="reflect")
    Array([1, 0, 1, 2, 1, 0], dtype=int32)
    """
    x = arraylike("pad", array)
    widths = _widths(pad_width, x.ndim)
    if mode not in _KEYWORDS:
        names = ", ".join([repr(name) for name in _KEYWORDS])
        raise NotImplementedError(f"pad: mode must be one of {names}, got {mode!r}")
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {unknown}")
    options = {**_KEYWORDS[mode], **kwargs}
    if mode in ("constant", "empty"):
        values = options.get("constant_values", 0)
        return _constant(x, values if hasattr(values, "aval") else np.asarray(values), widths)
    for n, width in zip(x.shape, widths, strict=True):
        if not n and any(width):
            raise ValueError(f"pad: cannot apply mode {mode!r} to an empty axis, got {x.shape}")
    if mode == "linear_ramp":
        ends = options["end_values"]
        return _ramps(x, ends if hasattr(ends, "aval") else np.asarray(ends), widths)
    if mode in _STATISTICS:
        lengths = _lengths(options["stat_length"], x.shape)
        return _by_statistic(x, mode, widths, lengths)
    if mode in ("reflect", "symmetric"):
        kind = options["reflect_type"]
        if kind not in ("even", "odd"):
            raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
        return _mirrored(x, widths, mode == "symmetric", kind == "odd")
    return _repeated(x, widths, mode == "wrap")


def _pairs(name: str, given: Any, ndim: int) -> np.ndarray:
    """Numbers for both ends of each axis from one, a pair, or pairs for the axes."""
    if given.shape not in ((ndim, 2), (1, 2), (2,), (1,), ()):
        raise ValueError(
            f"pad: {name} of shape {given.shape} does not fit {ndim} axes: give a number, a pair "
            "(before, after), or a pair for each axis"
        )
    return given


def _widths(pad_width: Any, ndim: int) -> Widths:
    if isinstance(pad_width, dict):
        whole = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            whole[canonical_axis(axis, ndim)] = width if np.ndim(width) else (width,) * 2
        pad_width = whole
    given = concrete("pad: pad_width must be known", np.asarray, pad_width)
    symbolic = given.dtype == object and all([is_known(n) for n in given.flat])
    if given.size and not symbolic and not dtypes.issubdtype(given.dtype, np.integer):
        raise TypeError(f"pad: `pad_width` must be of integral type, got {pad_width!r}")
    pairs = np.broadcast_to(_pairs("pad_width", given, ndim), (ndim, 2))
    if (pairs < 0).any():
        raise ValueError(f"pad: widths can't be negative, got {pad_width!r}")
    return tuple([(size(low), size(high)) for low, high in pairs])


def _lengths(stat_length: Any, shape: tuple[int, ...]) -> Widths:
    sizes = tuple([(n, n) for n in shape])
    if stat_length is None:
        return sizes
    given = concrete("pad: stat_length must be known", np.asarray, stat_length)
    pairs = np.broadcast_to(_pairs("stat_length", given, len(shape)), (len(shape), 2))
    if (pairs < 0).any():
        raise ValueError(f"pad: stat_length can't be negative, got {stat_length!r}")
    found = tuple(
        [(min(int(low), n), min(int(high), n)) for (low, high), n in zip(pairs, shape, strict=True)]
    )
    if any(0 in pair for pair in found):
        raise ValueError("pad: stat_length of 0 yields no value for padding")
    return found


def _ends(x: Any, axis: int, low: int, high: int) -> tuple[Any, Any]:
    """The first `low` and the last `high` elements along an axis."""
    n = x.shape[axis]
    return part(x, 0, low, axis, x.shape), part(x, n - high, n, axis, x.shape)


def _joined(axis: int, *parts: Any) -> Any:
    kept = [p for p in parts if p.shape[axis]]
    return concatenate(*kept, dimension=axis) if len(kept) > 1 else (kept or parts)[0]


def _number(values: Any, axis: int, end: int, ndim: int) -> Any:
    """The value for one end of one axis, a scalar."""
    pairs = spread(_pairs("the values", values, ndim), (ndim, 2))
    one = part(part(pairs, axis, axis + 1, 0, (ndim, 2)), end, end + 1, 1, (1, 2))
    return squeeze(one)


@fused(static=("widths",))
def _constant(x: Any, values: Any, widths: Widths) -> Any:
    values = as_dtype(asarray(values), x.dtype, x.aval.weak_type)
    if values.size == 1:
        config = tuple([(low, high, 0) for low, high in widths])
        return pad_p(x, squeeze(values), padding_config=config)
    for axis, (low, high) in enumerate(widths):
        for end, width in enumerate(((low, 0, 0), (0, high, 0))):
            config = tuple([width if d == axis else (0, 0, 0) for d in range(x.ndim)])
            x = pad_p(x, _number(values, axis, end, x.ndim), padding_config=config)
    return x


@fused(static=("widths",))
def _ramps(x: Any, ends: Any, widths: Widths) -> Any:
    ends = as_dtype(asarray(ends), x.dtype)
    for axis, pair in enumerate(widths):
        ramps = []
        for end, (count, edge) in enumerate(zip(pair, _ends(x, axis, 1, 1), strict=True)):
            goal = spread(_number(ends, axis, end, len(widths)), edge.shape)
            ramp = linspace(
                squeeze(goal, axis),
                squeeze(edge, axis),
                count,
                endpoint=False,
                dtype=x.dtype,
                axis=axis,
            )
            ramp = as_dtype(ramp, x.dtype, x.aval.weak_type)
            ramps.append(rev(ramp, dimensions=(axis,)) if end else ramp)
        x = _joined(axis, ramps[0], x, ramps[1])
    return x


@fused(static=("mode", "widths", "lengths"))
def _by_statistic(x: Any, mode: str, widths: Widths, lengths: Widths) -> Any:
    for axis, (width, length) in enumerate(zip(widths, lengths, strict=True)):
        n = x.shape[axis]
        parts = []
        for count, end in zip(width, _ends(x, axis, *[min(m, n) for m in length]), strict=True):
            value = expand_dims(_STATISTICS[mode](end, axis=axis), axis)
            if dtypes.issubdtype(x.dtype, np.integer) and value.dtype != x.dtype:
                value = ops.round(value, rounding_method=1)
            shape = tuple([count if d == axis else m for d, m in enumerate(x.shape)])
            parts.append(spread(as_dtype(value, x.dtype, x.aval.weak_type), shape))
        x = _joined(axis, parts[0], x, parts[1])
    return x


@fused(static=("widths", "with_edge", "odd"))
def _mirrored(x: Any, widths: Widths, with_edge: bool, odd: bool) -> Any:
    skip = 0 if with_edge else 1
    for axis, width in enumerate(widths):
        for end, missing in enumerate(width):
            if x.shape[axis] == 1 and not with_edge:
                # There is nothing but the edge to mirror.
                edge = _ends(x, axis, 1, 1)[end]
                shape = tuple([missing if d == axis else m for d, m in enumerate(x.shape)])
                parts = [spread(edge, shape), x]
                x = _joined(axis, *(reversed(parts) if end else parts))
                continue
            while missing:
                n = x.shape[axis]
                take = min(missing, n - skip)
                low = n - skip - take if end else skip
                image = rev(part(x, low, low + take, axis, x.shape), dimensions=(axis,))
                if odd:
                    edge = spread(_ends(x, axis, 1, 1)[end], image.shape)
                    image = ops.sub(ops.add(edge, edge), image)
                x = _joined(axis, x, image) if end else _joined(axis, image, x)
                missing -= take
    return x


@fused(static=("widths", "wrap"))
def _repeated(x: Any, widths: Widths, wrap: bool) -> Any:
    for axis, (low, high) in enumerate(widths):
        if not wrap:
            parts = []
            for count, edge in zip((low, high), _ends(x, axis, 1, 1), strict=True):
                shape = tuple([count if d == axis else m for d, m in enumerate(x.shape)])
                parts.append(spread(edge, shape))
            x = _joined(axis, parts[0], x, parts[1])
        elif low or high:
            n = x.shape[axis]
            before, after = -(-low // n), -(-high // n)
            whole = tile(
                x, reps=tuple([before + 1 + after if d == axis else 1 for d in range(x.ndim)])
            )
            start = before * n - low
            x = part(whole, start, start + low + n + high, axis, whole.shape)
    return x
