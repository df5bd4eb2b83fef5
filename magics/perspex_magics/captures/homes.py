"""Whose a function or a class is: the notebook's, a user's own module's, or an installed one's."""

from __future__ import annotations

import abc
import enum
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

from perspex_magics.notebook.kinds import is_a
from perspex_magics.notebook.own_modules import is_own, module_of

# Installed modules that read only three kinds of attributes of a user's object: those with `__`
# in their names, those that arrays have, and those that the calling code names.
_HARMLESS = frozenset(
    ["abc", "builtins", "cmath", "dataclasses", "enum", "functools", "itertools", "math"]
    + ["ml_dtypes", "numpy", "perspex", "types", "typing"]
)
# Modules whose classes, as bases of a user's, call only methods with `__` in their names.
_PLAIN_BASES = frozenset(["abc", "builtins", "enum", "typing"])
_METACLASSES = frozenset([abc.ABCMeta, enum.EnumMeta, type, type(typing.Protocol)])


class Globals(dict[str, Any]):
    """The part of the notebook that an expression reads; its functions have it as globals."""


class Homes:
    """Tells the user's code and classes from others, as seen from a notebook's namespace."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.main = namespace.get("__name__", "__main__")
        self._known: dict[type, bool] = {}

    def has_function(self, function: types.FunctionType) -> bool:
        """Whether a function is the notebook's, or of a module of the user's own."""
        names = function.__globals__
        return names is self.namespace or type(names) is Globals or module_of(names) is not None

    def has_class(self, kind: type) -> bool:
        """Whether a class is the notebook's, or of a module of the user's own."""
        found = self._known.get(kind)
        if found is None:
            home = kind.__module__
            found = self._known[kind] = home == self.main or is_own(sys.modules.get(home))
        return found

    def has_plain_class(self, kind: type) -> bool:
        """Whether a class and its bases are the user's, or are bases that call nothing by name."""
        return type(kind) in _METACLASSES and all(
            self.has_class(base) or base.__module__ in _PLAIN_BASES for base in kind.__mro__
        )


def is_harmless(module: Any) -> bool:
    """Whether a module's code leaves the attributes of the user's objects alone.

    >>> is_harmless("numpy.linalg"), is_harmless("json")
    (True, False)
    """
    return isinstance(module, str) and module.partition(".")[0] in _HARMLESS


def home_of(value: Any) -> Any:
    """The name of the module whose code a function, a class or an object runs."""
    if is_a(value, types.ModuleType):
        return value.__name__
    if is_a(value, types.BuiltinFunctionType):
        owner = value.__self__
        if owner is None or is_a(owner, types.ModuleType):
            return value.__module__
        return (owner if is_a(owner, type) else type(owner)).__module__
    if is_a(value, type | types.FunctionType):
        return value.__module__
    return type(value).__module__
