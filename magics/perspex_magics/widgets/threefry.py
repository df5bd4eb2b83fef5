"""The hash behind random keys, round by round, in plain Python integers.

For one counter it shows what the compiled programs do for millions:
Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
https://doi.org/10.1145/2063384.2063405). The layouts of counters are those of `perspex.ops.bits`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Words = tuple[int, int]

_MASK = 0xFFFFFFFF
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA


class Step(NamedTuple):
    """Two words, and the operation that gave them."""

    what: str
    words: Words


class Block(NamedTuple):
    """One hash of a counter under a key, and which of its two words are used.

    `taken` is `both`, `first`, `second`, or `xor`.
    """

    key: Words
    counter: Words
    taken: Literal["both", "first", "second", "xor"]


def steps(key: Words, counter: Words) -> list[Step]:
    """The steps of a hash; the key is added before the first round and after every fourth.

    >>> first, *_, last = steps((0, 0), (0, 0))
    >>> first.what, last.what, f"{last.words[0]:08x} {last.words[1]:08x}"
    ('counter', '+ key 5', '6b200159 99ba4efe')
    """
    schedule = (*key, key[0] ^ key[1] ^ _PARITY)
    x, y = counter
    found = [Step("counter", counter)]
    x, y = (x + key[0]) & _MASK, (y + key[1]) & _MASK
    found.append(Step("+ key 0", (x, y)))
    for i in range(20):
        distance = _ROTATIONS[i // 4 % 2][i % 4]
        x = (x + y) & _MASK
        y = x ^ ((y << distance | y >> (32 - distance)) & _MASK)
        found.append(Step(f"round {i + 1}, rotated by {distance}", (x, y)))
        if i % 4 == 3:
            n = i // 4 + 1
            x = (x + schedule[n % 3]) & _MASK
            y = (y + schedule[(n + 1) % 3] + n) & _MASK
            found.append(Step(f"+ key {n}", (x, y)))
    return found


def taken(block: Block) -> tuple[int, ...]:
    """The words of a block that are used: one or two."""
    x, y = steps(block.key, block.counter)[-1].words
    return {"both": (x, y), "first": (x,), "second": (y,), "xor": (x ^ y,)}[block.taken]


def words_of(blocks: list[Block]) -> Words:
    """The two words of a key, from one block or two."""
    first, second = [word for block in blocks for word in taken(block)]
    return first, second


def fold_in(key: Words, number: int) -> list[Block]:
    """The hashes that make the key of `random.fold_in(key, number)`."""
    return [Block(key, (0, number), "both")]


def split(key: Words, count: int, partitionable: bool) -> list[list[Block]]:
    """The hashes that make each of the keys of `random.split(key, count)`."""
    if partitionable:
        return [[Block(key, (0, i), "both")] for i in range(count)]
    return [[_of_pairs(key, n, 2 * count) for n in (2 * i, 2 * i + 1)] for i in range(count)]


def element(key: Words, index: int, size: int, partitionable: bool) -> Block:
    """The hash that makes the 32 random bits of one element of an array of that size."""
    if partitionable:
        return Block(key, (index >> 32, index & _MASK), "xor")
    return _of_pairs(key, index, size)


def _of_pairs(key: Words, index: int, size: int) -> Block:
    """One word in the original layout: counters are hashed in pairs, one from each half."""
    half = (size + 1) // 2
    first = index if index < half else index - half
    second = first + half
    counter = first, second if second < size else 0
    return Block(key, counter, "first" if index < half else "second")
