"""Random bits: counters, hashed under a key.

The hash is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2,
3", SC 2011, https://doi.org/10.1145/2063384.2063405). A key is two uint32; a stream of bits is the
hash of 0, 1, 2, ...; new keys are hashes too. Functions here work on plain arrays: `keys` has the
numbers of a key in its last axis, and any axes before that.

There are two layouts of counters. The *partitionable* one gives each element its own 64-bit
counter, so that an element does not depend on the size of the array, and devices compute their
parts alone. The *original* one hashes 32-bit counters in pairs; it gives the numbers that JAX gave
before 0.5.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.ops.elementwise import add, bitwise_or, bitwise_xor, shift_left, shift_right_logical
from perspex.ops.families import batch_elementwise, broadcast_shape
from perspex.ops.shape import concatenate, iota, part, stack
from perspex.ops.structural import broadcast_in_dim, convert, reshape, squeeze
from perspex.tracing import cuts
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import stage
from perspex.tracing.trace import typeof

Shape = tuple[int, ...]

_U32, _U64 = np.dtype("uint32"), np.dtype("uint64")
_UNSIGNED = {n: np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
# The third word of the key schedule is the parity of the key and this constant, so that no key
# makes the schedule all zeros.
PARITY = np.uint32(0x1BD11BDA)


# ---- The hash -----------------------------------------------------------------------------------


class CounterHash(Primitive):
    """The hash of the words of a counter under those of a key: all uint32.

    The operands, first the key's, have one shape or are scalars. There are `count` results, as the
    counter has words. `rounds` computes them.
    """

    multiple_results = True

    def __init__(self, name: str, rounds: Callable[..., Sequence[Any]], count: int) -> None:
        super().__init__()
        self.name = name
        self.rounds = rounds
        self.count = count

    def type(self, *avals: ShapedArray) -> Any:
        if any(a.dtype != _U32 for a in avals):
            found = ", ".join([a.str_short() for a in avals])
            raise TypeError(f"{self.name} takes uint32 keys and counters, got {found}; convert")
        return (ShapedArray(broadcast_shape(self.name, avals), _U32),) * self.count

    def cut(self, out: Any, *avals: ShapedArray) -> list[cuts.Parts]:
        return [cuts.merged(self.name, avals)] * 2

    def lower(self, b: Any, *values: Any) -> Any:
        return b.call(_rounds_program(self, tuple(b.in_avals)), values, self.name)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), [None] * self.count

    def batch(self, axis_size: int, operands: Any, axes: Any) -> Any:
        outs, at = batch_elementwise(self, axis_size, operands, axes)
        return outs, [at] * self.count


@functools.lru_cache(maxsize=256)
def _rounds_program(hash: CounterHash, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """The hash as a program; the same object for the same types, so that a module has it once."""
    # All rounds written out. JAX rolls those of Threefry-2x32 into a loop of five on CPU, which
    # compiles in 70-120 ms where this takes 30-45, and runs for 3-8 ms on a million counters where
    # this takes 1.5.
    with config.enable_x64(True):
        jaxpr, _ = stage(hash.rounds, avals, hash.name)
    return ClosedJaxpr(jaxpr.replace(eqns=[eqn.replace(source=None) for eqn in jaxpr.eqns]))


def _rounds(k: Any, l: Any, x: Any, y: Any) -> tuple[Any, Any]:  # noqa: E741
    schedule = k, l, bitwise_xor(bitwise_xor(k, l), PARITY)
    x, y = add(x, k), add(y, l)
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            x = add(x, y)
            y = bitwise_xor(x, rotate_left(y, distance))
        x = add(x, schedule[(i + 1) % 3])
        y = add(y, add(schedule[(i + 2) % 3], np.uint32(i + 1)))
    return x, y


def rotate_left(x: Any, distance: int) -> Any:
    return bitwise_or(
        shift_left(x, np.uint32(distance)), shift_right_logical(x, np.uint32(32 - distance))
    )


threefry2x32 = CounterHash("threefry2x32", _rounds, 2)


# ---- Counters -----------------------------------------------------------------------------------


def words(keys: Any) -> list[Any]:
    """The numbers of each key, one array for each number."""
    shape = typeof(keys).shape
    last = len(shape) - 1
    return [
        squeeze(part(keys, i, i + 1, last, shape), dimensions=(last,)) for i in range(shape[last])
    ]


def positions(shape: Shape) -> tuple[Any, Any]:
    """The position of each element in row-major order, as high and low 32 bits."""
    size = math.prod(shape)
    if not shape:
        return np.uint32(0), np.uint32(0)
    if size <= 2**32:
        low = iota(dtype=_U32, shape=(size,), dimension=0)
        return np.uint32(0), reshape(low, new_sizes=shape)
    n = reshape(iota(dtype=_U64, shape=(size,), dimension=0), new_sizes=shape)
    return convert(shift_right_logical(n, np.uint64(32)), _U32), convert(n, _U32)


def _hash_each(keys: Any, shape: Shape) -> tuple[Any, Any, Shape]:
    """The hash of the positions in `shape` under each key, and the shape of that."""
    batch = typeof(keys).shape[:-1]
    full = (*batch, *shape)
    k, l = [lead(word, full) for word in words(keys)]  # noqa: E741
    high, low = [trail(word, full) for word in positions(shape)]
    first, second = threefry2x32(k, l, high, low)
    return first, second, full


def _hash_pairs(keys: Any, count: int) -> Any:
    """The hash of the 32-bit counters below `count`, taken as pairs of one of each half.

    Each key gives an array of `count` numbers; an odd number of counters is filled up with a zero.
    """
    if count >= 2**32:
        raise OverflowError(
            f"one key cannot give {count} numbers with threefry_partitionable off; "
            "switch it on, or split the key and draw in parts"
        )
    batch = typeof(keys).shape[:-1]
    half = (count + 1) // 2
    counters = iota(dtype=_U32, shape=(count,), dimension=0)
    first, second = part(counters, 0, half, 0, (count,)), part(counters, half, count, 0, (count,))
    if count % 2:
        zero = broadcast_in_dim(np.uint32(0), shape=(1,), broadcast_dimensions=())
        second = concatenate(second, zero, dimension=0)
    full = (*batch, half)
    k, l = [lead(word, full) for word in words(keys)]  # noqa: E741
    pair = threefry2x32(k, l, trail(first, full), trail(second, full))
    both = concatenate(*pair, dimension=len(batch))
    return part(both, 0, count, len(batch), (*batch, 2 * half)) if count % 2 else both


def lead(x: Any, shape: Shape) -> Any:
    """An array of the first axes of `shape` repeated along the others; scalars stay scalars."""
    ndim = typeof(x).ndim
    if ndim in (0, len(shape)):
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(ndim)))


def trail(x: Any, shape: Shape) -> Any:
    """An array of the last axes of `shape` repeated along the others; scalars stay scalars."""
    ndim = typeof(x).ndim
    if ndim in (0, len(shape)):
        return x
    dims = tuple(range(len(shape) - ndim, len(shape)))
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


# ---- What a generator does ----------------------------------------------------------------------


def seed(seeds: Any) -> Any:
    """The keys of integers: their high and low 32 bits."""
    bits = np.iinfo(typeof(seeds).dtype).bits
    low = convert(seeds, _U32)
    if bits == 64:
        high = convert(shift_right_logical(seeds, typeof(seeds).dtype.type(32)), _U32)
    else:
        high = broadcast_in_dim(np.uint32(0), shape=typeof(seeds).shape, broadcast_dimensions=())
    return stack(high, low, axis=typeof(seeds).ndim)


def fold_in(keys: Any, data: Any) -> Any:
    """A new key from each key and each 32-bit number; the numbers are scalar or as many."""
    first, second = threefry2x32(*words(keys), np.uint32(0), convert(data, _U32))
    return stack(first, second, axis=typeof(first).ndim)


def split(keys: Any, *, shape: Shape, partitionable: bool) -> Any:
    """An array of new keys of the given shape from each key."""
    if partitionable:
        first, second, full = _hash_each(keys, shape)
        return stack(first, second, axis=len(full))
    numbers = _hash_pairs(keys, 2 * math.prod(shape))
    return reshape(numbers, new_sizes=(*typeof(keys).shape[:-1], *shape, 2))


def random_bits(keys: Any, *, bit_width: int, shape: Shape, partitionable: bool) -> Any:
    """An array of random unsigned integers of the given shape from each key."""
    dtype = _UNSIGNED[bit_width]
    full = (*typeof(keys).shape[:-1], *shape)
    if not math.prod(full):
        return broadcast_in_dim(dtype.type(0), shape=full, broadcast_dimensions=())
    if partitionable:
        first, second, _ = _hash_each(keys, shape)
        if bit_width == 64:
            return join(first, second)
        return convert(bitwise_xor(first, second), dtype)
    return reshape(_bits_of_pairs(keys, bit_width, math.prod(shape)), new_sizes=full)


def _bits_of_pairs(keys: Any, bit_width: int, size: int) -> Any:
    """`size` random integers from each key, in the original layout."""
    batch = typeof(keys).shape[:-1]
    last = len(batch)
    count = -(-size * bit_width // 32)
    words = _hash_pairs(keys, count)
    if bit_width == 32:
        return words
    if bit_width == 64:
        halves = [part(words, i, i + size, last, (*batch, count)) for i in (0, size)]
        return join(*halves)
    # Several numbers to a word, the lowest bits first.
    pieces = 32 // bit_width
    shifts = bit_width * np.arange(pieces, dtype=_U32)
    parts = [convert(shift_right_logical(words, n), _UNSIGNED[bit_width]) for n in shifts]
    flat = reshape(stack(*parts, axis=last + 1), new_sizes=(*batch, count * pieces))
    return part(flat, 0, size, last, (*batch, count * pieces))


def join(high: Any, low: Any) -> Any:
    """64-bit numbers from their halves."""
    return bitwise_or(shift_left(convert(high, _U64), np.uint64(32)), convert(low, _U64))
