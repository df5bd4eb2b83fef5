"""What a program for each device of a mesh knows while it is lowered: which devices talk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Manual(NamedTuple):
    """The mesh that a region is written for, one device at a time along the axes `names`.

    `sizes` are the lengths of all axes of the mesh by name. Where the compiler still divides the
    work along some axes, no operation says where a device is: then `indices` has the values of
    that, by axis.
    """

    sizes: dict[str, int]
    names: frozenset[str]
    indices: dict[str, Any]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to the compiler."""
        return self.names == frozenset(self.sizes)

    def groups(self, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The devices, by number, that differ along `names` alone; the last name is the fastest."""
        numbers = np.arange(math.prod(self.sizes.values())).reshape([*self.sizes.values()])
        order = list(self.sizes)
        others = [name for name in order if name not in names]
        whole = numbers.transpose([order.index(name) for name in (*others, *names)])
        rows = whole.reshape(-1, math.prod([self.sizes[name] for name in names])).tolist()
        return tuple([tuple(row) for row in rows])

    def stride(self, name: str) -> int:
        """How far apart the numbers of neighbours along an axis are."""
        order = list(self.sizes)
        return math.prod([self.sizes[n] for n in order[order.index(name) + 1 :]])
