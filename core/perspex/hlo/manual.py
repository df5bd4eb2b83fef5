"""What a program for each device of a mesh knows while it is lowered: which devices talk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.hlo import types
from perspex.ir.avals import ShapedArray

_NUMBER = ShapedArray((), np.dtype("uint32"))


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


def once_in_each_part(
    b: Any,
    values: Sequence[Any],
    avals: Sequence[ShapedArray],
    write: Callable[[Any, Sequence[Any]], object],
) -> None:
    """Write what has effects and no results where the compiler still divides the work.

    It happens on the first of the devices that share a part: XLA does not say of such an operation
    where it runs.
    """
    outer: Manual = b.module.manual
    left = [name for name in outer.sizes if name not in outer.names]
    whole = [f"<{b.module.mesh}, [{', '.join(['{}'] * aval.physical().ndim)}]>" for aval in avals]
    made = b.ops(
        "sdy.manual_computation",
        values,
        [],
        {
            "in_shardings": types.attribute(f"#sdy.sharding_per_value<[{', '.join(whole)}]>"),
            "out_shardings": types.attribute("#sdy.sharding_per_value<[]>"),
            "manual_axes": types.attribute(
                "#sdy<manual_axes{" + ", ".join([f'"{name}"' for name in left]) + "}>"
            ),
        },
        regions=1,
    )
    b.module.manual = Manual(outer.sizes, frozenset(outer.sizes), {})
    try:
        with b.block(made.regions[0], avals) as (inner, args):
            choice = inner.ops("stablehlo.if", [_is_first(inner, left)], [], regions=2)
            with inner.block(choice.regions[0], []) as (there, _):
                write(there, args)
                there.terminate("stablehlo.return", [])
            with inner.block(choice.regions[1], []) as (elsewhere, _):
                elsewhere.terminate("stablehlo.return", [])
            inner.terminate("sdy.return", [])
    finally:
        b.module.manual = outer


def _is_first(b: Any, names: Sequence[str]) -> Any:
    """Whether this device is the first along all of the axes."""
    manual, zero = b.module.manual, b.constant(np.uint32(0), _NUMBER)
    number, total = b.op("stablehlo.partition_id", aval=_NUMBER), zero
    for name in names:
        stride, size = [
            b.constant(np.uint32(n), _NUMBER) for n in (manual.stride(name), manual.sizes[name])
        ]
        place = b.op("stablehlo.divide", number, stride, aval=_NUMBER)
        place = b.op("stablehlo.remainder", place, size, aval=_NUMBER)
        total = b.op("stablehlo.add", total, place, aval=_NUMBER)
    return b.compare("EQ", total, zero, _NUMBER)
