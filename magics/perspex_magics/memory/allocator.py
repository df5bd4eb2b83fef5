"""What a device says of its own memory: what is in use, what was, and in which pieces it is free.

Devices with memory of their own count it in their allocator; the CPU does not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from perspex.runtime import client
from perspex_magics.display.units import size

# Free memory is in pieces if the largest has less than this part of it.
_WHOLE = 0.5


class Figures(NamedTuple):
    """Bytes, as the allocator of a device counts them; `None` for what it does not say.

    `used` are in use now, `peak` were at most, `limit` may be; `piece` is the largest free block.
    """

    used: int | None = None
    peak: int | None = None
    limit: int | None = None
    piece: int | None = None

    @property
    def is_in_pieces(self) -> bool:
        """Whether a program may find no room although as much is free."""
        if self.used is None or self.limit is None or not self.piece:
            return False
        return self.piece < _WHOLE * (self.limit - self.used)

    def text(self) -> str:
        """As a sentence without its end; empty if nothing is known."""
        if self.used is None or self.limit is None:
            return ""
        said = f"{size(self.used)} of {size(self.limit)} are in use"
        if self.peak is not None:
            said += f", {size(self.peak)} were at most"
        if self.is_in_pieces:
            free = size(self.limit - self.used)
            said += f"; the {free} that are free are in pieces of at most {size(self.piece or 0)}"
        return said


def figures(device: Any) -> Figures:
    """What a device says now."""
    stats = device.memory_stats() or {}
    names = ("bytes_in_use", "peak_bytes_in_use", "bytes_limit", "largest_free_block_bytes")
    return Figures(*map(stats.get, names))


def told() -> list[str]:
    """A sentence for each device of this process that counts its memory."""
    if not client.is_made():
        return []
    texts = [(device, figures(device).text()) for device in client.local_devices()]
    return [f"{device}: {text}" for device, text in texts if text]
