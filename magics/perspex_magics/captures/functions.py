"""Following functions: into the globals that they read, their closures and their defaults.

A snapshot follows functions of the notebook and of the user's own modules. It does not follow the
code of installed modules, but it follows the user's functions in their closures; that is how it
sees through `grad(loss)`.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from perspex.base.xla import PjitFunction
from perspex.jitted.signature import function_name
from perspex_magics.captures.codes import BY_OTHER_NAMES, READS_ANYTHING, Code, known_code
from perspex_magics.captures.homes import Globals, Homes, home_of, is_harmless
from perspex_magics.captures.objects import attributes, closure, defaults, wrapped
from perspex_magics.captures.partly import Parts
from perspex_magics.captures.paths import Path
from perspex_magics.captures.readings import Readings
from perspex_magics.captures.tokens import (
    NUMBERS_AND_TEXT,
    Foreign,
    Members,
    Object,
    Table,
    key_token,
)
from perspex_magics.display.summaries import brief
from perspex_magics.notebook.kinds import is_a
from perspex_magics.notebook.own_modules import module_of

# Functions inside of functions of other modules are looked for so deep, in containers of no more
# items.
_MOST_INSIDE = 6
_MOST_ITEMS = 32
# What can be called, and holds no function of the user's.
_NO_CODE = (type, types.BuiltinFunctionType, np.ufunc)
_BUILTIN = types.BuiltinFunctionType
_CONTAINERS = (list, tuple, set, frozenset, dict)
_MISSING = object()


class Walk(Protocol):
    """The snapshot that functions are met in."""

    table: Table
    homes: Homes
    readings: Readings
    stack: list[int]
    first_labels: dict[int, str]
    in_doubt: bool

    def value(self, value: Any, label: str, root: str) -> None:
        """Go into a value of any kind."""

    def later(self, value: Any, label: str, root: str) -> None:
        """Go into the attributes of an object once all code has been followed."""


class Functions:
    """Follows the functions of one snapshot."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.table, self.homes = walk, walk.table, walk.homes
        self.readings = walk.readings
        self.in_doubt = walk.readings.in_doubt
        # Of which class what is followed next is a method, and its name there.
        self.owner: tuple[type, str] | None = None
        # The globals that were looked up: those of modules, and those of expressions.
        self._members: set[tuple[str, str]] = set()
        # The globals that code reads as a whole, the parts that it reads of others, and the parts
        # that have been looked at.
        self._whole: set[str] = set()
        self._partly: dict[str, set[Path]] = {}
        self._parts, self._followed = Parts(walk), set[tuple[str, Path]]()
        self._tokens: dict[int, Any] = {}
        self._keep: list[Any] = []

    # ---- what can be called -----------------------------------------------------------------

    def call(self, value: Any, label: str, root: str) -> bool:
        """Follow a callable; false if it is an object like others."""
        table, walk = self.table, self.walk
        table.roots.setdefault(label, root)
        if is_a(value, types.FunctionType):
            if self.homes.has_function(value):
                self._function(value, label, root)
            else:
                table.tokens[label] = self._foreign(value, label, root)
        elif is_a(value, types.MethodType):
            self._keep.append(value)
            owner = value.__self__ if is_a(value.__self__, type) else type(value.__self__)
            name = function_name(value)
            self.readings.note_taken(name, owner)
            self.owner = owner, name
            walk.value(value.__func__, label, root)
            self.owner = None
            walk.value(value.__self__, f"{label}.__self__", root)
            table.tokens.setdefault(label, Object(value.__func__))
        elif is_a(value, functools.partial):
            self._partial(value, label, root)
        elif self.homes.has_class(type(value)):
            return False
        elif callable(inner := wrapped(value)):
            self._decorated(value, inner, label, root)
        else:
            table.tokens[label] = self._foreign(value, label, root)
            if self.in_doubt and not is_a(value, _NO_CODE):
                walk.later(value, label, root)
        return True

    def _partial(self, value: functools.partial[Any], label: str, root: str) -> None:
        self.walk.value(value.func, f"{label}.func", root)
        for i, item in enumerate(value.args):
            self.walk.value(item, f"{label}.args[{i}]", root)
        for name, item in list(value.keywords.items()):
            self.walk.value(item, f"{label}.keywords[{brief(name)}]", root)
        self.table.mutable.append((root, value.keywords))
        self.table.tokens[label] = "a partial", len(value.args), sorted(value.keywords)

    def _decorated(self, value: Any, inner: Any, label: str, root: str) -> None:
        """A jitted function: what counts is the function. Others may have rules beside it."""
        self.walk.value(inner, label, root)
        self.table.tokens.setdefault(label, Object(value))
        if is_a(value, PjitFunction):
            compiled = getattr(value.__dict__.get("retrace"), "__self__", None)
            if self.in_doubt and compiled is not None:
                at = f"{label} (jitted)"
                self.table.tokens[at], self.table.roots[at] = Object(compiled.options), root
            return
        self.table.mutable.append((root, value))
        self.open_for(value)
        for name, part in attributes(value):
            if part is not inner:
                self._foreign_part(part, f"{label}.{name}", root, 1)

    def _function(self, function: types.FunctionType, label: str, root: str) -> None:
        code = known_code(function.__code__)
        self.table.mutable.append((root, function))
        if function.__dict__:
            self.walk.later(function, label, root)
        self.table.tokens[label] = "a function", code.meaning
        self.table.say(label, function)
        self.walk.stack.append(id(function))
        self.reads(code, function.__globals__)
        for name, value in closure(function):
            if self.in_doubt or name not in code.stored:
                paths = code.cell_paths.get(name)
                self._part(value, f"{name} (closure of ", label, function, paths)
        for name, value in defaults(function):
            self._part(value, f"{name} (default of ", label, function)
        self.walk.stack.pop()

    def _part(
        self,
        value: Any,
        start: str,
        label: str,
        function: types.FunctionType,
        paths: Collection[Path] | None = None,
    ) -> None:
        """What a function closes over, or a default, by the label of the function."""
        where, short = f"{start}{label})", f"{start}{function.__name__})"
        shown = self.table.shown
        if "(" in label and short not in shown.values():
            shown[where] = short
        if paths is None:
            self.walk.value(value, where, where)
        else:
            self._parts.follow(value, where, paths, function.__globals__)

    # ---- globals ----------------------------------------------------------------------------

    def reads(self, code: Code, names: Mapping[str, Any], is_cell: bool = False) -> None:
        """Follow what code reads, whose globals are `names`."""
        owner, self.owner = self.owner, None
        self.readings.note(code, names, owner, is_cell)
        if self.in_doubt and code.reads_anything:
            self.table.is_known = False
        if is_cell:
            return
        for name in sorted(code.reads | code.writes.keys() | self._by_text(code)):
            writes = code.writes.get(name, ())
            if not (writes and self.readings.is_only_written(names.get(name), writes)):
                self._global(name, code, names)

    def _by_text(self, code: Code) -> frozenset[str]:
        """The globals that code may look up in `globals()`, by the strings in it."""
        if "globals" not in code.reads:
            return frozenset()
        return frozenset(code.names - code.loaded_attributes - code.stored - code.reads)

    def _global(self, name: str, code: Code, names: Mapping[str, Any]) -> None:
        if type(names) is Globals:
            self._of_expression(name, names)
            return
        if names is not self.homes.namespace:
            self._member(name, names)
            return
        table = self.table
        if name in self._whole:
            return
        table.names.add(name)
        paths = code.paths.get(name)
        if paths is not None and name in names and "globals" not in code.reads:
            self._partly.setdefault(name, set()).update(paths)
            return
        self._whole.add(name)
        value = names.get(name, _MISSING)
        if value is not _MISSING:
            self.walk.value(value, name, name)
        elif hasattr(builtins, name) or not code.names.isdisjoint(("NameError", "globals")):
            # What hides a built-in function counts; what nobody could read does not.
            table.tokens[name], table.roots[name] = "not defined", name
            table.texts[name] = "Python's own" if hasattr(builtins, name) else "not defined"

    def follow_parts(self) -> bool:
        """Look at the parts of globals that are read; false if all have been looked at."""
        names = self.homes.namespace
        new = {
            name: paths - {path for of, path in self._followed if of == name}
            for name, paths in self._partly.items()
            if name not in self._whole
        }
        for name, paths in new.items():
            self._followed.update((name, path) for path in paths)
            self._parts.follow(names[name], name, paths, names)
        return any(new.values())

    def _of_expression(self, name: str, names: Globals) -> None:
        """A global of a function that an expression made."""
        if self._is_new(f"an expression {id(names)}", name) and name in names:
            self.table.mutable.append((name, names))
            self.walk.value(names[name], name, name)

    def _member(self, name: str, names: Mapping[str, Any]) -> None:
        """A global of a module of the user's own."""
        module = module_of(names)
        if module is None or not self.is_new(module, name):
            return
        # By the notebook's name of the module, if it is reached by one.
        roots = self.table.roots
        home = self.walk.first_labels.get(id(module))
        label = f"{home or module.__name__}.{name}"
        self.table.mutable.append((roots[home] if home else module.__name__, module))
        if name in names:
            self.walk.value(names[name], label, roots[home] if home else label)

    def is_new(self, module: types.ModuleType, name: str) -> bool:
        """Whether a variable of a module has not been looked at yet."""
        return self._is_new(module.__name__, name)

    def _is_new(self, home: str, name: str) -> bool:
        member = home, name
        if member in self._members:
            return False
        self._members.add(member)
        return True

    # ---- code of modules that were installed --------------------------------------------------

    def open_for(self, value: Any) -> None:
        """Note that installed code was met: unless it is harmless, it may read any attribute."""
        if self.in_doubt:
            name = getattr(value, "__name__", "") if is_a(value, _BUILTIN) else ""
            if name in BY_OTHER_NAMES or not is_harmless(home_of(value)):
                self.readings.is_open = True
            if name in READS_ANYTHING:
                self.table.is_known = False

    def _foreign(self, value: Any, label: str, root: str, depth: int = 0) -> Any:
        """The token of a callable of another module; follows the user's functions inside it."""
        known = self._tokens.get(id(value))
        if known is not None:
            return known
        self.open_for(value)
        if depth > _MOST_INSIDE:
            return Object(value)
        self._keep.append(value)
        # One that closes over itself is met again here.
        self._tokens[id(value)] = "itself"
        parts = [
            self._foreign_part(part, where, root, depth)
            for where, part in _parts_of_foreign(value, label)
        ]
        is_function = is_a(value, types.FunctionType)
        token = self._tokens[id(value)] = Foreign(value, parts) if is_function else Object(value)
        return token

    def _foreign_part(self, part: Any, label: str, root: str, depth: int) -> Any:
        """The token of what a callable of another module holds.

        What is the user's is followed, and has a token of its own.
        """
        if is_a(part, NUMBERS_AND_TEXT):
            return type(part), repr(part)
        kind = type(part)
        if kind in _CONTAINERS and depth <= _MOST_INSIDE and len(part) <= _MOST_ITEMS:
            return self._foreign_items(part, label, root, depth)
        if is_a(part, type):
            is_users = self.homes.has_class(part)
        elif not callable(part) or is_a(part, _NO_CODE):
            is_users = False
        elif is_a(part, types.FunctionType):
            is_users = self.homes.has_function(part)
        else:
            is_users = (
                is_a(part, types.MethodType | functools.partial)
                or callable(wrapped(part))
                or self.homes.has_class(kind)
            )
        if is_users:
            self.walk.value(part, label, root)
            # The user knows the whole, and not what the other module calls this.
            self.table.texts.pop(label, None)
            self.table.said.pop(label, None)
            return "followed"
        is_code = callable(part) and not is_a(part, _NO_CODE)
        return self._foreign(part, label, root, depth + 1) if is_code else Object(part)

    def _foreign_items(self, part: Any, label: str, root: str, depth: int) -> Any:
        kind = type(part)
        if self.in_doubt and kind in (list, dict, set):
            self.table.mutable.append((root, part))
        if kind in (set, frozenset):
            return kind, Members(part)
        pairs: Iterable[tuple[Any, Any]] = part.items() if kind is dict else enumerate(part)
        return kind, [
            (key_token(key), self._foreign_part(item, f"{label}[{brief(key)}]", root, depth + 1))
            for key, item in list(pairs)
        ]


def _parts_of_foreign(value: Any, label: str) -> Iterator[tuple[str, Any]]:
    if is_a(value, types.FunctionType):
        for name, item in closure(value):
            yield f"{name} (closure of {label})", item
        for name, item in defaults(value):
            yield f"{name} (default of {label})", item
        return
    for name, item in attributes(value):
        yield f"{label}.{name}", item
