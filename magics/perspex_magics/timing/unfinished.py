"""The work that the device has not finished when a cell ends, and the time when it has.

Nothing waits in C++ here, because such a thread would block the end of the process: arrays are
polled.
"""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol

import numpy as np

from perspex.base import xla
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex_magics.notebook.pulse import Pulse

# How far containers are looked into: levels, items of one, and values in all.
_DEPTH = 4
_MOST_ITEMS = 64
_MOST_VALUES = 5_000
# What most names hold, and what holds no array.
_PLAIN: frozenset[type] = frozenset(
    [
        *(int, float, bool, str, bytes, type(None), type, np.ndarray),
        *(ModuleType, FunctionType, BuiltinFunctionType, MethodType, xla.PjitFunction),
    ]
)
# Between two looks, in seconds: a part of the time waited so far, so that the error is in
# proportion, and within these bounds.
_PART = 0.02
_SHORTEST, _LONGEST = 2e-4, 2e-2
# So many arrays are asked at a time.
_AT_ONCE = 64
# For so long, in seconds, a line is kept that cannot be updated.
_PATIENCE = 60.0


def may_hold_arrays(kind: type) -> bool:
    """Whether a value of this type may have arrays in it that `arrays_in` finds."""
    return (
        kind is KeyArray
        or issubclass(kind, dict | list | tuple)
        or (kind not in _PLAIN and kind.__module__ == "__main__" and kind.__dictoffset__ != 0)
    )


def arrays_in(values: Iterable[Any]) -> list[Any]:
    """The concrete arrays among values, in containers, and in objects of the notebook's classes."""
    found, level, left = [], list(values), _MOST_VALUES
    for _ in range(_DEPTH):
        deeper: list[Any] = []
        for value in level[:left]:
            kind = type(value)
            if kind in _PLAIN:
                continue
            if kind is ArrayImpl:
                found.append(value)
            elif kind is list or kind is tuple:
                deeper += value[:_MOST_ITEMS]
            elif not may_hold_arrays(kind):
                continue
            elif kind is KeyArray:
                found.append(value.base)
            elif issubclass(kind, dict):
                deeper += itertools.islice(dict.values(value), _MOST_ITEMS)
            elif issubclass(kind, list):
                deeper += itertools.islice(list.__iter__(value), _MOST_ITEMS)
            elif issubclass(kind, tuple):
                deeper += itertools.islice(tuple.__iter__(value), _MOST_ITEMS)
            else:
                deeper += itertools.islice(value.__dict__.values(), _MOST_ITEMS)
        left -= len(level)
        if left <= 0 or _PLAIN.issuperset(map(type, deeper)):
            return found
        level = deeper
    return found


def is_compiled(value: Any) -> bool:
    """Whether a value is a jitted function."""
    return isinstance(value, xla.PjitFunction)


def is_there(array: Any) -> bool:
    """Whether the numbers of an array have been computed, or given up.

    `is_ready` of a deleted array ends the process, so no other thread may come between the
    two questions: `any` and `map` ask them without a step of Python.
    """
    return any(map(operator.call, (array.is_deleted, array.is_ready)))


def all_there(arrays: Iterable[Any]) -> bool:
    """Whether `is_there` holds for all of them; asked in one go, at a third of the time."""
    return all(map(ArrayImpl.is_ready, itertools.filterfalse(ArrayImpl.is_deleted, arrays)))


class Timed(Protocol):
    """Receives the time for which the device worked after a cell."""

    after: float | None
    is_working: bool


class Pending:
    """The arrays that one cell left behind unfinished.

    `told` is called when all are computed, until it returns true.
    """

    def __init__(
        self,
        reading: Timed,
        arrays: list[Any],
        ended: float,
        told: Callable[[], bool] | None = None,
    ) -> None:
        self.reading = reading
        self.arrays = arrays
        self.ended = ended
        self.told = told
        self.is_lost = False
        self.patience = 0.0

    def look(self) -> bool:
        """Whether nothing is left to do."""
        waited = time.perf_counter() - self.ended
        if not self._all_there():
            return False
        if self.reading.is_working:
            # An array that was donated meanwhile does not say when it was computed.
            self.reading.after = None if self.is_lost else waited
            self.reading.is_working = False
            self.patience = waited + _PATIENCE
        return self.told is None or self.told() or waited > self.patience

    def _all_there(self) -> bool:
        """Whether no array is left; computed ones are released, some at a time."""
        arrays = self.arrays
        while arrays:
            some = arrays[:_AT_ONCE]
            missing = [x for x in some if not is_there(x)]
            self.is_lost |= any(x.is_deleted() for x in some)
            arrays[:] = [*arrays[_AT_ONCE:], *missing]
            if missing:
                return False
        return True


class Watcher:
    """A thread that asks after unfinished arrays while there are some, and sleeps otherwise."""

    def __init__(self) -> None:
        self._pending: list[Pending] = []
        self._pulse = Pulse("perspex-clock", self._look)

    def add(self, pending: Pending) -> None:
        """Watch the arrays of one more cell."""
        self._pending.append(pending)
        self._pulse.wake()

    def ids(self) -> set[int]:
        """The identities of the arrays that are being watched."""
        return {id(x) for pending in self._pending.copy() for x in pending.arrays.copy()}

    def _look(self) -> float | None:
        for pending in self._pending.copy():
            if pending.look():
                self._pending.remove(pending)
        if not self._pending:
            return None
        waited = time.perf_counter() - max(pending.ended for pending in self._pending)
        return min(max(waited * _PART, _SHORTEST), _LONGEST)
