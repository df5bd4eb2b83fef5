"""The topic `devices`: the devices of this kernel, and what arrays hold of their memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

from perspex.runtime import client
from perspex_magics.memory.allocator import figures
from perspex_magics.memory.reach import Walk
from perspex_magics.panel.rows import DeviceRow
from perspex_magics.panel.texts import cut
from perspex_magics.panel.topics.topic import Topic


class DevicesTopic(Topic):
    """A row for each device, once there are devices: looking at them here starts none."""

    name = "devices"

    def cell_ended(self, count: int) -> None:
        self.changed()

    def refresh(self) -> float | None:
        if not client.is_made():
            return None
        held: Counter[Any] = Counter()
        arrays: Counter[Any] = Counter()
        for buffer in Walk(check=self.check).buffers(client.live_arrays()).buffers:
            devices = buffer.array.devices()
            for device in devices:
                held[device] += buffer.nbytes // len(devices)
                arrays[device] += 1
        here = client.devices()
        rows = [
            _row(order, device, held[device], arrays[device])
            for order, device in enumerate([*here, *sorted(held.keys() - here, key=str)])
        ]
        self.table.keep({row.id for row in rows})
        for row in rows:
            self.table.put(row)
        return None


def _row(order: int, device: Any, held: int, arrays: int) -> DeviceRow:
    found = figures(device)
    return DeviceRow(
        id=str(device),
        order=order,
        name=f"{device.platform}:{device.id}",
        kind=cut(device.device_kind),
        process=device.process_index,
        bytes=held,
        arrays=arrays,
        used=found.used,
        peak=found.peak,
        limit=found.limit,
        piece=found.piece if found.is_in_pieces else None,
    )
