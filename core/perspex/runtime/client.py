"""Platforms, clients and devices, and where a computation runs."""

from __future__ import annotations

import functools
import operator
import os
import threading
import warnings
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from perspex import config
from perspex.base import environment, source, xla
from perspex.base.xla import SEVERAL_RUN_AHEAD
from perspex.layout.context import context_mesh
from perspex.layout.formats import Format
from perspex.runtime import fork, platforms, threads
from perspex.runtime.processes import joining
from perspex.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

if TYPE_CHECKING:

    class Device:
        """A device of a platform: a processor, or an accelerator."""

        id: int
        platform: str
        device_kind: str
        process_index: int
        local_hardware_id: int | None

        def memory_stats(self) -> dict[str, int] | None: ...

else:
    Device = xla.Device

# jaxlib would otherwise record the Python stack with each array it makes: 0.2 us a call, 0.5 us
# below a notebook's fifty frames. Nothing of ours reads it.
xla.set_tracebacks_enabled(False)


# XLA's own flag for a processor as several devices.
_SEVERAL = "xla_force_host_platform_device_count"

_lock = threading.Lock()
_clients: dict[str, Any] = {}
# The same, by what they were asked for: the default, an alias, or a list of names.
_asked: dict[str, Any] = {}
# The clients made so far, by platform.
started = MappingProxyType(_clients)
_BEST = "the best there is"


def client(platform: str | None = None) -> Any:
    """The client of a platform, made on first use; the default one when none is named.

    The default is the first of the flag `platforms`, or else an accelerator if there is one.

    Raises `RuntimeError` for a platform that this installation does not have, or cannot start.
    """
    name = platform or config.platforms.value or _BEST
    if fork.is_child:
        raise fork.refused("a computation")
    found = _asked.get(name)
    if found is not None:
        return found
    with _lock:
        if name not in _asked:
            _asked[name] = _started(name)
        return _asked[name]


def _started(asked: str) -> Any:
    """The client that somebody asks for. The caller holds the lock."""
    threads.expect_client()
    if asked == _BEST:
        found = platforms.best() or ("cpu", None)
    else:
        name = asked.split(",")[0].strip().lower()
        there = [_clients[one] for one in platforms.names(name) if one in _clients]
        if there:
            return there[0]
        found = ("cpu", None) if name == "cpu" else platforms.start(name)
    name, made = found
    if name not in _clients:
        _clients[name] = _cpu() if made is None else made
        threads.look()
        fork.watch()
    return _clients[name]


def _cpu() -> Any:
    if said := environment.check_xla_flags():
        warnings.warn(said, RuntimeWarning, stacklevel=source.stacklevel())
    count = config.num_cpu_devices.value
    several = count > 1 if count is not None else _SEVERAL in os.environ.get("XLA_FLAGS", "")
    # Together with others, nothing runs ahead: `processes.joining.run`.
    is_free = SEVERAL_RUN_AHEAD or not several or joining.connection is not None
    return xla.make_cpu_client(asynchronous=is_free, num_devices=count, **_others())


def _others() -> dict[str, Any]:
    """What makes a client one of several processes."""
    joined = joining.connection
    if joined is None:
        return {}
    return {
        "distributed_client": joined.client,
        "node_id": joined.me,
        "num_nodes": joined.count,
        "collectives": joining.collectives(),
    }


def is_made() -> bool:
    """Whether a client has been made, so that it is too late to say what it should be like."""
    return bool(_clients)


# Arrays that are no user's, by identity: the pages of `runtime.stopping`.
unlisted: set[int] = set()
# The results of a program that can be stopped, for as long as it runs: a list that is empty until
# the program has started.
held: deque[list[list[Any]]] = deque(maxlen=1)


def is_there(array: Any) -> bool:
    """Whether an array is computed, or deleted."""
    # `is_ready` of a deleted array ends the process: no step of Python between the two.
    return any(map(operator.call, (array.is_deleted, array.is_ready)))


