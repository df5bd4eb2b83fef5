"""Which functions give another result each time, or read what is outside of the program.

A function is known by what it is and not by its name: `rand` may be `numpy.random.rand` or a
function of the user's.
"""

from __future__ import annotations

import builtins
import datetime
import io
import os
import pathlib
import random
import secrets
import time
import types
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
from IPython.core import interactiveshell

from perspex_magics.notebook.kinds import is_a

RANDOM, CLOCK, ITEM, INPUT = "random", "clock", "item", "input"
PRINT, TEXT, HELD = "print", "text", "held"
ENVIRONMENT, FILE = "environment", "file"
# Seeds, and what makes a generator: they are noted to know what is the same in each trace.
SEED, GENERATOR = "seed", "generator"

_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_MAKERS = (np.random.default_rng, *_GENERATORS, random.SystemRandom)
_CLOCKS = {
    *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
    *("process_time", "process_time_ns", "thread_time", "localtime", "gmtime", "ctime"),
}
_DATES = {"now", "utcnow", "today"}
_NO_DRAWS = {"seed", "getstate", "setstate", "get_state", "set_state", "spawn", "bit_generator"}
_UUIDS = {"uuid1", "uuid4"}
_LOADERS = {"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "read_csv"}
_PATH_READS = {"read_text", "read_bytes", "open"}


def _draws(kind: Any) -> set[str]:
    names = {name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))}
    return names - _NO_DRAWS


# The last part of what a call names that may be one of these functions.
WORDS = frozenset(
    _CLOCKS
    | _DATES
    | _UUIDS
    | _LOADERS
    | _PATH_READS
    | set().union(*map(_draws, _GENERATORS))
    | {name for name in secrets.__all__ if name != "compare_digest"}
    | {"seed", "default_rng", "RandomState", "Random", "SystemRandom", "urandom", "getenv"}
    | {"next", "input", "print", "str", "repr", "format"}
)


def kind_of(function: Any) -> str | None:
    """What kind of function it is that a traced function calls; `None` for all others.

    >>> kind_of(time.time), kind_of(np.random.rand), kind_of(np.sin)
    ('clock', 'random', None)
    """
    try:
        found = _KNOWN.get(function)
    except TypeError:  # it has no hash
        return None
    if found is not None:
        return found
    owner = getattr(function, "__self__", None) if is_a(function, _BOUND) else None
    if owner is None:
        return None
    name = function.__name__
    if is_a(owner, _GENERATORS):
        return SEED if name == "seed" else None if name in _NO_DRAWS else RANDOM
    if is_a(owner, type):
        return CLOCK if issubclass(owner, datetime.date) and name in _DATES else None
    if is_a(owner, str):
        return TEXT if name == "format" else None
    if is_a(owner, pathlib.PurePath):
        return FILE if name in _PATH_READS else None
    return None


def owner_of(function: Any) -> Any:
    """The generator that a function draws from; `None` if it is none."""
    if function is np.random.seed:
        function = np.random.rand
    owner = getattr(function, "__self__", None) if is_a(function, _BOUND) else None
    return owner if is_a(owner, _GENERATORS) else None


# What IPython puts in the place of `open` in a notebook.
_OPEN = getattr(interactiveshell, "_modified_open", io.open)
_BOUND = (types.BuiltinMethodType, types.MethodType)


def _known() -> Iterator[tuple[Any, str]]:
    for name in _CLOCKS:
        if hasattr(time, name):
            yield getattr(time, name), CLOCK
    for name in secrets.__all__:
        if name != "compare_digest":
            yield getattr(secrets, name), RANDOM
    yield from ((getattr(uuid, name), RANDOM) for name in _UUIDS)
    yield os.urandom, RANDOM
    yield np.random.seed, SEED
    yield from ((maker, GENERATOR) for maker in _MAKERS)
    yield from ((getattr(np, name), FILE) for name in _LOADERS if hasattr(np, name))
    yield from ((function, FILE) for function in (builtins.open, io.open, _OPEN))
    yield builtins.next, ITEM
    yield builtins.print, PRINT
    yield from ((function, TEXT) for function in (str, repr, format))


_KNOWN = dict(_known())
