"""Shardings in types: what the type of an array says of how it is cut, and how that is combined.

A type has the part of a sharding that is along explicit axes of a mesh, over its `AbstractMesh`,
with a partition for each axis of the array. A type that says nothing has `None`: the array is whole
along all explicit axes, whatever the mesh.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from perspex import config
from perspex.base.dimensions import is_static
from perspex.layout.abstract import AbstractMesh
from perspex.layout.mesh import Mesh
from perspex.layout.named import NamedSharding
from perspex.layout.spec import PartitionSpec

Shape = tuple[Any, ...]


# The mesh of devices that was last used, by the names and lengths of its axes.
_devices: dict[Any, Mesh] = {}


def devices_for(mesh: AbstractMesh) -> Mesh | None:
    """The mesh of devices that types over an abstract mesh stand for, if there has been one.

    For operations on nothing that lies on devices: zeros of the type of an array that does.
    """
    return _devices.get(mesh.shape_tuple)


def explicit_part(sharding: Any, shape: Shape) -> NamedSharding | None:
    """What of a sharding is in the type of an array of this shape; `None` if nothing is.

    Raises `ValueError` if it cannot cut such an array.
    """
    if sharding.__class__ is not NamedSharding:
        return None
    if isinstance(sharding.mesh, Mesh):
        _devices[sharding.mesh.abstract_mesh.shape_tuple] = sharding.mesh
    mesh = sharding.mesh.abstract_mesh
    if config.remove_size_one_mesh_axis_from_type.value:
        return _explicit_part(mesh, without_ones(sharding.spec, mesh), shape)
    return _explicit_part(mesh, sharding.spec, shape)


def without_ones(spec: PartitionSpec, mesh: AbstractMesh) -> PartitionSpec:
    """The spec without the axes of the mesh that have one device."""
    sizes = mesh.shape

    def left(names: Any) -> Any:
        return [name for name in names if sizes[name] != 1]

    parts = [None if names is None else tuple(left(names)) for names in spec.names()]
    unreduced = frozenset(left(spec.unreduced))
    kind = spec.unreduced_kind if unreduced else None
    reduced = frozenset(left(spec.reduced))
    return PartitionSpec(*parts, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


@functools.lru_cache(4096)
def _explicit_part(mesh: AbstractMesh, spec: PartitionSpec, shape: Shape) -> NamedSharding | None:
    if len(spec) > len(shape):
        raise ValueError(
            f"{spec} cuts {len(spec)} axes, but the array of shape {shape} has {len(shape)}; name "
            "at most as many"
        )
    explicit = frozenset(mesh.explicit_axes)
    # Inside `shard_map`, types also name sums along manual axes.
    summed = explicit.union(mesh.manual_axes)
    parts = [tuple([n for n in names or () if n in explicit]) for names in spec.names()]
    parts += [()] * (len(shape) - len(parts))
    unreduced, reduced = spec.unreduced & summed, spec.reduced & summed
    if not any(parts) and not unreduced and not reduced:
        return None
    for axis, (n, names) in enumerate(zip(shape, parts, strict=True)):
        tiles = count(mesh, names)
        if is_static((n,)) and n % tiles:
            raise ValueError(
                f"{spec} on {mesh} cuts axis {axis} into {tiles} parts, but does not evenly divide "
                f"its {n} elements in the array of shape {shape}; pad it, or cut another axis"
            )
    kind = spec.unreduced_kind if unreduced else None
    found = PartitionSpec(*parts, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)
    return NamedSharding(mesh, found)


def count(mesh: Any, names: Sequence[str]) -> int:
    """Into how many parts axes of a mesh cut an axis of an array."""
    sizes = mesh.shape
    return math.prod([sizes[name] for name in names])
