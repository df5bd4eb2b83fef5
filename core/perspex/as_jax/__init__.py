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
import sys
from types import ModuleType
from typing import Any

import perspex
from perspex.as_jax import absent, passed_on, version, workers
from perspex.as_jax.doors.table import DIALECTS, DOORS, PRIVATE
from perspex.base import jax_finder, views, xla
from perspex.base.public import MODULES
from perspex.tracing import array_methods

JAX_VERSION = version.__version__

# What an error about a missing name adds.
_WHY = "docs/names.md says why, and what to use instead."

# Modules of ours that are objects in jax: it has no module `jax.config`.
_OBJECTS = {"perspex.ad", "perspex.checkpoint_policies", "perspex.config", "perspex.memory"}
# Ours alone, or somewhere else in jax: what methods of arrays call stands in `perspex.numpy`.
_OURS = {"perspex.events", "perspex.numpy.segments"}
# What stands elsewhere in ours, because it needs more than the modules below its own.
_ELSEWHERE = {
    "jax.sharding": {
        "auto_axes": "perspex.api.explicit",
        "explicit_axes": "perspex.api.explicit",
        "no_collectives": "perspex.api.explicit",
        "reshard": "perspex",
    }
}
_METHODS = {"at", "getitem", "iterate", "view"}

# Loaded by `import jax` in jax. `array_api_compat` looks for tracers in it if it is loaded.
_LOADED = ("core",)

# The modules of jax, and where Perspex has them.
_TARGETS = {"jax" + name.removeprefix("perspex"): name for name in MODULES - _OBJECTS - _OURS} | {
    "jax.ops": "perspex.numpy.segments",
    "jax.version": "perspex.as_jax.version",
}
_INSIDE = DOORS | PRIVATE | DIALECTS
_TARGETS |= _INSIDE


def _target(name: str) -> Any:
    """The module, or the class in one, that has the names of a module of jax's."""
    if name in DIALECTS:
        return xla.dialect(DIALECTS[name])
    return _object(_TARGETS[name])


def _object(home: str) -> Any:
    """A module, or with a colon a name in one."""
    module, _, inside = home.partition(":")
    found = importlib.import_module(module)
    return getattr(found, inside) if inside else found


def _is_module(name: str) -> bool:
    return name in _TARGETS or absent.has_module(name)


def _names(target: Any) -> list[str]:
    """The public names of one of our modules, without its submodules."""
    if not isinstance(target, ModuleType):
        return [name for name in vars(target) if not name.startswith("__")]
    return getattr(target, "__all__", None) or [
        name
        for name, value in vars(target).items()
        if (name[0] != "_" or name.startswith("__array_"))
        and not (isinstance(value, ModuleType) and value.__name__ not in _OBJECTS)
        and not (name in _METHODS or name.endswith("ipython_extension"))
    ]


class _Module(ModuleType):
    """A module of jax's, with the names of one of ours."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, target.__doc__)
        below = [full.rpartition(".")[2] for full in _TARGETS if full.rpartition(".")[0] == name]
        # `from jax import *` does not open the doors.
        shown = [key for key in below if f"{name}.{key}" not in _INSIDE]
        below = [*below, *absent.submodules(name)]
        names = {key: getattr(target, key) for key in _names(target) if key not in below}
        for key, home in _ELSEWHERE.get(name, {}).items():
            names[key] = getattr(importlib.import_module(home), key)
        self.__dict__.update(names)
        # Names whose modules are imported when somebody asks for them.
        self.__dict__["__later__"] = getattr(target, "_LATER", {})
        self.__dict__["__all__"] = sorted([*names, *shown, *self.__later__])
        self.__dict__["__file__"] = getattr(target, "__file__", None)
        self.__dict__["__path__"] = []
        self.__dict__["__perspex__"] = target
        # How views are named that other packages give to this module.
        self.__dict__["__views__"] = f"{target.__name__}.".removeprefix("perspex.")
        if name == "jax.numpy":  # what arrays call their namespace from now on
            array_methods.set_standard(self)
        if name == "jax":
            names = {key: getattr(version, key) for key in version.__all__}
            self.__dict__.update(names)
            for key in _LOADED:
                sys.modules[f"jax.{key}"] = self.__dict__[key] = _Later(f"jax.{key}")

    def __getattr__(self, name: str) -> Any:
        if _is_module(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        if name in self.__later__:
            found = self.__dict__[name] = getattr(self.__perspex__, name)
            return found
        with contextlib.suppress(AttributeError):
            found = self.__dict__[name] = views.find(self.__views__, name)
            return found
        with contextlib.suppress(KeyError):
            found = self.__dict__[name] = _object(passed_on.home(self.__name__, name))
            return found
        with contextlib.suppress(KeyError):
            found = self.__dict__[name] = absent.find(self.__name__, name)
            return found
        raise AttributeError(
            f"Perspex {perspex.__version__} has no `{self.__name__}.{name}`: `{self.__name__}` is "
            f"Perspex here (perspex.as_jax), which answers to jax {JAX_VERSION} and lacks this name"
            f". {_WHY}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A function that is pickled by value takes its modules along by name.
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__all__, *views.names(self.__views__)})


class _Later(ModuleType):
    """A module that is made when somebody asks it for a name, and loaded before."""

    def _made(self) -> Any:
        module: Any = self
        module.__class__ = _Module
        module.__init__(self.__name__, _target(self.__name__))
        return module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)

    def __dir__(self) -> list[str]:
        return dir(self._made())


def _make(name: str) -> ModuleType:
    if name in _TARGETS:
        return _Module(name, _target(name))
    if absent.has_module(name):
        return absent.AbsentModule(name)
    if name.startswith("jax._"):
        raise ImportError(
            f"cannot import {name}: `jax` is Perspex here (perspex.as_jax), and of the private "
            "modules of jax it has those that well-known libraries use (docs/libraries.md)",
            name=name,
        )
    raise ModuleNotFoundError(
        f"Perspex {perspex.__version__} has no module {name!r}: `jax` is Perspex here "
        f"(perspex.as_jax), which answers to jax {JAX_VERSION} and lacks this module. {_WHY}",
        name=name,
    )


jax_finder.check_alone()
jax_finder.finder.make = _make
workers.follow()
