"""Where a program runs: on one device, or on the devices of a mesh, each with a part of the arrays.

The devices of a mesh run one program together. How its arguments are cut is part of the program;
how its results are, the compiler decides, unless the program says so itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perspex.base import xla
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import Jaxpr, sub_jaxprs
from perspex.layout.context import devices_mesh
from perspex.layout.named import named
from perspex.layout.spec import UNCONSTRAINED
from perspex.layout.types import devices_for
from perspex.ops.placing import OnMesh
from perspex.runtime import client as platform
from perspex.runtime.keys import KeyArray
from perspex.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding
from perspex.transforms.dce import dce_jaxpr

ArrayImpl = xla.ArrayImpl
_HloSharding = xla.HloSharding


class Spread:
    """The devices of a mesh as the place of a program, and how each argument lies on them."""

    __slots__ = ("_hash", "mesh", "shardings")

    def __init__(self, mesh: Mesh, shardings: Sequence[NamedSharding]) -> None:
        self.mesh, self.shardings = mesh, tuple(shardings)
        self._hash = hash((mesh, self.shardings))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Spread)
            and self._hash == other._hash
            and self.mesh == other.mesh
            and self.shardings == other.shardings
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        axes = ", ".join([f"{name}: {n}" for name, n in self.mesh.shape.items()])
        return f"{self.mesh.size} devices ({axes})"


Place = Any  # a device or a Spread


def is_abstract(place: Place) -> bool:
    """Whether a place is a mesh without devices: a program for it can be lowered, no more."""
    return place.__class__ is Spread and isinstance(place.mesh, AbstractMesh)


def devices_of(place: Place) -> tuple[Any, ...]:
    """All devices of a place; `ValueError` if it is a mesh without devices."""
    if is_abstract(place):
        raise ValueError(
            f"a program for {place.mesh} has no devices to run on: it can be lowered. Pass "
            "shardings over a Mesh of devices to compile it"
        )
    return tuple(place.mesh.devices.flat) if place.__class__ is Spread else (place,)


def platform_of(place: Place) -> str:
    """The platform of the devices of a place, that of the default device where nothing says."""
    if not is_abstract(place):
        return xla.platform_of(devices_of(place)[0].client)
    kind = place.mesh.abstract_device
    if kind is None:
        return xla.platform_of(platform.default_device().client)
    return platform.lowered_as(kind.platform)


def whole(place: Place) -> Any:
    """The sharding of an array that every device of the place holds whole."""
    if place.__class__ is Spread:
        return NamedSharding(place.mesh, PartitionSpec())
    return platform.sharding(place)


def arguments(place: Place, count: int) -> list[Any]:
    """The shardings of a program's arguments."""
    return list(place.shardings) if place.__class__ is Spread else [whole(place)] * count


def results_of(xla: Any, place: Place, ndims: Sequence[int], said: Sequence[Any]) -> list[Any]:
    """The shardings of an executable's results.

    `ndims` are the numbers of axes of its results, and `said` the shardings that the program
    itself gives to some of them.
    """
    if place.__class__ is not Spread:
        return [whole(place)] * len(ndims)
    # For a mesh of one device XLA says nothing.
    found = xla.get_output_shardings()
    if not found:
        return [whole(place) if sharding is None else sharding for sharding in said]
    meshes = list(dict.fromkeys([place.mesh, *[s.mesh for s in place.shardings]]))
    return [
        named(_HloSharding.from_proto(proto), meshes, ndim) if sharding is None else sharding
        for proto, ndim, sharding in zip(found, ndims, said, strict=True)
    ]


def by_type(mesh: Mesh, aval: ShapedArray) -> NamedSharding | None:
    """The constraint on a result of this type.

    Along explicit axes, the type says all. The numbers of one typed key lie together.
    """
    if mesh.abstract_mesh.are_all_axes_explicit:
        spec = PartitionSpec(*[None] * aval.ndim) if aval.cut is None else aval.cut.spec
        return NamedSharding(mesh, spec)
    if not aval.is_extended:
        return None
    return NamedSharding(mesh, PartitionSpec(*[UNCONSTRAINED] * aval.ndim))


def _same_devices(mesh: Any, sharding: Any) -> bool:
    if isinstance(mesh, AbstractMesh) or isinstance(sharding.mesh, AbstractMesh):
        return bool(mesh.abstract_mesh == sharding.mesh.abstract_mesh)
    return bool(mesh._internal_device_list == sharding.device_list)


def _is_all(place: Place, mesh: Any) -> bool:
    """Whether a place is the one device of a mesh."""
    if mesh.size != 1 or isinstance(mesh, AbstractMesh):
        return False
    return bool(mesh.devices.flat[0] is place)


