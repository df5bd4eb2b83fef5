"""What several processes exchange: `jax.experimental.multihost_utils`.

A process that is alone has nobody to wait for: these functions return at once then.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from perspex import tree
from perspex.api.jit import jit
from perspex.api.placing import make_array_from_process_local_data, whole_shape
from perspex.api.waiting import device_get
from perspex.base.tree_paths import PyTree
from perspex.ir.avals import ShapedArray
from perspex.runtime import client
from perspex.runtime.array import ArrayImpl
from perspex.runtime.dispatch import device_put
from perspex.runtime.keys import KeyArray
from perspex.runtime.processes import joining
from perspex.runtime.shards import from_parts
from perspex.runtime.transfer import part
from perspex.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array", "host_local_array_to_global_array", "live_devices",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip


class ProcessFailureError(Exception):
    """A process with some of the devices has ended; `failed_devices` are these."""

    def __init__(self, failed_devices: Any) -> None:
        super().__init__(f"a process failed, which had the devices {failed_devices}")
        self.failed_devices = failed_devices


# ---- Values of all processes --------------------------------------------------------------------


def _on_all(x: np.ndarray) -> Any:
    """The values of all processes as one array, one row for each, that every device holds whole."""
    count = client.process_count()
    devices = np.array(client.devices(), dtype=object).reshape(count, -1)
    mesh = Mesh(devices, ("process", "device"))
    rows = NamedSharding(mesh, PartitionSpec("process"))
    array = make_array_from_process_local_data(rows, x[None], (count, *x.shape))
    return _whole(array)


def _whole(x: Any) -> Any:
    """An array of several processes with all of it on each device."""
    return jit(_same, out_shardings=NamedSharding(x.sharding.mesh, PartitionSpec()))(x)


def _same(x: Any) -> Any:
    return x


def _is_shared(x: Any) -> bool:
    return isinstance(x, (ArrayImpl, KeyArray)) and not x.is_fully_addressable


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """The arrays of the process that is the source, as NumPy arrays, on all processes.

    Args:
      in_tree: a pytree of arrays, of the same shapes and dtypes on all processes.
      is_source: whether this process is the source; process 0 is if not given.

    Returns:
      A pytree of NumPy arrays.

    Raises:
      Nothing.

    >>> broadcast_one_to_all({"step": 3})
    {'step': array(3)}
    """
    values = tree.map(np.asarray, device_get(in_tree))
    if client.process_count() == 1:
        return values
    mine = client.process_index() == 0 if is_source is None else is_source

    def broadcast(x: np.ndarray) -> np.ndarray:
        # The bytes, because a sum of numbers with zeros need not be the numbers.
        given = x if mine else np.zeros_like(x)
        code = np.frombuffer(np.ascontiguousarray(given).tobytes(), np.uint8)
        everyone = np.asarray(_on_all(code)).view(np.uint8)
        out = np.bitwise_or.reduce(everyone, axis=0)
        return np.frombuffer(out.tobytes(), x.dtype).reshape(x.shape)

    return tree.map(broadcast, values)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """The arrays of all processes as NumPy arrays.

    Args:
      in_tree: a pytree of arrays, of the same shapes and dtypes on all processes. Of an array that
        lies on devices of several processes comes all of it.
      tiled: join those of the processes along their first axis, instead of stacking them.

    Returns:
      A pytree of NumPy arrays; with one process, and not tiled, of one row each.

    Raises:
      ValueError: for an array over devices of several processes that is not `tiled`.

    >>> process_allgather({"loss": 0.5})
    {'loss': array([0.5])}
    """

    alone = client.process_count() == 1

    def gather(x: Any) -> np.ndarray:
        if _is_shared(x):
            if not tiled:
                raise ValueError(
                    "process_allgather: an array over devices of several processes is one array; "
                    "pass tiled=True"
                )
            return np.asarray(_whole(x))
        value = np.asarray(device_get(x))
        if alone:
            return value if tiled else value[None]
        rows = np.asarray(_on_all(value))
        return rows.reshape(-1, *rows.shape[2:]) if tiled and value.ndim else rows

    return tree.map(gather, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait for all processes.

    Args:
      name: of the point at which they wait, the same on all.

    Returns:
      Nothing.

    Raises:
      AssertionError: if another process waits at a point of another name.

    >>> sync_global_devices("saved")
    """
    number = np.uint32(zlib.crc32(name.encode()))
    assert_equal(number, f"sync_global_devices name mismatch ('{name}')")


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Raise unless all processes have the same numbers.

    Args:
      in_tree: a pytree of arrays, of the same shapes on all processes.
      fail_message: what the text of the error begins with.

    Returns:
      Nothing.

    Raises:
      AssertionError: if they differ.

    >>> assert_equal({"seed": 0})
    """
    if client.process_count() == 1:
        device_get(in_tree)
        return
    for path, x in tree.leaves_with_path(in_tree):
        mine = np.asarray(part(x, 0) if _is_shared(x) else device_get(x))
        rows = np.asarray(_on_all(mine))
        differ = [i for i, row in enumerate(rows) if not np.array_equal(row, mine)]
        if differ:
            raise AssertionError(
                f"{fail_message}. Process {client.process_index()} has {mine}"
                f"{tree.keystr(path) and f' at {tree.keystr(path)}'}, and process {differ[0]} has "
                f"{rows[differ[0]]}."
            )


# ---- Processes that come and go -----------------------------------------------------------------


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether to save now, because a machine is about to be taken away.

    Once a process has got SIGTERM, all agree on a step that none has begun yet.

    Args:
      step_id: the step of training. All processes count the same steps, and ask at each.

    Returns:
      Whether this is the step.

    Raises:
      RuntimeError: with the flag `enable_preemption_service` off.

    >>> reached_preemption_sync_point(3)
    False
    """
    others = joining.connection
    if others is None:
        return False
    if others.preemptions is None:
        raise RuntimeError(
            "reached_preemption_sync_point needs the preemption service: set the flag "
            "'enable_preemption_service' before distributed.initialize"
        )
    return bool(others.preemptions.reached_sync_point(step_id))


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """The devices of processes that live.

    All processes with such devices enter and leave the block together.

    Args:
      devices: some devices, of this process among others.

    Returns:
      A context manager, which gives a list of devices.

    Raises:
      ValueError: if none of the devices belongs to this process.
      ProcessFailureError: at the end, if a process has ended meanwhile.

    >>> import perspex
    >>> with live_devices(perspex.devices()) as alive:
    ...     len(alive) == len(perspex.devices())
    True
    """
    others = joining.connection
    if others is None:
        yield list(devices)
        return
    processes = {device.process_index for device in devices}
    if others.me not in processes:
        raise ValueError(
            f"live_devices: none of the devices belongs to this process ({others.me}); the "
            "processes that have some of them agree on who lives"
        )
    before = others.agree_on_live(processes)
    failed: BaseException | None = None
    try:
        yield sorted([d for d in devices if d.process_index in before], key=lambda d: d.id)
    except Exception as error:
        failed = error
    after = others.agree_on_live(before)
    lost = {d for d in devices if d.process_index in before - after}
    if lost:
        raise ProcessFailureError(lost) from failed
    if failed is not None:
        raise failed


