"""Devices in the shape of a mesh: `jax.experimental.mesh_utils`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.api.placing import make_mesh

__all__ = ["create_device_mesh"]


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
    names = [f"axis{i}" for i in range(len(mesh_shape))]
    return make_mesh(mesh_shape, names, devices=devices).devices
