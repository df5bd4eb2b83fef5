"""How arrays are placed on devices: `jax.sharding`.

A `Mesh` is an array of devices with named axes. A `PartitionSpec` says for each axis of an array
along which axes of the mesh it is cut; axes of the mesh that it does not name hold copies. The two
together are a `NamedSharding`.
"""

from __future__ import annotations

import enum
import functools
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from perspex.base import xla

Sharding: Any = xla.Sharding
SingleDeviceSharding: Any = xla.SingleDeviceSharding
_HloSharding = xla.HloSharding

Index = tuple[slice, ...]


class AxisType(enum.Enum):
    """Who decides how results lie along an axis of a mesh. Perspex has `Auto`: the compiler."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


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

    Errors:
      `TypeError` for anything else, `ValueError` for a name that is there twice.

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

    As a context manager it is the mesh that bare `PartitionSpec`s mean.

    Errors:
      `ValueError` if the names do not fit the axes or a device is there twice,
      `NotImplementedError` for the other axis types.

    >>> import perspex, numpy as np
    >>> dict(Mesh(np.array(perspex.devices()), ("x",)).shape)
    {'x': 1}
    """

    __slots__ = ("_hash", "_internal_device_list", "axis_names", "axis_types", "devices")

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
            raise ValueError("a mesh has each device once, and in this one some are there twice")
        array.flags.writeable = False
        self.devices, self.axis_names = array, names
        self.axis_types = check_axis_types(axis_types, len(names))
        self._internal_device_list = xla.DeviceList(tuple(array.flat))
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
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, in the shape of the mesh."""
        return np.array([d.id for d in self.devices.flat]).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self.devices.flat if d.process_index == d.client.process_index()]

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
    """Make a mesh the one that bare `PartitionSpec`s mean in this thread, for good or in `with`.

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

    Raises `ValueError` where there is none.
    """
    mesh = context_mesh()
    if mesh is None:
        raise ValueError("there is no mesh here: set_mesh(mesh) or `with mesh:` gives one")
    return mesh


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

    Errors:
      `ValueError` for a name that the mesh does not have, `TypeError` for a spec that is none.

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
        usual = mesh.devices.flat[0].default_memory().kind
        if memory_kind not in (None, usual):
            known = sorted({m.kind for m in mesh.devices.flat[0].addressable_memories()})
            raise NotImplementedError(
                f"arrays over several devices lie in the memory {usual!r}, got memory_kind="
                f"{memory_kind!r} (the devices have {known})"
            )
        self.mesh, self.spec = mesh, spec
        self.memory_kind = usual
        # jaxlib reads these two.
        self._memory_kind = memory_kind
        self._internal_device_list = mesh._internal_device_list
        self._key = (mesh, spec)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is NamedSharding and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}, memory_kind={self.memory_kind})"

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
        places = _index_map(self.mesh, self.axes(len(global_shape)), tuple(global_shape))
        return dict(zip(self.mesh.devices.flat, places, strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The part that each device of this process holds."""
        mine = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in mine}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether `other` places arrays with `ndim` axes in the same way."""
        if other.__class__ is not NamedSharding:
            return False
        return self._internal_device_list == other._internal_device_list and (
            self._placement(ndim) == other._placement(ndim)
        )

    def _placement(self, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tiles, and the positions of the devices of each: equal for the same placement."""
        axes = self.axes(ndim)[:ndim]
        return _tile_assignment(self.mesh.axis_sizes, self.mesh.axis_names, axes)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """For jaxlib: the same in HLO's terms."""
        return hlo_sharding(self.mesh.axis_sizes, self.mesh.axis_names, self.axes(num_dimensions))

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


@functools.lru_cache(4096)
def _index_map(mesh: Mesh, axes: tuple[tuple[str, ...], ...], shape: tuple[int, ...]) -> Any:
    places: list[Any] = []
    for coordinates in np.ndindex(*mesh.axis_sizes):
        at = dict(zip(mesh.axis_names, coordinates, strict=True))
        index = []
        for n, names in zip(shape, axes, strict=True):
            tile, tiles = 0, 1
            for name in names:
                tile, tiles = tile * mesh.shape[name] + at[name], tiles * mesh.shape[name]
            part = n // tiles
            index.append(slice(None) if tiles == 1 else slice(tile * part, (tile + 1) * part))
        places.append(tuple(index))
    return tuple(places)


def _order(
    sizes: tuple[int, ...], names: tuple[str, ...], axes: tuple[tuple[str, ...], ...]
) -> tuple[list[int], list[int], int]:
    """Tiles of each axis, the mesh's axes in the order of tiles, and the copies of each tile."""
    used = [names.index(name) for group in axes for name in group]
    tiles = [math.prod([sizes[names.index(name)] for name in group]) for group in axes]
    rest = [i for i in range(len(sizes)) if i not in used]
    return tiles, used + rest, math.prod([sizes[i] for i in rest])


