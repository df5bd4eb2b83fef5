"""What a function would capture if it were traced now, and how two such states differ.

A snapshot is a flat table: a token for each thing that the function can reach, under a label that
the user would write, as in `scale`, `cfg['lr']` or `k (closure of make)`. Functions of the notebook
and of the user's own modules are followed into the globals they read, into their closures and their
defaults; containers into their items; objects and such modules into those attributes whose names
stand in the code that was followed. The code of modules that were installed is not followed, but
the user's functions inside its closures are, which is how `grad(loss)` is seen through.
"""

from __future__ import annotations

import array
import builtins
import collections
import dataclasses
import enum
import functools
import hashlib
import marshal
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from perspex.base.xla import PjitFunction
from perspex.jitted.signature import function_name
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex.tracing.trace import Tracer
from perspex_magics.captures.codes import Code, Write, known_code
from perspex_magics.captures.probes import ArrayProbe, attributes
from perspex_magics.captures.tokens import (
    NUMBERS_AND_TEXT,
    PLAIN,
    PLAIN_KINDS,
    DeviceArray,
    Foreign,
    Members,
    Object,
)
from perspex_magics.display.summaries import brief
from perspex_magics.notebook.own_modules import is_own, module_of

# What lies beyond so many is not looked at; following 2,000 takes some 5 ms.
_MOST = 2_000
# Containers of more items are taken as a whole where they hold nothing but numbers and strings.
_WHOLE = 32

# Functions inside of functions of other modules are looked for so deep.
_MOST_INSIDE = 6

