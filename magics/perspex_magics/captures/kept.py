"""Programs that magics keep, each with the state of its captures.

The state is a snapshot, taken before the program is traced. Most cells run again with nothing
changed, so `Kept` first compares identities: whether each name and each mutable object still holds
the same objects. If one does not, it takes a second snapshot and compares the two.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from perspex.base import events
from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex_magics.captures import snapshot
from perspex_magics.captures.codes import Code
from perspex_magics.captures.objects import attributes
from perspex_magics.captures.probes import held_by, held_by_object
from perspex_magics.captures.tokens import State, Table, is_same_number
from perspex_magics.notebook.kinds import is_a, stops

_MISSING = object()
# What may be large, and is not kept alive for a comparison.
_ARRAYS = {ArrayImpl, KeyArray, np.ndarray}

T = TypeVar("T")


@dataclass(eq=False, slots=True, weakref_slot=True)
class Reads:
    """Everything that a cell or a call reads and that is not an input of its program.

    `values` are by name. `parts` are parts of its inputs, and `labels` gives the label of each with
    the name of its input; `inputs` are the names of these, for messages. `code` is the cell's own.
    """

    namespace: Mapping[str, Any]
    values: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[Any] = ()
    labels: Callable[[], Sequence[tuple[str, str]]] = tuple
    inputs: Collection[str] = ()
    code: Code | None = None

    def look(self) -> Table:
        """A snapshot of it; `is_known` is false if something in it cannot be read."""
        parts = [(*at, part) for at, part in zip(self.labels(), self.parts, strict=True)]
        try:
            table = snapshot.of_values(self.namespace, self.values, parts, self.inputs, self.code)
        except BaseException as error:
            if stops(error):
                raise
            # Whether the cell fails as well, it says itself when it is traced.
            events.report_ignored(error, "while looking at what was captured by", "a cell")
            return Table(is_known=False)
        table.is_known = table.is_known and not table.has_tracers
        return table


class Captures:
    """The state of the captures when a program was made."""

    def __init__(self, reads: Reads, table: Table) -> None:
        self.note(reads, table)

    def note(self, reads: Reads, table: Table) -> None:
        """Remember an equal state, with the objects that are in it now."""
        self.state = State(table)
        self._read = _Held(reads, functools.partial(_all_of, list(table.names)))
        self._held: list[_Held | _Content] | None = None
        if table.is_known:
            objects = {id(value): value for _, value in table.mutable}
            self._held = [_held(value, table.contents) for value in objects.values()]

    def is_untouched(self, reads: Reads) -> bool:
        """Whether nothing can have changed. Costs less than 1 us for each object."""
        if self._held is None or not self._read.is_in(reads):
            return False
        return all(map(_is_same, self._held))

    def is_same(self, table: Table) -> bool:
        """Whether a trace would capture the same as before."""
        try:
            return self.state.is_same(table)
        except Exception:  # an array whose computation has failed
            return False


def _all_of(names: list[str], reads: Reads) -> list[Any]:
    get = reads.namespace.get
    named = [get(name, _MISSING) for name in names]
    return [*named, *reads.values.values(), *reads.parts]


class _Held:
    """The objects that something held, as `look` lists them. Does not keep arrays alive."""

    __slots__ = ("arrays", "before", "get", "look")

    def __init__(self, value: Any, look: Callable[[Any], list[Any]]) -> None:
        self.look = look
        try:
            self.get: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.get = lambda: value
        self.before = look(value)
        self.arrays = [i for i, item in enumerate(self.before) if type(item) in _ARRAYS]
        for i in self.arrays:
            self.before[i] = weakref.ref(self.before[i])

    def is_same(self) -> bool:
        value = self.get()
        return value is not None and self.is_in(value)

    def is_in(self, value: Any) -> bool:
        now, before = self.look(value), self.before
        if len(now) != len(before):
            return False
        for i in self.arrays:
            if before[i]() is not now[i]:
                return False
            now[i] = before[i]
        if all(map(operator.is_, now, before)):
            return True
        # An equal number made anew is the same, as where the cell that assigns it ran again.
        return all(map(_is_equal, now, before))


def _is_equal(now: Any, before: Any) -> bool:
    return now is before or is_same_number(now, before)


class _Content:
    """What a NumPy array held."""

    __slots__ = ("content", "get")

    def __init__(self, value: np.ndarray[Any, Any], content: Any) -> None:
        self.get, self.content = weakref.ref(value), content

    def is_same(self) -> bool:
        value = self.get()
        return value is not None and snapshot.Exact(value).content() == self.content


def _held(value: Any, contents: Mapping[int, Any]) -> _Held | _Content:
    if is_a(value, np.ndarray):
        content = contents.get(id(value))
        return _Held(value, _items) if content is None else _Content(value, content)
    # A mapping with attributes is one of somebody's, and its methods are as well.
    is_object = not is_a(value, dict) and is_a(value, Mapping) and any(attributes(value))
    return _Held(value, held_by_object if is_object else held_by(value))


def _items(value: np.ndarray[Any, Any]) -> list[Any]:
    return [*value.shape, *value.reshape(-1).tolist()]


def _is_same(held: _Held | _Content) -> bool:
    return held.is_same()


class Kept(Generic[T]):
    """What was made for each pair of inputs and captures, most recently used first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.entries: list[tuple[Any, Captures, T]] = []

    def recall(self, inputs: Any, reads: Reads, make: Callable[[State, T | None], T]) -> T:
        """Find what was made for equal inputs and unchanged captures.

        If there is nothing, call `make` with the state and with what was used last.
        """
        for at, (before, captures, made) in enumerate(self.entries):
            if before == inputs and captures.is_untouched(reads):
                self._to_front(at)
                return made
        table = reads.look()
        for at, (before, captures, made) in enumerate(self.entries):
            if before == inputs and captures.is_same(table):
                captures.note(reads, table)
                self._to_front(at)
                return made
        table.tell()
        now = Captures(reads, table)
        new = make(now.state, self.entries[0][2] if self.entries else None)
        self.entries = [(inputs, now, new), *self.entries][: self.most]
        return new

    def _to_front(self, at: int) -> None:
        if at:
            self.entries.insert(0, self.entries.pop(at))
