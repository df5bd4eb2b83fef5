"""`jax.extend.backend`: the platforms of this installation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.api.waiting import clear_caches
from perspex.base import xla
from perspex.runtime import platforms
from perspex.runtime.client import client as get_backend
from perspex.runtime.client import default_device as get_default_device
from perspex.runtime.client import started

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_compile_options", "get_default_device", "register_backend_cache",
    "register_backend_factory",
]  # fmt: skip

_caches: list[tuple[Callable[..., Any], str]] = []


def backends() -> dict[str, Any]:
    """The clients by the names of their platforms."""
    get_backend()
    return dict(started)


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA in the library of a platform, where it says so."""
    return getattr(get_backend(platform), "xla_version", None)


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, Any] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """XLA's options for a program, for `client.compile_and_load`.

    Args:
      num_replicas, num_partitions: how many devices run the program, and in how many parts.
      device_assignment: their devices, or numbers of these: an array of that shape. The first ones
        if not given.
      env_options_overrides: XLA's debug options by name.
      fdo_profile: a profile of an earlier run, for compilers that read one.
      detailed_logging, backend: taken for JAX's sake.

    Raises:
      ValueError: if `device_assignment` has another shape.

    >>> get_compile_options(num_replicas=1, num_partitions=1).num_partitions
    1
    """
    options = xla.CompileOptions()
    options.num_replicas, options.num_partitions = num_replicas, num_partitions
    build = options.executable_build_options
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    if device_assignment is not None:
        ids = np.vectorize(lambda d: getattr(d, "id", d), otypes=[np.int32])(device_assignment)
        ids = ids.reshape(num_replicas, -1) if num_partitions == 1 else ids
        if ids.shape != (num_replicas, num_partitions):
            raise ValueError(
                f"get_compile_options: device_assignment has the shape {ids.shape}, which is not "
                f"num_replicas={num_replicas} by num_partitions={num_partitions}"
            )
        options.device_assignment = xla.DeviceAssignment.create(ids)
    return options


def clear_in_memory_compilation_cache() -> None:
    """Forget all compiled programs."""
    clear_caches()


def clear_backends(_crash: bool = False) -> None:
    """Forget all compiled programs, and what libraries have remembered of platforms."""
    for cache, _ in _caches:
        cache.cache_clear()  # type: ignore[attr-defined]
    clear_caches()


def register_backend_cache(cache: Callable[..., Any], for_what: str) -> Callable[..., Any]:
    """Have `clear_backends` clear this cache, too."""
    _caches.append((cache, for_what))
    return cache


def register_backend_factory(
    name: str,
    factory: Callable[[], Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Any = None,
    c_api: Any = None,
) -> None:
    """Add a platform, or replace the one of that name.

    Args:
      name: what `devices(name)` asks for.
      factory: makes the client, when somebody first uses the platform.
      priority: the platform computes by default if it has the highest one, above 0.
      fail_quietly: whether another platform takes its place if it cannot be started.
      experimental, make_topology, c_api: taken for JAX's sake.

    >>> register_backend_factory("mine", lambda: get_backend("cpu"))
    """
    platforms.register(name.lower(), factory, priority, fail_quietly)
