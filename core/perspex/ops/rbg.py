"""Random bits of the platform: XLA's own generator behind the keys `rbg` and `unsafe_rbg`.

A key is four uint32, which `rbg` splits and folds in as two keys of threefry. The bits come from
XLA; they may differ on another platform or in another version. One call gives the bits of a
whole batch of keys, from the first of them: under `vmap` the numbers are not those of a loop, as in
JAX. `unsafe_rbg` also splits and folds in with that generator, which is not a good hash.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex.hlo import types
from perspex.ir.avals import ShapedArray
from perspex.ops import bits
from perspex.ops.elementwise import bitwise_xor
from perspex.ops.shape import concatenate, part, slice
from perspex.ops.structural import broadcast_in_dim, convert, move_axis, reshape, to_front
from perspex.tracing.primitive import Primitive
from perspex.tracing.trace import typeof

Shape = tuple[int, ...]

_U32, _U64 = np.dtype("uint32"), np.dtype("uint64")
_UNSIGNED = {n: np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}
# What `unsafe_rbg` takes for a hash is the last or the first of so many rows of numbers.
_ROWS = 10


class RandomAlgorithm(enum.IntEnum):
    """The algorithms of XLA's generator; `RNG_DEFAULT` is the choice of the platform."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


_ATTRIBUTES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


class RngBitGenerator(Primitive):
    """The next state of XLA's generator, and random unsigned integers: from four uint32."""

    name = "rng_bit_generator"
    multiple_results = True

    def type(
        self, key: ShapedArray, *, shape: Shape, dtype: np.dtype, algorithm: RandomAlgorithm
    ) -> Any:
        if key.shape != (4,) or key.dtype != _U32:
            raise TypeError(
                f"rng_bit_generator: the key is four numbers of dtype uint32, got {key.str_short()}"
            )
        if not dtypes.issubdtype(dtype, np.unsignedinteger):
            raise TypeError(f"rng_bit_generator: unsupported dtype {dtype.name}; take uint32")
        return [ShapedArray((4,), _U32), ShapedArray(shape, dtype)]

    def lower(
        self, b: Any, key: Any, *, shape: Shape, dtype: np.dtype, algorithm: RandomAlgorithm
    ) -> Any:
        pairs, state = ShapedArray((2, 2), _U32), ShapedArray((2,), _U64)
        key = b.op("stablehlo.reshape", key, aval=pairs)
        key = b.op("stablehlo.bitcast_convert", key, aval=state)
        kind = types.attribute(f"#stablehlo<rng_algorithm {_ATTRIBUTES[algorithm]}>")
        after, out = b.ops(
            "stablehlo.rng_bit_generator", [key], [state, b.out_avals[1]], {"rng_algorithm": kind}
        ).results
        after = b.op("stablehlo.bitcast_convert", after, aval=pairs)
        return [b.op("stablehlo.reshape", after, aval=b.out_avals[0]), out]

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        return self(*primals, **params), [None, None]

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, shape: Shape, **params: Any
    ) -> Any:
        keys = to_front(operands[0], axes[0], axis_size)
        after, out = self(_first(keys), shape=(axis_size, *shape), **params)
        rest = part(keys, 1, axis_size, 0, typeof(keys).shape)
        return [concatenate(reshape(after, new_sizes=(1, 4)), rest, dimension=0), out], [0, 0]


rng_bit_generator = RngBitGenerator()


class RngUniform(Primitive):
    """Random numbers between two scalars, from a generator of the platform without a key."""

    name = "rng_uniform"

    def type(self, a: ShapedArray, b: ShapedArray, *, shape: Shape) -> ShapedArray:
        if a.dtype != b.dtype:
            raise ValueError(
                f"rng_uniform requires bounds of one dtype, got {a.dtype.name} and {b.dtype.name}; "
                "convert one"
            )
        if a.shape or b.shape:
            raise ValueError(
                f"rng_uniform requires scalar bounds, got shapes {a.shape} and {b.shape}"
            )
        # XLA ends the process for others.
        floats = dtypes.issubdtype(a.dtype, np.floating) and a.dtype.itemsize > 1
        if not (floats or a.dtype.kind in "iu" and a.dtype.itemsize >= 4):
            raise TypeError(
                f"rng_uniform does not accept dtype {a.dtype.name}: it takes floats, and integers "
                "of 32 or 64 bits"
            )
        return ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)

    def lower(self, b: Any, low: Any, high: Any, *, shape: Shape) -> Any:
        sizes = np.array(shape, np.int64)
        size = b.constant(sizes, ShapedArray(sizes.shape, sizes.dtype))
        return b.op(
            "stablehlo.rng",
            low,
            high,
            size,
            attributes={
                "rng_distribution": types.attribute("#stablehlo<rng_distribution UNIFORM>")
            },
        )


