"""Keeps the real jax and Perspex out of one process.

Both give jaxlib's one C++ array class its methods, so whichever comes second would break the other.
Importing Perspex puts `finder` in front of Python's finders. It answers for the name `jax`: with a
clear error, or, once `perspex.as_jax` is imported, with Perspex's own modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

REASON = "Perspex and jax cannot share a process: both give jaxlib's array class its methods. "


# Neither class derives from those of `importlib.abc`, whose import costs 6 ms; Python asks for the
# methods only.
class _Loader:
    def __init__(self, make: Callable[[str], ModuleType] | None) -> None:
        self.make = make

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if self.make is None:
            raise ImportError(
                f"cannot import {spec.name}: this process holds Perspex. {REASON}"
                "To run code written for jax on Perspex, `import perspex.as_jax` first "
                "(or `python -m perspex.as_jax script.py`); to use jax itself, start a process "
                "that does not import perspex.",
                name=spec.name,
            )
        return self.make(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module is complete when it is made."""


class Finder:
    """Answers for `jax` and everything below it."""

    def __init__(self) -> None:
        self.make: Callable[[str], ModuleType] | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "jax" and not name.startswith("jax."):
            return None
        loader: Any = _Loader(self.make)
        return ModuleSpec(name, loader, origin="Perspex", is_package=True)


finder = Finder()


def check_alone() -> None:
    """Raise `ImportError` if the real jax is in this process already."""
    jax = sys.modules.get("jax")
    if jax is not None and not hasattr(jax, "__perspex__"):
        raise ImportError(
            f"cannot import perspex: jax is already imported in this process. {REASON}"
            "Import perspex (or perspex.as_jax) before anything that imports jax, or start a "
            "process of its own.",
            name="perspex",
        )


def install() -> None:
    """Answer for `jax` from now on. Called once, at import."""
    check_alone()
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
