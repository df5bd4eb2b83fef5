"""What a value holds, for values of every kind.

Callers choose how deep they go and what they call the parts. None of the user's code runs:
containers are read with the methods of Python's own types, and attributes from where they are
stored. A class may override both with code that raises, loads something or never ends.
"""

from __future__ import annotations

import functools
import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

from perspex.base.xla import PjitFunction
from perspex_magics.notebook.kinds import Parts, dict_of, is_a, items

_HOMES = (type, types.ModuleType)
# What a named tuple's class has under the name of a field.
NAMED_FIELD: type[Any] = type(vars(namedtuple("_Example", "field"))["field"])
# Slots that are no data.
_NO_DATA = ("__dict__", "__weakref__")


class Text(str):
    """A step of a path that is shown as it is, like `.weight`; others are keys and indices."""

    __slots__ = ()


def step_text(step: Any) -> str:
    """A step as it would be written.

    >>> step_text(Text(".weight")), step_text("weight"), step_text(0)
    ('.weight', "['weight']", '[0]')
    """
    return step if isinstance(step, Text) else f"[{step!r}]"


def class_member(kind: type, name: str) -> Any:
    """What a class has under a name, or inherits. Runs no code of the user's."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object itself holds: its `__dict__` and its slots.

    >>> class Layer:
    ...     __slots__ = ("w", "b")
    >>> layer = Layer()
    >>> layer.w = 1.0
    >>> list(attributes(layer))
    [('w', 1.0)]
    """
    held = dict_of(value)
    if held:
        yield from list(held.items())
    for cls in type(value).__mro__:
        own = cls.__dict__
        slots = own.get("__slots__")
        if slots is None:
            continue
        for name in [slots] if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{cls.__name__.lstrip('_')}{name}"
            member = own.get(name)
            if isinstance(member, types.MemberDescriptorType) and name not in _NO_DATA:
                try:
                    yield name, member.__get__(value)
                except AttributeError:  # it was not set
                    continue


def closure(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables that a function closes over, but for those that are not assigned yet.

    >>> def scaled(by):
    ...     return lambda x: x * by
    >>> list(closure(scaled(3)))
    [('by', 3)]
    """
    cells = function.__closure__
    if cells:
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:
                continue


def defaults(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The defaults of a function's parameters.

    >>> list(defaults(lambda x, y=1, *, z=2: x))
    [('y', 1), ('z', 2)]
    """
    given = function.__defaults__
    if given:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        yield from zip(names[len(names) - len(given) :], given, strict=False)
    if function.__kwdefaults__:
        yield from list(function.__kwdefaults__.items())


def unwrapped(member: Any) -> Any:
    """The function behind a member of a class, or the member itself; `None` if there is none."""
    if is_a(member, staticmethod | classmethod):
        return member.__func__
    if is_a(member, property):
        return member.fget
    if is_a(member, functools.cached_property):
        return member.func
    return member


def wrapped(value: Any) -> Any:
    """The function that a decorator was given, where it says so."""
    held = dict_of(value)
    return None if held is None else held.get("__wrapped__")


def parts(value: Any) -> Parts:
    """What a value holds, each part with the step that leads to it.

    There is nothing in classes, modules and arrays here, nor in what holds something else that is
    not its own.

    >>> list(parts({"a": 1}))
    [('a', 1)]
    """
    found = items(value)
    if found is not None:
        return found[0]
    for kind, rule in _RULES.items():
        if is_a(value, kind):
            return rule(value)
    return () if is_a(value, _HOMES) else in_attributes(value)


def in_attributes(value: Any) -> Iterator[tuple[Text, Any]]:
    """The attributes of an object, each with its step."""
    for name, part in attributes(value):
        yield Text(f".{name}"), part


def _in_function(function: types.FunctionType) -> Iterator[tuple[Text, Any]]:
    for part in function.__defaults__ or ():
        yield Text(" (a default)"), part
    for name, part in list((function.__kwdefaults__ or {}).items()):
        yield Text(f" (the default {name})"), part
    for name, part in closure(function):
        yield Text(f" (the variable {name})"), part


def _in_jitted(value: Any) -> Iterator[tuple[Text, Any]]:
    # What it computes, and not what was compiled of it so far. Single operations wrap nothing.
    inner = wrapped(value)
    if inner is not None:
        yield Text(""), inner


def _of_names(*names: str) -> Callable[[Any], Iterator[tuple[Text, Any]]]:
    return lambda value: ((Text(f".{name}"), getattr(value, name)) for name in names)


_RULES: dict[type, Callable[[Any], Iterator[tuple[Text, Any]]]] = {
    types.FunctionType: _in_function,
    types.MethodType: _of_names("__self__", "__func__"),
    PjitFunction: _in_jitted,
    functools.partial: _of_names("func", "args", "keywords"),
}
