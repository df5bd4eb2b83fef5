"""Import this, and `import jax` gives Perspex.

    import perspex.as_jax
    import jax, jax.numpy as jnp          # Perspex
    from jax import random

or, for a program that knows nothing of it, `python -m perspex.as_jax script.py args` and
`python -m perspex.as_jax -m module args`. It works ahead of an installed jax, which is not touched.
A name that Perspex lacks gives an `AttributeError` that says so; `docs/names.md` lists them.
"""

from __future__ import annotations

import contextlib
import importlib
from types import ModuleType
from typing import Any

import perspex
from perspex.base import jax_finder

# The version of jax whose public interface Perspex answers to.
JAX_VERSION = "0.12.0"

# What an error about a missing name adds.
_WHY = "docs/names.md says why, and what to use instead."

# Where a module of jax is found in Perspex, if not under the same name.
_ELSEWHERE = {
    "jax": "perspex",
    "jax.ops": "perspex.numpy.segments",
}


class _Module(ModuleType):
    """A module of jax's, with the names of one of ours."""

    def __init__(self, name: str, target: ModuleType) -> None:
        super().__init__(name, target.__doc__)
        self.__dict__.update(
            {
                key: value
                for key, value in vars(target).items()
                if not key.startswith("__") and f"{name}.{key}" not in _ELSEWHERE
            }
        )
        self.__dict__["__perspex__"] = target
        self.__dict__["__path__"] = []
        if name == "jax":
            self.__dict__["__version__"] = JAX_VERSION
            self.__dict__["__version_info__"] = tuple([int(n) for n in JAX_VERSION.split(".")])

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            if f"{self.__name__}.{name}" not in _ELSEWHERE:
                with contextlib.suppress(AttributeError):
                    return getattr(self.__perspex__, name)
            with contextlib.suppress(ImportError):
                return importlib.import_module(f"{self.__name__}.{name}")
        raise AttributeError(
            f"Perspex {perspex.__version__} has no `{self.__name__}.{name}`: `{self.__name__}` is "
            f"Perspex here (perspex.as_jax), which answers to jax {JAX_VERSION} and lacks this name"
            f". {_WHY}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(self.__perspex__)})


def _make(name: str) -> ModuleType:
    target = _ELSEWHERE.get(name, "perspex" + name.removeprefix("jax"))
    if name.startswith(("jax._", "jax.as_jax", "jax.base")):
        raise ImportError(
            f"cannot import {name}: `jax` is Perspex here (perspex.as_jax), and private modules "
            "of jax have no counterpart in it",
            name=name,
        )
    try:
        return _Module(name, importlib.import_module(target))
    except ModuleNotFoundError as error:
        if error.name != target and not target.startswith(f"{error.name}."):
            raise
        raise ModuleNotFoundError(
            f"Perspex {perspex.__version__} has no module {name!r}: `jax` is Perspex here "
            f"(perspex.as_jax), which answers to jax {JAX_VERSION} and lacks this module. {_WHY}",
            name=name,
        ) from None


jax_finder.check_alone()
jax_finder.finder.make = _make
