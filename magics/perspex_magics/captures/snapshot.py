"""What a function would capture if it were traced now.

A snapshot is a flat table: a token for each thing that the function can reach, under a label that
the user would write, as in `scale`, `cfg['lr']` or `k (closure of make)`. Functions are followed
into what they read (`functions.py`), containers into their items, objects and modules of the user's
own into those attributes whose names stand in the code that was followed (`readings.py`).

`tokens.State` compares two tables to say whether something has changed. `jit` runs the old program
either way, so it reports a change only if one is likely. A cell under `%%jit` must never use a
wrong program, so it is traced again `in_doubt`: all attributes count as soon as the code may read
them by other means than their names.
"""

from __future__ import annotations

import array
import collections
import contextvars
import enum
import hashlib
import marshal
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from perspex import tree
from perspex.jitted.signature import function_name
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex.tracing.trace import Tracer
from perspex_magics.captures.codes import Code
from perspex_magics.captures.functions import Functions
from perspex_magics.captures.homes import Homes
from perspex_magics.captures.readings import CLASS, Readings
from perspex_magics.captures.tokens import (
    MOST_ITEMS,
    NUMBERS_AND_TEXT,
    PLAIN_KINDS,
    DeviceArray,
    Members,
    Object,
    Table,
    key_token,
    labelled,
)
from perspex_magics.notebook.kinds import is_a, items, plain
from perspex_magics.notebook.own_modules import is_own

# What lies beyond so many is not looked at; following 2,000 takes some 5 ms.
_MOST = 2_000
# The content of NumPy arrays of no more bytes is kept, and not a digest of it.
_SMALL = 256
_CONTAINERS = (list, deque, tuple, set, frozenset, dict)
# Containers that hold nothing but their items.
_EXACT = (list, deque, tuple, set, frozenset, dict, collections.OrderedDict)
_BYTES = (bytearray, array.array)
_LISTS, _SETS = (list, deque), (set, frozenset)
_CHANGEABLE = (list, deque, set, dict, *_BYTES)
_BY_TEXT = (float, complex)
_OPAQUE = (types.ModuleType, types.BuiltinFunctionType)
_HOMES = (type, types.ModuleType)
_PICKERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_MAKING = {"__init__", "__new__", "__post_init__", "__init_subclass__"}


class Content(Protocol):
    """Knows what a NumPy array holds."""

    def content(self) -> Any:
        """Equal for equal arrays."""


Arrays = Callable[[np.ndarray[Any, Any]], Content]


def of_function(
    function: Any,
    namespace: Mapping[str, Any],
    arrays: Arrays,
    static: Sequence[tuple[str, Any]] = (),
) -> Table:
    """What a jitted function reads.

    Args:
      function: what is jitted; it need not be the notebook's own, as `grad(loss)` is not.
      namespace: the notebook's.
      arrays: gives the probe of a NumPy array, which knows its content.
      static: its static arguments by name. What they hold may change in place.
    """
    snapshot = Snapshot(namespace, arrays)
    name = function_name(function)
    snapshot.value(function, name, name)
    for argument, value in static:
        if type(value) not in PLAIN_KINDS:
            root = f"{argument} (static argument of {name})"
            snapshot.table.shown[root] = argument
            snapshot.value(value, root, root)
    snapshot.follow_objects()
    snapshot.table.tell()
    return snapshot.table


def of_values(
    namespace: Mapping[str, Any],
    values: Mapping[str, Any],
    parts: Sequence[tuple[str, str, Any]] = (),
    inputs: Collection[str] = (),
    code: Code | None = None,
) -> Table:
    """What a cell or a call captures: everything that may count.

    Args:
      namespace: the notebook's.
      values: what is captured, by name.
      parts: parts of other values that are, each with its label and the name of the whole.
      inputs: the names of these.
      code: the cell's own, which says which attributes it reads.
    """
    snapshot = Snapshot(namespace, Exact, in_doubt=True)
    table = snapshot.table
    for name in inputs:
        table.say(name, namespace[name])
    table.names.update(values)
    if code is not None:
        snapshot.functions.reads(code, namespace, is_cell=True)
    for name, value in values.items():
        snapshot.value(value, name, name)
    for label, root, value in parts:
        snapshot.value(value, label, root)
    snapshot.follow_objects()
    return table


