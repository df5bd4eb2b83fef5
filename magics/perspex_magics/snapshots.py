"""What a function would capture if it were traced now, and how two such states differ.

A snapshot is a flat table: a token for each thing that the function can reach, under a label that
the user would write, as in `scale`, `cfg['lr']` or `k (closure of make)`. Functions of the notebook
and of the user's own modules are followed into the globals they read, into their closures and their
defaults; containers into their items; objects and such modules into those attributes whose names
stand in the code that was followed. The code of modules that were installed is not followed, but
the user's functions inside its closures are, which is how `grad(loss)` is seen through.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import hashlib
import marshal
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from perspex.control.jit import function_name
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex.tracing import Tracer
from perspex_magics.codes import Code, known_code
from perspex_magics.own_modules import is_own, module_of
from perspex_magics.probes import ArrayProbe, attributes
from perspex_magics.summaries import brief
from perspex_magics.tokens import (
    NUMBERS_AND_TEXT,
    PLAIN,
    PLAIN_KINDS,
    DeviceArray,
    Elsewhere,
    Members,
    Object,
)

# What lies beyond so many is not looked at; following 2,000 takes some 5 ms.
_MOST = 2_000
# Containers of more items are taken as a whole where they hold nothing but numbers and strings.
_WHOLE = 32

_MISSING = object()
_CLASS = "__class__"
_MAKING = {"__init__", "__new__", "__post_init__", "__init_subclass__"}
# Members of every class, which say nothing of what it does.
IN_CLASSES = {
    "__dict__",
    "__weakref__",
    "__doc__",
    "__module__",
    "__firstlineno__",
    "__static_attributes__",
    "__annotations__",
    "__annotate__",
    "__annotate_func__",
    "__annotations_cache__",
    "__conditional_annotations__",
    "__type_params__",
    "_abc_impl",
}


class Snapshot:
    """The state of all that `function` reads.

    Args:
      function: what is jitted; it need not be the notebook's own, as `grad(loss)` is not.
      namespace: the notebook's.
      arrays: gives the probe of a NumPy array, which knows its content.
    """

    def __init__(
        self,
        function: Any,
        namespace: Mapping[str, Any],
        arrays: Callable[[np.ndarray[Any, Any]], ArrayProbe],
    ) -> None:
        self.namespace, self.arrays = namespace, arrays
        self.tokens: dict[str, Any] = {}
        self.roots: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        # The globals that were looked up, the notebook's and those of modules, and the objects that
        # may be changed in place, by root.
        self.names: set[str] = set()
        self.members: set[str] = set()
        self.mutable: list[tuple[str, Any]] = []
        self.attributes: set[str] = set()
        # Those that the code itself assigns: a count of traces, a memory. They are no inputs.
        self.stored: set[str] = set()
        # Whether a value was met that is itself being traced: a state that does not last.
        self.has_tracers = False
        self._objects: list[tuple[str, str, Any]] = []
        self._first_labels: dict[int, str] = {}
        self._stack: list[int] = []
        self._seen_foreign: set[int] = set()
        self._keep: list[Any] = []
        name = function_name(function)
        self._value(function, name, name)
        self._follow_objects()

    # ---- values -----------------------------------------------------------------------------

    def _value(self, value: Any, label: str, root: str) -> None:
        if len(self.tokens) >= _MOST or id(value) in self._stack:
            return
        if isinstance(value, Tracer):
            self.has_tracers = True
            self.texts[root] = "a traced value"
            return
        if root not in self.texts:
            self.texts[root] = brief(value)
        self.roots[label] = root
        kind = type(value)
        token: Any
        if isinstance(value, PLAIN):
            token = kind, value
        elif isinstance(value, float):
            token = kind, repr(value)
        elif isinstance(value, np.generic):
            token = kind, value.tobytes()
        elif isinstance(value, np.ndarray):
            self.mutable.append((root, value))
            token = kind, self.arrays(value).content()
        elif isinstance(value, ArrayImpl):
            token = DeviceArray(value, value.aval)
        elif isinstance(value, KeyArray):
            token = DeviceArray(value.base, value.aval)
        else:
            self._stack.append(id(value))
            token = self._structure(value, label, root)
            self._stack.pop()
        self.tokens[label] = token

    def _structure(self, value: Any, label: str, root: str) -> Any:
        """The token of what has parts; goes into the parts."""
        kind = type(value)
        if isinstance(value, list | deque | set | dict):
            self.mutable.append((root, value))
        if isinstance(value, list | deque | tuple | set | frozenset | dict):
            return self._container(value, label, root)
        if isinstance(value, type):
            if not self._is_users(value):
                return Object(value)
            bases = [base.__qualname__ for base in value.__bases__]
            return self._object(value, label, root), bases
        if is_own(value):
            return self._object(value, label, root)
        if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            return Object(value)
        if callable(value) and self._callable(value, label, root):
            return self.tokens[label]
        if isinstance(value, enum.Enum):
            return kind.__qualname__, value.name
        if isinstance(value, Mapping):
            self.mutable.append((root, value))
            return self._container(dict(value), label, root)
        return self._object(value, label, root)

    def _object(self, value: Any, label: str, root: str) -> Any:
        """The token of an object for now; its attributes come when all code has been followed."""
        first = self._first_labels.setdefault(id(value), label)
        if first != label:
            return "the same object as", first
        self._objects.append((label, root, value))
        return type(value).__qualname__

    def _container(self, value: Any, label: str, root: str) -> Any:
        kind = type(value)
        if len(value) > _WHOLE:
            inside = [*value, *value.values()] if isinstance(value, dict) else value
            if PLAIN_KINDS.issuperset(map(type, inside)):
                # Version 2 writes equal values as equal bytes.
                return kind.__qualname__, hashlib.sha1(marshal.dumps(_basic(value), 2)).digest()
        if isinstance(value, dict):
            for key, item in list(value.items()):
                self._value(item, f"{label}[{brief(key)}]", root)
            return kind.__qualname__, [_as_key(key) for key in value]
        if isinstance(value, set | frozenset):
            return kind.__qualname__, Members(value)
        fields = getattr(kind, "_fields", None)
        for i, item in enumerate(value):
            at = f"[{i}]" if fields is None else f".{fields[i]}"
            self._value(item, f"{label}{at}", root)
        return kind.__qualname__, len(value)

    def _follow_objects(self) -> None:
        """Go into the attributes whose names are read by the code; which may add to the code."""
        done: set[tuple[str, str]] = set()
        while True:
            before = len(done)
            for label, root, value in list(self._objects):
                self._stack.append(id(value))
                is_class = label.endswith(_CLASS)
                for name, item in self.read_attributes(value):
                    # An instance has been made already.
                    if (label, name) not in done and not (is_class and name in _MAKING):
                        done.add((label, name))
                        self._value(item, f"{label}.{name}", root)
                self._stack.pop()
            if len(done) == before:
                break
        for label, root, value in self._objects:
            names = [name for name, _ in self.read_attributes(value)]
            # Of an object whose attributes nobody reads there is only the object itself.
            self.tokens[label] = (self.tokens[label], sorted(names)) if names else Object(value)
            self.mutable.append((root, value))

    def read_attributes(self, value: Any) -> list[tuple[str, Any]]:
        """The attributes of an object that the code reads: by their names, or all if it is data."""
        if isinstance(value, type):
            return self._read_members(value)
        kind = type(value)
        names = dict(attributes(value))
        if not (dataclasses.is_dataclass(kind) or kind is types.SimpleNamespace):
            read = self.attributes - self.stored
            names = {name: item for name, item in names.items() if name in read}
        found = list(names.items())
        if self._is_users(kind):
            found.append((_CLASS, kind))
        return found

    def _read_members(self, kind: type) -> list[tuple[str, Any]]:
        """The members of a class of the notebook that the code reads, and those with `__names__`.

        Inherited ones are found under the classes that have them.
        """
        found: list[tuple[str, Any]] = []
        for name, member in list(kind.__dict__.items()):
            special = name.startswith("__") and name.endswith("__")
            if name in IN_CLASSES or not (special or name in self.attributes):
                continue
            if not isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
                found += [(name, part) for part in unwrapped(member)]
        bases = [base for base in kind.__bases__ if self._is_users(base)]
        return found + [(f"{_CLASS}({base.__name__})", base) for base in bases]

    # ---- functions --------------------------------------------------------------------------

    def _callable(self, value: Any, label: str, root: str) -> bool:
        """Follow a callable; false if there is nothing to follow in it."""
        self.roots.setdefault(label, root)
        if isinstance(value, types.FunctionType):
            if self._is_followed(value):
                self._function(value, label, root)
            else:
                self.tokens[label] = Object(value) if value.__closure__ else Elsewhere(value)
                self._foreign(value, root)
        elif isinstance(value, types.MethodType):
            self._keep.append(value)
            self._value(value.__self__, f"{label}.__self__", root)
            self._value(value.__func__, label, root)
            self.tokens.setdefault(label, Object(value.__func__))
        elif isinstance(value, functools.partial):
            self._value(value.func, f"{label}.func", root)
            self._container(value.args, f"{label}.args", root)
            self._container(value.keywords, f"{label}.keywords", root)
            self.tokens[label] = "a partial", len(value.args), sorted(value.keywords)
        elif callable(inner := _wrapped(value)):
            # A jitted function: what counts is the function.
            self._value(inner, label, root)
            self.tokens.setdefault(label, Object(value))
        elif self._is_users(type(value)):
            return False
        else:
            self.tokens[label] = Object(value)
            self._foreign(value, root)
        return True

    def _function(self, function: types.FunctionType, label: str, root: str) -> None:
        code = known_code(function.__code__)
        self.mutable.append((root, function))
        self.attributes |= code.names
        self.stored |= code.stored_attributes
        self.tokens[label] = "a function", code.meaning
        self.texts.setdefault(label, brief(function))
        self._stack.append(id(function))
        of = function.__name__
        for name in sorted(code.reads):
            self._global(name, code, function.__globals__)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if name in code.stored:
                continue
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            where = f"{name} (closure of {of})"
            self._value(value, where, where)
        for name, value in _defaults(function):
            where = f"{name} (default of {of})"
            self._value(value, where, where)
        self._stack.pop()

    def _is_followed(self, function: types.FunctionType) -> bool:
        """Whether a function is the notebook's, or of a module of the user's own."""
        names = function.__globals__
        return names is self.namespace or module_of(names) is not None

    def _is_users(self, kind: type) -> bool:
        """Whether a class is the notebook's, or of a module of the user's own."""
        home = kind.__module__
        return home == self.namespace.get("__name__", "__main__") or is_own(sys.modules.get(home))

    def _global(self, name: str, code: Code, names: Mapping[str, Any]) -> None:
        if names is not self.namespace:
            self._member(name, names)
            return
        if name in self.names:
            return
        self.names.add(name)
        value = self.namespace.get(name, _MISSING)
        if value is not _MISSING:
            self._value(value, name, name)
        elif hasattr(builtins, name) or "NameError" in code.names:
            # What hides a built-in function counts; what nobody could read does not.
            self.tokens[name], self.roots[name] = "not defined", name
            self.texts[name] = "Python's own" if hasattr(builtins, name) else "not defined"

    def _member(self, name: str, names: Mapping[str, Any]) -> None:
        """A global of a module of the user's own."""
        module = module_of(names)
        short = names["__name__"].rpartition(".")[2]
        label = f"{short}.{name}"
        if module is None or label in self.members:
            return
        self.members.add(label)
        self.mutable.append((short, module))
        if name in names:
            self._value(names[name], label, label)

    def _foreign(self, value: Any, root: str, depth: int = 0) -> None:
        """Look for functions of the notebook inside a callable of another module."""
        if depth > 6 or id(value) in self._seen_foreign:
            return
        self._seen_foreign.add(id(value))
        for part in _parts_of_foreign(value):
            if isinstance(part, types.FunctionType) and self._is_followed(part):
                self._value(part, part.__name__, root if depth else part.__name__)
            elif isinstance(part, types.MethodType | functools.partial) or callable(_wrapped(part)):
                self._callable(part, function_name(part), root)
            elif callable(part) and not isinstance(
                part, type | types.BuiltinFunctionType | np.ufunc
            ):
                self._foreign(part, root, depth + 1)


def _wrapped(value: Any) -> Any:
    """The function that a decorator was given, where it says so. Runs no code of the user's."""
    return (getattr(value, "__dict__", None) or {}).get("__wrapped__")


def _as_key(key: Any) -> Any:
    return (type(key), repr(key)) if isinstance(key, NUMBERS_AND_TEXT) else Object(key)


def _parts_of_foreign(value: Any) -> Iterator[Any]:
    if isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        return
    for _, item in attributes(value):
        yield item


def _defaults(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    given = function.__defaults__ or ()
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    yield from zip(names[len(names) - len(given) :], given, strict=False)
    yield from (function.__kwdefaults__ or {}).items()


def unwrapped(member: Any) -> Iterator[Any]:
    """The functions behind a member of a class, or the member itself."""
    if isinstance(member, staticmethod | classmethod):
        yield member.__func__
    elif isinstance(member, property):
        yield from filter(None, (member.fget,))
    elif isinstance(member, functools.cached_property):
        yield member.func
    else:
        yield member


def _basic(value: Any) -> Any:
    """A container as one of Python's own, which is what marshal takes."""
    for kind in (tuple, dict):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, list | deque):
        return list(value)
    return sorted(map(repr, value))
