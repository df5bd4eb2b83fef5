"""Arrays over several devices: meshes, constraints, and arrays made of parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.base.tree_paths import PyTree
from perspex.ir.avals import ShapedArray, shaped
from perspex.layout.context import context_mesh
from perspex.layout.mesh import check_axis_types
from perspex.runtime import client
from perspex.runtime.array import ArrayImpl
from perspex.runtime.dispatch import device_put
from perspex.runtime.shards import from_parts
from perspex.runtime.transfer import bounds
from perspex.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from perspex.tracing.array_type import Array, DTypeLike


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """Devices in an array with named axes.

    Args:
      axis_sizes: the length of each axis. Their product may be less than the number of devices:
        the first ones are taken.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis, or one for all; `Explicit` if not given, where the
        types of arrays say how they lie.
      devices: the devices to take from; all of the default platform if not given.

    Returns:
      A `Mesh`.

    Raises:
      ValueError: if there are too few devices, or names do not fit the lengths.

    >>> dict(make_mesh((1, 1), ("x", "y")).shape)
    {'x': 1, 'y': 1}
    """
    sizes = tuple([operator.index(n) for n in axis_sizes])
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(sizes) != len(names):
        raise ValueError(f"make_mesh takes one name for each length, got {sizes} and {names}")
    axis_types = check_axis_types(axis_types or AxisType.Explicit, len(names))
    found = client.devices() if devices is None else list(devices)
    if math.prod(sizes) > len(found):
        raise ValueError(
            f"make_mesh: a mesh of {' x '.join(map(str, sizes))} needs {math.prod(sizes)} devices, "
            f"but there are {len(found)}; to make n devices of a CPU, call "
            "config.update('num_cpu_devices', n) before the first use of a device"
        )
    array = np.array(found[: math.prod(sizes)], dtype=object).reshape(sizes)
    return Mesh(array, names, axis_types)


def with_sharding_constraint(x: PyTree, shardings: PyTree) -> PyTree:
    """Constrain how the arrays of a pytree lie on devices.

    It is for automatic axes of a mesh. Along explicit ones it only asserts what types say anyway;
    `jax.sharding.reshard` changes that.

    Args:
      x: a pytree of arrays.
      shardings: a `NamedSharding`, a `PartitionSpec` inside `with mesh:`, or a prefix of the tree
        of `x` with them, `None` where the compiler decides.

    Returns:
      The arrays. Their derivatives are placed in the same way.

    Raises:
      ValueError: if the sharding cannot divide an array, or its devices are not those of the
        arguments.
      TypeError: for a sharding of a single device, which is no constraint.
      RuntimeError: for a bare `PartitionSpec` where no mesh is set.
      AssertionError: if the type of an array says otherwise along explicit axes.

    >>> import perspex, perspex.numpy as pnp
    >>> mesh = make_mesh((1,), ("x",), AxisType.Auto)
    >>> rows = NamedSharding(mesh, perspex.sharding.PartitionSpec("x"))
    >>> f = perspex.jit(lambda x: with_sharding_constraint(pnp.sin(x) * 2, rows))
    >>> f(pnp.zeros((4, 2))).sharding.spec
    P('x',)
    """
    leaves, structure = tree.flatten(x)
    places = tree.broadcast_prefix(
        shardings, x, is_leaf=lambda place: place is None, name="with_sharding_constraint"
    )
    found = []
    for leaf, place in zip(leaves, places, strict=True):
        if place is None:
            found.append(leaf)
            continue
        if isinstance(place, PartitionSpec) and context_mesh() is None:
            raise RuntimeError(
                f"with_sharding_constraint: {place} names axes of a mesh, but no mesh is set: call "
                "it inside `with jax.set_mesh(mesh):`, or pass NamedSharding(mesh, spec)"
            )
        sharding = None if isinstance(place, str) else client.resolve(place)
        if not isinstance(sharding, NamedSharding):
            raise TypeError(
                "with_sharding_constraint takes shardings over the devices of a mesh, got "
                f"{place!r}; device_put moves an array to one device"
            )
        if sharding.mesh.explicit_axes:
            _assert_lies(leaf, sharding)
            found.append(leaf)
        else:
            found.append(device_put(leaf, sharding))
    return tree.unflatten(structure, found)


def _assert_lies(x: Any, sharding: NamedSharding) -> None:
    """Raise `AssertionError` if the type of `x` says that it lies otherwise."""
    aval = shaped(x)
    wanted = aval.update(sharding=sharding)
    if wanted is not aval:
        raise AssertionError(
            "with_sharding_constraint asserts how an array lies along explicit axes of a mesh, but "
            f"an array of type {aval} is not {wanted}; jax.sharding.reshard(x, {sharding.spec}) "
            "makes one that is"
        )


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], Any],
    dtype: DTypeLike | None = None,
) -> Array:
    """Make an array from a function that returns the part for each device.

    Args:
      shape: the shape of the whole array.
      sharding: where its parts go: a `NamedSharding` or a `SingleDeviceSharding`.
      data_callback: takes the place of a part in the whole, a slice for each axis, and returns the
        part, an array or a number. It is called once for each part that a device of this process
        holds, however many hold it.
      dtype: the dtype that the parts must have.

    Returns:
      The array, committed to its devices.

    Raises:
      TypeError: if `sharding` is no sharding.
      ValueError: if a part has another shape or dtype.

    >>> import numpy as np, perspex
    >>> place = perspex.sharding.SingleDeviceSharding(perspex.devices()[0])
    >>> whole = np.arange(4)
    >>> make_array_from_callback((4,), place, lambda index: whole[index])
    Array([0, 1, 2, 3], dtype=int32)
    """
    if not isinstance(sharding, (NamedSharding, SingleDeviceSharding)):
        raise TypeError(
            "make_array_from_callback: sharding should be a NamedSharding or a "
            f"SingleDeviceSharding, got {sharding!r} of type {type(sharding).__name__}"
        )
    sizes = tuple([operator.index(n) for n in shape])
    wanted = sharding.shard_shape(sizes)
    asked: dict[Any, Any] = {}
    parts = []
    for index in sharding.addressable_devices_indices_map(sizes).values():
        at = bounds(index)
        if at not in asked:
            asked[at] = _checked(data_callback(index), wanted, dtype)
            dtype = shaped(asked[at]).dtype if dtype is None else dtype
        parts.append(asked[at])
    if isinstance(sharding, SingleDeviceSharding) and parts:
        return device_put(parts[0], sharding)
    aval = ShapedArray(sizes, _dtype_of(parts, dtype, "make_array_from_callback"))
    return from_parts(aval, sharding, [_on_host(p) for p in parts])


def _dtype_of(parts: Sequence[Any], dtype: Any, name: str) -> np.dtype:
    """The dtype of the parts that are here; the given one if there are none."""
    if parts:
        return shaped(parts[0]).dtype
    if dtype is None:
        raise ValueError(
            f"{name}: no device of this process holds a part, so that the dtype is not known "
            "here; pass dtype"
        )
    return dtypes.check_user_dtype(dtype, name)


def _checked(part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    aval = shaped(part)
    if aval.shape != shape:
        raise ValueError(
            f"make_array_from_callback: data_callback returned a part of shape {aval.shape}, but "
            f"the sharding needs {shape}"
        )
    if dtype is not None and aval.dtype != dtypes.check_user_dtype(dtype, "make_array"):
        raise ValueError(
            f"make_array_from_callback: the parts are of dtype={np.dtype(dtype).name}, but one "
            f"that data_callback returned has {aval.dtype.name}; convert it there"
        )
    return part


def _on_host(part: Any) -> np.ndarray:
    """The numbers of a part, as a copy that nobody else can write to."""
    aval, host = shaped(part), np.asarray(part)
    return host.astype(aval.dtype, copy=host is part)


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Make an array of parts that lie on their devices already, without a copy.

    Args:
      shape: the shape of the whole array.
      sharding: a `NamedSharding`, or a `SingleDeviceSharding` for a single part.
      arrays: the parts, one for each device of this process, each an array on it, in any order.
      dtype: the dtype that the parts must have.

    Returns:
      An array of that shape; no data are copied.

    Raises:
      ValueError: if a device has no part, or a part has another shape or dtype than the others.

    >>> import numpy as np, perspex
    >>> place = NamedSharding(make_mesh((1,), ("x",)), perspex.sharding.PartitionSpec("x"))
    >>> part = perspex.device_put(np.arange(4), perspex.devices()[0])
    >>> make_array_from_single_device_arrays((4,), place, [part])
    Array([0, 1, 2, 3], dtype=int32)
    """
    name = "make_array_from_single_device_arrays"
    by_device = {}
    for x in arrays:
        if not isinstance(x, ArrayImpl) or isinstance(x.sharding, NamedSharding):
            raise TypeError(f"{name}: each part must be an array on one device, got {x!r}")
        by_device[x.device] = x
    if len(by_device) != len(arrays):
        raise ValueError(f"{name}: two of the parts lie on the same device")
    mine = sharding.addressable_devices
    missing = mine - set(by_device)
    if missing or len(arrays) != len(mine):
        raise ValueError(
            f"{name}: the sharding has {len(mine)} devices of this process, but there are "
            f"{len(arrays)} parts; no part lies on {sorted(map(str, missing))}"
        )
    found = {x.dtype for x in arrays}
    if dtype is not None:
        found.add(dtypes.check_user_dtype(dtype, name))
    if len(found) > 1:
        raise ValueError(f"{name}: parts must have one dtype, got {sorted(d.name for d in found)}")
    if isinstance(sharding, SingleDeviceSharding) and arrays:
        return device_put(arrays[0], sharding)
    aval = ShapedArray(tuple(shape), _dtype_of(arrays, dtype, name))
    return from_parts(aval, sharding, [by_device[d] for d in sharding.mesh.local_devices])


