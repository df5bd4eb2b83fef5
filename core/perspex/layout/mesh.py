"""Devices in an array with named axes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from perspex import config
from perspex.base import xla
from perspex.layout.abstract import AbstractDevice, AbstractMesh, AxisType
from perspex.layout.tiles import block

_ABOUT_AXES = "axis_names", "axis_types"


class MeshContext(NamedTuple):
    """The meshes around: what the flag `mesh` holds where there is one.

    `concrete` and `abstract` are those of `set_mesh`; `use_abstract_mesh`, `auto_axes` and the like
    change the abstract one alone. `entered` are those of `with mesh:`, outermost first.
    """

    concrete: Mesh | None = None
    abstract: AbstractMesh | None = None
    entered: tuple[Mesh, ...] = ()


class Mesh:
    """Devices in an array with named axes.

    Args:
      devices: an array of devices, or nested sequences of them, each device once.
      axis_names: a name for each axis of the array.
      axis_types: an `AxisType`, or a tuple with one for each axis; `Auto` if not given. Along
        `Auto` axes the compiler decides how results lie, along `Explicit` ones the types of arrays
        say so.

    In a `with` block, a bare `PartitionSpec` refers to this mesh.

    Raises:
      ValueError: if the names do not fit the axes, or a device occurs twice.
      TypeError: if an element of `devices` is not a device, or one of `axis_types` no `AxisType`.

    >>> import perspex, numpy as np
    >>> dict(Mesh(np.array(perspex.devices()), ("x",)).shape)
    {'x': 1}
    """

    __slots__ = (
        "_hash", "_internal_device_list", "abstract_mesh", "axis_names", "axis_types", "devices",
        "local_devices",
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
        self.abstract_mesh = AbstractMesh(
            array.shape, names, self.axis_types, abstract_device=_kind(array)
        )
        self._hash = hash((names, array.shape, self.axis_types, tuple(array.flat)))

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
    def auto_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `Auto`."""
        return self.abstract_mesh.auto_axes

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `Explicit`."""
        return self.abstract_mesh.explicit_axes

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `Manual`."""
        return self.abstract_mesh.manual_axes

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all of type `Auto`."""
        return self.abstract_mesh.are_all_axes_auto

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all of type `Explicit`."""
        return self.abstract_mesh.are_all_axes_explicit

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all of type `Manual`."""
        return self.abstract_mesh.are_all_axes_manual

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Whether there are axes, none of type `Auto`."""
        return self.abstract_mesh.are_all_axes_explicit_or_manual

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """The name and the length of each axis."""
        return tuple(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def is_scalar(self) -> bool:
        """Whether it is one device without axes."""
        return not self.devices.ndim

    def update(self, **changes: Any) -> Mesh:
        """The mesh with other `devices`, `axis_names` or `axis_types`."""
        return Mesh(*[changes.get(n, getattr(self, n)) for n in ("devices", *_ABOUT_AXES)])

    @property
    def in_program(self) -> str:
        """The axes in Shardy's notation: `mesh<["x"=2]>`."""
        return self.abstract_mesh.in_program

    def __enter__(self) -> Mesh:
        around = config.mesh.value or MeshContext()
        config.mesh.cell.set_local(around._replace(entered=(*around.entered, self)))
        return self

    def __exit__(self, *error: object) -> None:
        around = config.mesh.value._replace(entered=config.mesh.value.entered[:-1])
        config.mesh.cell.set_local(around if any(around) else None)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and self._hash == other._hash
            and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types
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


def _kind(devices: np.ndarray) -> AbstractDevice | None:
    """The kind of the devices of a mesh; `None` if it has none."""
    if not devices.size:
        return None
    first = devices.flat[0]
    return AbstractDevice(first.device_kind, getattr(first, "num_cores", None), first.platform)


def check_axis_types(given: Any, count: int) -> tuple[AxisType, ...]:
    """An `AxisType` for each axis of a mesh: `Auto` if none is given."""
    types = (AxisType.Auto,) * count if given is None else given
    types = (types,) * count if isinstance(types, AxisType) else tuple(types)
    if len(types) != count:
        raise ValueError(f"a mesh of {count} axes needs as many axis_types, got {types}")
    for kind in types:
        if not isinstance(kind, AxisType):
            raise TypeError(
                f"the axis_types of a mesh are AxisType.Auto, Explicit or Manual, got {kind!r} of "
                f"type {type(kind).__name__}"
            )
    return types
