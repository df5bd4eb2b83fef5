"""The programs used last, which stay in memory though nothing holds them: so many bytes of them.

A jitted function holds its executables. When it is gone, its programs are kept here for a while, so
that a function that is defined again finds them: the last ones ready to run, more of them as
compressed bytes, which load in a twentieth of the time that compiling took. Both are bounded by
bytes, because an executable takes 0.2 MiB even for `x + y`, and a large one as much as a thousand
of these.
"""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any, NamedTuple

from perspex.base.recent import Recent
from perspex.errors import JaxRuntimeError

# Bytes that may be kept: of executables, and of compressed ones.
READY = 4 * 2**20
PACKED = 2 * 2**20
# What executables take in memory, measured with jaxlib 0.10 and 0.12 on the CPU: so much each, and
# so many bytes for a byte of the serialized program. One that has no such form counts as large.
_EACH = 192 * 1024
_FACTOR = 13
_UNKNOWN = 2**20


@dataclasses.dataclass(eq=False)
class Entry:
    """An executable, and how long XLA took for it once."""

    xla: Any
    seconds: float
    takes: int | None  # see `bytes_taken`
    size: int | None = None  # on disk, where that is known
    apart: bool = False  # a process of its own has compiled it, for this one
    weight: int = _UNKNOWN  # about the bytes that it takes in memory


class Packed(NamedTuple):
    """The same, as compressed bytes."""

    code: bytes
    seconds: float
    takes: int | None


class Kept:
    """What is kept, by the keys of the programs; keys in `pinned` stay, and weigh nothing."""

    def __init__(self, pinned: set[bytes]) -> None:
        def entry(key: bytes, value: Entry) -> int:
            return 0 if key in pinned else value.weight

        def packed(key: bytes, value: Packed) -> int:
            return 0 if key in pinned else len(value.code)

        self.pinned = pinned
        self.ready: Recent[bytes, Entry] = Recent(READY, pinned, entry)
        self.packed: Recent[bytes, Packed] = Recent(PACKED, pinned, packed)
        # The one used last stays ready, whatever it weighs: a cell that runs again finds it.
        self.last: Entry | None = None

    def use(self, key: bytes, entry: Entry) -> None:
        """Keep an executable ready, as the one used last."""
        self.last = entry
        self.ready.put(key, entry)
        self.packed.get(key)

    def pack(self, key: bytes, entry: Entry, code: bytes) -> None:
        """Keep the serialized form of an executable."""
        self.packed.put(key, Packed(zlib.compress(code, 1), entry.seconds, entry.takes))

    def forget(self, key: bytes | None = None) -> None:
        """Drop a program, or all that are not pinned."""
        self.last = None
        for table in (self.ready, self.packed):
            if key is None:
                table.clear()
            else:
                table.pop(key)

    def copied(self) -> Kept:
        """The same with locks of its own, for the child of a fork."""
        copy = Kept(self.pinned)
        dict.update(copy.ready, self.ready)
        dict.update(copy.packed, self.packed)
        copy.last = self.last
        return copy


def serialized(xla: Any) -> bytes | None:
    """An executable that has not run yet as bytes; `None` if XLA has no such form of it.

    A program that sorts has none any more when it has run.
    """
    try:
        code: bytes = xla.serialize()
    except JaxRuntimeError:
        return None
    return code


def bytes_taken(xla: Any) -> int | None:
    """The bytes that a run takes on a device beyond its arguments; `None` if XLA does not know.

    To find that takes it a tenth of the time that loading the executable does.
    """
    try:
        stats = xla.get_compiled_memory_stats()
    except JaxRuntimeError:
        return None
    made: int = stats.output_size_in_bytes - stats.alias_size_in_bytes
    return made + int(stats.temp_size_in_bytes)


def weight(code_size: int | None) -> int:
    """About the bytes that an executable takes in memory, by those of its serialized form."""
    return _UNKNOWN if code_size is None else _EACH + _FACTOR * code_size
