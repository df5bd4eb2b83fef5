"""What a program for each device of a mesh knows while it is lowered: which devices talk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.hlo import types
from perspex.ir.avals import ShapedArray


class Grouped(NamedTuple):
    """An axis of a mesh along which devices exchange values only within their group.

    `groups` have the places along the axis `name`, each in one group. It stands in the params of a
    collective where a name does.
    """

    name: str
    groups: tuple[tuple[int, ...], ...]


def bare(name: Any) -> Any:
    """The name of an axis that may be in groups."""
    return name.name if name.__class__ is Grouped else name


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

    def groups(self, names: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
        """The devices, by number, that differ along `names` alone; the last name is the fastest."""
        if names[0].__class__ is Grouped:
            (axis,) = names
            lines = self.groups((axis.name,))
            return tuple([tuple([row[i] for i in g]) for row in lines for g in axis.groups])
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


def computation(
    b: Any,
    values: Sequence[Any],
    out_avals: Sequence[ShapedArray],
    names: Sequence[str],
    mesh: str,
    where: Sequence[str],
    there: Sequence[str],
) -> Any:
    """The operation whose region each device runs by itself along the axes `names` of the mesh.

    `where` and `there` say how operands and results are cut, as `[{"x"}, {}]`.
    """

    def shardings(parts: Sequence[str]) -> Any:
        inner = ", ".join([f"<{mesh}, {part}>" for part in parts])
        return types.attribute(f"#sdy.sharding_per_value<[{inner}]>")

    axes = ", ".join([f'"{name}"' for name in names])
    attributes = {
        "in_shardings": shardings(where),
        "out_shardings": shardings(there),
        "manual_axes": types.attribute(f"#sdy<manual_axes{{{axes}}}>"),
    }
    return b.ops("sdy.manual_computation", values, out_avals, attributes, regions=1)
