"""How arrays lie on devices: `jax.sharding`.

A `Mesh` is an array of devices with named axes. A `PartitionSpec` says for each axis of an array
along which axes of the mesh it is cut; the axes of the mesh that it does not name hold copies. The
two together are a `NamedSharding`. `perspex.layout.tiles` works out the parts.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from perspex.base import xla
from perspex.layout import memories
from perspex.layout.abstract import AbstractDevice as AbstractDevice
from perspex.layout.abstract import AbstractMesh as AbstractMesh
from perspex.layout.abstract import AxisType as AxisType
from perspex.layout.abstract import ManualAxisType as ManualAxisType
from perspex.layout.abstract import UnreducedKind as UnreducedKind
from perspex.layout.one_device import SingleDeviceSharding as SingleDeviceSharding
from perspex.layout.one_device import make_single_device_sharding as make_single_device_sharding
from perspex.layout.tiles import Index as Index
from perspex.layout.tiles import assignment, axes_of, block, hlo_sharding, indices, refined

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnreducedKind", "get_abstract_mesh",
    "get_mesh", "make_single_device_sharding", "set_mesh", "use_abstract_mesh",
]  # fmt: skip

Sharding: Any = xla.Sharding


class _Unconstrained:
    """Stands in a `PartitionSpec` for an axis that the compiler may cut as it likes."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each axis of an array the axes of a mesh that cut it.

    Args:
      *partitions: for each axis of the array the name of an axis of the mesh, a tuple of names
        (the first is the major one), `None` for an axis that is not cut, or
        `PartitionSpec.UNCONSTRAINED` for one that the compiler may cut. Axes at the end may be
        left out.

    Raises:
      TypeError: if a partition is anything else.
      ValueError: if a name occurs twice.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("_partitions",)
    UNCONSTRAINED = UNCONSTRAINED

    def __init__(self, *partitions: Any) -> None:
        self._partitions = tuple([_partition(p) for p in partitions])
        names = [name for names in self.names() for name in names or ()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"an axis of a mesh can cut one axis of an array, but {self} has "
                    f"{name!r} twice; name it once"
                )

    def names(self) -> list[tuple[str, ...] | None]:
        """For each axis that the spec mentions its names; `None` for one without constraint."""
        return [
            None if p is UNCONSTRAINED else () if p is None else (p,) if isinstance(p, str) else p
            for p in self._partitions
        ]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Any:
        return iter(self._partitions)

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._partitions == other._partitions

    def __hash__(self) -> int:
        return hash(self._partitions)

    def __repr__(self) -> str:
        inner = ", ".join([repr(p) for p in self._partitions])
        return f"P({inner}{',' if len(self) == 1 else ''})"

    def __reduce__(self) -> Any:
        return PartitionSpec, self._partitions


P = PartitionSpec


def _partition(given: Any) -> Any:
    if given is None or isinstance(given, str) or given is UNCONSTRAINED:
        return given
    if isinstance(given, (tuple, list)) and all(isinstance(name, str) for name in given):
        return given[0] if len(given) == 1 else tuple(given) if given else None
    raise TypeError(
        f"a PartitionSpec has names of mesh axes, tuples of names and None, got {given!r} of type "
        f"{type(given).__name__}"
    )


_context = threading.local()


def context_mesh() -> Mesh | None:
    """The mesh of the innermost `with mesh:` of this thread."""
    entered = getattr(_context, "entered", None)
    return entered[-1] if entered else None


