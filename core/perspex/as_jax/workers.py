"""Processes that Python starts for this one find the same `jax`.

A worker of `multiprocessing` (`spawn` and `forkserver`) or of loky, which is behind joblib, is a
new interpreter. The first thing that it reads is a dictionary, pickled here. So a finder for the
name `jax` travels in that dictionary. A worker that imports no jax does not import Perspex either.

Other processes, such as `subprocess.run(["python", "script.py"])`, are left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

# Each has a function `get_preparation_data`, which makes the dictionary.
_SPAWNERS = ("multiprocessing.spawn", "joblib.externals.loky.backend.spawn", "loky.backend.spawn")
_MADE_BY = "get_preparation_data"
_KEY = "perspex"
# What runs in the worker. Perspex need not be importable there yet: that comes with `path`.
_IN_WORKER = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "jax" and not name.startswith("jax."):
            return None
        sys.meta_path.remove(self)
        before = sys.path[:]
        sys.path += [folder for folder in folders if folder not in before]
        try:
            import perspex.as_jax
        finally:
            sys.path[:] = before
        from perspex.base.jax_finder import finder
        return finder.find_spec(name, path, target)

if "jax" not in sys.modules:
    sys.meta_path.insert(0, Finder())
"""


class _Startup:
    """Is pickled as a call that brings the finder into the worker."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return exec, (_IN_WORKER, {"folders": [folder for folder in sys.path if folder]})


def _hook(module: ModuleType) -> None:
    make = getattr(module, _MADE_BY, None)
    if make is None or hasattr(make, "__wrapped__"):
        return

    def get_preparation_data(*args: Any, **kwargs: Any) -> Any:
        return {**make(*args, **kwargs), _KEY: _Startup()}

    get_preparation_data.__wrapped__ = make  # type: ignore[attr-defined]
    setattr(module, _MADE_BY, get_preparation_data)


class _Hooking:
    """Loads a module as its own loader would, and hooks it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        _hook(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


class _Finder:
    """Finds the modules that start processes, when somebody imports them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _SPAWNERS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Hooking(spec.loader)  # type: ignore[assignment]
        return spec


def follow() -> None:
    """Give `jax` to the workers of this process from now on. Called once."""
    for name in _SPAWNERS:
        if name in sys.modules:
            _hook(sys.modules[name])
    sys.meta_path.insert(0, _Finder())
