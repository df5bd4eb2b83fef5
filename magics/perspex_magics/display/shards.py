"""The numbers of an array over several devices, looked at where they lie."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np


class Shards:
    """What there is to read of an array whose parts lie in several places of the host's memory.

    It has as much of an array's interface as its display needs: attributes, single numbers, and
    every n-th number. Nothing is put together. Like any view of an array's memory it should
    go as soon as one has looked.

    Args:
      x: an array whose parts are all in this process, on devices that NumPy can read.
    """

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype, self.size = tuple(x.shape), x.dtype, x.size
        self.ndim = len(self.shape)
        self._parts: dict[tuple[int, ...], np.ndarray[Any, Any]] = {}
        for shard in x.addressable_shards:
            if shard.replica_id == 0:
                places = zip(shard.index, self.shape, strict=True)
                start = tuple([part.indices(n)[0] for part, n in places])
                self._parts[start] = np.from_dlpack(shard.data)
        self._starts = [sorted(set(axis)) for axis in zip(*self._parts, strict=True)]

    def __getitem__(self, index: tuple[int, ...]) -> Any:
        """The number at a full index that counts from the front."""
        start = tuple(
            [
                starts[bisect_right(starts, i) - 1]
                for starts, i in zip(self._starts, index, strict=True)
            ]
        )
        return self._parts[start][tuple([i - s for i, s in zip(index, start, strict=True)])]

    def every(self, step: int) -> np.ndarray[Any, Any]:
        """Every `step`-th number of each part, in a row."""
        return np.concatenate([part.reshape(-1)[::step] for part in self._parts.values()])
