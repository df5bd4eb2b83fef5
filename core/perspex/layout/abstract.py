"""Meshes without devices, and what types say of the axes of one."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from typing import Any, NamedTuple, NoReturn


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh.

    `Auto`: the compiler. `Explicit`: the types of arrays, which say how they are cut. `Manual`: the
    function itself, which is that of one device (`shard_map`).
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class UnreducedKind(enum.Enum):
    """How the parts of a value that is not reduced yet make the whole."""

    sum = 1
    max = 2
    min = 3


class ManualAxisType(NamedTuple):
    """What the type of a value says inside `shard_map`: along which axes of the mesh it varies."""

    varying: frozenset[str] = frozenset()
    unreduced: frozenset[str] = frozenset()
    reduced: frozenset[str] = frozenset()
    unreduced_kind: UnreducedKind | None = None

    @property
    def vur(self) -> frozenset[str]:
        """The axes along which it is not the same, or not what it seems."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether there are no such axes."""
        return not self.vur

    def invarying(self, mesh: AbstractMesh) -> frozenset[str]:
        """The manual axes of a mesh along which all devices have the same."""
        return frozenset(mesh.manual_axes) - self.vur

    def update(self, **changes: Any) -> ManualAxisType:
        """The type with other values."""
        return self._replace(**changes)

    def to_ct_mat(self) -> ManualAxisType:
        """That of a cotangent: what is unreduced becomes reduced, and the other way round."""
        kind = UnreducedKind.sum if self.reduced else None
        return self._replace(unreduced=self.reduced, reduced=self.unreduced, unreduced_kind=kind)


class AbstractDevice:
    """The kind of a device, without the device.

    Args:
      device_kind: the name of the model.
      num_cores: how many cores it has, where that is known.
      platform: `"cpu"`, `"gpu"`, `"tpu"`.

    >>> AbstractDevice("cpu", None, "cpu")
    AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)
    """

    __slots__ = ("device_kind", "num_cores", "platform")

    def __init__(self, device_kind: str, num_cores: int | None, platform: str) -> None:
        self.device_kind, self.num_cores, self.platform = device_kind, num_cores, platform

    def _key(self) -> tuple[Any, ...]:
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform})"
        )


class AbstractMesh:
    """Named axes with sizes, without the devices.

    Args:
      axis_sizes: the length of each axis.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis, or one for all; `Explicit` if not given, as in JAX.
      abstract_device: the kind of the devices.

    Raises:
      ValueError: if the names do not fit the lengths.

    >>> AbstractMesh((2, 4), ("x", "y")).size
    8
    """

    __slots__ = ("_hash", "abstract_device", "axis_names", "axis_sizes", "axis_types")

    def __init__(
        self,
        axis_sizes: Any,
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        types = AxisType.Explicit if axis_types is None else axis_types
        types = (types,) * len(names) if isinstance(types, AxisType) else tuple(types)
        if not len(axis_sizes) == len(names) == len(types):
            raise ValueError(
                "an abstract mesh has a name and a type for each length, got "
                f"{tuple(axis_sizes)}, {names} and {types}"
            )
        self.axis_sizes: tuple[int, ...] = tuple(axis_sizes)
        self.axis_names: tuple[str, ...] = names
        self.axis_types: tuple[AxisType, ...] = types
        self.abstract_device = abstract_device
        self._hash = hash(self._key())

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The length of each axis, by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """The names with the lengths."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The product of the lengths."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there is no axis."""
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def _of(self, kind: AxisType) -> tuple[str, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, each in pairs if each is kind])

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `Auto`."""
        return self._of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `Explicit`."""
        return self._of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `Manual`."""
        return self._of(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all of type `Auto`."""
        return bool(self.axis_names) and self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all of type `Explicit`."""
        return bool(self.axis_names) and self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all of type `Manual`."""
        return bool(self.axis_names) and self.manual_axes == self.axis_names

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Whether there are axes, none of type `Auto`."""
        return bool(self.axis_names) and not self.auto_axes

    def update(self, **changes: Any) -> AbstractMesh:
        """The mesh with other values."""
        names = "axis_sizes", "axis_names", "axis_types"
        given = [changes.get(name, getattr(self, name)) for name in names]
        device = changes.get("abstract_device", self.abstract_device)
        return AbstractMesh(*given, abstract_device=device)

    def update_axis_types(self, name_to_type: dict[str, AxisType]) -> AbstractMesh:
        """The mesh with other types of some axes."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple([name_to_type.get(n, kind) for n, kind in pairs]))

    @property
    def in_program(self) -> str:
        """The axes in Shardy's notation: `mesh<["x"=2]>`."""
        sizes = ", ".join([f'"{name}"={n}' for name, n in self.shape_tuple])
        return f"mesh<[{sizes}]>"

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(f"{what} is not known of an AbstractMesh; it has no devices")

    @property
    def devices(self) -> Any:
        """Not there."""
        self._refuse("devices")

    @property
    def device_ids(self) -> Any:
        """Not there."""
        self._refuse("device_ids")

    @property
    def local_devices(self) -> Any:
        """Not there."""
        self._refuse("local_devices")

    @property
    def local_mesh(self) -> Any:
        """Not there."""
        self._refuse("local_mesh")

    @property
    def is_multi_process(self) -> Any:
        """Not there."""
        self._refuse("is_multi_process")

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        sizes = ", ".join([f"{name!r}: {n}" for name, n in self.shape_tuple]) or "()"
        device = self.abstract_device
        about = "" if device is None else ", " + repr(device)[len("AbstractDevice(") : -1]
        return f"AbstractMesh({sizes}, axis_types={self.axis_types}{about})"
