"""Numbers on their way from NumPy to a device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from perspex.base import events, xla
from perspex.ir.avals import ShapedArray, shaped
from perspex.layout.memories import space_of
from perspex.runtime import client as platform
from perspex.sharding import Index, NamedSharding, SingleDeviceSharding

_batched_device_put = xla.batched_device_put
# For at least so many bytes, the processor time of the transfer is counted.
LARGE = 1 << 20


def signature(avals: Sequence[ShapedArray]) -> str:
    """`f32[3], i32[]`."""
    return ", ".join([aval.str_short() + ("*" if aval.weak_type else "") for aval in avals])


def put(x: Any, place: Any, committed: bool = False, aval: ShapedArray | None = None) -> Any:
    """The NumPy array or number `x` as an array on a device, or cut over those of a sharding."""
    start = time.perf_counter()
    aval = shaped(x) if aval is None else aval
    host = np.asarray(x)
    # Small transfers take less time than reading the clock.
    is_heard = events.audience("transfer")
    before = events.processor() if is_heard and host.nbytes >= LARGE else None
    if host.dtype == object:
        raise TypeError(f"expected an array or a number, got {x!r} of type {type(x).__name__}")
    if host.dtype != aval.dtype:
        host = host.astype(aval.dtype)
    elif host.dtype.kind == "V" and aval.is_float0:
        aval = aval.physical()
        host = np.zeros(aval.shape, aval.dtype)
    # Else jaxlib may keep reading the caller's memory, which the caller may write to. It makes the
    # copy itself, but for several devices (it has an error there).
    is_copied = host is x and host.flags.writeable
    if place.__class__ is NamedSharding:
        aval = aval.update(sharding=place, memory_space=space_of(place))
        out = _put_parts(host.copy() if is_copied else host, place, aval)
    else:
        if place.__class__ is SingleDeviceSharding:
            sharding, device = place, xla.device_of(place)
            aval = aval.update(memory_space=space_of(place))
        else:
            sharding, device = platform.sharding(place), place
        out = _batched_device_put(
            aval, sharding, [host], [device], committed, is_copied, enable_x64=True
        )
    if before is not None:
        events.count_as_phase(before)
    if is_heard:
        events.publish(
            "transfer", "device_put", start, signature([aval]), direction="in", bytes=host.nbytes
        )
    return out


def _put_parts(host: np.ndarray, sharding: NamedSharding, aval: ShapedArray) -> Any:
    places = sharding.addressable_devices_indices_map(host.shape)
    parts = [host[index] for index in places.values()]
    return _batched_device_put(aval, sharding, parts, list(places), True, enable_x64=True)


def copy_to(x: Any, sharding: Any, committed: bool = True) -> Any:
    """The concrete array `x`, which lies otherwise, placed as `sharding` says.

    Between placements over several devices the numbers go through the host.
    """
    if sharding.__class__ is NamedSharding:
        if xla.sharding_of(x).__class__ is NamedSharding or not sharding.is_fully_replicated:
            return put(assembled(x), sharding, aval=x.aval)
        devices = sharding.mesh.local_devices
        copies = [x] * len(devices)
        aval = x.aval.update(sharding=None, memory_space=space_of(sharding))
        return _batched_device_put(aval, sharding, copies, devices, True)
    if xla.sharding_of(x).__class__ is NamedSharding:
        if not xla.sharding_of(x).is_fully_replicated:
            return put(assembled(x), sharding, committed, x.aval.uncut())
        x = part(x, 0)
    aval = x.aval.update(sharding=None, memory_space=space_of(sharding))
    return _batched_device_put(aval, sharding, [x], [xla.device_of(sharding)], committed)


def part(x: Any, i: int) -> Any:
    """What the local device number `i` of an array's mesh holds, as an array on that device."""
    sharding = xla.sharding_of(x)
    shape = sharding.shard_shape(x.aval.shape)
    aval = x.aval.update(shape=shape, sharding=None)
    device = sharding.mesh.local_devices[i]
    one = platform.sharding(device).with_memory_kind(sharding.memory_kind)
    return xla.with_type(xla.parts_of(x)[i], aval, one)


def assembled(x: Any) -> np.ndarray:
    """The numbers of a ready array that lies on one device or many, read-only, kept with it.

    Raises `RuntimeError` if this process does not hold all of them.
    """
    found: np.ndarray | None = xla.numpy_value(x)
    if found is not None:
        return found
    if xla.sharding_of(x).__class__ is not NamedSharding:
        return xla.to_numpy(x)[0]
    if xla.sharding_of(x).spec.unreduced:
        raise RuntimeError(
            f"the array {x.aval.str_short()} stands for a sum whose parts are on its devices; add "
            "them up with jax.sharding.reshard, or with lax.psum inside shard_map"
        )
    places = xla.sharding_of(x).addressable_devices_indices_map(x.aval.shape)
    if not is_whole(x):
        raise _elsewhere(x)
    out = np.empty(x.aval.shape, x.aval.dtype)
    written = set()
    for i, index in enumerate(places.values()):
        at = bounds(index)
        if at not in written:
            written.add(at)
            out[index] = xla.to_numpy(part(x, i))[0]
    out.flags.writeable = False
    xla.set_numpy_value(x, out)
    return out


def bounds(index: Index) -> tuple[tuple[Any, Any], ...]:
    """An index as something that can be hashed."""
    return tuple([(s.start, s.stop) for s in index])


def is_whole(x: Any) -> bool:
    """Whether the devices of this process hold all the numbers of an array."""
    sharding = xla.sharding_of(x)
    if sharding.is_fully_addressable:
        return True
    mine = sharding.addressable_devices_indices_map(x.aval.shape).values()
    if sharding.is_fully_replicated:
        return bool(mine)
    every = sharding.devices_indices_map(x.aval.shape).values()
    return {bounds(index) for index in mine} == {bounds(index) for index in every}


def _elsewhere(x: Any) -> RuntimeError:
    sharding = xla.sharding_of(x)
    others = sorted({d.process_index for d in sharding.device_set - sharding.addressable_devices})
    return RuntimeError(
        f"this process does not hold all of an array {x.aval.str_short(short_dtypes=False)} that "
        f"lies as {sharding.spec} on devices of other processes too ({others}): "
        "multihost_utils.process_allgather(x, tiled=True) on all processes fetches it, and "
        "x.addressable_shards has the parts that are here"
    )
