"""Arrays on their way into programs and out of them, and arrays that are gone."""

from __future__ import annotations

from typing import Any

import numpy as np

from perspex.base import xla
from perspex.ir.avals import ShapedArray
from perspex.runtime import client as platform
from perspex.runtime import stopping
from perspex.runtime.keys import KeyArray
from perspex.runtime.transfer import copy_to, put
from perspex.sharding import NamedSharding

ArrayImpl = xla.ArrayImpl


def deleted_error(x: Any) -> RuntimeError:
    """The error for the use of an array whose memory has been given up."""
    if stopped := stopping.reason(x):
        return RuntimeError(stopped)
    return RuntimeError(
        f"Array has been deleted with shape={x.aval.str_short(short_dtypes=False)}. "
        "Its memory was given up by `delete()` or by passing it as a donated argument; "
        "keep a copy, or use the result of the call instead."
    )


def placed(x: Any, sharding: Any) -> Any:
    """The buffer of `x` where `sharding` says, moved there if it is elsewhere."""
    if x.__class__ is KeyArray:
        x = x.base
    if x.__class__ is ArrayImpl:
        # C++ asks Python for a call with deleted arguments, so this is where it is noticed.
        if x.is_deleted() or (stopping.pending and stopping.reason(x)):
            raise deleted_error(x)
        lies = xla.sharding_of(x)
        if sharding.__class__ is NamedSharding or lies.__class__ is NamedSharding:
            same = lies is sharding or sharding.is_equivalent_to(lies, x.aval.ndim)
            return x if same else copy_to(x, sharding)
        device = xla.device_of(sharding)
        if xla.device_of(lies) is device:
            return x
        return xla.batched_copy([x], [platform.device_list(device)], [sharding], [xla.REUSE_INPUT])[
            0
        ]
    return put(x, sharding if sharding.__class__ is NamedSharding else xla.device_of(sharding))


def logical(aval: ShapedArray, out: Any) -> Any:
    """The result of type `aval` that a program returned as an array of plain numbers."""
    if aval.is_float0:
        return np.zeros(aval.shape, aval.dtype)
    return KeyArray(aval, out) if aval.is_extended else out
