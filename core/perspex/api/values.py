"""What is done with values as a whole: waiting, fetching, clearing."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from perspex import dtypes, tree
from perspex.avals import shaped
from perspex.runtime import client, pressure
from perspex.runtime.array import ArrayImpl, to_numpy
from perspex.runtime.callbacks import wait
from perspex.runtime.dispatch import EVAL, device_put
from perspex.runtime.keys import KeyArray
from perspex.tracing import current


def block_until_ready(x: Any) -> Any:
    """Wait until every array in the pytree `x` is computed; returns `x`.

    Computation is asynchronous: a call returns before its result exists. Timing something without
    waiting for it times only how long it took to ask.

    >>> import perspex.numpy as pnp
    >>> block_until_ready({"w": pnp.ones(2)})
    {'w': Array([1., 1.], dtype=float32)}
    """
    for leaf in tree.leaves(x):
        ready = getattr(leaf, "block_until_ready", None)
        if ready is not None:
            wait(ready)
    return x


def device_get(x: Any) -> Any:
    """The pytree `x` with NumPy arrays instead of arrays.

    The copies start together before the first is waited for. Raises the conversion error of a
    tracer when something is being traced.

    >>> import perspex.numpy as pnp
    >>> device_get(pnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    for leaf in tree.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return tree.map(_fetch, x)


def _fetch(x: Any) -> Any:
    if isinstance(x, ArrayImpl):
        return to_numpy(x)
    if isinstance(x, KeyArray):
        return x
    return np.asarray(x) if hasattr(x, "__array__") else x


def copy_to_host_async(x: Any) -> Any:
    """Start copying every array in the pytree `x` to the host; returns `x`."""
    for leaf in tree.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[tuple[slice, ...]], Any],
    dtype: Any = None,
) -> Any:
    """An array whose parts are asked for, device by device; here there is one, and one part.

    Args:
      shape: the shape of the whole array.
      sharding: a `SingleDeviceSharding`: where the array goes.
      data_callback: takes the place of a part in the whole, a slice for each axis, and returns the
        part, an array or a number.
      dtype: the dtype that the parts must have.

    Returns:
      The array, committed to its device.

    Errors:
      `TypeError` if `sharding` is no sharding; `ValueError` if the part has another shape or dtype.

    >>> import numpy as np, perspex
    >>> place = perspex.sharding.SingleDeviceSharding(perspex.devices()[0])
    >>> whole = np.arange(4)
    >>> make_array_from_callback((4,), place, lambda index: whole[index])
    Array([0, 1, 2, 3], dtype=int32)
    """
    if not isinstance(sharding, client.SingleDeviceSharding):
        raise TypeError(
            "make_array_from_callback: sharding should be a SingleDeviceSharding, got "
            f"{sharding!r} of type {type(sharding).__name__}"
        )
    sizes = tuple([operator.index(n) for n in shape])
    part = data_callback(tuple([slice(None)] * len(sizes)))
    aval = shaped(part)
    if aval.shape != sizes:
        raise ValueError(
            f"make_array_from_callback: data_callback returned a part of shape {aval.shape} where "
            f"{sizes} was asked for"
        )
    if dtype is not None and aval.dtype != dtypes.check_user_dtype(dtype, "make_array"):
        raise ValueError(
            f"make_array_from_callback: dtype={np.dtype(dtype).name} was asked for, but the part "
            f"that data_callback returned has {aval.dtype.name}; convert it there"
        )
    return device_put(part, sharding)


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays of this process that have not been deleted."""
    # jaxlib makes some for itself, without a type.
    return [x for x in client.client(platform).live_arrays() if x.aval is not None]


def clear_caches() -> None:
    """Forget all compiled programs. What is called again is traced and compiled again."""
    pressure.forget()


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Inside a traced function: evaluate operations on concrete arrays now.

    >>> import perspex, perspex.numpy as pnp
    >>> @perspex.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(pnp.sum(pnp.arange(4)))
    ...     return x[:n]
    >>> f(pnp.arange(10)).shape
    (6,)
    """
    with current(EVAL):
        yield
