"""What every sharding has: jaxlib's base class of all of them lacks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from perspex.base import xla
from perspex.layout.tiles import Index

Sharding: Any = xla.Sharding


class _Sharding:
    """How an array lies on devices. Every kind of sharding defines the names without a body."""

    def _missing(self, name: str) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}.{name} is not defined: a class of shardings has to define it"
        )

    @property
    def device_set(self) -> set[Any]:
        """The devices."""
        self._missing("device_set")

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        self._missing("num_devices")

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        self._missing("is_fully_replicated")

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        self._missing("is_fully_addressable")

    @property
    def memory_kind(self) -> str | None:
        """The memory of the devices, `None` for the usual one."""
        self._missing("memory_kind")

    def with_memory_kind(self, kind: str) -> Any:
        """The sharding for another memory of the devices."""
        self._missing("with_memory_kind")

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each part."""
        self._missing("shard_shape")

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        """For each device the part that it holds, as an index into the array."""
        self._missing("devices_indices_map")

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether `other` places arrays with `ndim` axes in the same way."""
        self._missing("is_equivalent_to")

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        return {d for d in self.device_set if d.process_index == d.client.process_index()}

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some devices belong to this process."""
        return bool(self.addressable_devices)

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        """The part that each device of this process holds."""
        mine = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in mine}


for _name, _value in vars(_Sharding).items():
    if _name == "_missing" or not _name.startswith("_"):
        setattr(Sharding, _name, _value)
