"""Bits packed into bytes and unpacked."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.arguments.arrays import arraylike, flat
from perspex.arguments.axes import canonical_axis
from perspex.arguments.glossary import describe
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.numpy.promotion import to_bool
from perspex.ops import elementwise as ops
from perspex.ops.shape import pad, part
from perspex.ops.structural import broadcast_in_dim, convert, move_axis, reduce_sum, reshape

__all__ = ["packbits", "unpackbits"]

_BYTE = np.dtype("uint8")


def _check_order(name: str, bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder must be 'big' or 'little', got {bitorder!r}")


def _weights(bitorder: str, shape: tuple[int, ...]) -> Any:
    """How far each of the eight bits along the last axis is shifted."""
    shifts = np.arange(8, dtype=_BYTE)
    ordered = shifts[::-1] if bitorder == "big" else shifts
    return broadcast_in_dim(
        np.ascontiguousarray(ordered), shape=shape, broadcast_dimensions=(len(shape) - 1,)
    )


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bytes of eight elements each, which count as 1 unless they are zero.

    Args:
      a: integers or booleans.
      axis: the axis to pack; None packs the elements in one axis. Zeros fill up the last byte.
      bitorder: `"big"` makes the first element the highest bit, `"little"` the lowest.

    Returns:
      An array of dtype uint8, with an eighth of the elements along the axis, rounded up.

    >>> import perspex.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x = arraylike("packbits", a)
    if not (x.dtype == bool or dtypes.issubdtype(x.dtype, np.integer)):
        raise TypeError(f"packbits: expected integers or booleans, got {x.dtype.name}")
    _check_order("packbits", bitorder)
    if axis is None:
        x, axis = flat(x), 0
    return _packbits(x, canonical_axis(axis, x.ndim), bitorder)


@fused(static=("axis", "bitorder"))
def _packbits(x: Any, axis: int, bitorder: str) -> Any:
    bits = move_axis(convert(to_bool(x), _BYTE), axis, x.ndim - 1)
    missing = -bits.shape[-1] % 8
    config = (*[(0, 0, 0)] * (x.ndim - 1), (0, missing, 0))
    bits = pad(bits, _BYTE.type(0), padding_config=config)
    groups = reshape(bits, new_sizes=(*bits.shape[:-1], bits.shape[-1] // 8, 8))
    shifted = ops.shift_left(groups, _weights(bitorder, groups.shape))
    return move_axis(reduce_sum(shifted, axes=(x.ndim,)), x.ndim - 1, axis)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes, as an array of zeros and ones.

    Args:
      a: bytes: an array of dtype uint8.
      axis: the axis to unpack; None unpacks the elements in one axis.
      count: how many bits to give; zeros follow the last. A negative number leaves out so many.
      bitorder: `"big"` gives the highest bit first, `"little"` the lowest.

    Returns:
      An array of dtype uint8 with `count` elements along the axis, by default 8 for each byte.

    >>> import perspex.numpy as jnp
    >>> jnp.unpackbits(jnp.array([5], dtype=jnp.uint8))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = arraylike("unpackbits", a)
    if x.dtype != _BYTE:
        raise TypeError(f"unpackbits: expected an array of dtype uint8, got {x.dtype.name}")
    _check_order("unpackbits", bitorder)
    if axis is None:
        x, axis = flat(x), 0
    return _unpackbits(x, canonical_axis(axis, x.ndim), count, bitorder)


@fused(static=("axis", "count", "bitorder"))
def _unpackbits(x: Any, axis: int, count: int | None, bitorder: str) -> Any:
    x = move_axis(x, axis, x.ndim - 1)
    shape = (*x.shape, 8)
    spread = broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(x.ndim)))
    bits = ops.shift_right_logical(spread, _weights(bitorder, shape))
    bits = ops.bitwise_and(bits, _BYTE.type(1))
    bits = reshape(bits, new_sizes=(*x.shape[:-1], x.shape[-1] * 8))
    n = bits.shape[-1]
    wanted = n if count is None else count if count >= 0 else max(n + count, 0)
    config = (*[(0, 0, 0)] * (x.ndim - 1), (0, max(wanted - n, 0), 0))
    bits = pad(bits, _BYTE.type(0), padding_config=config) if wanted > n else bits
    last = x.ndim - 1
    return move_axis(part(bits, 0, wanted, last, bits.shape), last, axis)


describe(
    [packbits, unpackbits],
    {},
    "TypeError: if `a` is not an array, or has another dtype.\n"
    "ValueError: for another `bitorder`, or an axis that is not there.",
)
