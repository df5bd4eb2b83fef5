"""The parts of arrays that lie on several devices, and arrays made of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.base import xla
from perspex.ir.avals import ShapedArray
from perspex.runtime.keys import KeyArray
from perspex.runtime.placed import deleted_error
from perspex.runtime.transfer import bounds, part
from perspex.sharding import Index, NamedSharding


class Shard:
    """What one device holds of an array.

    Attributes:
      device: the device.
      index: the part, as an index into the array.
      replica_id: 0 for the first device that holds this part, 1 for the next, and so on.
    """

    __slots__ = ("_array", "_i", "_keys", "device", "index", "replica_id")

    def __init__(
        self, array: Any, i: int | None, device: Any, index: Index, replica_id: int
    ) -> None:
        self._array, self._i = array, i
        self.device, self.index, self.replica_id = device, index, replica_id
        self._keys: ShapedArray | None = None

    def of_keys(self, aval: ShapedArray) -> Shard:
        """The same of the array of typed keys whose numbers these are."""
        found = Shard(self._array, self._i, self.device, self.index[: aval.ndim], self.replica_id)
        found._keys = aval
        return found

    @property
    def data(self) -> Any:
        """The part as an array on its device; `None` for a device of another process.

        Nothing is copied.
        """
        if self._i is None:
            return None
        array = self._array
        if array.is_deleted():
            raise deleted_error(array)
        if xla.sharding_of(array).__class__ is NamedSharding:
            array = part(array, self._i)
        if self._keys is None:
            return array
        shape = array.shape[: self._keys.ndim]
        return KeyArray(ShapedArray(shape, self._keys.dtype), array)

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def shards(x: Any, everywhere: bool = False) -> list[Shard]:
    """The parts of a concrete array, in the order of the devices of its mesh.

    Those of this process, unless `everywhere`.
    """
    seen: dict[Any, int] = {}
    found = []
    here = 0
    sharding = xla.sharding_of(x)
    mine = sharding.addressable_devices
    for device, index in sharding.devices_indices_map(x.aval.shape).items():
        place = bounds(index)
        replica = seen.get(place, 0)
        seen[place] = replica + 1
        if device in mine:
            found.append(Shard(x, here, device, index, replica))
            here += 1
        elif everywhere:
            found.append(Shard(x, None, device, index, replica))
    return found


def from_parts(aval: ShapedArray, sharding: NamedSharding, parts: Sequence[Any]) -> Any:
    """An array of type `aval` of its parts here, arrays or numbers, in the order of the mesh."""
    shape = sharding.shard_shape(aval.shape)
    for i, given in enumerate(parts):
        if np.shape(given) != shape:
            raise ValueError(
                f"part {i} has shape {np.shape(given)}, but {sharding.spec} on {sharding.mesh} "
                f"cuts an array of shape {aval.shape} into parts of shape {shape}"
            )
    devices = sharding.mesh.local_devices
    aval = aval.update(sharding=sharding)
    return xla.batched_device_put(aval, sharding, list(parts), devices, True, enable_x64=True)
