"""The named axes of batches and of meshes, along which collectives run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from perspex import config
from perspex.layout.named import NamedSharding


class Axis(NamedTuple):
    """The axis of a batch: how many examples there are, and what collectives call it, if at all.

    Inside `shard_map` it `is_device`: an axis of the mesh, along which each device has its own
    values. Where `is_tracked`, types say which values may differ among them (`ShapedArray.vma`).

    While a function runs on examples, the named axes around it are in `config.axis_env`; a program
    staged there names its axis in its params, and needs the environment no more.
    """

    size: int
    name: Hashable | None = None
    is_tracked: bool = False
    is_device: bool = False
    # How the axis of a batch is cut along explicit axes of a mesh.
    cut: NamedSharding | None = None
    # The automatic axes of a mesh that cut it where a sharding is constrained.
    spmd: tuple[Hashable, ...] = ()


def bound_axis(name: Hashable, what: str) -> Axis:
    """The innermost axis of that name around; `NameError` if there is none.

    `what` is the operation that names it.
    """
    axes = config.axis_env.value
    for axis in reversed(axes):
        if axis.name == name:
            return axis
    raise unbound_axis(name, what, [axis.name for axis in axes])


def unbound_axis(name: Hashable, what: str, known: Sequence[Hashable] = ()) -> NameError:
    """The error for an operation along an axis that nothing around it has named."""
    names = ", ".join([repr(k) for k in dict.fromkeys(known)])
    around = f"; the axes named around it are {names}" if names else ""
    return NameError(
        f"Found an unbound axis name: {name}. `{what}` runs along a named axis{around}. "
        f"Call it inside a function that is mapped with vmap(..., axis_name={name!r}), or inside a "
        f"shard_map over a mesh with that axis."
    )
