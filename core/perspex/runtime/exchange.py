"""Arrays to and from other libraries by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex import dtypes
from perspex.base import xla
from perspex.ir.avals import ShapedArray
from perspex.runtime import capsules, client
from perspex.runtime.dispatch import device_put
from perspex.runtime.transfer import put


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Make an array of an array of another library, without a copy where that is possible.

    Args:
      external_array: an object with the methods `__dlpack__` and `__dlpack_device__`.
      device: where to put the array; it stays where it is if not given.
      copy: True always copies; False refuses to.

    Returns:
      An array of the same shape; its dtype has 32 bits instead of 64 unless `enable_x64` is on.

    Raises:
      TypeError: for an object without the protocol.
      RuntimeError: for memory on a device that this process does not have.
      ValueError: with `copy=False`, where a copy is needed.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(
            f"from_dlpack takes an object with the method __dlpack__, got "
            f"{type(external_array).__name__}; use jnp.asarray for lists and numbers"
        )
    kind, number = external_array.__dlpack_device__()
    if kind != capsules.CPU:
        array = _from_accelerator(external_array, int(kind), number, copy)
        return array if device is None else device_put(array, device)
    source = client.local_devices(backend="cpu")[0]
    if isinstance(external_array, xla.ArrayImpl):
        aval = external_array.aval
    else:
        host = np.from_dlpack(external_array)
        aval = ShapedArray(host.shape, dtypes.canonicalize_dtype(host.dtype))
        # jaxlib would keep an alias of memory that NumPy may write to.
        writable = isinstance(external_array, np.ndarray) and host.flags.writeable
        if writable or host.dtype != aval.dtype:
            if copy is False:
                raise ValueError(
                    "from_dlpack: writable NumPy memory and numbers of another width must be "
                    "copied; use copy=None"
                )
            array = put(host.copy(), source, aval=aval)
            return array if device is None else device_put(array, device)
    shared = xla.from_dlpack(external_array.__dlpack__(), source, None, copy)
    # jaxlib gives the array no aval.
    array = xla.with_type(shared, aval, client.sharding(source))
    return array if device is None else device_put(array, device)


def _from_accelerator(x: Any, kind: int, number: int, copy: bool | None) -> Any:
    """An array of the memory of an accelerator, where its library left it."""
    platform = capsules.PLATFORMS.get(kind)
    there = [] if platform is None else client.client(platform).local_devices()
    found = [device for device in there if (device.local_hardware_id or 0) == number]
    if not found:
        raise RuntimeError(
            f"from_dlpack: this process cannot reach memory of DLPack device type {kind}, device "
            f"{number}; move it to the CPU first"
        )
    # The library makes this stream wait for what it is still computing.
    capsule = x.__dlpack__(stream=xla.stream_of(found[0]))
    aval = capsules.type_of(capsule)
    if aval.dtype != dtypes.canonicalize_dtype(aval.dtype):
        raise TypeError(
            f"from_dlpack: arrays of {aval.dtype.name} need enable_x64; convert the array before "
            "it is exported, or set config.update('enable_x64', True)"
        )
    shared = xla.from_dlpack(capsule, found[0], xla.stream_of(found[0]), copy)
    return xla.with_type(shared, aval, client.sharding(found[0]))


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype can be exchanged.

    >>> is_supported_dtype("float32"), is_supported_dtype("int4")
    (True, False)
    """
    dtype = np.dtype(dtype)
    return dtype.kind in "biufc" or dtype.name == "bfloat16"
