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
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events, source
from perspex.jitted import stale
from perspex.jitted.stale import Change, Traced
from perspex.runtime.dispatch import EVAL
from perspex.tracing.trace import state
from perspex_magics.captures.notice import show_warnings
from perspex_magics.captures.rebinding import REBOUND, TOUCHED, WRITTEN, Rebinding
from perspex_magics.captures.snapshot import of_function
from perspex_magics.captures.tokens import State, Table
from perspex_magics.captures.watched import Share, Watched
from perspex_magics.notebook.cell import is_timed
from perspex_magics.notebook.kinds import stops
from perspex_magics.notebook.trees import change_trees
from perspex_magics.notebook.user_names import user_names
from perspex_magics.session import harmless

# For how many seconds the objects that may change in place are looked at when a cell ends: a part
# of the cell, within these bounds; and when one begins, if the last one ended some time before.
_PART, _LEAST, _MOST = 5e-4, 15e-6, 60e-6
_BEGIN_BUDGET, _SOON = 15e-6, 0.05
# The same behind a statement that may have changed anything.
_TOUCHED_BUDGET = 30e-6
_OURS = "perspex_magics"


class Record(Share):
    """What one program captured."""

    def __init__(self, watcher: Watcher, traced: Traced, table: Table) -> None:
        super().__init__()
        self.watcher = watcher
        self.traced = weakref.ref(traced, lambda _: watcher.gone.append(self))
        self.traced_at = "" if traced.at is None else watcher.summary(traced.at)
        self.state = State(table)
        # Where the names in it were changed, and those that are known to be stale, in which cell.
        self.changed_at: dict[str, source.Source | str] = {}
        self.stale: set[str] = set()
        self.looked_in = -1
        self.unsure = False

    def changes(self, wait: bool) -> list[Change]:
        """What is different from the time of the trace."""
        traced = self.traced()
        function = None if traced is None else traced.fun()
        if traced is None or function is None:
            return []
        with self.watcher.lock:
            self.watcher.watched.reread(self)
            table = self.watcher.snapshot(function, traced.static)
            if table is None:
                return []
            self.watcher.watch(self, table)
        found, self.unsure = self.state.differences(table, wait)
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
        self.watched: Watched[Record] = Watched(shell.user_ns)
        # The records that are to be looked at, and those whose programs are no more.
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
            table = self.snapshot(function, traced.static, reads_all=True)
            if table is None or table.has_tracers or not (table.names or table.mutable):
                return None
            record = Record(self, traced, table)
            self.watch(record, table)
            if any(part.changes for part in traced.parts()):
                self.dirty[record] = None
            return record

    def snapshot(
        self, function: Any, static: Sequence[tuple[str, Any]], reads_all: bool = False
    ) -> Table | None:
        """What a function captures now; `None` if something in it does not let itself be read.

        With `reads_all` large NumPy arrays are read anew and not taken as they were last seen.
        """
        arrays = functools.partial(self.watched.array_probe, reads_all)
        try:
            return of_function(function, self.namespace, arrays, static)
        except BaseException as error:
            # As for listeners to events: the user's call goes on.
            if stops(error):
                raise
            events.report_ignored(error, "while looking at what was captured by", function)
            return None

    def watch(self, record: Record, table: Table) -> None:
        """Watch what a program and those inside of it captured, in the state that it is in now."""
        traced = record.traced()
        inner = [
            inside
            for part in (() if traced is None else traced.parts())
            for inside in part.records
            if isinstance(inside, Record) and inside.watcher is self
        ]
        self.watched.watch(record, table, record.state.names, inner)

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
        watched = self.watched
        with self.lock:
            while self.gone:
                record = self.gone.popleft()
                self.dirty.pop(record, None)
                watched.unwatch(record)
            for name in watched.rebound():
                for record in watched.take(name):
                    record.changed_at[name] = self._place(name, lines)
                    self.dirty[record] = None
            for name in watched.written_among(written) if written else ():
                for record in watched.written(name):
                    record.changed_at.setdefault(name, self._place(name, lines))
                    self.dirty[record] = None
            self._look(lines, is_begin)
            if not self.dirty:
                return
            dirty, self.dirty = self.dirty, {}
            for record in dirty:
                traced = record.traced()
                if traced is not None:
                    stale.settle(traced)

    def _look(self, lines: Mapping[str, int], is_begin: bool) -> None:
        """Look at objects that may have changed in place: note where, for all who captured them."""
        now = time.perf_counter()
        if is_begin:
            # In a notebook that runs as a whole, nobody else had a turn.
            end = 0.0 if now - self.ended < _SOON else now + _BEGIN_BUDGET
        else:
            self.ended = now
            end = now + min(max(_PART * (now - self.began), _LEAST), _MOST)
        for held in self.watched.changed(is_begin, end):
            for record in held.holders:
                for root in record.objects[held.key]:
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
        if name not in self.watched.seen or state.trace is not EVAL:
            return
        with self.lock:
            self._suspect(name, list(self.watched.take(name)), is_certain=True)

    def written_to(self, name: str) -> None:
        """A statement of the cell may have changed the object called `name` in place."""
        if state.trace is EVAL:
            with self.lock:
                self._suspect(name, self.watched.written(name))

    def touched(self, name: str) -> None:
        """A statement of the cell may have changed anything."""
        watched = self.watched
        if state.trace is not EVAL or not (watched.seen or watched.objects):
            return
        with self.lock:
            for other in watched.rebound():
                self._suspect(other, list(watched.take(other)), is_certain=True)
            for held in watched.changed(False, time.perf_counter() + _TOUCHED_BUDGET):
                for record in list(held.holders):
                    for root in record.objects[held.key]:
                        self._suspect(root, [record], is_certain=True)

    def _suspect(self, name: str, records: list[Record], is_certain: bool = False) -> None:
        if not records:
            return
        here = source.capture()
        at = self.label if here is None or is_timed(here.frame.file) else here
        key = id(self.namespace.get(name))
        for record in records:
            self.dirty[record] = None
            # The program may know the object by other names than the statement.
            for root in (name,) if is_certain else {name, *record.objects.get(key, ())}:
                # A statement that only may have changed what is different already is not blamed.
                if is_certain or root not in record.stale:
                    record.changed_at[root] = at
            traced = record.traced()
            if traced is None or traced.suspect:
                continue
            if not (record.is_quiet(name) and stale.policy_of(traced) == "warn"):
                stale.suspect(traced)


def _home(root: str) -> str:
    """The module of a variable of one."""
    return root.rpartition(".")[0]


# ---- in a shell -------------------------------------------------------------------------------

_watchers: list[Watcher] = []


def _install() -> None:
    """Make the checks known to cells. They stay, as code that calls them may still be running."""
    checks = [
        (*each.watched.checks(each.rebound, each.written_to), each.touched) for each in _watchers
    ]
    for at, name in enumerate((REBOUND, WRITTEN, TOUCHED)):
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
    rebinding = Rebinding(shell.user_ns, user_names(shell), watcher.watched.has, tracing_magics)

    @harmless
    def begin(info: Any) -> None:
        rebinding.begin(getattr(info, "transformed_cell", None) or info.raw_cell)
        watcher.begin_cell(info)

    begun, known = shell.events.callbacks["pre_run_cell"], 0

    @harmless
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
    restore_transform = change_trees(shell, rebinding.visit)
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


def _is_ours(callback: Any) -> bool:
    return str(getattr(callback, "__module__", "")).startswith(_OURS)


def _is_instance(shell: InteractiveShell) -> bool:
    """Whether it is the process's shell."""
    return InteractiveShell.initialized() and InteractiveShell.instance() is shell
