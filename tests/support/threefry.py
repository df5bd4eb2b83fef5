"""Threefry-2x32 written from the paper, and both layouts of counters, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MASK = 0xFFFFFFFF
_ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24]

# From the authors' file of known answers (Random123, `kat_vectors`): counter, key, result.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((MASK, MASK), (MASK, MASK), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def threefry(key: Any, counter: Any) -> tuple[int, int]:
    """The hash of one counter, in Python integers: 20 rounds, a key injection after each fourth."""
    k = [int(key[0]), int(key[1])]
    k.append(k[0] ^ k[1] ^ 0x1BD11BDA)
    x, y = (int(counter[0]) + k[0]) & MASK, (int(counter[1]) + k[1]) & MASK
    for round_ in range(20):
        r = _ROTATIONS[round_ % 8]
        x = (x + y) & MASK
        y = (((y << r) | (y >> (32 - r))) & MASK) ^ x
        if round_ % 4 == 3:
            i = round_ // 4 + 1
            x = (x + k[i % 3]) & MASK
            y = (y + k[(i + 1) % 3] + i) & MASK
    return x, y


def pairs(key: Any, count: int) -> list[int]:
    """Counters 0, 1, ... hashed as pairs, one of each half; an odd count gets a zero after it."""
    counters = [*range(count), *[0] * (count % 2)]
    half = len(counters) // 2
    hashed = [threefry(key, c) for c in zip(counters[:half], counters[half:], strict=True)]
    return [*[x for x, _ in hashed], *[y for _, y in hashed]][:count]


def random_bits(key: Any, bit_width: int, shape: Any, partitionable: bool) -> np.ndarray:
    """What one key gives."""
    size = math.prod(shape)
    dtype = np.dtype(f"uint{bit_width}")
    if partitionable:
        hashed = [threefry(key, (i >> 32, i & MASK)) for i in range(size)]
        if bit_width == 64:
            out = [x << 32 | y for x, y in hashed]
        else:
            out = [(x ^ y) % 2**bit_width for x, y in hashed]
    else:
        words = pairs(key, -(-size * bit_width // 32))
        if bit_width == 64:
            out = [x << 32 | y for x, y in zip(words[:size], words[size:], strict=True)]
        else:
            pieces = range(0, 32, bit_width)
            out = [(word >> shift) % 2**bit_width for word in words for shift in pieces][:size]
    return np.array(out, dtype).reshape(shape)


def split(key: Any, shape: Any, partitionable: bool) -> np.ndarray:
    """The keys that one key is split into."""
    size = math.prod(shape)
    if partitionable:
        out = [threefry(key, (i >> 32, i & MASK)) for i in range(size)]
    else:
        out = pairs(key, 2 * size)
    return np.array(out, np.uint32).reshape(*shape, 2)


def fold_in(key: Any, data: int) -> np.ndarray:
    """The key that one key and a number give."""
    return np.array(threefry(key, (0, data)), np.uint32)
