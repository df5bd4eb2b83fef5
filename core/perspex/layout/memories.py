"""The memories of a device: its own, and that of the host."""

from __future__ import annotations

import enum
from typing import Any


class MemorySpace(enum.Enum):
    """Where numbers lie: `Device` is the device's usual memory, `Host` that of the processor."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


def kind_of(place: Any) -> str:
    """The name of the memory that a space or a sharding means: `"device"`, `"pinned_host"`.

    Raises `ValueError` for `MemorySpace.Any`, which is none.
    """
    if place is MemorySpace.Any:
        raise ValueError(
            "MemorySpace.Any names no memory to put an array in; use Space.Device or Space.Host"
        )
    if isinstance(place, MemorySpace):
        return "device" if place is MemorySpace.Device else "pinned_host"
    kind: str = place.memory_kind
    return kind


def space_of(place: Any) -> MemorySpace:
    """The space that a space, a sharding, or the name of a memory means.

    `"pinned_host"` is the one memory of the host that types tell from that of the device.
    """
    if isinstance(place, MemorySpace):
        return place
    kind = place if isinstance(place, str) or place is None else place.asked_kind
    return MemorySpace.Host if kind == "pinned_host" else MemorySpace.Device


def usual(sharding: Any) -> str:
    """The memory in which the devices of a sharding keep their arrays."""
    device = next(iter(sharding.device_set))
    kind: str = device.default_memory().kind
    return kind


def check(device: Any, kind: str | None) -> str:
    """The memory of a device that `kind` names; `None` is the usual one.

    Raises `ValueError` if the device has no such memory.
    """
    usual: str = device.default_memory().kind
    if kind is None or kind == usual:
        return usual
    known = [memory.kind for memory in device.addressable_memories()]
    if kind not in known:
        raise ValueError(
            f"Could not find memory addressable by device {device.platform}. Device "
            f"{device.platform} can address the following memory kinds: {', '.join(known)}. "
            f"Got memory kind: {kind}"
        )
    return kind