def make_array_from_process_local_data(
    sharding: PyTree, local_data: PyTree, global_shape: PyTree = None
) -> PyTree:
    """Make arrays over the devices of all processes of what each process has loaded.

    Args:
      sharding: a `NamedSharding`, or a prefix of the tree of `local_data` with them.
      local_data: a pytree of NumPy arrays: the rows, for example, that this process has read. Along
        each axis it has what the devices of this process hold, in their order, or everything.
      global_shape: the shapes of the whole arrays, a tuple or a tree of tuples. If not given, each
        process has an equal part of what is cut between processes.

    Returns:
      A pytree of arrays. Processes whose devices hold copies must have the same data.

    Raises:
      ValueError: if the data are neither the part of this process nor the whole, or if the parts
        of processes overlap, so that the whole shape does not follow.

    >>> import numpy as np, perspex
    >>> rows = NamedSharding(make_mesh((1,), ("x",)), perspex.P("x"))
    >>> make_array_from_process_local_data(rows, np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    name = "make_array_from_process_local_data"
    leaves, structure = tree.flatten(local_data)
    places = tree.broadcast_prefix(sharding, local_data, name=name)
    shapes = tree.broadcast_prefix(
        global_shape, local_data, is_leaf=lambda x: x is None or isinstance(x, tuple), name=name
    )
    found = []
    for data, place, shape in zip(leaves, places, shapes, strict=True):
        found.append(_from_local(_on_host(data), client.resolve(place), shape))
    return tree.unflatten(structure, found)


def _from_local(data: np.ndarray, sharding: Any, shape: tuple[int, ...] | None) -> Any:
    name = "make_array_from_process_local_data"
    if sharding.is_fully_addressable:
        if shape not in (None, data.shape):
            raise ValueError(
                f"{name}: all devices belong to this process, so global_shape is that of the data, "
                f"got {shape} and {data.shape}"
            )
        return device_put(data, sharding)
    if shape is None:
        shape = whole_shape(sharding, data.shape)
    starts: list[dict[int, int] | None] = []
    for axis, (n, whole) in enumerate(zip(data.shape, shape, strict=True)):
        mine = sharding.addressable_devices_indices_map(shape).values()
        found = sorted({index[axis].indices(whole)[0] for index in mine})
        part = sharding.shard_shape(shape)[axis]
        if n == whole:
            starts.append(None)
        elif n == part * len(found):
            starts.append({start: i * part for i, start in enumerate(found)})
        else:
            raise ValueError(
                f"{name}: axis {axis} has {n} elements in the data of this process; its devices "
                f"hold {part * len(found)} of the {whole} in global_shape={shape}. Pass one or the "
                "other"
            )

    def local(index: tuple[slice, ...]) -> np.ndarray:
        found = []
        for at, start, whole in zip(index, starts, shape, strict=True):
            first, last, _ = at.indices(whole)
            moved = first if start is None else start[first]
            found.append(slice(moved, moved + last - first))
        return data[tuple(found)]

    return make_array_from_callback(shape, sharding, local, data.dtype)


def whole_shape(sharding: NamedSharding, local: Sequence[int]) -> tuple[int, ...]:
    """The shape of the whole array, given the shape `local` of the part that each process has.

    Raises `ValueError` where the parts of two processes overlap and are not the same.
    """
    tiles = sharding.tiles(len(local))
    found = []
    for axis, n in enumerate(local):
        parts: dict[int, set[int]] = {}
        for device, index in sharding.devices_indices_map(tiles).items():
            start = index[axis].indices(tiles[axis])[0]
            parts.setdefault(device.process_index, set()).add(start)
        each = {frozenset(part) for part in parts.values()}
        if len(frozenset().union(*each)) != sum(map(len, each)) or len(set(map(len, each))) > 1:
            raise ValueError(
                f"the parts that processes have along axis {axis} overlap or differ in size under "
                f"{sharding.spec} on {sharding.mesh}; pass the shape of the whole, global_shape"
            )
        found.append(n * len(each))
    return tuple(found)
