"""`jax.extend.backend`: the platforms of this installation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perspex.api.waiting import clear_caches
from perspex.runtime.client import client as get_backend
from perspex.runtime.client import default_device as get_default_device

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_default_device", "register_backend_cache",
]  # fmt: skip

_caches: list[tuple[Callable[..., Any], str]] = []


def backends() -> dict[str, Any]:
    """The clients by the names of their platforms."""
    found = get_backend()
    return {found.platform: found}


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA in the library of a platform, where it says so."""
    return getattr(get_backend(platform), "xla_version", None)


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
