"""Numbers on their way from NumPy to a device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from perspex import events
from perspex.avals import ShapedArray, shaped
from perspex.runtime import client as platform

_batched_device_put = _jax.batched_device_put


def signature(avals: Sequence[ShapedArray]) -> str:
    """`f32[3], i32[]`."""
    return ", ".join([aval.str_short() + ("*" if aval.weak_type else "") for aval in avals])


def put(x: Any, device: Any, committed: bool = False, aval: ShapedArray | None = None) -> Any:
    """The NumPy array or number `x` as an array on `device`."""
    start = time.perf_counter()
    aval = shaped(x) if aval is None else aval
    host = np.asarray(x)
    if host.dtype == object:
        raise TypeError(f"expected an array or a number, got {x!r} of type {type(x).__name__}")
    if host.dtype != aval.dtype:
        host = host.astype(aval.dtype)
    elif host.dtype.kind == "V" and aval.is_float0:
        aval = aval.physical()
        host = np.zeros(aval.shape, aval.dtype)
    elif host is x and host.flags.writeable:
        # jaxlib may keep reading the caller's memory, which the caller may write to.
        host = host.copy()
    out = _batched_device_put(
        aval, platform.sharding(device), [host], [device], committed, enable_x64=True
    )
    if events.audience("transfer"):
        events.publish(
            "transfer", "device_put", start, signature([aval]), direction="in", bytes=host.nbytes
        )
    return out