# ---- Parts of this process, and the whole -------------------------------------------------------


def _specs(inputs: PyTree, pspecs: Any, name: str) -> list[Any]:
    specs = tree.broadcast_prefix(
        pspecs,
        inputs,
        is_leaf=lambda x: x is None or isinstance(x, PartitionSpec),
        name=f"{name}'s pspecs",
    )
    if any(spec is None for spec in specs):
        raise ValueError(
            f"{name}: a spec is None; write PartitionSpec() for an array that is whole on each "
            "device"
        )
    return specs


def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays on a mesh, of the parts that this process has.

    Args:
      local_inputs: a pytree of arrays: what the devices of this process hold. Arrays that lie on
        devices of several processes stay as they are.
      global_mesh: the mesh. The devices of this process are a block of it.
      pspecs: how they lie on it, a prefix of the pytree.

    Returns:
      A pytree of arrays.

    Raises:
      ValueError: for `None` as a spec, and if the devices of this process are no block.

    >>> import numpy as np, perspex
    >>> mesh = perspex.make_mesh((1,), ("x",))
    >>> host_local_array_to_global_array(np.arange(3), mesh, perspex.P("x")).sharding.spec
    P('x',)
    """
    specs = _specs(local_inputs, pspecs, "host_local_array_to_global_array")
    leaves, structure = tree.flatten(local_inputs)
    found = [_whole_of(x, global_mesh, s) for x, s in zip(leaves, specs, strict=True)]
    return tree.unflatten(structure, found)


def _whole_of(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    if _is_shared(x):
        return x
    if isinstance(x, KeyArray):
        return KeyArray(
            ShapedArray(whole_shape(NamedSharding(mesh, spec), x.shape), x.dtype),
            _whole_of(x.base, mesh, spec),
        )
    local = device_put(x, NamedSharding(mesh.local_mesh, spec))
    sharding = NamedSharding(mesh, spec)
    aval = ShapedArray(whole_shape(sharding, local.shape), local.dtype)
    return from_parts(aval, sharding, [shard.data for shard in local.addressable_shards])


def global_array_to_host_local_array(global_inputs: PyTree, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of arrays on a mesh that this process has.

    Args:
      global_inputs: a pytree of arrays. Those on devices of this process stay as they are.
      global_mesh: the mesh. The devices of this process are a block of it.
      pspecs: how they lie on it, a prefix of the pytree.

    Returns:
      A pytree of arrays.

    Raises:
      ValueError: for `None` as a spec, and if the devices of this process are no block.

    >>> import numpy as np, perspex
    >>> mesh = perspex.make_mesh((1,), ("x",))
    >>> print(global_array_to_host_local_array(np.arange(3), mesh, perspex.P("x")))
    [0 1 2]
    """
    specs = _specs(global_inputs, pspecs, "global_array_to_host_local_array")
    leaves, structure = tree.flatten(global_inputs)
    found = [_part_of(x, global_mesh, s) for x, s in zip(leaves, specs, strict=True)]
    return tree.unflatten(structure, found)


def _part_of(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    if not _is_shared(x):
        return device_put(x, NamedSharding(mesh.local_mesh, spec))
    if isinstance(x, KeyArray):
        base = _part_of(x.base, mesh, spec)
        return KeyArray(ShapedArray(base.shape[: x.ndim], x.dtype), base)
    lies = device_put(x, NamedSharding(mesh, spec))
    local, parts = NamedSharding(mesh.local_mesh, spec), [s.data for s in lies.addressable_shards]
    tiles = zip(parts[0].shape, local.tiles(x.ndim), strict=True)
    shape = tuple([n * count for n, count in tiles])
    return from_parts(ShapedArray(shape, x.dtype), local, parts)
