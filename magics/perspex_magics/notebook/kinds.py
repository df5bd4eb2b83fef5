"""What a value is and holds, without running code of its class, and what may end a look at it.

`isinstance` asks an object that is none for its `__class__`, which runs the code of whoever wrote
`__getattribute__` or a property of that name. A look at a notebook's variables must run none.
"""

from __future__ import annotations

import types
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

Parts = Iterable[tuple[Any, Any]]

_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_TEXT = slice(None)
# How Python's own types make a value of theirs of one of a derived class.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: lambda value: str.__getitem__(value, _TEXT),
    bytes: lambda value: bytes.__getitem__(value, _TEXT),
}
# How a cell ends that has been interrupted.
STOPS = (KeyboardInterrupt, CancelledError)


def is_a(value: Any, kinds: Any) -> bool:
    """Whether the type of a value is one of these, or derived from one. Runs no code of its class.

    >>> is_a(True, int), is_a("text", bytes | int)
    (True, False)
    """
    return issubclass(type(value), kinds)


def plain(value: Any) -> Any:
    """A number or text of a derived class as one of Python's own class; others as they are.

    >>> class Name(str):
    ...     def __repr__(self):
    ...         raise SystemExit
    >>> plain(Name("a"))
    'a'
    """
    for kind, convert in _PLAIN.items():
        if issubclass(type(value), kind):
            return convert(value)
    return value


def dict_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object that are not in slots; `None` if it has no room for any."""
    for cls in type(value).__mro__:
        member: Any = cls.__dict__.get("__dict__")
        # Where somebody has put a property in its place, what Python has put there is below it.
        if type(member) in _DESCRIPTORS:
            try:
                held = member.__get__(value)
            except AttributeError:
                return None
            if type(held) is dict:
                return held
            return dict(held) if type(held) is types.MappingProxyType else None
    return None


def items(value: Any) -> tuple[Parts, int] | None:
    """The items of a container with their keys or indices, and how many; `None` for others.

    Those of a long list are not copied.
    """
    cls = type(value)
    if issubclass(cls, list):
        return enumerate(list.__iter__(value)), list.__len__(value)
    if issubclass(cls, tuple):
        return enumerate(tuple.__iter__(value)), tuple.__len__(value)
    if issubclass(cls, dict):
        return list(dict.items(value)), dict.__len__(value)
    if issubclass(cls, deque):
        # At once, since another thread may put something in.
        return enumerate(list(deque.__iter__(value))), deque.__len__(value)
    if issubclass(cls, set | frozenset):
        members = list(set.__iter__(value) if issubclass(cls, set) else frozenset.__iter__(value))
        return enumerate(members), len(members)
    return None


def stops(error: BaseException) -> bool:
    """Whether an exception asks for the end of what runs, and is no accident of a user's object.

    >>> stops(KeyboardInterrupt()), stops(SystemExit()), stops(ValueError())
    (True, False, False)
    """
    return isinstance(error, STOPS)
