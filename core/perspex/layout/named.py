"""How an array lies on a mesh: `NamedSharding`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perspex.base import xla
from perspex.layout import any_sharding, memories
from perspex.layout.abstract import AbstractMesh, UnreducedKind
from perspex.layout.mesh import Mesh
from perspex.layout.spec import PartitionSpec
from perspex.layout.tiles import Index, assignment, axes_of, hlo_sharding, indices, refined

Sharding: Any = any_sharding.Sharding
# C++ repeats calls over several devices by itself where it knows from the sharding how many there
# are. Of the classes of jaxlib that say so, this one is made without jax.
_OnDevices: Any = xla.GSPMDSharding
_REPLICATED = xla.HloSharding.replicate()


class NamedSharding(_OnDevices):
    """An array cut along the axes of a mesh.

    Args:
      mesh: the devices, a `Mesh`; or an `AbstractMesh` for a type, which knows none.
      spec: for each axis of the array the axes of the mesh that cut it.
      memory_kind: the memory of the devices, `None` for the usual one.

    Raises:
      ValueError: if `spec` names an axis that the mesh does not have.
      TypeError: if `mesh` is no mesh, or `spec` is not a `PartitionSpec`.
      ValueError: for a memory that the devices do not have.

    >>> import perspex
    >>> NamedSharding(perspex.make_mesh((1,), ("x",)), PartitionSpec("x")).shard_shape((8, 3))
    (8, 3)
    """

    # Properties of all shardings, and attributes of these.
    mesh: Any = None
    spec: Any = None
    memory_kind: Any = None

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None = None
    ) -> None:
        is_abstract = isinstance(mesh, AbstractMesh)
        if not (is_abstract or isinstance(mesh, Mesh)) or not isinstance(spec, PartitionSpec):
            raise TypeError(
                "NamedSharding takes a Mesh and a PartitionSpec, got values of type "
                f"{type(mesh).__name__} and {type(spec).__name__}"
            )
        spec.check_cuts()
        known = mesh.axis_names
        for names in (*spec.names(), spec.unreduced, spec.reduced):
            for name in names or ():
                if name not in known:
                    raise ValueError(
                        f"{spec} names the axis {name!r}, and the mesh has the axes {known}"
                    )
        self.mesh, self.spec = mesh, spec
        self.asked_kind = self.memory_kind = memory_kind
        self.device_list = None
        if isinstance(mesh, Mesh):  # C++ never sees one without devices
            self.device_list = mesh._internal_device_list
            super().__init__(self.device_list, _REPLICATED, memory_kind)
            self.memory_kind = memories.check(mesh.devices.flat[0], memory_kind)
        self._key = (mesh, spec, self.memory_kind)
        self._hash = hash(self._key)

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another `mesh`, `spec` or `memory_kind`; a spec may be a sequence."""
        spec = changes.get("spec", self.spec)
        return NamedSharding(
            changes.get("mesh", self.mesh),
            spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec),
            changes.get("memory_kind", self.asked_kind),
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is NamedSharding and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        memory = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{memory})"

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The sharding for another memory of the devices."""
        return self.update(memory_kind=kind)

    def __reduce__(self) -> Any:
        if isinstance(self.mesh, AbstractMesh):
            return NamedSharding, (self.mesh, self.spec, self.asked_kind)
        raise TypeError("a sharding names devices of this process and cannot be pickled")

    # ---- the devices ------------------------------------------------------------------------

    @property
    def device_set(self) -> set[Any]:
        """The devices."""
        return set(self.mesh.devices.flat)

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return self.mesh.size

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        return set(self.mesh.local_devices)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some devices belong to this process."""
        return bool(self.mesh.local_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return not self.mesh.is_multi_process

    @property
    def replicated_axes(self) -> frozenset[str]:
        """The axes of the mesh along which devices hold copies."""
        spec = self.spec
        used = {name for names in spec.names() for name in names or ()}
        return frozenset(self.mesh.axis_names) - used - spec.unreduced

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        if self.spec.unreduced:
            return False
        shape = self.mesh.shape
        return all(shape[name] == 1 for names in self.spec.names() for name in names or ())

    @property
    def is_open(self) -> bool:
        """Whether it leaves how an axis is cut to the compiler."""
        return None in self.spec.names()

    # ---- the parts --------------------------------------------------------------------------

    def axes(self, ndim: int) -> tuple[tuple[str, ...], ...]:
        """For each axis of an array the axes of the mesh that cut it; some of length one."""
        names = [given or () for given in self.spec.names()]
        return (*names, *[()] * (ndim - len(names)))

    def tiles(self, ndim: int) -> tuple[int, ...]:
        """Into how many parts each axis of an array is cut."""
        shape = self.mesh.shape
        return tuple([math.prod([shape[name] for name in names]) for names in self.axes(ndim)])

    def check_compatible_aval(self, aval_shape: Sequence[int], what: str = "the array") -> None:
        """Raise `ValueError` if an array of this shape has fewer axes than the spec cuts."""
        if len(self.spec) > len(aval_shape):
            raise ValueError(
                f"{self.spec} cuts {len(self.spec)} axes, but {what} of shape {tuple(aval_shape)} "
                f"has {len(aval_shape)}; name at most as many"
            )

    def check(self, shape: Sequence[int], what: str = "the array") -> None:
        """Raise `ValueError` if an array of this shape cannot be cut so."""
        self.check_compatible_aval(shape, what)
        for axis, (n, tiles) in enumerate(zip(shape, self.tiles(len(shape)), strict=True)):
            if n % tiles:
                raise ValueError(
                    f"{self.spec} on {self.mesh} cuts axis {axis} into {tiles} parts, but it has "
                    f"{n} elements in {what} of shape {tuple(shape)}, which is no multiple of "
                    f"{tiles}; pad it, or cut another axis"
                )

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each part."""
        self.check(global_shape)
        tiles = self.tiles(len(global_shape))
        return tuple([n // t for n, t in zip(global_shape, tiles, strict=True)])

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """For each device the part that it holds, as an index into the array."""
        self.check(global_shape)
        mesh, axes = self.mesh, self.axes(len(global_shape))
        parts = indices(mesh.axis_sizes, mesh.axis_names, axes, tuple(global_shape))
        return dict(zip(mesh.devices.flat, parts, strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The part that each device of this process holds."""
        if self.is_fully_addressable:
            return self.devices_indices_map(global_shape)
        mine = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in mine}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether `other` places arrays with `ndim` axes in the same way."""
        if other.__class__ is not NamedSharding:
            return False
        if isinstance(self.mesh, AbstractMesh) or isinstance(other.mesh, AbstractMesh):
            return self == other
        if self.spec.unreduced != other.spec.unreduced or self.memory_kind != other.memory_kind:
            return False
        return self.device_list == other.device_list and (
            self._placement(ndim) == other._placement(ndim)
        )

    def _placement(self, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tiles, and the positions of the devices of each: equal for the same placement."""
        axes = self.axes(ndim)[:ndim]
        return assignment(self.mesh.axis_sizes, self.mesh.axis_names, axes)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """For jaxlib: the same in HLO's terms."""
        mesh = self.mesh
        return hlo_sharding(mesh.axis_sizes, mesh.axis_names, self.axes(num_dimensions))

    # ---- in programs ------------------------------------------------------------------------

    def in_program(self, ndim: int) -> str:
        """The mesh and the axes in Shardy's notation: `<mesh<["x"=2]>, [{"x"}, {}]>`."""
        names = [*self.spec.names(), *[()] * (ndim - len(self.spec))]
        return written(self.mesh, names, pending(self.mesh, self.spec))


