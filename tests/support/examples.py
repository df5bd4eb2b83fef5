"""Doctest finds the examples of functions that name a public module as their home.

By itself it takes a function for that of the module which `__module__` names. The examples run with
the file that the function stands in: that of its code, or, where a table made it, the module that
has it in `__all__`.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import sys
from types import FunctionType, ModuleType
from typing import Any

from perspex.base.public import MODULES

_from_module: Any = doctest.DocTestFinder._from_module  # type: ignore[attr-defined]
_BY_FILE: dict[str, ModuleType] = {}


def _module_of(file: str) -> ModuleType | None:
    if file not in _BY_FILE:
        _BY_FILE.update({m.__file__: m for m in [*sys.modules.values()] if _file(m) is not None})
    return _BY_FILE.get(file)


def _file(module: Any) -> Any:
    return vars(module).get("__file__") if isinstance(module, ModuleType) else None


def stands_in(finder: doctest.DocTestFinder, module: Any, found: Any) -> bool:
    """Whether an object's examples are those of a module."""
    home = getattr(found, "__module__", None)
    if isinstance(found, type) and home in MODULES:
        inside = [getattr(f, "__func__", f) for f in vars(found).values()]
        files = {f.__code__.co_filename for f in inside if isinstance(f, FunctionType)}
        return _file(module) in files if files else bool(_from_module(finder, module, found))
    if isinstance(found, functools.partial):
        return False  # a ufunc, whose function has the same example
    if not isinstance(found, FunctionType) or home not in MODULES:
        return bool(_from_module(finder, module, found))
    name, file = found.__name__, inspect.unwrap(found).__code__.co_filename
    if file == _file(module):
        return True
    made_in = _module_of(file)
    if made_in is None or vars(made_in).get(name) is found:
        return False
    own = module.__name__ == home or module.__name__ not in MODULES
    return own and name in getattr(module, "__all__", ())


doctest.DocTestFinder._from_module = stands_in  # type: ignore[attr-defined]
