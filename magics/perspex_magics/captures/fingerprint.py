"""What a traced cell depends on besides its inputs: functions, strings, objects with attributes.

Tracing freezes these, so a compiled cell may be used again only while they are what they were. A
`fingerprint` says so: two are equal where tracing again would meet the same things. It follows
functions of the notebook and of the user's own modules into the globals they read, containers into
their items, objects into their attributes and their classes, and such modules into what they hold,
since changing any of those in another cell changes what this one means.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
import weakref
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from perspex.base.xla import PjitFunction
from perspex.runtime.array import ArrayImpl
from perspex.tracing.trace import Tracer
from perspex_magics.captures.codes import known_code
from perspex_magics.captures.snapshot import IN_CLASSES, unwrapped
from perspex_magics.notebook.names import READ_BY_NAME, global_reads
from perspex_magics.notebook.own_modules import is_own, module_of

_PLAIN = (str, bytes, int, complex, bool, type(None), type(...))
_OPAQUE = (ArrayImpl, type, types.ModuleType, types.BuiltinFunctionType)
# A function that calls one of these may read anything, so it is never known to be the same.
_READ_ANYTHING = READ_BY_NAME - {"locals", "vars"}
# Past so many objects the rest is told apart by identity alone; following 2,000 takes about 2 ms.
_MOST_OBJECTS = 2_000


class Globals(dict[str, Any]):
    """What an expression reads of the notebook: the globals of the functions that it makes."""


class Same:
    """Equal to another `Same` only if both are of the very same object.

    Arrays are not kept alive by it; one that is gone is equal to none.
    """

    __slots__ = ("_hash", "_kept")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        self._kept = weakref.ref(value) if isinstance(value, ArrayImpl) else lambda: value

    def __eq__(self, other: object) -> bool:
        mine = self._kept()
        return isinstance(other, Same) and mine is not None and mine is other._kept()

    def __hash__(self) -> int:
        return self._hash


def fingerprint(value: Any, namespace: Mapping[str, Any]) -> Hashable:
    """A key for what `value` means to a cell that is traced now.

    Args:
      value: anything that a cell reads.
      namespace: the notebook's; functions that look their globals up in it are followed.

    >>> scale = 2.0
    >>> double = lambda x: scale * x
    >>> before = fingerprint(double, globals())
    >>> fingerprint(double, globals()) == before
    True
    >>> scale = 3.0
    >>> fingerprint(double, globals()) == before
    False
    """
    seen: dict[int, int] = {}

    def visit(value: Any) -> Hashable:
        if isinstance(value, _PLAIN):
            return (type(value), value)
        if isinstance(value, float):
            # By its text, since 0.0 == -0.0 and nan != nan.
            return (float, repr(value))
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return (value.shape, value.dtype, _digest(value))
        if id(value) in seen:
            return ("again", seen[id(value)])
        is_home = isinstance(value, type | types.ModuleType) and _is_users(value, namespace)
        if (isinstance(value, _OPAQUE) and not is_home) or len(seen) >= _MOST_OBJECTS:
            return Same(value)
        seen[id(value)] = len(seen)
        if is_home:
            return (Same(value), tuple([(name, visit(item)) for name, item in _members(value)]))
        if isinstance(value, set | frozenset):
            return (type(value), frozenset(map(visit, value)))
        inside = [(label, visit(part)) for label, part in parts(value)]
        if isinstance(value, types.FunctionType):
            names = value.__globals__
            is_followed = names is namespace or isinstance(names, Globals)
            if not is_followed and module_of(names) is None:
                return Same(value)
            if global_reads(value.__code__) & _READ_ANYTHING:
                return object()
            # Not what the function itself assigns or only appends to, such as a log of its traces.
            reads = sorted(known_code(value.__code__).reads & names.keys())
            inside += [(name, visit(names[name])) for name in reads]
            return (value.__code__, tuple(inside))
        if type(value) in (list, tuple, dict):
            return (type(value), tuple(inside))
        kind = type(value)
        if _is_users(kind, namespace):
            inside.append((".__class__", visit(kind)))
        return (Same(value), tuple(inside))

    return visit(value)


def _is_users(home: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a class is the notebook's or of a module of the user's own, or a module is such."""
    if isinstance(home, types.ModuleType):
        return is_own(home)
    name = home.__module__
    return name == namespace.get("__name__", "__main__") or is_own(sys.modules.get(name))


def _members(home: Any) -> list[tuple[str, Any]]:
    """What a class or a module holds, but for what its own functions assign, such as counts."""
    members = list(vars(home).items())
    if isinstance(home, types.ModuleType):
        found = [(name, item) for name, item in members if not name.startswith("__")]
    else:
        found = [
            (k, part) for k, item in members if k not in IN_CLASSES for part in unwrapped(item)
        ]
        found += [(f"({base.__name__})", base) for base in home.__bases__]
    codes = [known_code(f.__code__) for _, f in found if isinstance(f, types.FunctionType)]
    assigned = {name for code in codes for name in code.stored | code.stored_attributes}
    return [(name, item) for name, item in found if name not in assigned]


def _digest(value: np.ndarray[Any, Any]) -> bytes:
    """The contents of an array, which Python may change in place; about 1 s per GB."""
    return hashlib.blake2b(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data).digest()


def find_tracer(value: Any) -> str | None:
    """Where inside `value` a tracer is kept, as in `.weight` or `[0]`; `None` where there is none.

    A tracer that is the value itself is at `""`.
    """
    seen: set[int] = set()

    def visit(value: Any, path: str) -> str | None:
        if isinstance(value, Tracer):
            return path
        if id(value) in seen or len(seen) >= _MOST_OBJECTS:
            return None
        seen.add(id(value))
        if isinstance(value, (*_PLAIN, *_OPAQUE, np.ndarray)):
            return None
        for label, part in parts(value):
            found = visit(part, path + label)
            if found is not None:
                return found
        return None

    return visit(value, "")


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The objects that `value` holds, each with the way to it from there."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in list(value.items()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{i}]", item) for i, item in enumerate(list(value)))
    elif isinstance(value, types.FunctionType):
        yield from ((" (a default)", item) for item in value.__defaults__ or ())
        yield from ((f" (the default {k})", v) for k, v in (value.__kwdefaults__ or {}).items())
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            try:
                yield f" (the variable {name})", cell.cell_contents
            except ValueError:  # not assigned yet
                continue
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
        yield ".__func__", value.__func__
    elif isinstance(value, PjitFunction):
        # What it computes, and not what was compiled of it so far. Single operations wrap nothing.
        if hasattr(value, "__wrapped__"):
            yield "", value.__wrapped__
    elif isinstance(value, functools.partial):
        yield ".func", value.func
        yield ".args", value.args
        yield ".keywords", value.keywords
    elif not isinstance(value, type | types.ModuleType):
        yield from ((f".{name}", item) for name, item in _attributes(value))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(value, "__dict__", {}).items())
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            try:
                yield name, getattr(value, name)
            except AttributeError:
                continue
