"""What a session is: the names of the notebook, and what belongs to them.

Each name is pickled alone, which shows whether it can be kept, and then all that can are pickled
together, so that what was one object under two names is one again. If that fails in the new
process, the pickles of the single names are what comes back.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import random
import re
import sys
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from perspex import config
from perspex.base.flags import flags
from perspex.base.pytree_registry import ways
from perspex_magics.restart.archive import Reader, Span, UnkeptError, Writer
from perspex_magics.restart.pickling import Pickler, Unpickler, register, why

# What IPython makes anew, or what is restored in another way.
_OWN = {
    *("In", "Out", "_ih", "_oh", "_dh", "_sh", "get_ipython", "exit", "quit", "open"),
    *("__builtin__", "__builtins__", "__doc__", "__loader__", "__name__", "__package__"),
    "__spec__",
}
# Names of results and inputs: if one cannot be kept, nobody has to hear of it.
_CACHED = re.compile(r"_+|_i+|_i?\d+")


class Lost(NamedTuple):
    """A name that is not kept, and why."""

    name: str
    reason: str


class Saved:
    """A session in a file that is not complete before `finish`."""

    def __init__(self, writer: Writer, index: dict[str, Any]) -> None:
        self.writer, self.index = writer, index

    def finish(self, extra: Any) -> None:
        """Add what the kernel needs, and close the list of contents."""
        self.writer.finish({**self.index, "kernel": extra})


class Restored(NamedTuple):
    """What came back, the bytes of its arrays, and what did not."""

    names: list[str]
    nbytes: int
    lost: list[Lost]


def save(shell: InteractiveShell, file: IO[bytes], waits: bool) -> Saved:
    """Write the session of a notebook to a file.

    With `waits`, arrays that are being computed are waited for; otherwise they are lost.
    Raises `OSError` if the file cannot hold it.
    """
    namespace = shell.user_ns
    writer = Writer(file, waits)
    kept, lost, classes = [], [], set[type]()
    single: dict[str | tuple[str, str, int], Span] = {}
    for name, value in _names(shell):
        data, found = _pickled(writer, namespace, value)
        if isinstance(data, str):
            lost.append(Lost(name, data))
        else:
            kept.append(name)
            single[name] = writer.put(data)
            classes |= found
    registered = []
    for kind in classes:
        data, _ = _pickled(writer, namespace, _registration(kind))
        if not isinstance(data, str):
            registered.append(kind)
            single["class", kind.__qualname__, len(registered)] = writer.put(data)
    # The registrations come first: what is a container may be part of a structure.
    everything = [_registration(kind) for kind in registered], {n: namespace[n] for n in kept}
    data, _ = _pickled(writer, namespace, everything)
    nbytes = writer.nbytes
    index = {
        "bytes": nbytes,
        "lost": [tuple(one) for one in lost if not _CACHED.fullmatch(one.name)],
        "single": single,
        "together": None if isinstance(data, str) else writer.put(data),
        "state": _pickled_state(writer, shell),
    }
    return Saved(writer, index)


def _names(shell: InteractiveShell) -> list[tuple[str, Any]]:
    """The names to keep; hidden ones only if they are inputs and outputs."""
    hidden, missing = shell.user_ns_hidden, object()
    return [
        (name, value)
        for name, value in list(shell.user_ns.items())
        if name not in _OWN and (_CACHED.fullmatch(name) or hidden.get(name, missing) is not value)
    ]


class _Registered:
    """A class that is a container, which registers itself when it is made again."""

    def __init__(self, kind: type) -> None:
        way, arguments = ways[kind]
        self.made = kind, way, arguments

    def __reduce__(self) -> Any:
        return register, self.made


def _registration(kind: type) -> _Registered:
    return _Registered(kind)


def _pickled(writer: Writer, namespace: dict[str, Any], x: Any) -> tuple[bytes | str, set[type]]:
    """The pickle of an object, or the reason why there is none; and the containers in it."""
    file = io.BytesIO()
    pickler = Pickler(file, writer, namespace)
    try:
        pickler.dump(x)
    except OSError as error:
        if error.errno is not None and not isinstance(error, UnkeptError):
            raise  # the file is full
        return why(error, x), set()
    except Exception as error:
        return why(error, x), set()
    return file.getvalue(), pickler.classes


def _pickled_state(writer: Writer, shell: InteractiveShell) -> dict[str, Span]:
    """Pickles of what belongs to the session besides its names."""
    compiler: Any = shell.compile
    history: Any = shell.history_manager
    extensions: Any = shell.extension_manager
    numbers = compiler._filename_map
    parts = {
        "folder": os.getcwd(),
        "path": list(sys.path),
        "flags": {name: flag.value for name, flag in flags.items()},
        "random": random.getstate(),
        "numpy": np.random.get_state(),
        "print": np.get_printoptions(),
        "extensions": sorted(extensions.loaded),
        "count": shell.execution_count,
        "inputs": (list(history.input_hist_parsed), list(history.input_hist_raw)),
        "outputs": [n for n in history.output_hist if f"_{n}" in shell.user_ns],
        "cells": [
            (name, number, linecache.cache[name])
            for name, number in numbers.items()
            if name in linecache.cache
        ],
        "future": compiler.flags,
    }
    found = {}
    for name, part in parts.items():
        if name == "flags":
            part = {k: v for k, v in part.items() if not isinstance(_try(writer, shell, v), str)}
        data = _try(writer, shell, part)
        if isinstance(data, bytes):
            found[name] = writer.put(data)
    return found


def _try(writer: Writer, shell: InteractiveShell, x: Any) -> bytes | str:
    return _pickled(writer, shell.user_ns, x)[0]


def load(shell: InteractiveShell, reader: Reader) -> Restored:
    """Bring a session back into a notebook."""
    index = reader.index
    lost = [Lost(*one) for one in index["lost"]]

    def made(span: Span) -> Any:
        return Unpickler(reader.get(span), reader, shell.user_ns).load()

    state = {name: made(span) for name, span in index["state"].items() if name != "flags"}
    _set_process(state, lambda: made(index["state"]["flags"]))
    with contextlib.suppress(OSError):
        os.chdir(state["folder"])
    found, failed = _objects(index, made)
    shell.user_ns.update(found)
    lost += failed
    lost += _set_shell(shell, state)
    return Restored(list(found), index["bytes"], lost)


def _objects(index: dict[str, Any], made: Any) -> tuple[dict[str, Any], list[Lost]]:
    """The objects of all names, made together, or else one by one."""
    if index["together"] is not None:
        try:
            found: dict[str, Any] = made(index["together"])[1]
            return found, []
        except Exception:
            pass  # one by one, which shows what it is
    found, failed = {}, []
    is_class = {key: isinstance(key, tuple) for key in index["single"]}
    for key in sorted(index["single"], key=is_class.__getitem__, reverse=True):
        try:
            value = made(index["single"][key])
        except Exception as error:
            name = f"class {key[1]}" if is_class[key] else key
            failed.append(Lost(name, why(error, None)))
        else:
            if not is_class[key]:
                found[key] = value
    return found, [one for one in failed if not _CACHED.fullmatch(one.name)]


def _set_process(state: dict[str, Any], read_flags: Any) -> None:
    """What holds for the whole process, before objects are made."""
    sys.path[:] = state["path"]
    for name, value in read_flags().items():
        if name in flags and flags[name].value != value:
            with contextlib.suppress(Exception):
                config.update(name, value)
    random.setstate(state["random"])
    np.random.set_state(state["numpy"])
    with contextlib.suppress(Exception):
        np.set_printoptions(**state["print"])


def _set_shell(shell: InteractiveShell, state: dict[str, Any]) -> Iterable[Lost]:
    """The history, the numbers of cells and the texts of cells; returns extensions that fail."""
    history: Any = shell.history_manager
    compiler: Any = shell.compile
    extensions: Any = shell.extension_manager
    history.input_hist_parsed[:], history.input_hist_raw[:] = state["inputs"]
    shell.execution_count = state["count"]
    names = shell.user_ns
    history.output_hist.update({n: names[f"_{n}"] for n in state["outputs"] if f"_{n}" in names})
    for name, number, entry in state["cells"]:
        compiler._filename_map[name] = number
        linecache.cache[name] = entry
    compiler.flags |= state["future"]
    if shell.displayhook is not None:
        for name in ("_", "__", "___"):
            setattr(shell.displayhook, name, names.get(name, ""))
    for name in state["extensions"]:
        if name not in extensions.loaded:
            try:
                extensions.load_extension(name)
            except Exception as error:
                yield Lost(f"%load_ext {name}", why(error, None))
