"""A snapshot looks only at the parts of a variable that the code reads.

A part is read here as Python reads it, but only where that runs no code of the user's: in Python's
own containers, arrays, attributes that stand in an object's `__dict__`, the environment, and
variables of modules. Of everything else the whole counts.
"""

from __future__ import annotations

import collections
import os
import types
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np

from perspex import tree
from perspex.runtime.array import ArrayImpl
from perspex_magics.captures.codes import known_code
from perspex_magics.captures.objects import NAMED_FIELD, class_member
from perspex_magics.captures.paths import CALLED_LATER, STRUCTURE, WRITTEN, Path, Step
from perspex_magics.captures.tokens import MOST_ITEMS, PLAIN_KINDS, Table, labelled
from perspex_magics.display.summaries import brief
from perspex_magics.notebook.kinds import dict_of, is_a
from perspex_magics.notebook.own_modules import is_own

_DICTS = (dict, collections.OrderedDict)
_ROWS = (list, tuple)
_SIZED = (*_DICTS, *_ROWS, set, frozenset, collections.deque, str)
_WRITABLE = (*_DICTS, list, collections.deque, collections.defaultdict, collections.Counter)
_ARRAYS = (np.ndarray, ArrayImpl)
# What arrays say of themselves without their elements.
_OF_TYPE = {"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "weak_type"}
_ENVIRONMENT = type(os.environ)
_MOST_DEPTH = 16
_MISSING = object()


class Walk(Protocol):
    """The snapshot that the parts are met in."""

    table: Table
    in_doubt: bool

    def value(self, value: Any, label: str, root: str) -> None:
        """Go into a value of any kind."""


class Parts:
    """Goes to the parts of variables for one snapshot."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.table, self.in_doubt = walk, walk.table, walk.in_doubt

    def follow(
        self, value: Any, label: str, paths: Collection[Path], names: Mapping[str, Any]
    ) -> None:
        """Look at what some code, whose globals are `names`, reads of the variable `label`.

        Where it writes items itself, those that it looks up by other than constant keys are those
        that it has written, as in a memo of results.
        """
        is_memo = (WRITTEN,) in paths and not self.in_doubt and type(value) in _WRITABLE
        for path in sorted(paths, key=len):
            if not (is_memo and path[0].kind in ("by key", "at key")):
                self._follow(value, label, path, names)

    def _follow(self, value: Any, root: str, path: Path, names: Mapping[str, Any]) -> None:
        label, before = root, {id(value): root}
        for each in path:
            kind, step = type(value), self._looked_up(each, names)
            if step.kind == "at key":
                if self.in_doubt or kind not in _DICTS or len(value) > MOST_ITEMS:
                    break
                # The item that was read was there: no new one is.
                self._container(value, label, root)
                for place, item in labelled(value, label):
                    self.walk.value(item, place, root)
                return
            if step is WRITTEN:
                if kind not in _WRITABLE:
                    break
                return
            if step in (STRUCTURE, CALLED_LATER) and self.in_doubt:
                break  # these are known by the name of what is called
            if step is STRUCTURE:
                if not self._is_plain_tree(value):
                    break
                self._containers(value, label, root)
                self._put(f"{label} (structure)", root, (step, tree.structure(value)))
                return
            if step is CALLED_LATER:
                if not is_a(value, types.FunctionType):
                    break
                token: Any = "a function", known_code(value.__code__).meaning
                self.table.say(label, value)
                self._put(label, root, token)
                return
            found = self._length(value) if step.kind == "length" else _MISSING
            if step.kind == "has" and kind in (*_DICTS, set, frozenset):
                found = step.key in value
            if found is not _MISSING:
                self._container(value, label, root)
                self._put(f"{label} ({step.kind} {step.key!r})", root, (step, found))
                return
            if step.kind == "attribute" and is_a(value, _ARRAYS) and step.key in _OF_TYPE:
                self.table.say(root, value)
                self._put(f"{label} (type)", root, (value.shape, value.dtype))
                return
            if step.kind == "item":
                part = self._item(value, step.key)
                step_label = f"{label}[{brief(step.key)}]"
            elif step.kind == "attribute":
                part = self._attribute(value, step.key)
                step_label = f"{label}.{step.key}"
            else:
                break
            if part is None:
                break
            self._container(value, label, root)
            value = part[0]
            # A list may hold itself.
            label = before.setdefault(id(value), step_label)
            if value is _MISSING:
                self._put(label, root, "not there")
                self.table.texts[label] = "not there"
                return
        self.walk.value(value, label, root)

    def _put(self, label: str, root: str, token: Any) -> None:
        self.table.tokens[label], self.table.roots[label] = token, root

    def _container(self, value: Any, label: str, root: str) -> None:
        """What a part is in: that it is of this kind counts, and that it may change."""
        self.table.say(root, value)
        if is_a(value, types.ModuleType):
            return
        self.table.tokens.setdefault(label, type(value).__qualname__)
        self.table.roots.setdefault(label, root)
        if type(value) is _ENVIRONMENT:
            # What Python keeps of it: the same objects each time.
            value = vars(value)["_data"]
        if not is_a(value, tuple | frozenset | str) and not is_a(value, _ARRAYS):
            self.table.mutable.append((root, value))

    def _is_plain_tree(self, value: Any, depth: int = 0) -> bool:
        """Whether a tree has nodes of Python's own only, so that no code of the user's runs."""
        kind = type(value)
        if kind in (dict, list, tuple):
            inside = value.values() if kind is dict else value
            return depth < _MOST_DEPTH and all(self._is_plain_tree(x, depth + 1) for x in inside)
        return value is None or kind in PLAIN_KINDS or is_a(value, _ARRAYS)

    def _containers(self, value: Any, label: str, root: str) -> None:
        if type(value) in (dict, list, tuple):
            self._container(value, label, root)
            for inside in list(value.values() if type(value) is dict else value):
                self._containers(inside, f"{label} (inside)", root)

    def _looked_up(self, step: Step, names: Mapping[str, Any]) -> Step:
        """The step to the item of the key that a variable holds now, where that is known."""
        if step.kind != "at key" or self.in_doubt or step.key is None or step.key[0] not in names:
            return step
        name, path = step.key
        key = names[name]
        for part in path:
            take = self._item if part.kind == "item" else self._attribute
            if (found := take(key, part.key)) is None:
                return step
            key = found[0]
        return Step("item", key) if type(key) in PLAIN_KINDS else step

    def _length(self, value: Any) -> Any:
        if type(value) in _SIZED:
            return len(value)
        if is_a(value, _ARRAYS) and value.ndim:
            return value.shape[0]
        return _MISSING

    def _item(self, value: Any, key: Any) -> tuple[Any] | None:
        """An item in a tuple, `None` where the whole counts."""
        kind = type(value)
        if kind in _DICTS:
            return (dict.get(value, key, _MISSING),)
        if kind in _ROWS and type(key) is int:
            return (value[key] if -len(value) <= key < len(value) else _MISSING,)
        if kind is _ENVIRONMENT and type(key) is str:
            return (value.get(key, _MISSING),)
        return None

    def _attribute(self, value: Any, name: str) -> tuple[Any] | None:
        """An attribute in a tuple, `None` where the whole counts."""
        kind = type(value)
        if is_a(value, tuple):
            field = class_member(kind, name)
            if isinstance(field, NAMED_FIELD):
                return (field.__get__(value),)
        held = dict_of(value)
        if held is None or name not in held:
            return None
        if is_a(value, types.ModuleType):
            part = held[name]
            is_followed = type(part) in (*PLAIN_KINDS, _ENVIRONMENT) and not is_own(value)
            return (part,) if is_followed else None
        if kind is types.SimpleNamespace or _is_plain(kind, name):
            return (held[name],)
        return None


def _is_plain(kind: type, name: str) -> bool:
    """Whether objects of a class give an attribute as it stands in their `__dict__`."""
    for base in kind.__mro__[:-1]:
        own = vars(base)
        if "__getattribute__" in own or hasattr(type(own.get(name)), "__set__"):
            return False
    return True
