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
    def asked_kind(self) -> str | None:
        """The memory that was asked for, `None` for the usual one."""
        kind: str | None = self._memory_kind
        return kind

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

    @property
    def addressable_devices(self) -> set[Any]:
        """The device, if it belongs to this process."""
        return self.device_set if self.is_fully_addressable else set()

    @property
    def has_addressable_devices(self) -> bool:
        """Whether the device belongs to this process."""
        return self.is_fully_addressable

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Do nothing: a device can hold an array of any shape."""

    @property
    def num_devices(self) -> int:
        """One."""
        return 1

    @property
    def is_fully_addressable(self) -> bool:
        """Whether the device belongs to this process."""
        return bool(self._device.process_index == self._device.client.process_index())

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

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The same, if the device belongs to this process."""
        return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether `other` places arrays in the same way."""
        return self == other


for _name, _value in vars(_OneDevice).items():
    if _name in ("__eq__", "__hash__", "__repr__") or not _name.startswith("_"):
        setattr(SingleDeviceSharding, _name, _value)


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> Any:
    """The sharding that puts arrays on one device.

    Args:
      device: the device.
      memory_kind: a memory of the device; the usual one if not given.

    Returns:
      A `SingleDeviceSharding`.

    Raises:
      Nothing.

    >>> import perspex
    >>> make_single_device_sharding(perspex.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