rng_uniform = RngUniform()


def _first(keys: Any) -> Any:
    """The first of an array of keys."""
    ndim = typeof(keys).ndim - 1
    limits = (*[1] * ndim, 4)
    first = slice(keys, start_indices=(0,) * (ndim + 1), limit_indices=limits, strides=None)
    return reshape(first, new_sizes=(4,))


def _drawn(keys: Any, shape: Shape, dtype: np.dtype = _U32) -> Any:
    """Random numbers, an array of `shape` for each key."""
    full = (*typeof(keys).shape[:-1], *shape)
    if not math.prod(full):
        return broadcast_in_dim(dtype.type(0), shape=full, broadcast_dimensions=())
    _, out = rng_bit_generator(
        _first(keys), shape=full, dtype=dtype, algorithm=RandomAlgorithm.RNG_DEFAULT
    )
    return out


def _halves(keys: Any) -> Any:
    """Each key as two keys of threefry."""
    return reshape(keys, new_sizes=(*typeof(keys).shape[:-1], 2, 2))


# ---- What the generators do ---------------------------------------------------------------------


def seed(seeds: Any) -> Any:
    """The keys of integers: the threefry key twice."""
    half = bits.seed(seeds)
    return concatenate(half, half, dimension=typeof(half).ndim - 1)


def split(keys: Any, *, shape: Shape, partitionable: bool) -> Any:
    """New keys of the given shape from each key: those of its halves, side by side."""
    batch = typeof(keys).shape[:-1]
    halves = bits.split(_halves(keys), shape=shape, partitionable=partitionable)
    halves = move_axis(halves, len(batch), len(batch) + len(shape))
    return reshape(halves, new_sizes=(*batch, *shape, 4))


def fold_in(keys: Any, data: Any) -> Any:
    """A new key from each key and each number, by folding it into both halves."""
    batch = typeof(keys).shape[:-1] or typeof(data).shape
    axes = tuple(range(len(batch), len(batch) + 2))
    halves = _halves(keys)
    if typeof(halves).ndim == 2:
        halves = broadcast_in_dim(halves, shape=(*batch, 2, 2), broadcast_dimensions=axes)
    if typeof(data).ndim:
        lanes = tuple(range(len(batch)))
        data = broadcast_in_dim(data, shape=(*batch, 2), broadcast_dimensions=lanes)
    return reshape(bits.fold_in(halves, data), new_sizes=(*batch, 4))


def random_bits(keys: Any, *, bit_width: int, shape: Shape, partitionable: bool) -> Any:
    """Random unsigned integers of the given shape from each key."""
    return _drawn(keys, shape, _UNSIGNED[bit_width])


def unsafe_split(keys: Any, *, shape: Shape, partitionable: bool) -> Any:
    """New keys of the given shape from each key: the first of each ten rows that it draws."""
    batch = typeof(keys).shape[:-1]
    count = math.prod(shape)
    rows = _drawn(keys, (count * _ROWS, 4))
    ones = (1,) * len(batch)
    kept = slice(
        rows,
        start_indices=(0,) * (len(batch) + 2),
        limit_indices=(*batch, count * _ROWS, 4),
        strides=(*ones, _ROWS, 1),
    )
    return reshape(kept, new_sizes=(*batch, *shape, 4))


def unsafe_fold_in(keys: Any, data: Any) -> Any:
    """A new key from each key and each number: what the number draws, exclusive-or the key."""
    batch = typeof(data).shape
    rows = _drawn(seed(convert(data, _U32)), (_ROWS, 4))
    at = len(batch)
    last = part(rows, _ROWS - 1, _ROWS, at, typeof(rows).shape)
    mask = reshape(last, new_sizes=(*batch, 4))
    full = (*(typeof(keys).shape[:-1] or batch), 4)
    return bitwise_xor(_spread(keys, full), _spread(mask, full))


def _spread(x: Any, shape: Shape) -> Any:
    """One key or an array of them as an array of keys of that shape."""
    if typeof(x).shape == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=(len(shape) - 1,))
