"""Other hashes of counters: Philox with two and four words, Threefry with four.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011
(https://doi.org/10.1145/2063384.2063405): ten rounds of Philox, twenty of Threefry. A key has as
many uint32 as the hash takes. Each element of an array has its own 64-bit counter, whatever the
flag `threefry_partitionable` says.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.ops import bits
from perspex.ops.bits import CounterHash, Shape, join, positions, rotate_left, words
from perspex.ops.elementwise import add, bitwise_xor, mul, shift_right_logical
from perspex.ops.shape import stack
from perspex.ops.structural import broadcast_in_dim, convert
from perspex.tracing.trace import typeof

_U32, _U64 = np.dtype("uint32"), np.dtype("uint64")
_UNSIGNED = {n: np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}
_ZERO = np.uint32(0)
# Of Philox, by the number of words: what counters are multiplied by, and what each round adds to
# the words of the key.
_FACTORS = {2: (0xD256D193,), 4: (0xD2511F53, 0xCD9E8D57)}
_WEYL = 0x9E3779B9, 0xBB67AE85
# Of Threefry with four words: how far each round rotates two of them.
_ROTATIONS = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)


def _product(factor: int, x: Any) -> tuple[Any, Any]:
    """The high and the low 32 bits of a product."""
    whole = mul(convert(x, _U64), np.uint64(factor))
    return convert(shift_right_logical(whole, np.uint64(32)), _U32), convert(whole, _U32)


def _philox_2(key: Any, x: Any, y: Any) -> list[Any]:
    for i in range(10):
        high, low = _product(_FACTORS[2][0], x)
        bumped = add(key, np.uint32(i * _WEYL[0] & 0xFFFFFFFF))
        x, y = bitwise_xor(bitwise_xor(high, y), bumped), low
    return [x, y]


def _philox_4(k: Any, l: Any, *counter: Any) -> list[Any]:  # noqa: E741
    x, y, z, w = counter
    for i in range(10):
        (first, low_first), (second, low_second) = [
            _product(factor, word) for factor, word in zip(_FACTORS[4], (x, z), strict=True)
        ]
        bumped = [
            add(word, np.uint32(i * step & 0xFFFFFFFF))
            for word, step in zip((k, l), _WEYL, strict=True)
        ]
        x, z = (
            bitwise_xor(bitwise_xor(second, y), bumped[0]),
            bitwise_xor(bitwise_xor(first, w), bumped[1]),
        )
        y, w = low_second, low_first
    return [x, y, z, w]


def _threefry_4(*operands: Any) -> list[Any]:
    key, counter = operands[:4], operands[4:]
    parity: Any = bits.PARITY
    schedule = [*key, functools.reduce(bitwise_xor, key, parity)]
    x = [add(word, k) for word, k in zip(counter, key, strict=True)]
    for i in range(20):
        # Even rounds mix the words 0 with 1 and 2 with 3, odd ones 0 with 3 and 2 with 1.
        for at, distance in zip((0, 2), _ROTATIONS[i % 8], strict=True):
            other = (at + 1 if i % 2 == 0 else at + 3) % 4
            x[at] = add(x[at], x[other])
            x[other] = bitwise_xor(x[at], rotate_left(x[other], distance))
        if i % 4 == 3:
            n = i // 4 + 1
            x = [add(word, schedule[(n + at) % 5]) for at, word in enumerate(x)]
            x[3] = add(x[3], np.uint32(n))
    return x


philox2x32 = CounterHash("philox2x32", _philox_2, 2)
philox4x32 = CounterHash("philox4x32", _philox_4, 4)
threefry4x32 = CounterHash("threefry4x32", _threefry_4, 4)


class Counters:
    """What a generator does with one of the hashes, whose keys have `length` numbers.

    Where `seeds_keys` is true, a seed is hashed as the key, and not as the counter.
    """

    def __init__(self, hash: CounterHash, length: int, seeds_keys: bool = False) -> None:
        self.hash = hash
        self.length = length
        self.seeds_keys = seeds_keys

    def _key(self, outs: Sequence[Any]) -> Any:
        return stack(*outs[: self.length], axis=typeof(outs[0]).ndim)

    def _each(self, keys: Any, shape: Shape, first: bool) -> list[Any]:
        """The hash of the positions in `shape` under each key, as the first or the last words."""
        full = (*typeof(keys).shape[:-1], *shape)
        key = [bits.lead(word, full) for word in words(keys)]
        position = [bits.trail(word, full) for word in positions(shape)]
        rest = [_ZERO] * (self.hash.count - 2)
        outs: list[Any] = self.hash(*key, *([*position, *rest] if first else [*rest, *position]))
        return outs

    def seed(self, seeds: Any) -> Any:
        """The keys of integers, of which high and low 32 bits are hashed."""
        halves = words(bits.seed(seeds))
        count = self.length + self.hash.count
        before = 0 if self.seeds_keys else self.length
        zeros = [_ZERO] * count
        return self._key(self.hash(*zeros[:before], *halves, *zeros[before + 2 :]))

    def fold_in(self, keys: Any, data: Any) -> Any:
        """A new key from each key and each 32-bit number; the numbers are scalar or as many."""
        rest = [_ZERO] * (self.hash.count - 1)
        return self._key(self.hash(*words(keys), *rest, convert(data, _U32)))

    def split(self, keys: Any, *, shape: Shape, partitionable: bool) -> Any:
        """An array of new keys of the given shape from each key."""
        return self._key(self._each(keys, shape, first=False))

    def random_bits(self, keys: Any, *, bit_width: int, shape: Shape, partitionable: bool) -> Any:
        """An array of random unsigned integers of the given shape from each key."""
        dtype = _UNSIGNED[bit_width]
        full = (*typeof(keys).shape[:-1], *shape)
        if not math.prod(full):
            return broadcast_in_dim(dtype.type(0), shape=full, broadcast_dimensions=())
        outs = self._each(keys, shape, first=True)
        if bit_width != 64:
            return convert(functools.reduce(bitwise_xor, outs), dtype)
        if self.length == 4:
            return join(bitwise_xor(outs[0], outs[2]), bitwise_xor(outs[1], outs[3]))
        return join(outs[0], outs[1])


PHILOX_2 = Counters(philox2x32, 1)
PHILOX_4 = Counters(philox4x32, 2)
THREEFRY_4 = Counters(threefry4x32, 4, seeds_keys=True)
