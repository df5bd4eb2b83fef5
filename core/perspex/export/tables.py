"""FlatBuffers: the binary form in which tables of numbers, texts and tables are written.

Only what the format of exported functions needs. A table is a mapping from the numbers of its
fields to their values; a reader gets at a field by its number and kind. Fields that are missing
have the value zero, so that tables can get new fields. The layout is that of
https://flatbuffers.dev/internals.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

INT8, UINT8, UINT16, UINT32, BOOL = "b", "B", "H", "I", "?"


class Number(NamedTuple):
    """A number in a field; `kind` is one of the letters above."""

    kind: str
    value: Any


class Numbers(NamedTuple):
    """A vector of numbers in a field."""

    kind: str
    values: Sequence[int]


class Table(NamedTuple):
    """A table: its fields by number. A field that is `None` is left out."""

    fields: Mapping[int, Any]


def write(root: Table) -> bytearray:
    """The bytes of a table and of all that is in it.

    A field holds a `Number`, `Numbers`, a string, bytes, a `Table`, or a list of strings or tables.
    """
    out = bytearray(4)
    # What has to be written yet, and where its offset goes: an offset points forwards.
    waiting: list[tuple[int, Any]] = [(0, root)]
    while waiting:
        at, value = waiting.pop()
        start = _place(out, value, waiting)
        struct.pack_into("<I", out, at, start - at)
    return out


def _pad(out: bytearray, size: int) -> None:
    out.extend(bytes(-len(out) % size))


def _place(out: bytearray, value: Any, waiting: list[tuple[int, Any]]) -> int:
    """Append a value; its position. The values in it are put on the list of those that wait."""
    if isinstance(value, Table):
        return _place_table(out, value, waiting)
    _pad(out, 4)
    start = len(out)
    if isinstance(value, str):
        text = value.encode()
        out += struct.pack("<I", len(text)) + text + b"\0"
    elif isinstance(value, (bytes, bytearray)):
        out += struct.pack("<I", len(value)) + value
    elif isinstance(value, Numbers):
        out += struct.pack(f"<I{len(value.values)}{value.kind}", len(value.values), *value.values)
    else:
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        waiting += [(start + 4 + 4 * i, item) for i, item in enumerate(value)]
    return start


def _place_table(out: bytearray, table: Table, waiting: list[tuple[int, Any]]) -> int:
    fields = {slot: value for slot, value in table.fields.items() if value is not None}
    count = max(fields, default=-1) + 1
    _pad(out, 4)
    index = len(out)
    head = 4 + 2 * count
    start = index + head + -(index + head) % 4
    offsets, end = [0] * count, 4
    body = bytearray(4)
    references = []
    for slot, value in fields.items():
        kind = value.kind if isinstance(value, Number) else UINT32
        size = struct.calcsize(kind)
        _pad(body, size)
        offsets[slot] = len(body)
        if isinstance(value, Number):
            body += struct.pack(f"<{kind}", value.value)
        else:
            references.append((start + len(body), value))
            body += bytes(4)
    end = len(body)
    out += struct.pack(f"<HH{count}H", head, end, *offsets)
    _pad(out, 4)
    struct.pack_into("<i", body, 0, start - index)
    out += body
    waiting += references
    return start


class Reader:
    """A table in bytes. Raises `ValueError` where the bytes are not one."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data, self.start = data, start
        self.index = start - self._read("i", start)
        self.head = self._read("H", self.index)

    @classmethod
    def root(cls, data: bytes) -> Reader:
        """The table that the bytes are."""
        return cls(data, cls._read_at(data, "I", 0))

    @staticmethod
    def _read_at(data: bytes, kind: str, at: int) -> Any:
        if at < 0:
            raise ValueError("the bytes are damaged: an offset points before their start")
        try:
            return struct.unpack_from(f"<{kind}", data, at)[0]
        except struct.error:
            raise ValueError("the bytes are damaged: an offset points beyond their end") from None

    def _read(self, kind: str, at: int) -> Any:
        return self._read_at(self.data, kind, at)

    def _field(self, slot: int) -> int:
        """The position of a field, zero where it is missing."""
        entry = 4 + 2 * slot
        offset = self._read("H", self.index + entry) if entry < self.head else 0
        return self.start + offset if offset else 0

    def _target(self, slot: int) -> int:
        at = self._field(slot)
        return at + self._read("I", at) if at else 0

    def number(self, slot: int, kind: str) -> Any:
        """A number; zero where the field is missing."""
        at = self._field(slot)
        return self._read(kind, at) if at else 0

    def table(self, slot: int) -> Reader | None:
        """A table, if the field is there."""
        at = self._target(slot)
        return Reader(self.data, at) if at else None

    def _vector(self, slot: int) -> list[int]:
        """The positions that a vector of offsets points to."""
        at = self._target(slot)
        entries = [at + 4 + 4 * i for i in range(self._read("I", at))] if at else []
        return [entry + self._read("I", entry) for entry in entries]

    def tables(self, slot: int) -> list[Reader]:
        """A vector of tables; none where the field is missing."""
        return [Reader(self.data, at) for at in self._vector(slot)]

    def strings(self, slot: int) -> list[str]:
        """A vector of strings; none where the field is missing."""
        return [self._bytes(at).decode() for at in self._vector(slot)]

    def string(self, slot: int) -> str:
        """A string; an empty one where the field is missing."""
        return self.bytes(slot).decode()

    def _bytes(self, at: int) -> bytes:
        size = self._read("I", at)
        found = bytes(self.data[at + 4 : at + 4 + size])
        if len(found) != size:
            raise ValueError("the bytes are damaged: they end within a field")
        return found

    def bytes(self, slot: int) -> bytes:
        """The bytes of a string or of a vector of bytes."""
        at = self._target(slot)
        return self._bytes(at) if at else b""

    def numbers(self, slot: int, kind: str) -> list[int]:
        """A vector of numbers; none where the field is missing."""
        at = self._target(slot)
        if not at:
            return []
        size = struct.calcsize(kind)
        return [self._read(kind, at + 4 + size * i) for i in range(self._read("I", at))]
