"""Stale captures: what a jitted function read while it was traced, and whether it still holds.

The core shows each program that is traced, and a `Record` of its captures is made
(`snapshots.py`). Nothing is looked at in a call. At the beginning and the end of each cell the
captured names are compared by identity, and captured objects that may change in place by what they
hold (`probes.py`), as many as fit into a small budget, in turn. Inside a cell, the statements that
assign captured names say so (`rebinding.py`). Only a program that something may have happened to is
compared in full; what to do then is the core's affair (`perspex.jitted.stale`).
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
import threading
import time
import types
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events, source
from perspex.jitted import stale
from perspex.jitted.stale import Change, Traced
from perspex.runtime.dispatch import EVAL
from perspex.tracing.trace import state
from perspex_magics.captures.notice import show_warnings
from perspex_magics.captures.probes import AnyProbe, ArrayProbe, make_probe
from perspex_magics.captures.rebinding import REBOUND, WRITTEN, Rebinding
from perspex_magics.captures.snapshot import Snapshot
from perspex_magics.captures.tokens import State
from perspex_magics.notebook.cell import is_timed
from perspex_magics.notebook.user_names import user_names

# For how many seconds the objects that may change in place are looked at when a cell ends: a part
# of the cell, within these bounds; and when one begins, if the last one ended some time before.
_PART, _LEAST, _MOST = 5e-4, 15e-6, 60e-6
_BEGIN_BUDGET, _SOON = 15e-6, 0.05
_MISSING = object()
_OURS = "perspex_magics"
_PLAIN = {int, float, bool, str, complex}


class Record:
    """What one program captured."""

    def __init__(self, watcher: Watcher, traced: Traced, snapshot: Snapshot) -> None:
        self.watcher = watcher
        self.traced = weakref.ref(traced, lambda _: watcher.gone.append(self))
        self.traced_at = "" if traced.at is None else watcher.summary(traced.at)
        self.state = State(snapshot)
        self.names: set[str] = set()
        self.roots: set[str] = set()
        self.objects: dict[int, set[str]] = {}
        # Where the names in it were changed, and those that are known to be stale, in which cell.
        self.changed_at: dict[str, source.Source | str] = {}
        self.written: set[str] = set()
        self.stale: set[str] = set()
        self.looked_in = -1
        self.unsure = False

    def changes(self, wait: bool) -> list[Change]:
        """What is different from the time of the trace."""
        traced = self.traced()
        function = None if traced is None else traced.fun()
        if function is None:
            return []
        with self.watcher.lock:
            self.watcher.reread(self)
            snapshot = self.watcher.snapshot(function)
            if snapshot is None:
                return []
            self.watcher.watch(self, snapshot)
        found, self.unsure = self.state.differences(snapshot, wait)
        roots = {difference.root for difference in found}
        # A variable of a module is changed where the module is.
        self.stale = roots | {_home(root) for root in roots}
        if wait:
            self.looked_in = self.watcher.cell
        for name in self.changed_at.keys() - self.stale:
            del self.changed_at[name]
        return [
            Change(d.variable, d.old, d.new, self._changed_at(d.root), self.traced_at)
            for d in found
        ]

    def _changed_at(self, root: str) -> str:
        at = self.changed_at.get(root) or self.changed_at.get(_home(root), "")
        return at if isinstance(at, str) else source.summary(at)

    def is_quiet(self, name: str) -> bool:
        """Whether a further change of `name` in this cell need not be told.

        The old program runs in any case, and that has been said once in this cell.
        """
        return name in self.stale and self.looked_in == self.watcher.cell


class Watcher:
    """Watches what the functions of one notebook have captured."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.namespace = shell.user_ns
        self.lock = threading.RLock()
        # The captured globals as they were last seen, and whose they are.
        self.seen: dict[str, Any] = {}
        self.readers: dict[str, dict[Record, None]] = {}
        # The objects that may change in place, by id, and whose they are.
        self.probes: dict[int, AnyProbe] = {}
        self.holders: dict[int, dict[Record, None]] = {}
        # The names under which such objects are.
        self.holding: dict[str, dict[Record, None]] = {}
        # Those of modules of the user's own, which may be loaded again as a cell begins, and which
        # of them are modules.
        self.loaded: dict[int, bool] = {}
        # Their ids in the order in which they are looked at, none where that is to be found out
        # anew, and whose turn it is.
        self.order: list[int] = []
        self.turn = 0
        self.dirty: dict[Record, None] = {}
        self.gone: deque[Record] = deque()
        self.is_instance = _is_instance(shell)
        self.stop: Callable[[], object] = stale.observe(self)
        self.cell = 0
        self.label = ""
        # When the last cell began, and when it ended.
        self.began = self.ended = 0.0

    # ---- records ----------------------------------------------------------------------------

    def __call__(self, traced: Traced) -> Record | None:
        """The record of a program that has just been traced: what the core asks an observer."""
        if self.is_instance and not _is_instance(self.shell):
            # Another shell has taken its place, and nobody unloaded the extension.
            _forget(self)
            return None
        function = traced.fun()
        # The cells under our own magics are traced again by themselves.
        home = getattr(function, "__module__", None)
        if function is None or (isinstance(home, str) and home.startswith(_OURS)):
            return None
        with self.lock:
            snapshot = self.snapshot(function, reads_all=True)
            if snapshot is None or snapshot.has_tracers or not (snapshot.names or snapshot.mutable):
                return None
            record = Record(self, traced, snapshot)
            self.watch(record, snapshot)
            if any(part.changes for part in traced.parts()):
                self.dirty[record] = None
            return record

    def snapshot(self, function: Any, reads_all: bool = False) -> Snapshot | None:
        """What a function captures now; `None` if something in it does not let itself be read.

        With `reads_all` large NumPy arrays are read anew and not taken as they were last seen.
        """
        arrays = functools.partial(self.array_probe, reads_all)
        try:
            return Snapshot(function, self.namespace, arrays)
        except Exception as error:
            # As for listeners to events: the user's call goes on.
            events.report_ignored(error, "while looking at what was captured by", function)
            return None

    def array_probe(self, reads_all: bool, array: np.ndarray[Any, Any]) -> ArrayProbe:
        found = self.probes.get(id(array))
        if not isinstance(found, ArrayProbe) or found.ref() is not array:
            found = self.probes[id(array)] = ArrayProbe(array)
        elif reads_all:
            found.written = True
        return found

    def watch(self, record: Record, snapshot: Snapshot) -> None:
        """Watch what a program captured, in the state that it is in now."""
        names = {*snapshot.names, *record.state.names}
        objects: dict[int, set[str]] = {}
        roots: set[str] = set()
        for root, value in snapshot.mutable:
            objects.setdefault(id(value), set()).add(root)
            if not isinstance(value, types.FunctionType | type):
                roots.add(root)
            if _is_loaded(value, self.namespace):
                self.loaded[id(value)] = isinstance(value, types.ModuleType)
            known = self.probes.get(id(value))
            if known is None or known.ref() is not value:
                self.probes[id(value)] = make_probe(value)
        traced = record.traced()
        for part in traced.parts() if traced is not None else ():
            for inner in part.records:
                if isinstance(inner, Record) and inner.watcher is self:
                    names |= inner.names
                    roots |= inner.roots
                    for key, inner_roots in inner.objects.items():
                        objects.setdefault(key, set()).update(inner_roots)
        for name in names - record.names:
            self.seen.setdefault(name, self.namespace.get(name, _MISSING))
            self.readers.setdefault(name, {})[record] = None
        for key in objects.keys() - record.objects.keys():
            self.holders.setdefault(key, {})[record] = None
            self.order = []
        for root in roots - record.roots:
            self.holding.setdefault(root, {})[record] = None
        self._unwatch(record, names, objects.keys(), roots)
        record.names, record.objects, record.roots = names, objects, roots

    def _unwatch(
        self,
        record: Record,
        names: Set[str] = frozenset(),
        keys: Set[int] = frozenset(),
        roots: Set[str] = frozenset(),
    ) -> None:
        """Watch nothing more for a record than what is given."""
        for name in record.names - names:
            if _remove(self.readers, name, record):
                self.seen.pop(name, None)
        for key in record.objects.keys() - keys:
            if _remove(self.holders, key, record):
                self.order = []
                self.probes.pop(key, None)
                self.loaded.pop(key, None)
        for root in record.roots - roots:
            _remove(self.holding, root, record)

    def reread(self, record: Record) -> None:
        """Have the arrays that were written to read as a whole."""
        for key, roots in record.objects.items() if record.written else ():
            probe = self.probes.get(key)
            if isinstance(probe, ArrayProbe) and roots & record.written:
                probe.written = True
        record.written.clear()

    def captures(self, name: str) -> bool:
        """Whether a program captured the global `name`, or what it holds by another name."""
        return name in self.seen or id(self.namespace.get(name)) in self.holders

    def summary(self, at: source.Source) -> str:
        """A place in the cell that runs, or elsewhere."""
        return self.label if is_timed(at.frame.file) else source.summary(at)

    # ---- looking ----------------------------------------------------------------------------

    def begin_cell(self, info: Any) -> None:
        """Look at what happened since the last cell, and name the one that begins."""
        self.label = ""
        self.check(is_begin=True)
        stored = getattr(info, "store_history", True)
        self.cell += 1
        self.label = f"Cell In[{self.shell.execution_count - bool(stored)}]"
        self.began = time.perf_counter()

    def check(
        self,
        lines: Mapping[str, int] = MappingProxyType({}),
        written: Collection[str] = (),
        is_begin: bool = False,
    ) -> None:
        """Find what has been changed.

        Args:
          lines: those of the cell that change each name.
          written: the names whose objects the cell may have changed in place.
          is_begin: whether a cell begins, so that there is less time to look at other such objects.
        """
        with self.lock:
            while self.gone:
                record = self.gone.popleft()
                self.dirty.pop(record, None)
                self._unwatch(record)
            seen, now = self.seen, self.namespace.get
            values = list(map(now, seen, itertools.repeat(_MISSING)))
            if not all(map(operator.is_, values, seen.values())):
                for name, value in list(zip(seen, values, strict=True)):
                    if seen[name] is not value:
                        self._note_bound(name, value, lines)
            for name in written:
                value = now(name)
                if name not in self.holding and id(value) not in self.holders:
                    continue
                for record in self._note_written(name, value):
                    record.changed_at.setdefault(name, self._place(name, lines))
                    self.dirty[record] = None
            self._probe(lines, is_begin)
            if not self.dirty:
                return
            dirty, self.dirty = self.dirty, {}
            for record in dirty:
                traced = record.traced()
                if traced is not None:
                    stale.settle(traced)

    def _note_bound(self, name: str, value: Any, lines: Mapping[str, int]) -> None:
        """A captured name holds something else than when it was last looked at."""
        before, self.seen[name] = self.seen[name], value
        if not _same_number(before, value):
            for record in self.readers[name]:
                record.changed_at[name] = self._place(name, lines)
                self.dirty[record] = None

    def _probe(self, lines: Mapping[str, int], is_begin: bool) -> None:
        """Look at objects that may have changed in place, from where the last look ended.

        The numbers of NumPy arrays, which cost most, are read at the end of cells only.
        """
        now, probes = time.perf_counter(), self.probes
        if self.loaded:
            for key, is_module in list(self.loaded.items()):
                if (is_begin or is_module) and probes[key].changed():
                    self._note_changed(key, lines)
        if is_begin:
            if now - self.ended < _SOON:
                return  # as in a notebook that runs as a whole: nobody else had a turn
            end = now + _BEGIN_BUDGET
        else:
            self.ended = now
            end = now + min(max(_PART * (now - self.began), _LEAST), _MOST)
        order = self.order = self.order or list(self.holders)
        count = len(order)
        at = self.turn if self.turn < count else 0
        for _ in range(count):
            key = order[at]
            at = at + 1 if at + 1 < count else 0
            probe = probes[key]
            if not (is_begin and type(probe) is ArrayProbe) and probe.changed():
                self._note_changed(key, lines)
            if time.perf_counter() > end:
                if not is_begin:
                    self.turn = at
                return

    def _note_changed(self, key: int, lines: Mapping[str, int]) -> None:
        """What an object holds is different: note where, for all programs that captured it."""
        for record in self.holders[key]:
            for root in record.objects[key]:
                if not self._is_here(record.changed_at.get(root, "")):
                    record.changed_at[root] = self._place(root, lines)
            self.dirty[record] = None

    def _is_here(self, at: source.Source | str) -> bool:
        """Whether a place is a line of the cell that ends, which the cell itself has named."""
        place = at if isinstance(at, str) else source.summary(at)
        return bool(self.label) and place.startswith(f"{self.label}:")

    def _place(self, name: str, lines: Mapping[str, int]) -> str:
        line = lines.get(name.partition(" ")[0])
        return f"{self.label}:{line}" if line and self.label else self.label

    # ---- inside a cell ----------------------------------------------------------------------

    def rebound(self, name: str) -> None:
        """A statement of the cell has bound `name` to something that was not seen there before."""
        if name not in self.seen or state.trace is not EVAL:
            return
        with self.lock:
            before, self.seen[name] = self.seen[name], self.namespace.get(name, _MISSING)
            if _same_number(before, self.seen[name]):
                return
            self._suspect(name, list(self.readers[name]), is_certain=True)

    def written_to(self, name: str) -> None:
        """A statement of the cell may have changed the object called `name` in place."""
        value = self.namespace.get(name)
        if (name in self.holding or id(value) in self.holders) and state.trace is EVAL:
            with self.lock:
                self._suspect(name, self._note_written(name, value))

    def _note_written(self, name: str, value: Any) -> list[Record]:
        """Whose programs captured the object called `name`, or something in it."""
        probe = self.probes.get(id(value))
        if isinstance(probe, ArrayProbe):
            probe.written = True
        inside = list(self.holding.get(name, ()))
        for record in inside:
            record.written.add(name)
        return list({**dict.fromkeys(inside), **self.holders.get(id(value), {})})

    def _suspect(self, name: str, records: Iterable[Record], is_certain: bool = False) -> None:
        here = source.capture()
        at = self.label if here is None or is_timed(here.frame.file) else here
        for record in records:
            self.dirty[record] = None
            # A statement that only may have changed what is different already is not blamed.
            if is_certain or name not in record.stale:
                record.changed_at[name] = at
            traced = record.traced()
            if traced is None or traced.suspect:
                continue
            if not (record.is_quiet(name) and stale.policy_of(traced) == "warn"):
                stale.suspect(traced)