def written(
    mesh: Any, names: Sequence[tuple[str, ...] | None], sums: str = "", is_open: bool = False
) -> str:
    """A sharding in Shardy's notation; where it `is_open`, the compiler may cut further.

    `sums` is what `pending` says.
    """
    parts = [
        "{?}" if given is None else _braces([f'"{n}"' for n in given] + ["?"] * is_open)
        for given in names
    ]
    return f"<{mesh.in_program}, [{', '.join(parts)}]{sums}>"


def pending(mesh: Any, spec: PartitionSpec, free: frozenset[str] = frozenset()) -> str:
    """Along which axes but the `free` ones a value is unreduced, in Shardy's notation.

    Raises `NotImplementedError` for parts of a maximum or minimum where jaxlib knows none.
    """
    names = [f'"{n}"' for n in mesh.axis_names if n in spec.unreduced and n not in free]
    if not names:
        return ""
    kind = spec.unreduced_kind
    if kind is None or kind is UnreducedKind.sum:
        return f", unreduced={_braces(names)}"
    if not xla.KNOWS_PARTS_OF_EXTREMA:
        raise NotImplementedError(
            f"{spec}: parts of a {kind.name} need jaxlib 0.12, got jaxlib {xla.JAXLIB_VERSION}; "
            "reduce without `unreduced_kind`"
        )
    return f", unreduced={kind.name}{_braces(names)}"


def _braces(texts: Sequence[str]) -> str:
    return "{" + ", ".join(texts) + "}"


def spec_of(sharding: Any, mesh: Mesh, ndim: int) -> PartitionSpec | None:
    """The spec that means on `mesh` what XLA's sharding says; `None` if no spec does."""
    axes = axes_of(sharding, mesh.axis_sizes, mesh.axis_names, ndim)
    return None if axes is None else PartitionSpec(*[names or None for names in axes])


def named(sharding: Any, meshes: Sequence[Mesh], ndim: int) -> NamedSharding:
    """XLA's sharding with the names of the first of the meshes that has names for it.

    The meshes have the same devices in the same order.
    """
    # The compiler may cut an axis of a mesh in parts: the same devices with more axes.
    for mesh in (*meshes, _refined(meshes[0])):
        spec = spec_of(sharding, mesh, ndim)
        if spec is not None:
            return NamedSharding(mesh, spec)
    raise NotImplementedError(
        f"the compiler placed a result as {sharding} on {meshes[0]}, and no PartitionSpec can say "
        "that; constrain it with lax.with_sharding_constraint or jit(out_shardings=)"
    )


def _refined(mesh: Mesh) -> Mesh:
    sizes, names = refined(mesh.axis_sizes, mesh.axis_names)
    if not isinstance(mesh, Mesh):  # one without devices
        return type(mesh)(sizes, names)
    return Mesh(mesh.devices.reshape(sizes), names)