# What can be called, and holds no function of the user's.
_NO_CODE = (type, types.BuiltinFunctionType, np.ufunc)
_CONTAINERS = (list, deque, tuple, set, frozenset, dict)
_BYTES = (bytearray, array.array)
_PICKERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
# How a class makes its slots and the fields of its named tuples readable.
_FIELDS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    type(vars(collections.namedtuple("_Example", "field"))["field"]),
)
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
    "__dataclass_fields__",
    "__dataclass_params__",
    "__orig_bases__",
    "__orig_class__",
    "__parameters__",
    "__protocol_attrs__",
    "__callable_proto_members_only__",
    "__non_callable_proto_members__",
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
        # Shorter texts for the long labels of what functions inside of others close over.
        self.shown: dict[str, str] = {}
        # The globals that were looked up, the notebook's and those of modules, and the objects that
        # may be changed in place, by root.
        self.names: set[str] = set()
        self.members: set[tuple[str, str]] = set()
        self.mutable: list[tuple[str, Any]] = []
        self.attributes: set[str] = set()
        # Those of which the code only calls methods that may write, and which.
        self._attribute_writes: dict[str, set[Write]] = {}
        # Those that the code itself assigns: a count of traces, a memory. They are no inputs.
        self.stored: set[str] = set()
        # The methods of classes that were followed, by name; the names that the code takes from
        # variables and attributes, those that it takes from objects of known classes; and what all
        # that says of the attributes of a class.
        self._methods: dict[type, dict[str, Code]] = {}
        self._taken: set[str] = set()
        self._taken_from: dict[str, list[type]] = {}
        self._stores: dict[type, set[str]] = {}
        # Of which class what is followed next is a method, and its name there.
        self._owner: tuple[type, str] | None = None
        # Whether a value was met that is itself being traced: a state that does not last.
        self.has_tracers = False
        self._objects: list[tuple[str, str, Any]] = []
        self._first_labels: dict[int, str] = {}
        self._stack: list[int] = []
        self._foreign_tokens: dict[int, Any] = {}
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
        if isinstance(value, float | complex) and not isinstance(value, enum.Enum):
            # By its text, since 0.0 == -0.0 and nan != nan.
            token = kind, repr(value)
        elif isinstance(value, PLAIN) and not isinstance(value, enum.Enum):
            token = kind, value
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
        if isinstance(value, enum.Enum):
            return self._enum(value, label, root)
        if isinstance(value, list | deque | set | dict | array.array | bytearray):
            self.mutable.append((root, value))
        if isinstance(value, _BYTES):
            return kind, bytes(value)
        if isinstance(value, _CONTAINERS):
            return self._container(value, label, root)
        if isinstance(value, slice):
            for part in ("start", "stop", "step"):
                self._value(getattr(value, part), f"{label}.{part}", root)
            return kind.__qualname__
        if isinstance(value, type):
            if not self._is_users(value):
                return Object(value)
            bases = [base.__qualname__ for base in value.__bases__]
            return self._object(value, label, root), bases
        if is_own(value):
            return self._object(value, label, root)
        if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            return Object(value)
        if isinstance(value, _PICKERS):
            made: Any = value.__reduce__()
            self._value(made[1:], f"{label}.arguments", root)
            return kind.__qualname__
        if callable(value) and self._callable(value, label, root):
            return self.tokens[label]
        if isinstance(value, Mapping):
            self.mutable.append((root, value))
            if self._is_users(kind):
                self._objects.append((label, root, value))
            return self._container(dict(value), label, root)
        return self._object(value, label, root)

    def _enum(self, value: enum.Enum, label: str, root: str) -> Any:
        kind = type(value)
        if value.name is not None:
            self.texts[label] = f"{kind.__qualname__}.{value.name}"
        if self._is_users(kind):
            self._value(value.value, f"{label}.value", root)
            self._value(kind, f"{label}.{_CLASS}", root)
        return kind.__qualname__, value.name

    def _object(self, value: Any, label: str, root: str) -> Any:
        """The token of an object for now; its attributes come when all code has been followed."""
        first = self._first_labels.setdefault(id(value), label)
        if first != label:
            return "the same object as", first
        self._objects.append((label, root, value))
        return type(value).__qualname__

    def _container(self, value: Any, label: str, root: str) -> Any:
        kind = type(value)
        if kind not in _CONTAINERS and self._is_users(kind):
            # Its class and attributes count as well as its items.
            self._objects.append((label, root, value))
        if len(value) > _WHOLE:
            inside = [*value, *value.values()] if isinstance(value, dict) else value
            if PLAIN_KINDS.issuperset(map(type, inside)):
                # Version 2 writes equal values as equal bytes.
                return kind.__qualname__, hashlib.sha1(marshal.dumps(_basic(value), 2)).digest()
        if isinstance(value, dict):
            places: dict[str, int] = {}
            for key, item in list(value.items()):
                place = f"{label}[{brief(key)}]"
                count = places[place] = places.get(place, 0) + 1
                self._value(item, place if count == 1 else f"{place} #{count}", root)
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
                    if (label, name) in done or (is_class and name in _MAKING):
                        continue
                    done.add((label, name))
                    if isinstance(value, types.ModuleType) and not self._is_new(value, name):
                        continue
                    if isinstance(value, type) and callable(item):
                        self._owner = value, name
                    self._value(item, f"{label}.{name}", root)
                    self._owner = None
                self._stack.pop()
            if len(done) == before:
                break
        read: set[tuple[str, str]] = set()
        for label, root, value in self._objects:
            names = [name for name, _ in self.read_attributes(value)]
            read.update((label, name) for name in names)
            is_function = isinstance(value, types.FunctionType)
            if names:
                self.tokens[label] = self.tokens[label], sorted(names)
            elif not is_function:
                # Of an object whose attributes nobody reads there is only the object itself.
                self.tokens[label] = Object(value)
            if not (is_function or isinstance(value, (*_CONTAINERS, Mapping))):
                self.mutable.append((root, value))
            elif names and (held := getattr(value, "__dict__", None)) is not None:
                # That it may change otherwise is known already.
                self.mutable.append((root, held))
        for label, name in done - read:
            # It was met before the code that assigns it.
            start = f"{label}.{name}"
            for other in list(self.tokens):
                if other == start or other.startswith((f"{start}.", f"{start}[")):
                    del self.tokens[other]

    def read_attributes(self, value: Any) -> list[tuple[str, Any]]:
        """The attributes of an object that the code reads: by their names, or all if it is data."""
        if isinstance(value, type):
            return self._read_members(value)
        kind = type(value)
        names = dict(attributes(value))
        if not (dataclasses.is_dataclass(kind) or kind is types.SimpleNamespace):
            stored = self._stored_in(kind)
            names = {
                name: item
                for name, item in names.items()
                if name not in stored and self._is_read(name, item)
            }
        else:
            names = {name: item for name, item in names.items() if name not in IN_CLASSES}
        found = list(names.items())
        if self._is_users(kind):
            found.append((_CLASS, kind))
        return found

    def _read_members(self, kind: type) -> list[tuple[str, Any]]:
        """The members of a class of the notebook that the code reads, and those with `__names__`.

        Inherited ones are found under the classes that have them.
        """
        found: list[tuple[str, Any]] = []
        stored = self._stored_in(kind)
        for name, member in list(kind.__dict__.items()):
            if name in IN_CLASSES or isinstance(member, _FIELDS):
                continue
            if _is_special(name) or (name not in stored and self._is_read(name, member)):
                found += [(name, part) for part in unwrapped(member)]
        bases = [base for base in kind.__bases__ if self._is_users(base)]
        return found + [(f"{_CLASS}({base.__name__})", base) for base in bases]

    def _is_read(self, name: str, value: Any) -> bool:
        """Whether code that was followed reads an attribute of this name, which has that value."""
        if name in self.attributes:
            return True
        writes = self._attribute_writes.get(name)
        return writes is not None and not self._is_only_written(value, writes)

    def _is_only_written(self, value: Any, writes: Iterable[Write]) -> bool:
        """Whether calls of these methods tell nothing of an object.

        Those of Python's own containers return nothing. What others return tells something unless
        it is dropped, and the user's may do more than write to their object.
        """
        for write in writes:
            if not isinstance(_class_member(type(value), write.method), types.MethodDescriptorType):
                is_users = self._is_users(type(value)) or is_own(value)
                if is_users or not write.is_dropped:
                    return False
        return True

    def _stored_in(self, kind: type) -> set[str]:
        """The attributes of the objects of a class, and of the class, that the code assigns itself.

        Methods are followed by their names, so it may be another class's method that the code
        calls. Of those of which nothing else is known only those attributes are left out that they
        read as well, as a count of traces.
        """
        found = self._stores.get(kind)
        if found is None:
            found = self._stores[kind] = set(self.stored)
            for owner, methods in self._methods.items():
                for name, code in methods.items():
                    stored = set(code.stored_attributes)
                    if owner not in kind.__mro__:
                        stored -= code.stored_on_first
                    if not self._is_called(name, owner):
                        stored &= code.loaded_attributes
                    found |= stored
        return found

    def _is_called(self, name: str, owner: type) -> bool:
        """Whether code that was followed calls the method of a class, as far as can be told."""
        from_known = any(owner in kind.__mro__ for kind in self._taken_from.get(name, ()))
        return from_known or name in self._taken or _is_special(name)

    # ---- functions --------------------------------------------------------------------------

    def _callable(self, value: Any, label: str, root: str) -> bool:
        """Follow a callable; false if there is nothing to follow in it."""
        self.roots.setdefault(label, root)
        if isinstance(value, types.FunctionType):
            if self._is_followed(value):
                self._function(value, label, root)
            else:
                self.tokens[label] = self._foreign(value, label, root)
        elif isinstance(value, types.MethodType):
            self._keep.append(value)
            owner = value.__self__ if isinstance(value.__self__, type) else type(value.__self__)
            self._taken_from.setdefault(function_name(value), []).append(owner)
            self._owner = owner, function_name(value)
            self._value(value.__func__, label, root)
            self._owner = None
            self._value(value.__self__, f"{label}.__self__", root)
            self.tokens.setdefault(label, Object(value.__func__))
        elif isinstance(value, functools.partial):
            self._value(value.func, f"{label}.func", root)
            self._container(value.args, f"{label}.args", root)
            self._container(value.keywords, f"{label}.keywords", root)
            self.mutable.append((root, value.keywords))
            self.tokens[label] = "a partial", len(value.args), sorted(value.keywords)
        elif self._is_users(type(value)):
            return False
        elif callable(inner := _wrapped(value)):
            # A jitted function: what counts is the function. Others may have rules beside it.
            self._value(inner, label, root)
            self.tokens.setdefault(label, Object(value))
            if not isinstance(value, PjitFunction):
                self.mutable.append((root, value))
                for name, part in attributes(value):
                    if part is not inner:
                        self._foreign_part(part, f"{label}.{name}", root, 1)
        else:
            self.tokens[label] = self._foreign(value, label, root)
        return True

    def _function(self, function: types.FunctionType, label: str, root: str) -> None:
        code = known_code(function.__code__)
        self.mutable.append((root, function))
        if function.__dict__:
            self._objects.append((label, root, function))
        self.tokens[label] = "a function", code.meaning
        self.texts.setdefault(label, brief(function))
        self._stack.append(id(function))
        names = function.__globals__
        self._note_attributes(code, names)
        for name in sorted(code.reads | code.writes.keys()):
            writes = code.writes.get(name, ())
            if not (writes and self._is_only_written(names.get(name), writes)):
                self._global(name, code, names)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if name in code.stored:
                continue
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self._part(value, f"{name} (closure of ", label, function)
        for name, value in _defaults(function):
            self._part(value, f"{name} (default of ", label, function)
        self._stack.pop()

    def _part(self, value: Any, start: str, label: str, function: types.FunctionType) -> None:
        """What a function closes over, or a default, by the label of the function."""
        where, short = f"{start}{label})", f"{start}{function.__name__})"
        if "(" in label and short not in self.shown.values():
            self.shown[where] = short
        self._value(value, where, where)

    def _note_attributes(self, code: Code, names: Mapping[str, Any]) -> None:
        """Add what code says of attributes: of a method under its class, else for all objects."""
        owner, self._owner = self._owner, None
        self._stores.clear()
        self.attributes |= code.names
        self._taken |= code.taken_from_names
        for name, writes in code.attribute_writes.items():
            self._attribute_writes.setdefault(name, set()).update(writes)
        for name, attribute in code.taken_from_globals:
            value = names.get(name)
            kind = value if isinstance(value, type) else type(value)
            if self._is_users(kind):
                self._taken_from.setdefault(attribute, []).append(kind)
        if owner is None:
            self.stored |= code.stored_attributes
        else:
            kind, name = owner
            self._methods.setdefault(kind, {})[name] = code

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
        if module is None or not self._is_new(module, name):
            return
        # By the notebook's name of the module, if it is reached by one.
        home = self._first_labels.get(id(module))
        label = f"{home or module.__name__}.{name}"
        self.mutable.append((self.roots[home] if home else module.__name__, module))
        if name in names:
            self._value(names[name], label, self.roots[home] if home else label)

    def _is_new(self, module: types.ModuleType, name: str) -> bool:
        """Whether a variable of a module has not been looked at yet."""
        member = module.__name__, name
        if member in self.members:
            return False
        self.members.add(member)
        return True

    # ---- code of modules that were installed --------------------------------------------------

    def _foreign(self, value: Any, label: str, root: str, depth: int = 0) -> Any:
        """The token of a callable of another module; follows the user's functions inside it."""
        known = self._foreign_tokens.get(id(value))
        if known is not None:
            return known
        if depth > _MOST_INSIDE:
            return Object(value)
        # One that closes over itself is met again here.
        self._foreign_tokens[id(value)] = "itself"
        parts = [
            self._foreign_part(part, where, root, depth)
            for where, part in _parts_of_foreign(value, label)
        ]
        is_function = isinstance(value, types.FunctionType)
        token = self._foreign_tokens[id(value)] = (
            Foreign(value, parts) if is_function else Object(value)
        )
        return token

    def _foreign_part(self, part: Any, label: str, root: str, depth: int) -> Any:
        """The token of what a callable of another module holds.

        What is the user's is followed, and has a token of its own.
        """
        if isinstance(part, NUMBERS_AND_TEXT):
            return type(part), repr(part)
        kind = type(part)
        if kind in _CONTAINERS and depth <= _MOST_INSIDE and len(part) <= _WHOLE:
            if kind in (set, frozenset):
                return kind, Members(part)
            pairs = part.items() if kind is dict else enumerate(part)
            items = [
                (_as_key(key), self._foreign_part(item, f"{label}[{brief(key)}]", root, depth + 1))
                for key, item in list(pairs)
            ]
            return kind, items
        if isinstance(part, type):
            is_users = self._is_users(part)
        elif not callable(part) or isinstance(part, _NO_CODE):
            is_users = False
        elif isinstance(part, types.FunctionType):
            is_users = self._is_followed(part)
        else:
            is_users = (
                isinstance(part, types.MethodType | functools.partial)
                or callable(_wrapped(part))
                or self._is_users(kind)
            )
        if is_users:
            self._value(part, label, root)
            # The user knows the whole, and not what the other module calls this.
            self.texts.pop(label, None)
            return "followed"
        is_code = callable(part) and not isinstance(part, _NO_CODE)
        return self._foreign(part, label, root, depth + 1) if is_code else Object(part)


def _wrapped(value: Any) -> Any:
    """The function that a decorator was given, where it says so. Runs no code of the user's."""
    return (getattr(value, "__dict__", None) or {}).get("__wrapped__")


def _as_key(key: Any) -> Any:
    return (type(key), repr(key)) if isinstance(key, NUMBERS_AND_TEXT) else Object(key)


def _parts_of_foreign(value: Any, label: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            try:
                yield f"{name} (closure of {label})", cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        for name, item in _defaults(value):
            yield f"{name} (default of {label})", item
        return
    for name, item in attributes(value):
        yield f"{label}.{name}", item


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _class_member(kind: type, name: str) -> Any:
    """What a class has under a name, or inherits. Runs no code of the user's."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


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