def _home(root: str) -> str:
    """The module of a variable of one."""
    return root.rpartition(".")[0]


def _same_number(old: Any, new: Any) -> bool:
    """Whether both are the same number or text, for which nothing more need be looked at."""
    return type(old) is type(new) and type(old) in _PLAIN and repr(old) == repr(new)


def _remove(table: dict[Any, dict[Record, None]], key: Any, record: Record) -> bool:
    """Take a record out of a table; whether it was the last under its key."""
    records = table.get(key, {})
    records.pop(record, None)
    if records:
        return False
    table.pop(key, None)
    return True


# ---- in a shell -------------------------------------------------------------------------------

_watchers: list[Watcher] = []


def _checks(watcher: Watcher) -> tuple[Callable[[str], None], Callable[[str], None]]:
    """What the statements of a cell call."""
    seen, namespace = watcher.seen, watcher.namespace

    def rebound(name: str) -> None:
        if seen.get(name, _MISSING) is not namespace.get(name, _MISSING):
            watcher.rebound(name)

    return rebound, watcher.written_to


def _install() -> None:
    """Make the checks known to cells. They stay, as code that calls them may still be running."""
    checks = [_checks(watcher) for watcher in _watchers]
    for at, name in enumerate((REBOUND, WRITTEN)):
        each = [pair[at] for pair in checks]

        def check(name: str, each: list[Callable[[str], None]] = each) -> None:
            for one in each:
                one(name)

        setattr(builtins, name, each[0] if len(each) == 1 else check)


