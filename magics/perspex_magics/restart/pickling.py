"""Pickles of a notebook's objects: what cells define by value, what modules define by name.

A function comes back with the namespace that it had: the notebook's for one of a cell, the module's
for one that a library made. So it sees what the notebook assigns later. cloudpickle alone would
give it a copy of the variables that it reads.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import marshal
import pickle
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np

from perspex.api.jit import by_value
from perspex.base import xla
from perspex.base.pytree_registry import ways
from perspex.layout.named import NamedSharding
from perspex.ops.refs import Ref, new_ref
from perspex.runtime.array import ArrayImpl
from perspex.sharding import SingleDeviceSharding
from perspex.tracing.trace import Tracer
from perspex_magics.restart.archive import Reader, UnkeptError, Writer, device_of

_NOTEBOOK = "__main__"
_LOCKS = tuple([type(make()) for make in (threading.Lock, threading.RLock)])
# What belongs to a process, and what it is called.
_BOUND: list[tuple[tuple[type, ...], str]] = [
    ((types.GeneratorType, types.AsyncGeneratorType), "a generator that has begun"),
    ((types.CoroutineType,), "a coroutine"),
    ((asyncio.Future,), "a task of this process"),
    ((threading.Thread,), "a thread"),
    ((*_LOCKS, threading.Event, threading.Condition), "a lock"),
    ((subprocess.Popen,), "a process"),
    ((socket.socket,), "a connection"),
    ((types.FrameType, types.TracebackType), "a frame of a function that ran"),
    ((Tracer,), "a traced value"),
]
_BOUND_TYPES = tuple([kind for kinds, _ in _BOUND for kind in kinds])
_FILES = (io.TextIOWrapper, io.BufferedIOBase, io.RawIOBase)


def _bound(x: Any) -> str | None:
    """What an object is called that cannot leave its process."""
    if isinstance(x, _FILES) and not isinstance(x, io.BytesIO):
        name = getattr(x, "name", None)
        return f"the open file `{name}`" if isinstance(name, str) else "an open file"
    if isinstance(x, _BOUND_TYPES):
        return next(text for kinds, text in _BOUND if isinstance(x, kinds))
    widgets = sys.modules.get("ipywidgets")
    if widgets is not None and isinstance(x, widgets.Widget):
        return "a widget of the page"
    return None


class Pickler(cloudpickle.Pickler):
    """Pickles objects of one notebook; their arrays go to `writer`."""

    def __init__(self, file: io.BytesIO, writer: Writer, namespace: dict[str, Any]) -> None:
        super().__init__(file, protocol=5)
        self.writer = writer
        self.classes: set[type] = set()
        self._homes = {
            id(vars(module)): name
            for name, module in list(sys.modules.items())
            if isinstance(module, types.ModuleType)
        }
        self._homes[id(namespace)] = _NOTEBOOK

    def persistent_id(self, x: Any) -> tuple[str, Any] | None:
        """What is not part of the pickle: arrays, and the namespaces of modules."""
        kind = type(x)
        if kind is ArrayImpl or (kind is np.ndarray and not x.dtype.hasobject and x.itemsize):
            return "array", self.writer.array(x)
        if kind is dict and (home := self._homes.get(id(x))) is not None:
            return "namespace", home
        return None

    def reducer_override(self, x: Any) -> Any:
        """How an object is made again."""
        kind = type(x)
        if kind is types.CodeType:
            # With its file, which is a cell; cloudpickle leaves that out. Python is the same one.
            return marshal.loads, (marshal.dumps(x),)
        if kind is xla.Device:
            return device_of, ((xla.platform_of(x.client), x.id),)
        if kind is SingleDeviceSharding:
            return SingleDeviceSharding, (xla.device_of(x), x.memory_kind)
        if kind is NamedSharding and x.device_list is not None:
            return NamedSharding, (x.mesh, x.spec, x.asked_kind)
        if kind is xla.PjitFunction and x.__module__ == _NOTEBOOK:
            return by_value(x)
        if kind is Ref and x.staged is None:
            return new_ref, (x[...],)
        if (said := _bound(x)) is not None:
            raise UnkeptError(said)
        if isinstance(x, type) and x in ways:
            self.classes.add(x)
        return super().reducer_override(x)

    def _dynamic_function_reduce(self, function: Any) -> Any:
        home = function.__globals__
        if id(home) not in self._homes:
            return super()._dynamic_function_reduce(function)
        self.globals_ref[id(home)] = home
        made = super()._dynamic_function_reduce(function)
        # Its variables are those of the namespace, which comes back by itself.
        made[2][1]["__globals__"] = {}
        return made


class Unpickler(pickle.Unpickler):
    """Makes the objects again, in a notebook with this namespace."""

    def __init__(self, data: bytes, reader: Reader, namespace: dict[str, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self.reader, self.namespace = reader, namespace

    def persistent_load(self, what: tuple[str, Any]) -> Any:
        """The array or the namespace of an identifier."""
        kind, which = what
        if kind == "array":
            return self.reader.array(which)
        return self.namespace if which == _NOTEBOOK else vars(importlib.import_module(which))


def register(kind: type, way: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Register a class as a container again, unless its making did."""
    if kind not in ways:
        way(kind, *arguments)


def why(error: BaseException, x: Any) -> str:
    """The reason for which `x` could not be written, or not made again."""
    if isinstance(error, UnkeptError):
        text = str(error)
        direct = _bound(x) == text or type(x) is ArrayImpl
        return text if direct else f"it holds {text}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]