class Mesh:
    """Devices in an array with named axes.

    Args:
      devices: an array of devices, or nested sequences of them, each device once.
      axis_names: a name for each axis of the array.
      axis_types: `AxisType.Auto`, or a tuple of it for each axis: the compiler decides how the
        results of computations lie on the mesh.

    In a `with` block, a bare `PartitionSpec` refers to this mesh.

    Raises:
      ValueError: if the names do not fit the axes, or a device occurs twice.
      TypeError: if an element of `devices` is not a device.
      NotImplementedError: for an axis type other than `AxisType.Auto`.

    >>> import perspex, numpy as np
    >>> dict(Mesh(np.array(perspex.devices()), ("x",)).shape)
    {'x': 1}
    """

    __slots__ = (
        "_hash", "_internal_device_list", "axis_names", "axis_types", "devices", "local_devices"
    )  # fmt: skip

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        array = np.array(devices, dtype=object)
        if array.ndim != len(names):
            raise ValueError(
                f"a mesh has a name for each axis of its devices, got {array.ndim} axes of devices "
                f"(shape {array.shape}) and {len(names)} names {names}"
            )
        if len(set(names)) != len(names):
            raise ValueError(f"the axes of a mesh have different names, got {names}")
        for device in array.flat:
            if not isinstance(device, xla.Device):
                raise TypeError(
                    f"a mesh is made of devices, got {device!r} of type {type(device).__name__}; "
                    "perspex.devices() lists them"
                )
        if len(set(array.flat)) != array.size:
            raise ValueError("a mesh has each device once, but some devices occur twice here")
        array.flags.writeable = False
        self.devices, self.axis_names = array, names
        self.axis_types = check_axis_types(axis_types, len(names))
        self._internal_device_list = xla.DeviceList(tuple(array.flat))
        # The devices of this process.
        self.local_devices = [
            d
            for d in array.flat
            if not self.is_multi_process or d.process_index == d.client.process_index()
        ]
        self._hash = hash((names, array.shape, tuple(array.flat)))

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The length of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.devices.size

    @property
    def empty(self) -> bool:
        """Whether there is no device."""
        return not self.size

    @property
    def is_multi_process(self) -> bool:
        """Whether devices of other processes are in it."""
        return not self._internal_device_list.is_fully_addressable

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh whose devices belong to this process.

        Raises `ValueError` if these devices are no block of it.
        """
        if not self.is_multi_process:
            return self
        found = block(self.devices, self.local_devices)
        if found is None:
            raise ValueError(
                f"the devices of this process are no block of {self}; order the devices of a mesh "
                "by their process"
            )
        return Mesh(found, self.axis_names, self.axis_types)

    @property
    def processes(self) -> tuple[int, ...]:
        """The numbers of the processes that have its devices."""
        return tuple(sorted({d.process_index for d in self.devices.flat}))

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, in the shape of the mesh."""
        return np.array([d.id for d in self.devices.flat]).reshape(self.devices.shape)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        kind = None
        if self.size:
            first = self.devices.flat[0]
            cores = getattr(first, "num_cores", None)
            kind = AbstractDevice(first.device_kind, cores, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    @property
    def in_program(self) -> str:
        """The axes in Shardy's notation: `mesh<["x"=2]>`."""
        sizes = ", ".join([f'"{name}"={n}' for name, n in self.shape.items()])
        return f"mesh<[{sizes}]>"

    def __enter__(self) -> Mesh:
        if not hasattr(_context, "entered"):
            _context.entered = []
        _context.entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _context.entered.pop()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and self._hash == other._hash
            and self.axis_names == other.axis_names
            and self.devices.shape == other.devices.shape
            and tuple(self.devices.flat) == tuple(other.devices.flat)
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        sizes = ", ".join([f"{name!r}: {n}" for name, n in self.shape.items()])
        return f"Mesh({sizes}, axis_types={self.axis_types})"

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={self.axis_types})"
        )


class set_mesh:
    """Set the mesh that a bare `PartitionSpec` refers to in this thread, for good or in `with`.

    Args:
      mesh: the mesh.

    >>> import perspex
    >>> with set_mesh(perspex.make_mesh((1,), ("x",))):
    ...     get_mesh().axis_names
    ('x',)
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        mesh.__enter__()

    def __enter__(self) -> Mesh:
        return self.mesh

    def __exit__(self, *error: object) -> None:
        self.mesh.__exit__()


def get_mesh() -> Mesh:
    """The mesh of `set_mesh` or of the innermost `with mesh:`.

    Returns:
      A `Mesh`.

    Raises:
      ValueError: if no mesh is set in this thread.

    >>> import perspex
    >>> with perspex.make_mesh((1,), ("x",)):
    ...     get_mesh().size
    1
    """
    mesh = context_mesh()
    if mesh is None:
        raise ValueError("there is no mesh in this thread: set_mesh(mesh) or `with mesh:` sets one")
    return mesh


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh of this thread, without the devices; none if no mesh is set.

    Returns:
      An `AbstractMesh`.

    Raises:
      Nothing.

    >>> import perspex
    >>> with perspex.make_mesh((1,), ("x",)):
    ...     get_abstract_mesh().axis_names
    ('x',)
    """
    abstract = getattr(_context, "abstract", None)
    if abstract:
        return abstract[-1]
    mesh = context_mesh()
    return AbstractMesh((), ()) if mesh is None else mesh.abstract_mesh


