"""The topic `placements`: the arrays over several devices, and which device holds which part."""

from __future__ import annotations

import hashlib
from typing import Any

from perspex.layout.mesh import Mesh
from perspex.runtime import client
from perspex_magics.memory.buffers import BufferMagics, Setters
from perspex_magics.memory.owners import add_names
from perspex_magics.memory.reach import Buffer, Walk
from perspex_magics.panel.rows import PlacementRow
from perspex_magics.panel.texts import LINE, cut
from perspex_magics.panel.topics.topic import Topic, magics

# Devices and parts of one array that are described; of larger ones only the first.
_MOST_DEVICES = 1_024


class PlacementsTopic(Topic):
    """A row for each array that has a name, the largest first."""

    name = "placements"
    most = 200

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        if not client.is_made():
            return None
        setters = magics(self.shell, BufferMagics).setters
        walk = Walk(check=self.check)
        add_names(walk, self.shell)
        found = [
            buffer
            for buffer in walk.buffers().buffers
            if buffer.ways and len(buffer.array.devices()) > 1
        ]
        self.table.forgotten = max(0, len(found) - self.most)
        rows = []
        for order, buffer in enumerate(found[: self.most]):
            self.check()
            rows.append(_row(order, buffer, setters))
        self.table.keep({row.id for row in rows})
        for row in rows:
            self.table.put(row)
        return None


def _row(order: int, buffer: Buffer, setters: Setters) -> PlacementRow:
    array, (owner, path) = buffer.array, buffer.ways[0]
    sharding = array.sharding
    found = getattr(sharding, "mesh", None)
    mesh = found if isinstance(found, Mesh) else None
    devices = list(mesh.devices.flat) if mesh else sorted(sharding.device_set, key=_id)
    numbers: dict[str, int] = {}
    parts = []
    indices = sharding.devices_indices_map(array.shape)
    for device in devices[:_MOST_DEVICES]:
        parts.append(numbers.setdefault(_range(indices[device], array.shape), len(numbers)))
    name = owner.text(path)
    return PlacementRow(
        id=hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(),
        order=order,
        owner=cut(name),
        what=cut(buffer.type),
        spec=cut(str(getattr(sharding, "spec", sharding)), LINE),
        cell=setters.cell(owner.name) if owner.kind == "variable" else "",
        bytes=buffer.nbytes,
        each=buffer.nbytes // len(array.addressable_shards),
        copies=len(parts) // len(numbers),
        axes=[cut(str(axis)) for axis in mesh.axis_names] if mesh else [],
        sizes=list(mesh.devices.shape) if mesh else [],
        devices=[str(device) for device in devices[:_MOST_DEVICES]],
        parts=parts,
        ranges=list(numbers),
    )


def _id(device: Any) -> int:
    return int(device.id)


def _range(index: tuple[slice, ...], shape: tuple[int, ...]) -> str:
    """Where a part lies: `0:4, :`; a colon stands for an axis that is whole."""
    ranges = [(*part.indices(n)[:2], n) for part, n in zip(index, shape, strict=True)]
    return ", ".join(
        [":" if (start, stop) == (0, n) else f"{start}:{stop}" for start, stop, n in ranges]
    )
