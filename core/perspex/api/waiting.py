"""Waiting for arrays, fetching them, listing them, and clearing caches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from perspex import tree
from perspex.base import xla
from perspex.base.tree_paths import PyTree
from perspex.runtime import client
from perspex.runtime.array import ArrayImpl, to_numpy
from perspex.runtime.callbacks import wait
from perspex.runtime.compiler import pressure
from perspex.runtime.dispatch import EVAL
from perspex.runtime.keys import KeyArray
from perspex.tracing.trace import Folding, Tracer, current, state


def block_until_ready(x: PyTree) -> PyTree:
    """Wait until every array in a pytree is computed.

    Computation is asynchronous: a call returns before its result exists. Timing something without
    waiting for it times only how long it took to ask.

    Args:
      x: a pytree; leaves that are not arrays are left alone.

    Returns:
      `x`.

    Raises:
      JaxRuntimeError: for an error of a computation that gives one of the arrays.

    >>> import perspex.numpy as pnp
    >>> block_until_ready({"w": pnp.ones(2)})
    {'w': Array([1., 1.], dtype=float32)}
    """
    for leaf in tree.leaves(x):
        ready = getattr(leaf, "block_until_ready", None)
        if ready is not None:
            wait(ready)
    return x


def device_get(x: PyTree) -> PyTree:
    """A pytree with NumPy arrays in place of arrays.

    The copies start together before the first is waited for.

    Args:
      x: a pytree; leaves that are not arrays, and traced arrays, are left alone.

    Returns:
      A tree of the same structure.

    >>> import perspex.numpy as pnp
    >>> device_get(pnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    guards = xla.guards()
    outer, guards.explicit_device_get = guards.explicit_device_get, True
    try:
        copy_to_host_async(x)
        return tree.map(_fetch, x)
    finally:
        guards.explicit_device_get = outer


def _fetch(x: Any) -> Any:
    if isinstance(x, ArrayImpl):
        return to_numpy(x)
    if isinstance(x, (KeyArray, Tracer)):
        return x
    return np.asarray(x) if hasattr(x, "__array__") else x


def copy_to_host_async(x: PyTree) -> PyTree:
    """Start copying every array in a pytree to the host.

    Args:
      x: a pytree; leaves that are not arrays are left alone.

    Returns:
      `x`.

    Raises:
      Nothing.

    >>> import perspex.numpy as pnp
    >>> copy_to_host_async(pnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    for leaf in tree.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays of this process that have not been deleted.

    Args:
      platform: the name of a platform, such as `"cpu"`; the default one if not given.

    Returns:
      A list of arrays.

    Raises:
      RuntimeError: for a platform that is not there.

    >>> import perspex.numpy as pnp
    >>> x = pnp.arange(3)
    >>> any(y is x for y in live_arrays())
    True
    """
    # jaxlib makes some for itself, without a type.
    platform = client.client(platform).platform
    return [x for x in client.live_arrays(platform) if x.aval is not None]


def clear_caches() -> None:
    """Forget all compiled programs. What is called again is traced and compiled again.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> clear_caches()
    """
    pressure.forget()


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Inside a traced function: evaluate operations on concrete arrays now.

    Operations on traced arrays are traced, as they are outside.

    Returns:
      A context manager.

    Raises:
      ConcretizationTypeError: inside, for what needs the value of a tracer.

    >>> import perspex, perspex.numpy as pnp
    >>> @perspex.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(pnp.sum(pnp.arange(4)))
    ...     return x[:n]
    >>> f(pnp.arange(10)).shape
    (6,)
    """
    with current(EVAL if state.trace is EVAL else Folding()):
        yield
