"""Devices in the shape of a mesh: `jax.experimental.mesh_utils`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex.api.placing import make_mesh
from perspex.runtime import client

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

# For kinds of devices whose network has a shape, a function of the lengths of the axes and the
# devices; a processor has none. It returns the devices in their order, or `None`.
device_kind_handler_dict: dict[str, Callable[..., np.ndarray | None]] = {}


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """An array of devices for `Mesh`, in the order of their numbers.

    Args:
      mesh_shape: the length of each axis.
      devices: the devices; all of the default platform if not given.
      contiguous_submeshes, allow_split_physical_axes: for the networks of TPUs; without effect.

    Errors:
      `ValueError` if there are too few devices.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    found = client.devices() if devices is None else list(devices)
    handler = device_kind_handler_dict.get(found[-1].device_kind)
    if handler is not None:
        ordered = handler(mesh_shape, found, contiguous_submeshes=contiguous_submeshes)
        if ordered is not None:
            return ordered
    names = [f"axis{i}" for i in range(len(mesh_shape))]
    return make_mesh(mesh_shape, names, devices=found).devices


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """An array of devices for `Mesh` whose groups are near one another: those of a process.

    Args:
      mesh_shape: the length of each axis inside a group, where communication is fast.
      dcn_mesh_shape: the length of each axis between groups, as many.
      devices: the devices; all of the default platform if not given.
      process_is_granule: whether a group is a process. If not, it is a slice of TPUs
        (`device.slice_index`).
      should_sort_granules_by_key: order the groups by their numbers, not as the devices come.
      allow_split_physical_axes: for the networks of TPUs; without effect.

    Returns:
      An array of shape `mesh_shape * dcn_mesh_shape`.

    Raises:
      ValueError: if the groups are not as many, or not as large, as the shapes say.

    >>> create_hybrid_device_mesh((1, 1), (1, 1), process_is_granule=True).shape
    (1, 1)
    """
    found = client.devices() if devices is None else list(devices)
    attribute = "process_index" if process_is_granule else "slice_index"
    groups: dict[int, list[Any]] = {}
    for device in found:
        if not hasattr(device, attribute):
            raise ValueError(
                f"create_hybrid_device_mesh: {device} has no {attribute}; pass "
                "process_is_granule=True to group devices by their process"
            )
        groups.setdefault(getattr(device, attribute), []).append(device)
    keys = sorted(groups) if should_sort_granules_by_key else list(groups)
    if len(keys) != math.prod(dcn_mesh_shape):
        raise ValueError(
            f"create_hybrid_device_mesh: there are {len(keys)} groups of devices, and "
            f"dcn_mesh_shape={tuple(dcn_mesh_shape)} has {math.prod(dcn_mesh_shape)}"
        )
    for key in keys:
        if len(groups[key]) != math.prod(mesh_shape):
            raise ValueError(
                f"create_hybrid_device_mesh: {attribute} {key} has {len(groups[key])} devices, and "
                f"mesh_shape={tuple(mesh_shape)} has {math.prod(mesh_shape)}"
            )
    inner = np.stack([create_device_mesh(mesh_shape, groups[key]) for key in keys])
    both = inner.reshape(*dcn_mesh_shape, *mesh_shape)
    ndim = len(mesh_shape)
    order = [axis for i in range(ndim) for axis in (i, ndim + i)]
    lengths = [n * m for n, m in zip(dcn_mesh_shape, mesh_shape, strict=True)]
    return both.transpose(order).reshape(lengths)