def choose_place(
    args: Sequence[Any], what: str, given: Any = None, wanted: Sequence[Any] | None = None
) -> tuple[Place, bool]:
    """The place to run at and whether results are committed to it.

    Arrays that the user committed decide, `given` is a device that goes before them, and `wanted`
    has the shardings that were asked for, `None` for an argument without. Raises `ValueError` when
    they disagree.
    """
    chosen, mesh = given, next((s.mesh for s in wanted or () if s is not None), None)
    for arg in args if given is None else ():
        sharding = _committed_to(arg)
        if sharding is None:
            continue
        if sharding.__class__ is NamedSharding:
            if mesh is None and (chosen is None or _is_all(chosen, sharding.mesh)):
                mesh = sharding.mesh
            elif mesh is None or not _same_devices(mesh, sharding):
                raise _disagree(what, chosen or mesh, sharding.mesh)
        else:
            device = xla.device_of(sharding)
            if mesh is not None:
                if not _is_all(device, mesh):
                    raise _disagree(what, mesh, device)
                continue
            if chosen is None:
                chosen = device
            elif device is not chosen:
                raise _disagree(what, chosen, device)
    if mesh is None and chosen is None:
        mesh = devices_mesh()
    if mesh is not None:
        return spread(mesh, args, wanted), True
    if chosen is None:
        return platform.default_device(), False
    return chosen, True


def _committed_to(arg: Any) -> Any:
    """Where an argument was committed to; a type without values can be, too."""
    array = arg.base if arg.__class__ is KeyArray else arg
    if array.__class__ is ArrayImpl:
        return xla.sharding_of(array) if xla.is_committed(array) else None
    asked = getattr(array, "sharding", None)
    return asked if isinstance(asked, Sharding) else None


def _disagree(what: str, one: Any, other: Any) -> ValueError:
    return ValueError(
        f"{what} got arguments committed to different devices, {_text(one)} and {_text(other)}; "
        "move them to one place with device_put"
    )


def _text(place: Any) -> str:
    if not isinstance(place, Mesh):
        return str(place)
    ids = ", ".join(map(str, place.device_ids.reshape(-1)[:8]))
    return f"{place} of the devices [{ids}{', ...' if place.size > 8 else ''}]"


def spread(mesh: Any, args: Sequence[Any], wanted: Sequence[Any] | None = None) -> Spread:
    """The place of a call on the devices of `mesh`: arguments that lie on them stay as they lie."""
    everywhere = NamedSharding(mesh, PartitionSpec())
    shardings = []
    for i, arg in enumerate(args):
        asked = None if wanted is None else wanted[i]
        lies, shape = _committed_to(arg), np.shape(arg)
        lies, ndim = (lies if lies.__class__ is NamedSharding else None), len(shape)
        if asked is not None:
            asked.check(shape, f"argument {i}")
            if lies is not None and not asked.is_equivalent_to(lies, ndim):
                raise ValueError(
                    f"in_shardings asks for {asked.spec} for argument {i}, but it lies as "
                    f"{lies.spec} on {lies.mesh}; move it with device_put, or leave "
                    "in_shardings out"
                )
            shardings.append(asked)
        else:
            # On its own mesh, that is, which may give the same devices other axes.
            shardings.append(everywhere if lies is None else lies)
    return Spread(mesh, shardings)


def meshes(jaxpr: Jaxpr) -> Iterator[Mesh]:
    """The meshes that a program names."""
    for eqn in jaxpr.eqns:
        if isinstance(eqn.primitive, OnMesh):
            mesh = eqn.primitive.mesh(eqn.params)
            if mesh is not None:
                yield mesh
        for inner in sub_jaxprs(eqn.params):
            yield from meshes(inner.jaxpr)


def settled(place: Place, committed: bool, jaxpr: Jaxpr, args: Sequence[Any]) -> tuple[Place, bool]:
    """The place for a program: its constraints decide where its arguments do not."""
    named = list(meshes(jaxpr)) if OnMesh.is_used else []
    if len(set(named)) > 1:  # perhaps dead code names the others
        named = list(meshes(dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0]))
    for mesh in named:
        if not committed or _is_all(place, mesh):
            place, committed = spread(mesh, args), True
        if is_abstract(place):
            continue
        devices = devices_of(place)
        if devices != tuple(mesh.devices.flat):
            raise ValueError(
                "a program runs on the devices of its arguments, "
                f"{_text(place if len(devices) == 1 else place.mesh)}, but a sharding constraint "
                f"or shard_map in it names {_text(mesh)}; move the arguments there with device_put"
            )
    if place.__class__ is not Spread:
        types = [v.aval.cut for v in (*jaxpr.invars, *jaxpr.outvars) if v.aval.cut is not None]
        if types:  # that refer to a mesh, of which no operand says what devices it has
            mesh = types[0].mesh
            place, committed = spread(devices_mesh() or devices_for(mesh) or mesh, args), True
    return place, committed