def live_arrays(platform: str | None = None) -> list[Any]:
    """The arrays of all clients that there are by now, or of one; jaxlib made some for itself."""
    # Another thread may put the next program there meanwhile.
    if any(started and all(map(is_there, started[-1])) for started in list(held)):
        held.clear()
    found = list(_clients.values()) if platform is None else [client(platform)]
    arrays = [array for one in found for array in one.live_arrays()]
    return [x for x in arrays if id(x) not in unlisted] if unlisted else arrays


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform.

    >>> devices()
    [CpuDevice(id=0)]
    """
    return list(client(backend).devices())


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices that belong to this process, or to another one.

    `host_id` is an older name of `process_index`. Raises `ValueError` for a process that there is
    not.
    """
    found = client(backend)
    process = host_id if process_index is None else process_index
    if process is None or process == found.process_index():
        return list(found.local_devices())
    if not 0 <= process < process_count(backend):
        raise ValueError(
            f"local_devices: there is no process {process} among {process_count(backend)}"
        )
    return [device for device in found.devices() if device.process_index == process]


def device_count(backend: str | None = None) -> int:
    """The number of devices of a platform."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The name of the platform that computations run on unless told otherwise."""
    return client().platform


def expected() -> str:
    """The platform that computes by default, as far as that is known without starting it."""
    asked = config.platforms.value
    made = _asked.get(asked or _BEST)
    if made is not None:
        return xla.platform_of(made)
    if asked:
        return asked.split(",")[0].strip().lower()
    return next((one.name for one in platforms.known() if one.priority > 0), "cpu")


def lowered_as(name: str) -> str:
    """The platform that a name of devices stands for: that of the GPUs that there are for `gpu`.

    >>> lowered_as("cpu"), lowered_as("gpu")
    ('cpu', 'cuda')
    """
    several = platforms.names(name)
    return next((one for one in several if one in _clients), several[0])


def process_index(backend: str | None = None) -> int:
    """This process among those that compute together."""
    return client(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """How many processes compute together."""
    return max([d.process_index for d in devices(backend)], default=0) + 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes that compute together."""
    return list(range(process_count(backend)))


def default_device() -> Any:
    """The device for arrays and computations that are not committed to another."""
    given = config.default_device.value
    if given is None:
        return client().local_devices()[0]
    if isinstance(given, str):
        return client(given).local_devices()[0]
    return given


@functools.cache
def sharding(device: Any) -> Any:
    """The sharding that places an array on one device."""
    return SingleDeviceSharding(device)


@functools.cache
def device_list(device: Any) -> Any:
    return xla.DeviceList((device,))


def resolve(place: Any) -> Any:
    """The sharding that a user names: a sharding, a device, or a platform's name.

    A bare `PartitionSpec` is one on the mesh of `with mesh:`. Raises `ValueError` for anything
    else.
    """
    if isinstance(place, Format):
        place = place.place()
        if place is None:
            return sharding(default_device())
    if isinstance(place, NamedSharding):
        return place
    if isinstance(place, PartitionSpec):
        return on_context_mesh(place)
    if isinstance(place, SingleDeviceSharding) and place._memory_kind is not None:
        return place
    return sharding(resolve_device(place))


def on_context_mesh(spec: PartitionSpec) -> NamedSharding:
    """The sharding of a bare spec. Raises `ValueError` outside every `with mesh:`."""
    mesh = context_mesh()
    if mesh is None:
        raise ValueError(
            f"{spec} names axes of a mesh, but no mesh is set: use it inside `with mesh:`, or pass "
            "NamedSharding(mesh, spec)"
        )
    return NamedSharding(mesh, spec)


def resolve_device(place: Any) -> Any:
    """The device that a user names: a device, a sharding of one, or a platform's name.

    Raises `ValueError` for anything else.
    """
    if isinstance(place, Device):
        return place
    if isinstance(place, str):
        return client(place).local_devices()[0]
    if isinstance(place, SingleDeviceSharding):
        return xla.device_of(place)
    raise ValueError(
        f"expected a device, a sharding or a platform name, got {place!r}; "
        "perspex.devices() lists the devices"
    )
