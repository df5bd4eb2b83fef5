"""Every difference between the supported versions of jaxlib, and the shape of its fast path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxlib import _jax, version, xla_client

jaxlib_version: tuple[int, ...] = tuple([int(n) for n in version.__version__.split(".")[:3]])

# From 0.11 on, C++ hands a call with donated arguments over to Python, which names the array.
# Before, it fails in XLA with a line of log: there, a donating function has no fast path.
FAST_PATH_NOTICES_DONATION = jaxlib_version >= (0, 11)


# Before 0.12, a processor as several devices that runs ahead of Python can wait for itself for ever
# where the devices exchange numbers: XLA then ends the process.
SEVERAL_RUN_AHEAD = jaxlib_version >= (0, 12)


class FastPath(NamedTuple):
    """What jaxlib's C++ keeps of a compiled call; it reads these attributes by name."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Any
    out_shardings: Any
    out_avals: Any
    out_committed: Any
    kept_var_bitvec: Any
    in_device_local_layouts: Any
    const_args: Any


def prepare_shardings() -> None:
    """jaxlib 0.10 asks a sharding in Python for its form in HLO; 0.12 knows it."""

    def to_hlo(self: Any, num_dimensions: int) -> Any:
        return xla_client.HloSharding.replicate()

    if jaxlib_version < (0, 11):
        _jax.SingleDeviceSharding._to_xla_hlo_sharding = to_hlo


def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
    """What turns a result buffer into an array of type `aval`."""
    if jaxlib_version < (0, 11):
        # Its check calls a method that jax defines in Python, for arrays over several devices.
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)
    return _jax.array_result_handler(aval, sharding, committed)


def deserialize(devices: Sequence[Any], data: bytes, options: Any) -> Any:
    """The executable that `serialize()` wrote. Runs code: only ever pass bytes that we wrote."""
    found = _jax.DeviceList(tuple(devices))
    return devices[0].client.deserialize_executable(data, found, options)
