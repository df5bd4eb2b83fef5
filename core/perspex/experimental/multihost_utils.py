"""What several processes exchange: `jax.experimental.multihost_utils`.

One process has all devices here, so it has nobody to wait for: these functions return at once what
they return in JAX to a process that is alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.api.waiting import device_get
from perspex.base.tree_paths import PyTree
from perspex.errors import JaxRuntimeError
from perspex.runtime.dispatch import device_put
from perspex.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array", "host_local_array_to_global_array", "live_devices",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip


class ProcessFailureError(JaxRuntimeError):
    """A process with some of the devices has ended."""

    def __init__(self, failed_devices: Any) -> None:
        super().__init__(f"a process failed, which had the devices {failed_devices}")
        self.failed_devices = failed_devices


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """The arrays of the process that is the source, as NumPy arrays: its own.

    Args:
      in_tree: a pytree of arrays.
      is_source: whether this process is the source; the first one is.

    Returns:
      A pytree of NumPy arrays.

    Raises:
      Nothing.

    >>> broadcast_one_to_all({"step": 3})
    {'step': array(3)}
    """
    return tree.map(np.asarray, device_get(in_tree))


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """The arrays of all processes as NumPy arrays.

    Args:
      in_tree: a pytree of arrays.
      tiled: join those of the processes along their first axis, instead of stacking them.

    Returns:
      A pytree of NumPy arrays; with one process, and not tiled, of one row each.

    Raises:
      Nothing.

    >>> process_allgather({"loss": 0.5})
    {'loss': array([0.5])}
    """
    found = tree.map(np.asarray, device_get(in_tree))
    return found if tiled else tree.map(lambda x: x[None], found)


def sync_global_devices(name: str) -> None:
    """Wait for all processes.

    Args:
      name: of the point at which they wait.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> sync_global_devices("saved")
    """


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Raise unless all processes have the same numbers.

    Args:
      in_tree: a pytree of arrays.
      fail_message: the text of the error.

    Returns:
      Nothing.

    Raises:
      AssertionError: if they differ, which one process cannot.

    >>> assert_equal({"seed": 0})
    """
    device_get(in_tree)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether to save now, because a machine is about to be taken away.

    Args:
      step_id: the step of training.

    Returns:
      `False`: nobody tells this process of such a thing.

    Raises:
      Nothing.

    >>> reached_preemption_sync_point(3)
    False
    """
    return False


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """The devices of processes that live.

    Args:
      devices: some devices.

    Returns:
      A context manager, which gives a list of devices.

    Raises:
      Nothing.

    >>> import perspex
    >>> with live_devices(perspex.devices()) as alive:
    ...     len(alive) == len(perspex.devices())
    True
    """
    yield list(devices)


def _placed(inputs: PyTree, mesh: Mesh, pspecs: Any, name: str) -> PyTree:
    specs = tree.broadcast_prefix(
        pspecs,
        inputs,
        is_leaf=lambda x: x is None or isinstance(x, PartitionSpec),
        name=f"{name}'s pspecs",
    )
    leaves, structure = tree.flatten(inputs)
    if any(spec is None for spec in specs):
        raise ValueError(
            f"{name}: a spec is None; write PartitionSpec() for an array that is whole on each "
            "device"
        )
    pairs = zip(leaves, specs, strict=True)
    return tree.unflatten(structure, [device_put(x, NamedSharding(mesh, s)) for x, s in pairs])


def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays on a mesh, of the parts that this process has: all of them.

    Args:
      local_inputs: a pytree of arrays.
      global_mesh: the mesh.
      pspecs: how they lie on it, a prefix of the pytree.

    Returns:
      A pytree of arrays.

    Raises:
      ValueError: for `None` as a spec.

    >>> import numpy as np, perspex
    >>> mesh = perspex.make_mesh((1,), ("x",))
    >>> host_local_array_to_global_array(np.arange(3), mesh, perspex.P("x")).sharding.spec
    P('x',)
    """
    return _placed(local_inputs, global_mesh, pspecs, "host_local_array_to_global_array")


def global_array_to_host_local_array(global_inputs: PyTree, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of arrays on a mesh that this process has: all of them.

    Args:
      global_inputs: a pytree of arrays.
      global_mesh: the mesh.
      pspecs: how they lie on it, a prefix of the pytree.

    Returns:
      A pytree of arrays.

    Raises:
      ValueError: for `None` as a spec.

    >>> import numpy as np, perspex
    >>> mesh = perspex.make_mesh((1,), ("x",))
    >>> print(global_array_to_host_local_array(np.arange(3), mesh, perspex.P("x")))
    [0 1 2]
    """
    return _placed(global_inputs, global_mesh, pspecs, "global_array_to_host_local_array")
