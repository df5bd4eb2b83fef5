"""The sharding of a single device, which is jaxlib's, with the properties that shardings have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.base import xla
from perspex.layout.tiles import Index

SingleDeviceSharding: Any = xla.SingleDeviceSharding


class _OneDevice:
    """What every sharding has, and jaxlib's sharding of a single device lacks."""

    _memory_kind: Any
    _device: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        mine, its = (self._device, self.memory_kind), (other._device, other.memory_kind)
        return bool(mine == its)

    def __hash__(self) -> int:
        return hash((self._device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"

    @property
    def memory_kind(self) -> str:
        """The memory of the device."""
        return self._memory_kind or self._device.default_memory().kind

    def with_memory_kind(self, kind: str) -> Any:
        """The sharding for another memory of the device."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def device_set(self) -> set[Any]:
        """The device."""
        return {self._device}

    addressable_devices = device_set

    @property
    def num_devices(self) -> int:
        """One."""
        return 1

    @property
    def is_fully_addressable(self) -> bool:
        """Whether the device belongs to this process."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether the device holds all of the array: yes."""
        return True

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the only part."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The part that the device holds: everything."""
        return {self._device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether `other` places arrays in the same way."""
        return self == other


for _name, _value in vars(_OneDevice).items():
    if _name in ("__eq__", "__hash__", "__repr__") or not _name.startswith("_"):
        setattr(SingleDeviceSharding, _name, _value)
