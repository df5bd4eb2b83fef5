"""Profiles as a device's profiler writes them (`xplane.proto`), made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Event(NamedTuple):
    """An event: its name, when it began and how long it lasted in microseconds, and its text."""

    name: str
    start: int
    duration: int
    hlo_op: str = ""


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: a number, or what has a length."""
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(data)) + data


def _names(number: int, names: Sequence[str]) -> bytes:
    """A map from numbers to named things."""
    entries = [
        _field(1, i) + _field(2, _field(1, i) + _field(2, name)) for i, name in enumerate(names, 1)
    ]
    return b"".join(_field(number, entry) for entry in entries)


def plane(name: str, lines: dict[str, list[Event]]) -> bytes:
    """A plane of lines of events."""
    names = sorted({event.name for events in lines.values() for event in events})
    made = []
    for i, (line, events) in enumerate(lines.items(), 1):
        written = b""
        for event in events:
            text = _field(4, _field(1, 1) + _field(5, event.hlo_op)) if event.hlo_op else b""
            times = _field(2, event.start * 10**6) + _field(3, event.duration * 10**6)
            written += _field(4, _field(1, names.index(event.name) + 1) + times + text)
        made.append(_field(3, _field(1, i) + _field(2, line) + written))
    return _field(2, name) + b"".join(made) + _names(4, names) + _names(5, ["hlo_op"])


def space(*planes: bytes) -> bytes:
    """A profile of planes."""
    return b"".join(_field(1, one) for one in planes)