def _forget(watcher: Watcher) -> None:
    watcher.stop()
    if watcher in _watchers:
        _watchers.remove(watcher)
        _install()


def watch_captures(
    shell: InteractiveShell, tracing_magics: Collection[str] = ()
) -> Callable[[], object]:
    """Watch what is captured in a shell; returns a function that ends that.

    The cells of `tracing_magics` are left alone.
    """
    watcher = Watcher(shell)
    rebinding = Rebinding(shell.user_ns, user_names(shell), watcher.captures, tracing_magics)

    def begin(info: Any) -> None:
        rebinding.begin(getattr(info, "transformed_cell", None) or info.raw_cell)
        watcher.begin_cell(info)

    begun, known = shell.events.callbacks["pre_run_cell"], 0

    def end(result: Any) -> None:
        nonlocal known
        watcher.check(rebinding.lines, rebinding.written)
        rebinding.learn()
        if len(begun) != known:
            known = len(begun)
            if begin in begun and not all(map(_is_ours, begun[begun.index(begin) :])):
                # After `%autoreload`, which loads modules as a cell begins.
                shell.events.unregister("pre_run_cell", begin)
                shell.events.register("pre_run_cell", begin)

    _watchers.append(watcher)
    _install()
    restore_transform = _transform(shell, rebinding)
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)
    restore = show_warnings() if hasattr(shell, "kernel") else (lambda: None)

    def undo() -> None:
        _forget(watcher)
        restore_transform()
        shell.events.unregister("pre_run_cell", begin)
        shell.events.unregister("post_run_cell", end)
        restore()

    return undo


def _transform(shell: InteractiveShell, rebinding: Rebinding) -> Callable[[], object]:
    """Have the tree of each cell looked through; returns a function that ends that.

    Not as one of `ast_transformers`: where there is any, IPython gives places to all nodes of every
    cell, which takes 1 us for each and more than all that is done here.
    """
    transform = shell.transform_ast

    def transform_ast(tree: Any) -> Any:
        tree = transform(tree)
        try:
            return rebinding.visit(tree)
        except Exception as error:
            events.report_ignored(error, "while looking through", tree)
            return tree

    hooked: Any = shell
    hooked.transform_ast = transform_ast

    def undo() -> None:
        if vars(shell).get("transform_ast") is transform_ast:
            del hooked.transform_ast

    return undo


def _is_loaded(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether an object is a module, or a function of one, and not the notebook's."""
    if isinstance(value, types.FunctionType):
        return value.__globals__ is not namespace
    return isinstance(value, types.ModuleType)


def _is_ours(callback: Any) -> bool:
    return str(getattr(callback, "__module__", "")).startswith(_OURS)


def _is_instance(shell: InteractiveShell) -> bool:
    """Whether it is the process's shell."""
    return InteractiveShell.initialized() and InteractiveShell.instance() is shell
