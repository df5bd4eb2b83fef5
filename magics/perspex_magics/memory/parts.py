"""What containers and objects of every kind hold, each part with the step that leads to it.

By the type of each and with the methods of that type, since a class may have put others in their
place: ones that raise, load something or never end.
"""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

import IPython
import numpy as np

from perspex.base import xla
from perspex_magics.captures.objects import Text, in_attributes, parts
from perspex_magics.notebook.kinds import Parts, dict_of, items, stops

IPYTHON = os.path.dirname(IPython.__file__) + os.sep
# References to the variables of a frame if nobody has asked for them: the frame's, and two of ours.
_FRAME_ALONE = 3
_PjitFunction: Any = xla.PjitFunction
_PLAIN = frozenset([list, tuple, dict, deque, set, frozenset])
# All that these hold is known by name, but for the globals of a function, and for what was
# compiled.
_NAMED = frozenset(
    [types.FunctionType, types.MethodType, functools.partial, _PjitFunction]
    + [FrameType, TracebackType]
)
_SUSPENDED = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}
# What an object refers to that is not its own: its class, the code it runs.
_SHARED = (type, types.ModuleType, types.CodeType, FrameType)


_WITHIN = Text(" (inside)")


def inside(value: Any, main: str) -> tuple[Parts, int]:
    """The values in a container or an object, each with the step to it, and how many.

    Args:
      value: anything.
      main: the module whose classes are looked into.
    """
    cls = type(value)
    container = items(value)
    if container is not None:
        if cls in _PLAIN:
            return container
        found, size = container
        added = list(in_attributes(value))
        return itertools.chain(added, found), size + len(added)
    if issubclass(cls, type):
        members = list(vars(value).items()) if value.__module__ == main else []
        return [(Text(f".{name}"), part) for name, part in members], len(members)
    if issubclass(cls, np.ndarray):
        return _in_ndarray(value)
    listed = list(_in_object(value, cls))
    return listed, len(listed)


def frame_values(frame: FrameType) -> list[tuple[str, Any]]:
    """The variables of a function that is running, has failed or is to go on.

    There are none of a cell or the body of a class, whose variables are in a namespace.
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return []
    values = frame.f_locals
    found = list(values.items())
    if isinstance(values, dict) and sys.getrefcount(values) == _FRAME_ALONE:
        # Before Python 3.13 a snapshot that the frame would keep, with what it holds.
        values.clear()
    return found


def _in_object(value: Any, cls: type) -> Iterator[tuple[Any, Any]]:
    known = set()
    rule = _RULES.get(cls, _in_error if issubclass(cls, BaseException) else _named)
    try:
        for step, part in rule(value):
            known.add(id(part))
            yield step, part
    except BaseException as error:  # an object of somebody's that does not like to be looked at
        if stops(error):
            raise
    if cls in _NAMED:
        return
    # What it holds besides, as an iterator holds what it goes through.
    known.add(id(dict_of(value)))
    for part in gc.get_referents(value):
        is_namespace = type(part) is dict and "__spec__" in part
        if id(part) not in known and not issubclass(type(part), _SHARED) and not is_namespace:
            yield _WITHIN, part


def _named(value: Any) -> Iterator[tuple[Text, Any]]:
    if type(value) is _PjitFunction:
        value = value.__wrapped__
    yield from parts(value)
    if type(value) is types.FunctionType:
        yield from in_attributes(value)


_base: Any = np.ndarray.base.__get__
_dtype: Any = np.ndarray.dtype.__get__
_flat: Any = np.ndarray.flat.__get__
_ndim: Any = np.ndarray.ndim.__get__
_size: Any = np.ndarray.size.__get__


def is_numbers(value: Any) -> bool:
    """Whether an array of NumPy has its own memory and nothing but numbers there."""
    return _base(value) is None and not _dtype(value).hasobject


def _in_ndarray(value: Any) -> tuple[Parts, int]:
    """The objects in an array of NumPy, and whose memory it shows."""
    base = _base(value)
    found = [] if base is None else [(Text(".base"), base)]
    if not _dtype(value).hasobject:
        return found, len(found)
    return itertools.chain(found, _items(value)), len(found) + _size(value)


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    is_row = _ndim(value) == 1
    for i, item in enumerate(_flat(value)):
        step = i if is_row else Text(f".flat[{i}]")
        # A record is made anew each time, but not what is in it.
        for part in item.item() if issubclass(type(item), np.void) else [item]:
            yield step, part


def _in_suspended(value: Any) -> Iterator[tuple[Text, Any]]:
    frame = getattr(value, _SUSPENDED[type(value)])
    if frame is not None:
        for name, part in frame_values(frame):
            yield Text(f" (the variable {name})"), part


def _in_error(error: Any) -> Iterator[tuple[Text, Any]]:
    yield Text(".args"), error.args
    for name in ("__cause__", "__context__", "exceptions", "obj", "value"):
        if (part := getattr(error, name, None)) is not None:
            yield Text(f".{name}"), part
    yield from in_attributes(error)
    yield Text(""), error.__traceback__


def _in_traceback(traceback: TracebackType) -> Iterator[tuple[Text, Any]]:
    tb: TracebackType | None = traceback
    while tb is not None:
        yield from _in_frame(tb.tb_frame)
        tb = tb.tb_next


def _in_frame(frame: FrameType) -> Iterator[tuple[Text, Any]]:
    if not frame.f_code.co_filename.startswith(IPYTHON):
        for name, part in frame_values(frame):
            yield Text(f" (the variable {name} in {frame.f_code.co_name}())"), part


def _in_frames(frame: FrameType) -> Iterator[tuple[Text, Any]]:
    found: FrameType | None = frame
    while found is not None:
        yield from _in_frame(found)
        found = found.f_back


def _in_variable(value: ContextVar[Any]) -> Iterator[tuple[Text, Any]]:
    yield Text(".get()"), value.get(None)


_RULES: dict[type, Callable[[Any], Iterator[tuple[Any, Any]]]] = {
    **dict.fromkeys(_SUSPENDED, _in_suspended),
    TracebackType: _in_traceback,
    FrameType: _in_frames,
    ContextVar: _in_variable,
    memoryview: lambda value: iter([(Text(".obj"), value.obj)]),
    types.MappingProxyType: lambda value: iter([(Text(""), gc.get_referents(value)[0])]),
}
