"""The tiles of an array on a mesh, in numbers: which device holds which, and XLA's words for it.

A mesh is given by the `sizes` and the `names` of its axes, and the devices by their positions in
it. `axes` says for each axis of the array along which axes of the mesh it is cut, the major one
first; axes of the mesh that it does not name hold copies.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.base import xla

Sizes = tuple[int, ...]
Names = tuple[str, ...]
Axes = tuple[Names, ...]

# For each axis of an array the part that a device holds.
Index = tuple[slice, ...]


@functools.lru_cache(4096)
def indices(sizes: Sizes, names: Names, axes: Axes, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """For each device the part that it holds of an array of this shape."""
    size = dict(zip(names, sizes, strict=True))
    found: list[Index] = []
    for coordinates in np.ndindex(*sizes):
        at = dict(zip(names, coordinates, strict=True))
        index = []
        for n, mine in zip(shape, axes, strict=True):
            tile, tiles = 0, 1
            for name in mine:
                tile, tiles = tile * size[name] + at[name], tiles * size[name]
            part = n // tiles
            index.append(slice(None) if tiles == 1 else slice(tile * part, (tile + 1) * part))
        found.append(tuple(index))
    return tuple(found)


def _order(sizes: Sizes, names: Names, axes: Axes) -> tuple[list[int], list[int], int]:
    """Tiles of each axis, the mesh's axes in the order of tiles, and the copies of each tile."""
    used = [names.index(name) for group in axes for name in group]
    tiles = [math.prod([sizes[names.index(name)] for name in group]) for group in axes]
    rest = [i for i in range(len(sizes)) if i not in used]
    return tiles, used + rest, math.prod([sizes[i] for i in rest])


@functools.lru_cache(4096)
def assignment(sizes: Sizes, names: Names, axes: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The number of tiles along each axis, and the devices of each: equal for the same layout."""
    tiles, order, copies = _order(sizes, names, axes)
    devices = np.arange(math.prod(sizes)).reshape(sizes).transpose(order)
    per_tile = np.sort(devices.reshape(-1, copies), axis=1)
    return tuple(tiles), tuple(per_tile.reshape(-1).tolist())


@functools.lru_cache(4096)
def hlo_sharding(sizes: Sizes, names: Names, axes: Axes) -> Any:
    """The layout in HLO's terms."""
    tiles, order, copies = _order(sizes, names, axes)
    if all(n == 1 for n in tiles):
        return xla.HloSharding.replicate()
    last = [copies] if copies > 1 else []
    shape = ",".join(map(str, tiles + last))
    grid, turned = str(math.prod(sizes)), ""
    if order != sorted(order):
        grid, turned = ",".join(map(str, sizes)), f"T({','.join(map(str, order))})"
    return xla.HloSharding.from_string(
        f"{{devices=[{shape}]<=[{grid}]{turned}{' last_tile_dim_replicate' if copies > 1 else ''}}}"
    )


def axes_of(sharding: Any, sizes: Sizes, names: Names, ndim: int) -> Axes | None:
    """The axes of a mesh that XLA cuts an array along; `None` if its tiles follow no axes.

    Axes at the end of the array that are not cut are left out.
    """
    if sharding.is_replicated():
        return ()
    if not sharding.is_tiled():
        return None
    shape = list(sharding.tile_assignment_dimensions())
    if len(sharding.subgroup_types()) > sharding.replicate_on_last_tile_dim():
        return None
    assigned = np.array(sharding.tile_assignment_devices()).reshape(shape)
    position = np.empty((math.prod(sizes), assigned.ndim), np.int64)
    position[assigned.reshape(-1)] = np.stack(
        np.unravel_index(np.arange(assigned.size), assigned.shape), axis=1
    )
    position = position.reshape(*sizes, assigned.ndim)
    coordinates = np.indices(sizes)
    found: list[Names] = []
    for axis in range(ndim):
        along, strides = position[..., axis], []
        for i, n in enumerate(sizes):
            if n > 1:
                unit = tuple([int(j == i) for j in range(len(sizes))])
                strides.append((int(along[unit] - along[(0,) * len(sizes)]), i))
        chosen = sorted([(stride, i) for stride, i in strides if stride], reverse=True)
        expected, width = np.zeros(sizes, np.int64), 1
        for stride, i in reversed(chosen):
            if stride != width:
                return None
            expected = expected + stride * coordinates[i]
            width *= sizes[i]
        if width != shape[axis] or (expected != along).any():
            return None
        found.append(tuple([names[i] for _, i in chosen]))
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def block(devices: np.ndarray, chosen: Sequence[Any]) -> np.ndarray | None:
    """The part of an array of devices that has the chosen ones; `None` if they are no block."""
    is_chosen = np.isin(devices, chosen)
    along = [
        np.flatnonzero(is_chosen.any(axis=tuple([j for j in range(devices.ndim) if j != i])))
        for i in range(devices.ndim)
    ]
    found = devices[np.ix_(*along)]
    return found if found.size == len(chosen) else None


def refined(sizes: Sizes, names: Names) -> tuple[list[int], list[str]]:
    """The axes of a mesh, each with a prime number of devices: `x` of 4 becomes `x.0` and `x.1`."""
    new_sizes, new_names = [], []
    for n, name in zip(sizes, names, strict=True):
        factors = _factors(n)
        new_sizes += factors
        new_names += [f"{name}.{i}" for i in range(len(factors))] if len(factors) > 1 else [name]
    return new_sizes, new_names


def _factors(n: int) -> list[int]:
    found, factor = [], 2
    while n > 1:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 1
    return found or [1]