class Exact:
    """The whole content of a NumPy array, which takes about 1 s per GB."""

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.value = value

    def content(self) -> Any:
        value = self.value
        if value.nbytes <= _SMALL:
            return value.shape, value.dtype, value.tobytes()
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return value.shape, value.dtype, hashlib.blake2b(flat.data).digest()


class Snapshot:
    """Goes into values, and writes down what it finds."""

    def __init__(self, namespace: Mapping[str, Any], arrays: Arrays, in_doubt: bool = False):
        self.arrays, self.in_doubt = arrays, in_doubt
        self.table = Table()
        self.homes = Homes(namespace)
        self.readings = Readings(self.homes, in_doubt)
        # The values that are being gone into, and where objects were met first.
        self.stack: list[int] = []
        self.first_labels: dict[int, str] = {}
        self.functions = Functions(self)
        self._objects: list[tuple[str, str, Any]] = []
        # In doubt, values count even where what holds them is not gone into.
        self._most = sys.maxsize if in_doubt else _MOST
        self._entered = 0

    # ---- values -----------------------------------------------------------------------------

    def value(self, value: Any, label: str, root: str) -> None:
        """Go into a value of any kind."""
        table = self.table
        if len(table.tokens) >= self._most or id(value) in self.stack:
            return
        kind = type(value)
        if is_a(value, Tracer):
            table.has_tracers = True
            table.texts[root] = "a traced value"
            return
        if root not in table.said:
            table.said[root] = value
        table.roots[label] = root
        token: Any
        if kind in PLAIN_KINDS or (is_a(value, NUMBERS_AND_TEXT) and not is_a(value, enum.Enum)):
            # Some by their text, since 0.0 == -0.0 and nan != nan.
            token = kind, repr(plain(value)) if is_a(value, _BY_TEXT) else plain(value)
        elif is_a(value, np.generic):
            token = kind, value.tobytes()
        elif is_a(value, ArrayImpl):
            token = DeviceArray(value, self._place(value), value.aval)
        elif is_a(value, KeyArray):
            token = DeviceArray(value.base, self._place(value.base), value.aval)
        elif self.in_doubt and self._entered >= _MOST and not is_a(value, np.ndarray):
            token = Object(value)
        else:
            self._entered += 1
            self.stack.append(id(value))
            token = self._structure(value, label, root)
            self.stack.pop()
        table.tokens[label] = token

    def later(self, value: Any, label: str, root: str) -> None:
        """Go into the attributes of an object once all code has been followed."""
        self._objects.append((label, root, value))

    def _place(self, value: Any) -> Any:
        """Where an array lies, which a program may be compiled for."""
        return (value.sharding, value.committed) if self.in_doubt else None

    def _structure(self, value: Any, label: str, root: str) -> Any:
        """The token of what has parts; goes into the parts."""
        kind = type(value)
        if is_a(value, np.ndarray):
            return self._array(value, label, root)
        if is_a(value, enum.Enum):
            return self._enum(value, label, root)
        if is_a(value, _CHANGEABLE):
            if self.in_doubt and (first := self.first_labels.setdefault(id(value), label)) != label:
                return "the same object as", first
            self.table.mutable.append((root, value))
        if is_a(value, _BYTES):
            return kind, bytes(value)
        if is_a(value, _CONTAINERS):
            return self._container(value, label, root)
        if is_a(value, slice):
            for part in ("start", "stop", "step"):
                self.value(getattr(value, part), f"{label}.{part}", root)
            return kind.__qualname__
        if is_a(value, type):
            return self._class(value, label, root)
        if is_own(value):
            return self._object(value, label, root)
        if is_a(value, contextvars.ContextVar):
            self.table.mutable.append((root, value))
            self.value(value.get(None), f"{label}.get()", root)
            return kind.__qualname__
        if is_a(value, _OPAQUE):
            self.functions.open_for(value)
            return Object(value)
        if is_a(value, _PICKERS):
            self.readings.is_open |= self.in_doubt and kind is not operator.itemgetter
            made: Any = value.__reduce__()
            if kind is operator.attrgetter:
                self.readings.note_names(part for name in made[1] for part in name.split("."))
            for i, part in enumerate(made[1:]):
                self.value(part, f"{label}.arguments[{i}]", root)
            return kind.__qualname__
        if callable(value) and self.functions.call(value, label, root):
            return self.table.tokens[label]
        if self._is_mapping(value):
            self.table.mutable.append((root, value))
            if self.in_doubt or self.homes.has_class(kind):
                self.later(value, label, root)
            return self._container(dict(value), label, root)
        return self._object(value, label, root)

    def _array(self, value: np.ndarray[Any, Any], label: str, root: str) -> Any:
        self.table.mutable.append((root, value))
        if self.in_doubt:
            if type(value) is not np.ndarray:
                self.readings.is_open = True
                self.later(value, label, root)
            if value.dtype.hasobject:
                for i, item in enumerate(value.reshape(-1).tolist()):
                    self.value(item, f"{label}.flat[{i}]", root)
                return type(value), value.shape, value.dtype
        content = self.table.contents[id(value)] = self.arrays(value).content()
        return type(value), content

    def _class(self, value: type, label: str, root: str) -> Any:
        if not self.homes.has_class(value):
            self.functions.open_for(value)
            return Object(value)
        self._open_for_class(value)
        bases = [base.__qualname__ for base in value.__bases__]
        return self._object(value, label, root), bases

    def _open_for_class(self, kind: type) -> None:
        """An installed base class may call methods and read attributes by any name."""
        if self.in_doubt and not self.homes.has_plain_class(kind):
            self.readings.is_open = True

    def _open_for_node(self, kind: type) -> None:
        """The function that takes a registered container apart is named nowhere."""
        if self.in_doubt and tree.is_tree_node(kind) and not hasattr(kind, "_fields"):
            self.readings.is_open = True

    def _enum(self, value: enum.Enum, label: str, root: str) -> Any:
        kind = type(value)
        if value.name is not None:
            self.table.texts[label] = f"{kind.__qualname__}.{value.name}"
        if self.homes.has_class(kind):
            self.value(value.value, f"{label}.value", root)
            self.value(kind, f"{label}.{CLASS}", root)
        return kind.__qualname__, value.name

    # ---- containers -------------------------------------------------------------------------

    def _container(self, value: Any, label: str, root: str) -> Any:
        kind = type(value)
        name: Any = kind.__qualname__
        if kind not in _EXACT:
            self._open_for_node(kind)
            if self.homes.has_class(kind):
                # Its class and attributes count as well as its items.
                self.later(value, label, root)
            elif self.in_doubt:
                name = name, Object(value)
                if is_a(value, collections.defaultdict):
                    self.value(value.default_factory, f"{label}.default_factory", root)
            value = _own(value)
        if len(value) > MOST_ITEMS:
            inside = [*value, *value.values()] if is_a(value, dict) else value
            if PLAIN_KINDS.issuperset(map(type, inside)):
                # Version 2 writes equal values as equal bytes.
                return name, hashlib.sha1(marshal.dumps(_basic(value), 2)).digest()
        if is_a(value, dict):
            for place, item in labelled(value, label):
                self.value(item, place, root)
            return name, [key_token(key) for key in value]
        if is_a(value, _SETS):
            if self.in_doubt:
                others = [item for item in value if not is_a(item, NUMBERS_AND_TEXT)]
                for i, item in enumerate(others):
                    self.value(item, f"{label} (element {i})", root)
            return name, Members(value)
        fields = getattr(kind, "_fields", None)
        for i, item in enumerate(value):
            at = f"[{i}]" if fields is None else f".{fields[i]}"
            self.value(item, f"{label}{at}", root)
        return name, len(value)

    def _is_mapping(self, value: Any) -> bool:
        """Whether a value is read as a mapping; the user's own code is not run to be certain."""
        if not is_a(value, Mapping):
            return False
        return not (self.in_doubt and self.homes.has_class(type(value)))

    # ---- objects ----------------------------------------------------------------------------

    def _object(self, value: Any, label: str, root: str) -> Any:
        """The token of an object for now; its attributes come when all code has been followed."""
        first = self.first_labels.setdefault(id(value), label)
        if first != label:
            return "the same object as", first
        self.later(value, label, root)
        kind = type(value)
        if self.in_doubt and not is_a(value, _HOMES):
            self._open_for_node(kind)
            if not self.homes.has_class(kind):
                self.functions.open_for(value)
                return kind.__qualname__, Object(value)
        return kind.__qualname__

    def follow_objects(self) -> None:
        """Go into the attributes whose names are read by the code; which may add to the code."""
        tokens = self.table.tokens
        done: set[tuple[str, str]] = set()
        while True:
            before = len(done)
            for label, root, value in list(self._objects):
                self.stack.append(id(value))
                # An instance has been made already, and others are seldom made of its class.
                is_made = label.endswith(CLASS) and not self.in_doubt
                for name, item in self.readings.of(value):
                    if (label, name) in done or (is_made and name in _MAKING):
                        continue
                    done.add((label, name))
                    if is_a(value, types.ModuleType) and not self.functions.is_new(value, name):
                        continue
                    if is_a(value, type) and callable(item):
                        self.functions.owner = value, name
                    self.value(item, f"{label}.{name}", root)
                    self.functions.owner = None
                self.stack.pop()
            if len(done) == before and not self.functions.follow_parts():
                break
        read: set[tuple[str, str]] = set()
        for label, root, value in self._objects:
            names = [name for name, _ in self.readings.of(value)]
            read.update((label, name) for name in names)
            self._close(label, root, value, names)
        for label, name in done - read:
            # It was met before the code that assigns it.
            start = f"{label}.{name}"
            for other in list(tokens):
                if other == start or other.startswith((f"{start}.", f"{start}[")):
                    del tokens[other]

    def _close(self, label: str, root: str, value: Any, names: list[str]) -> None:
        """Finish the token of an object, after its attributes."""
        table = self.table
        kinds = (types.FunctionType, *_CONTAINERS, np.ndarray)
        has_more = is_a(value, kinds) or self._is_mapping(value)
        if names:
            table.tokens[label] = table.tokens[label], sorted(names)
        elif not has_more:
            # Of an object whose attributes nobody reads there is only the object itself.
            table.tokens[label] = Object(value)
        if not has_more:
            table.mutable.append((root, value))
        elif names and (held := getattr(value, "__dict__", None)) is not None:
            # That it may change otherwise is known already.
            table.mutable.append((root, held))


def _own(value: Any) -> Any:
    """A container of a derived class as one of Python's own class, without its methods' help."""
    found = items(value)
    assert found is not None
    if is_a(value, dict):
        return dict(found[0])
    kind = set if is_a(value, _SETS) else tuple if is_a(value, tuple) else list
    return kind(item for _, item in found[0])


def _basic(value: Any) -> Any:
    """A container as one of Python's own, which is what marshal takes."""
    for kind in (tuple, dict):
        if is_a(value, kind):
            return kind(value)
    if is_a(value, _LISTS):
        return list(value)
    return sorted(map(repr, value))