@functools.lru_cache(4096)
def _tile_assignment(
    sizes: tuple[int, ...], names: tuple[str, ...], axes: tuple[tuple[str, ...], ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    tiles, order, copies = _order(sizes, names, axes)
    devices = np.arange(math.prod(sizes)).reshape(sizes).transpose(order)
    per_tile = np.sort(devices.reshape(-1, copies), axis=1)
    return tuple(tiles), tuple(per_tile.reshape(-1).tolist())


@functools.lru_cache(4096)
def hlo_sharding(
    sizes: tuple[int, ...], names: tuple[str, ...], axes: tuple[tuple[str, ...], ...]
) -> Any:
    tiles, order, copies = _order(sizes, names, axes)
    if all(n == 1 for n in tiles):
        return _HloSharding.replicate()
    last = [copies] if copies > 1 else []
    shape = ",".join(map(str, tiles + last))
    grid, turned = str(math.prod(sizes)), ""
    if order != sorted(order):
        grid, turned = ",".join(map(str, sizes)), f"T({','.join(map(str, order))})"
    return _HloSharding.from_string(
        f"{{devices=[{shape}]<=[{grid}]{turned}{' last_tile_dim_replicate' if copies > 1 else ''}}}"
    )


def spec_of(sharding: Any, mesh: Mesh, ndim: int) -> PartitionSpec | None:
    """The spec that means on `mesh` what XLA's sharding says; `None` if none does."""
    if sharding.is_replicated():
        return PartitionSpec()
    if not sharding.is_tiled():
        return None
    shape = list(sharding.tile_assignment_dimensions())
    if len(sharding.subgroup_types()) > sharding.replicate_on_last_tile_dim():
        return None
    assigned = np.array(sharding.tile_assignment_devices()).reshape(shape)
    position = np.empty((mesh.size, assigned.ndim), np.int64)
    position[assigned.reshape(-1)] = np.stack(
        np.unravel_index(np.arange(assigned.size), assigned.shape), axis=1
    )
    position = position.reshape(*mesh.axis_sizes, assigned.ndim)
    coordinates = np.indices(mesh.axis_sizes)
    partitions: list[Any] = []
    for axis in range(ndim):
        along, strides = position[..., axis], []
        for i, n in enumerate(mesh.axis_sizes):
            if n > 1:
                unit = tuple([int(j == i) for j in range(mesh.devices.ndim)])
                strides.append((int(along[unit] - along[(0,) * mesh.devices.ndim]), i))
        chosen = sorted([(stride, i) for stride, i in strides if stride], reverse=True)
        expected, width = np.zeros(mesh.axis_sizes, np.int64), 1
        for stride, i in reversed(chosen):
            if stride != width:
                return None
            expected = expected + stride * coordinates[i]
            width *= mesh.axis_sizes[i]
        if width != shape[axis] or (expected != along).any():
            return None
        names = tuple([mesh.axis_names[i] for _, i in chosen])
        partitions.append(names if names else None)
    while partitions and partitions[-1] is None:
        partitions.pop()
    return PartitionSpec(*partitions)


def named(sharding: Any, meshes: Sequence[Mesh], ndim: int) -> NamedSharding:
    """XLA's sharding with names: those of the first of the meshes where that goes.

    The meshes have the same devices in the same order.
    """
    # The compiler may cut an axis of a mesh in parts: the same devices with more axes.
    for mesh in (*meshes, _refined(meshes[0])):
        spec = spec_of(sharding, mesh, ndim)
        if spec is not None:
            return NamedSharding(mesh, spec)
    raise NotImplementedError(
        f"the compiler placed a result as {sharding} on {meshes[0]}, which no PartitionSpec says; "
        "constrain it with lax.with_sharding_constraint or jit(out_shardings=)"
    )


def _refined(mesh: Mesh) -> Mesh:
    """The mesh with an axis for each prime factor: `x` of 4 becomes `x.0` and `x.1`."""
    names, sizes = [], []
    for name, n in mesh.shape.items():
        factors = _factors(n)
        sizes += factors
        names += [f"{name}.{i}" for i in range(len(factors))] if len(factors) > 1 else [name]
    return Mesh(mesh.devices.reshape(sizes), names)


def _factors(n: int) -> list[int]:
    found, factor = [], 2
    while n > 1:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 1
    return found or [1]


# ---- one device ---------------------------------------------------------------------------------


class _OneDevice:
    """What jaxlib's sharding of a single device has of the face of shardings."""

    _memory_kind: Any
    _device: Any

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"

    @property
    def memory_kind(self) -> str:
        """The memory of the device."""
        return self._memory_kind or self._device.default_memory().kind

    @property
    def device_set(self) -> set[Any]:
        """The device."""
        return {self._device}

    addressable_devices = device_set

    @property
    def num_devices(self) -> int:
        """One."""
        return 1

    @property
    def is_fully_addressable(self) -> bool:
        """Whether the device belongs to this process."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether the device holds all of the array: yes."""
        return True

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the only part."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The part that the device holds: everything."""
        return {self._device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether `other` places arrays in the same way."""
        return self == other


for _name, _value in vars(_OneDevice).items():
    if _name == "__repr__" or not _name.startswith("_"):
        setattr(SingleDeviceSharding, _name, _value)
