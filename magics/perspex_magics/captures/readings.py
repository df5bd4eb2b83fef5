"""Which attributes of an object are read by the code that a snapshot has followed.

Code names the attributes that it reads, but seldom shows of which object. So an attribute counts
for all objects that have it. An attribute that the code assigns itself, such as a count of its
traces, is not an input of a trace; for the methods of a class it is known whose attribute it is.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping
from typing import Any

from perspex_magics.captures.codes import Code, Write
from perspex_magics.captures.homes import Homes
from perspex_magics.captures.objects import NAMED_FIELD, attributes, class_member, unwrapped
from perspex_magics.notebook.kinds import is_a
from perspex_magics.notebook.own_modules import is_own

# The step from an object to its class.
CLASS = "__class__"
# How a class makes its slots and the fields of its named tuples readable.
_FIELDS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    NAMED_FIELD,
)
_BY_ANY_NAME = {"getattr", "vars", "__dict__"}
# Attributes by which code that was installed tells arrays from other objects.
_OF_ARRAYS = {"aval", "dtype", "nbytes", "ndim", "shape", "sharding", "size", "weak_type"}
# Members of every class, which say nothing of what it does.
_IN_CLASSES = {
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


class Readings:
    """What the followed code says about attributes.

    With `in_doubt`, an attribute counts unless it is certain that no code reads it. Attributes of
    an instance then count even if the code assigns them, since it may read them first.
    """

    def __init__(self, homes: Homes, in_doubt: bool) -> None:
        self.homes, self.in_doubt = homes, in_doubt
        # Whether something was met that may read attributes by names that cannot be seen.
        self.is_open = False
        # Whether code may read attributes of objects by names that it makes.
        self.by_any_name = False
        self._names: set[str] = set(_OF_ARRAYS) if in_doubt else set()
        # Those of which the code only calls methods that may write, and which.
        self._writes: dict[str, set[Write]] = {}
        # Those that functions assign, and those variables that functions of a module assign.
        self._stored: set[str] = set()
        self._stored_in_modules: dict[int, set[str]] = {}
        # The methods of classes that were followed, by name; the names that the code takes from
        # variables and attributes, those that it takes from objects of known classes; and what all
        # that says of the attributes of a class.
        self._methods: dict[type, dict[str, Code]] = {}
        self._taken: set[str] = set()
        self._taken_from: dict[str, list[type]] = {}
        self._stores: dict[type, set[str]] = {}

    def note(
        self, code: Code, names: Mapping[str, Any], owner: tuple[type, str] | None, is_cell: bool
    ) -> None:
        """Add what code says, whose globals are `names`.

        Of a method, with its class and its name there as `owner`, it is said of that class, else of
        all objects. What a cell assigns itself is not said to be no input.
        """
        self._stores.clear()
        self._names |= code.names
        self._taken |= code.taken_from_names
        for name, writes in code.attribute_writes.items():
            self._writes.setdefault(name, set()).update(writes)
        for name, attribute in code.taken_from_globals:
            value = names.get(name)
            kind: type = value if is_a(value, type) else type(value)  # type: ignore[assignment]
            if self.homes.has_class(kind):
                self.note_taken(attribute, kind)
        if owner is not None:
            kind, name = owner
            self._methods.setdefault(kind, {})[name] = code
        elif not is_cell:
            self._stored |= code.stored_attributes
        self._stored_in_modules.setdefault(id(names), set()).update(code.stored)
        self.is_open |= self.in_doubt and code.is_open
        self.by_any_name |= not code.names.isdisjoint(_BY_ANY_NAME)

    def note_names(self, names: Iterable[str]) -> None:
        """Code reads attributes of these names, of objects that are not known."""
        self._names |= set(names)

    def note_taken(self, name: str, kind: type) -> None:
        """An attribute of this name is taken from an object of a class."""
        self._taken_from.setdefault(name, []).append(kind)

    def of(self, value: Any) -> list[tuple[str, Any]]:
        """The attributes of an object that the code reads: by their names, or all if it is data."""
        if is_a(value, type):
            return self._of_class(value)
        kind = type(value)
        names = dict(attributes(value))
        if issubclass(kind, types.ModuleType):
            stored = self._stored_in_modules.get(id(value.__dict__), set())
            stored = stored if self.in_doubt else stored | self._stored_in(kind)
            if self.is_open:
                return [(n, x) for n, x in names.items() if n not in stored and n[:2] != "__"]
            names = {n: x for n, x in names.items() if n not in stored and self._reads(n, x)}
        elif self._is_data(kind):
            names = {name: item for name, item in names.items() if name not in _IN_CLASSES}
        else:
            stored = set() if self.in_doubt else self._stored_in(kind)
            names = {n: x for n, x in names.items() if n not in stored and self._reads(n, x)}
        found = list(names.items())
        if self.homes.has_class(kind):
            found.append((CLASS, kind))
        return found

    def _is_data(self, kind: type) -> bool:
        """Whether all attributes of the objects of a class count."""
        if self.in_doubt and (self.is_open or not self.homes.has_class(kind)):
            return True
        if self.by_any_name and self.homes.has_class(kind):
            return True
        return dataclasses.is_dataclass(kind) or kind is types.SimpleNamespace

    def _of_class(self, kind: type) -> list[tuple[str, Any]]:
        """The members of a class of the user's that the code reads, and those with `__names__`.

        Inherited ones are found under the classes that have them.
        """
        found: list[tuple[str, Any]] = []
        stored = self._stored_in(kind)
        for name, member in list(kind.__dict__.items()):
            if name in _IN_CLASSES or is_a(member, _FIELDS):
                continue
            if is_special(name) or (
                name not in stored and (self.is_open or self._reads(name, member))
            ):
                part = unwrapped(member)
                if part is not None or member is None:
                    found.append((name, part))
        bases = [base for base in kind.__bases__ if self.homes.has_class(base)]
        return found + [(f"{CLASS}({base.__name__})", base) for base in bases]

    def _reads(self, name: str, value: Any) -> bool:
        """Whether code that was followed reads an attribute of this name, which has that value."""
        if name in self._names:
            return True
        writes = self._writes.get(name)
        return writes is not None and not self.is_only_written(value, writes)

    def is_only_written(self, value: Any, writes: Iterable[Write]) -> bool:
        """Whether calls of these methods tell nothing of an object.

        Those of Python's own containers return nothing. What others return tells something unless
        it is dropped, and the user's may do more than write to their object.
        """
        for write in writes:
            if not is_a(class_member(type(value), write.method), types.MethodDescriptorType):
                is_users = self.homes.has_class(type(value)) or is_own(value)
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
            found = self._stores[kind] = set() if self.in_doubt else set(self._stored)
            for owner, methods in self._methods.items():
                if self.in_doubt and owner not in kind.__mro__ and kind not in owner.__mro__:
                    continue
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
        return from_known or name in self._taken or is_special(name)


def is_special(name: str) -> bool:
    """Whether a name is one of those that Python itself looks up."""
    return name.startswith("__") and name.endswith("__")