@contextlib.contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """Have `get_abstract_mesh` return a mesh inside the `with`.

    Args:
      mesh: an `AbstractMesh`.

    Returns:
      A context manager.

    Raises:
      TypeError: for anything else.

    >>> with use_abstract_mesh(AbstractMesh((2,), ("x",))):
    ...     get_abstract_mesh().size
    2
    """
    if not isinstance(mesh, AbstractMesh):
        raise TypeError(
            f"use_abstract_mesh takes an AbstractMesh, got a value of type {type(mesh).__name__}; "
            "mesh.abstract_mesh is that of a Mesh"
        )
    if not hasattr(_context, "abstract"):
        _context.abstract = []
    _context.abstract.append(mesh)
    try:
        yield
    finally:
        _context.abstract.pop()


def check_axis_types(given: Any, count: int) -> tuple[AxisType, ...]:
    """An `AxisType` for each axis; `NotImplementedError` for another than `Auto`."""
    types = (AxisType.Auto,) * count if given is None else given
    types = (types,) * count if isinstance(types, AxisType) else tuple(types)
    if len(types) != count:
        raise ValueError(f"a mesh of {count} axes needs as many axis_types, got {types}")
    for kind in types:
        if kind is not AxisType.Auto:
            raise NotImplementedError(
                f"axes of a mesh are of type AxisType.Auto, {kind} is not supported: leave out "
                "axis_types, and the compiler decides how results lie on the mesh"
            )
    return types


class NamedSharding(Sharding):
    """An array cut along the axes of a mesh.

    Args:
      mesh: the devices.
      spec: for each axis of the array the axes of the mesh that cut it.
      memory_kind: the memory of the devices, `None` for the usual one.

    Raises:
      ValueError: if `spec` names an axis that the mesh does not have.
      TypeError: if `mesh` is not a `Mesh`, or `spec` is not a `PartitionSpec`.
      ValueError: for a memory that the devices do not have.

    >>> import perspex
    >>> NamedSharding(perspex.make_mesh((1,), ("x",)), PartitionSpec("x")).shard_shape((8, 3))
    (8, 3)
    """

    def __init__(self, mesh: Mesh, spec: PartitionSpec, memory_kind: str | None = None) -> None:
        super().__init__()
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise TypeError(
                "NamedSharding takes a Mesh and a PartitionSpec, got values of type "
                f"{type(mesh).__name__} and {type(spec).__name__}"
            )
        for names in spec.names():
            for name in names or ():
                if name not in mesh.axis_names:
                    raise ValueError(
                        f"{spec} names the axis {name!r}, and the mesh has the axes "
                        f"{mesh.axis_names}"
                    )
        self.mesh, self.spec = mesh, spec
        self.memory_kind = memories.check(mesh.devices.flat[0], memory_kind)
        # jaxlib reads these two.
        self._memory_kind = memory_kind
        self._internal_device_list = mesh._internal_device_list
        self._key = (mesh, spec, self.memory_kind)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is NamedSharding and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}, memory_kind={self.memory_kind})"

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The sharding for another memory of the devices."""
        return NamedSharding(self.mesh, self.spec, kind)

    def __reduce__(self) -> NoReturn:
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
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return not self.mesh.is_multi_process

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
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

    def check(self, shape: Sequence[int], what: str = "the array") -> None:
        """Raise `ValueError` if an array of this shape cannot be cut so."""
        if len(self.spec) > len(shape):
            raise ValueError(
                f"{self.spec} cuts {len(self.spec)} axes, but {what} of shape {tuple(shape)} has "
                f"{len(shape)}; name at most as many"
            )
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
        return (
            self.memory_kind == other.memory_kind
            and self._internal_device_list == other._internal_device_list
            and self._placement(ndim) == other._placement(ndim)
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
        open_axes = [names is None for names in self.spec.names()]
        parts = [
            "{?}" if i < len(open_axes) and open_axes[i] else _braces(names)
            for i, names in enumerate(self.axes(ndim))
        ]
        return f"<{self.mesh.in_program}, [{', '.join(parts)}]>"


def _braces(names: Sequence[str]) -> str:
    inner = ", ".join([f'"{name}"' for name in names])
    return "{" + inner + "}"


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
    return Mesh(mesh.devices.reshape(sizes), names)
