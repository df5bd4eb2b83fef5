"""How arrays lie on devices: `jax.sharding`.

A `Mesh` is an array of devices with named axes. A `PartitionSpec` says for each axis of an array
along which axes of the mesh it is cut; the axes of the mesh that it does not name hold copies. The
two together are a `NamedSharding`. The room `layout` has all of it.
"""

from __future__ import annotations

from perspex.layout.abstract import AbstractDevice as AbstractDevice
from perspex.layout.abstract import AbstractMesh as AbstractMesh
from perspex.layout.abstract import AxisType as AxisType
from perspex.layout.abstract import ManualAxisType as ManualAxisType
from perspex.layout.abstract import UnreducedKind as UnreducedKind
from perspex.layout.context import get_abstract_mesh as get_abstract_mesh
from perspex.layout.context import get_mesh as get_mesh
from perspex.layout.context import set_mesh as set_mesh
from perspex.layout.context import use_abstract_mesh as use_abstract_mesh
from perspex.layout.mesh import Mesh as Mesh
from perspex.layout.named import NamedSharding as NamedSharding
from perspex.layout.named import Sharding as Sharding
from perspex.layout.one_device import SingleDeviceSharding as SingleDeviceSharding
from perspex.layout.one_device import make_single_device_sharding as make_single_device_sharding
from perspex.layout.spec import PartitionSpec as PartitionSpec
from perspex.layout.tiles import Index as Index

P = PartitionSpec

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnreducedKind", "get_abstract_mesh",
    "get_mesh", "make_single_device_sharding", "set_mesh", "use_abstract_mesh",
]  # fmt: skip
