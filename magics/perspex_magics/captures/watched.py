"""The names and objects that programs captured, and which programs did.

Each name has one `Captured`, and each object that may change in place one `Held`. Names are
compared by identity, all at once. Objects are compared by what they hold, in turn.
"""

from __future__ import annotations

import itertools
import operator
import time
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from perspex_magics.captures.probes import AnyProbe, ArrayProbe, make_probe
from perspex_magics.captures.tokens import Table, is_same_number
from perspex_magics.notebook.kinds import is_a

# As many objects are looked at, however busy the machine is.
_ALWAYS = 8
_MISSING = object()
_CODE = (types.FunctionType, type)


@dataclass(eq=False)
class Share:
    """What is watched for one program.

    `names` are globals, `objects` the names that objects are in by the ids of these, and `roots`
    all such names. Objects in those that are `written` are to be read again.
    """

    names: set[str] = field(default_factory=set, init=False)
    objects: dict[int, set[str]] = field(default_factory=dict, init=False)
    roots: set[str] = field(default_factory=set, init=False)
    written: set[str] = field(default_factory=set, init=False)


R = TypeVar("R", bound=Share)


@dataclass(eq=False, slots=True)
class Captured(Generic[R]):
    """A name: which programs read it as a global, and which captured an object in it."""

    readers: dict[R, None] = field(default_factory=dict)
    holders: dict[R, None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Held(Generic[R]):
    """An object that may change in place, and which programs captured it.

    `is_loaded` is said of modules of the user's own and of what is in them, which may be loaded
    again as a cell begins; `is_module` of the modules themselves.
    """

    key: int
    probe: AnyProbe
    is_loaded: bool = False
    is_module: bool = False
    holders: dict[R, None] = field(default_factory=dict)


class Watched(Generic[R]):
    """The names and objects of one notebook that are watched."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        # The globals as they were last seen. One flat table, as all are compared in each cell.
        self.seen: dict[str, Any] = {}
        self.names: dict[str, Captured[R]] = {}
        self.objects: dict[int, Held[R]] = {}
        # Those that may be loaded again; all in the order in which they are looked at, empty where
        # that is to be found out anew; and whose turn it is.
        self._loaded: list[Held[R]] = []
        self._order: list[Held[R]] = []
        self._turn = 0

    # ---- what is watched --------------------------------------------------------------------

    def array_probe(self, reads_all: bool, array: np.ndarray[Any, Any]) -> ArrayProbe:
        """The probe of an array; with `reads_all` the array is read anew when it is asked."""
        found = self.objects.get(id(array))
        probe = None if found is None else found.probe
        if not isinstance(probe, ArrayProbe) or probe.ref() is not array:
            probe = ArrayProbe(array)
            self._put(id(array), probe)
        elif reads_all:
            probe.written = True
        return probe

    def watch(self, record: R, table: Table, names: Set[str], inner: Collection[R]) -> None:
        """Watch what a program captured, in the state that it is in now.

        Args:
          record: the program's.
          table: what it captures now.
          names: globals that it captured before.
          inner: the records of the programs inside of it.
        """
        names = {*table.names, *names}
        objects: dict[int, set[str]] = {}
        roots: set[str] = set()
        for root, value in table.mutable:
            objects.setdefault(id(value), set()).add(root)
            if not is_a(value, _CODE):
                roots.add(root)
            known = self.objects.get(id(value))
            if known is None or known.probe.ref() is not value:
                known = self._put(id(value), make_probe(value))
            if not known.is_loaded and _is_loaded(value, self.namespace):
                known.is_loaded, known.is_module = True, is_a(value, types.ModuleType)
                self._order = []
        for each in inner:
            names |= each.names
            roots |= each.roots
            for key, inner_roots in each.objects.items():
                objects.setdefault(key, set()).update(inner_roots)
        for name in names - record.names:
            self.seen.setdefault(name, self.namespace.get(name, _MISSING))
            self.names.setdefault(name, Captured()).readers[record] = None
        for key in objects.keys() - record.objects.keys():
            self.objects[key].holders[record] = None
            self._order = []
        for root in roots - record.roots:
            self.names.setdefault(root, Captured()).holders[record] = None
        self.unwatch(record, names, objects.keys(), roots)
        record.names, record.objects, record.roots = names, objects, roots

    def _put(self, key: int, probe: AnyProbe) -> Held[R]:
        """Watch another object under an id, with the holders of the one that had it before."""
        before = self.objects.get(key)
        held = self.objects[key] = Held(
            key, probe, holders={} if before is None else before.holders
        )
        self._order = []
        return held

    def unwatch(
        self,
        record: R,
        names: Set[str] = frozenset(),
        keys: Set[int] = frozenset(),
        roots: Set[str] = frozenset(),
    ) -> None:
        """Watch nothing more for a record than what is given."""
        for name in record.names - names:
            captured = self.names[name]
            captured.readers.pop(record, None)
            if not captured.readers:
                self.seen.pop(name, None)
            self._forget(name, captured)
        for key in record.objects.keys() - keys:
            held = self.objects[key]
            held.holders.pop(record, None)
            if not held.holders:
                del self.objects[key]
                self._order = []
        for root in record.roots - roots:
            captured = self.names[root]
            captured.holders.pop(record, None)
            self._forget(root, captured)

    def _forget(self, name: str, captured: Captured[R]) -> None:
        if not captured.readers and not captured.holders:
            del self.names[name]

    def reread(self, record: R) -> None:
        """Have the arrays that were written to read as a whole."""
        for key, roots in record.objects.items() if record.written else ():
            held = self.objects.get(key)
            if held is not None and isinstance(held.probe, ArrayProbe) and roots & record.written:
                held.probe.written = True
        record.written.clear()

    # ---- looking ----------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether a program captured the global `name`, or what it holds by another name."""
        return name in self.seen or id(self.namespace.get(name)) in self.objects

    def rebound(self) -> Collection[str]:
        """The names that hold another object than when they were last looked at."""
        seen = self.seen
        values = list(map(self.namespace.get, seen, itertools.repeat(_MISSING)))
        if all(map(operator.is_, values, seen.values())):
            return ()
        pairs = zip(list(seen.items()), values, strict=True)
        return [name for (name, before), value in pairs if before is not value]

    def take(self, name: str) -> Collection[R]:
        """Remember what a name holds now; return who read the name, if the change matters."""
        before, value = self.seen[name], self.namespace.get(name, _MISSING)
        self.seen[name] = value
        return () if is_same_number(before, value) else self.names[name].readers

    def written(self, name: str) -> list[R]:
        """Note a write to the object called `name`; return who captured it or something in it."""
        held = self.objects.get(id(self.namespace.get(name)))
        if held is not None and isinstance(held.probe, ArrayProbe):
            held.probe.written = True
        captured = self.names.get(name)
        inside = {} if captured is None else captured.holders
        for record in inside:
            record.written.add(name)
        return list(inside if held is None else {**inside, **held.holders})

    def written_among(self, names: Iterable[str]) -> list[str]:
        """Those of the names whose objects a program may have captured."""
        known, objects, get = self.names, self.objects, self.namespace.get
        return [name for name in names if name in known or id(get(name)) in objects]

    def changed(self, is_begin: bool, end: float) -> list[Held[R]]:
        """The objects that have changed, among those that there is time for.

        Each time it goes on where it ended the last time. What may have been loaded again is looked
        at in any case, and so are some objects: on a busy machine a moment may be over at once.

        Args:
          is_begin: whether a cell begins; then NumPy arrays, which cost most, are not read.
          end: when to stop, in seconds of `time.perf_counter`.
        """
        order, now = self._order or self._ordered(), time.perf_counter
        found = []
        if self._loaded:
            for held in self._loaded:
                if (is_begin or held.is_module) and held.probe.changed():
                    found.append(held)
        if not end:
            return found
        count = len(order)
        at = self._turn if self._turn < count else 0
        for looked in range(1, count + 1):
            held = order[at]
            at = at + 1 if at + 1 < count else 0
            probe = held.probe
            if not (is_begin and type(probe) is ArrayProbe) and probe.changed():
                found.append(held)
            if looked >= _ALWAYS and now() > end:
                if not is_begin:
                    self._turn = at
                break
        return found

    def _ordered(self) -> list[Held[R]]:
        self._order = [held for held in self.objects.values() if held.holders]
        self._loaded = [held for held in self._order if held.is_loaded]
        return self._order

    def checks(
        self, rebound: Callable[[str], None], written: Callable[[str], None]
    ) -> tuple[Callable[[str], None], Callable[[str], None]]:
        """What a cell's statements call; they call these if something may have changed."""
        seen, namespace, names, objects = self.seen, self.namespace, self.names, self.objects

        def check_rebound(name: str) -> None:
            if seen.get(name, _MISSING) is not namespace.get(name, _MISSING):
                rebound(name)

        def check_written(name: str) -> None:
            if name in names or id(namespace.get(name)) in objects:
                written(name)

        return check_rebound, check_written


def _is_loaded(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether an object is a module, or a function of one, and not the notebook's."""
    if is_a(value, types.FunctionType):
        return value.__globals__ is not namespace
    return is_a(value, types.ModuleType)
