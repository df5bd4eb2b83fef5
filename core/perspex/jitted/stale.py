"""What a remembered program captured, and what happens once that has changed.

Tracing freezes whatever a function reads besides its traced arguments: globals, closure variables,
defaults, helper functions, and what static arguments hold. When such a variable changes, the
program keeps using the old value. An observer that can see the variables (in a notebook:
`perspex_magics.captures.watcher`) calls `observe`. It sees each program when that has been traced,
records what was captured, and marks the program `suspect` when a captured variable may have
changed. A call itself checks nothing: marking drops the function's fast calls, so the next call
reaches Python, where `must_retrace` asks the record what has changed and applies the policy.

With no observer, as in plain Python, this costs one truth test per trace.
"""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from perspex import config
from perspex.base import events, source
from perspex.errors import StaleCaptureError, StaleCaptureWarning

POLICIES = ("warn", "retrace", "error", "ignore")
# A message lists at most so many changes, and counts the others.
MOST_SHOWN = 6
# How many changes of one program are remembered as told.
_MOST_TOLD = 256


class Change(NamedTuple):
    """A captured variable that has changed: `old` and `new` are short texts.

    `changed` and `traced` are the user's lines where it was changed and where the function was
    traced, as in `Cell In[3]:2`; empty where that is not known.
    """

    variable: str
    old: str
    new: str
    changed: str = ""
    traced: str = ""

    def sentence(self, function: str) -> str:
        """The change in one line."""
        traced = f" (in {self.traced})" if self.traced else ""
        changed = f", changed in {self.changed}" if self.changed else ""
        return (
            f"`{function}` was traced{traced} with `{self.variable}` = {self.old}; "
            f"now it is {self.new}{changed}."
        )


class Record(Protocol):
    """What an observer keeps of a program's captures.

    `unsure` says that the last look would have had to wait for a device.
    """

    unsure: bool

    def changes(self, wait: bool) -> Sequence[Change]:
        """What differs now from the time of the trace; may wait for the device if `wait`."""


class Owner(Protocol):
    """The holder of a function's programs and fast calls; it may have a policy of its own."""

    @property
    def stale_policy(self) -> str | None: ...

    def come_to_python(self) -> None:
        """Make the next call ask, instead of repeating a compiled call."""

    def retrace_within(self) -> None:
        """Forget the programs, because a function that calls this one is traced again."""


class Traced:
    """A remembered program of a function, its observer's record, and the changes found.

    `fun` gives the function, `static` are its static arguments by name, `inner` are the programs of
    other functions that became part of it, and `changes` is what was found at the last look.
    """

    __slots__ = (
        "__weakref__",
        "at",
        "changes",
        "fun",
        "inner",
        "name",
        "owner",
        "records",
        "static",
        "suspect",
        "told",
    )

    def __init__(
        self,
        name: str,
        fun: Callable[[], Any],
        inner: Sequence[Traced],
        owner: Owner | None,
        static: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self.name, self.fun, self.inner, self.static = name, fun, inner, static
        # Weak, since the owner holds this object: executables go when the function does.
        self.owner = None if owner is None else weakref.ref(owner)
        self.at = source.capture()
        self.records: list[Record] = []
        self.suspect = False
        self.changes: tuple[Change, ...] = ()
        self.told: set[tuple[str, str]] = set()

    def look(self, wait: bool = True) -> tuple[Change, ...]:
        """Find what has changed since the trace, and publish what is new."""
        start = time.perf_counter()
        self.suspect = False
        before = self.changes
        found: dict[str, Change] = {}
        for part in (self, *self.parts()):
            for record in part.records:
                for change in record.changes(wait):
                    found.setdefault(change.variable, change)
        self.changes = tuple(found.values())
        known = {(change.variable, change.new) for change in before}
        for change in self.changes:
            if (change.variable, change.new) not in known:
                self.publish(start, "found", change)
        for change in before:
            if change.variable not in found:
                self.publish(start, "gone", change)
                self.told = {told for told in self.told if told[0] != change.variable}
        return self.changes

    def untold(self) -> list[Change]:
        """The changes that no warning has mentioned."""
        return [c for c in self.changes if (c.variable, c.new) not in self.told]

    def parts(self) -> Iterator[Traced]:
        """The programs inside of it, at any depth."""
        seen: set[int] = set()
        waiting = list(self.inner)
        while waiting:
            part = waiting.pop()
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                waiting += part.inner

    def publish(self, start: float, state: str, change: Change) -> None:
        """The event of a change: `state` is `found`, `gone` or `retraced`."""
        if events.listeners:
            events.publish(
                "stale", self.name, start, at=source.capture(), state=state, **change._asdict()
            )


class Observer(Protocol):
    """Sees each program that will be remembered, as its trace ends."""

    def __call__(self, traced: Traced) -> Record | None: ...


# Read by every trace: empty means free.
observers: tuple[Observer, ...] = ()


def observe(observer: Observer) -> Callable[[], None]:
    """Show `observer` each program from now on; returns a function that ends that.

    It is called in the thread of the trace. What it returns is the program's record, or `None`
    if it keeps none.
    """
    global observers
    observers = (*observers, observer)

    def stop() -> None:
        global observers
        observers = tuple([other for other in observers if other is not observer])

    return stop


class Called(NamedTuple):
    """What messages call a function: `name`, an expression that gives it or its own name.

    `instance` is an expression for the object of a method.
    """

    name: str
    is_expression: bool
    instance: str | None = None

    def of(self, change: Change) -> Change:
        """The change, with the object of the method by its name."""
        method, within, rest = change.variable.partition(".__self__")
        if not within or self.instance is None or "." in method:
            return change
        return change._replace(variable=f"{self.instance}{rest}")


# What a notebook calls a function that has no name of its own there: `model.layers[2].step`.
namers: list[Callable[[Traced], Called | None]] = []


def called(traced: Traced) -> Called:
    """What messages call a function."""
    found = next((name for namer in namers if (name := namer(traced))), None)
    return found or Called(traced.name, traced.name.isidentifier())


class _Here(threading.local):
    inner: list[Traced] | None = None


_here = _Here()


class Tracing:
    """The trace of a function whose program is to be remembered: a context around it.

    Meanwhile the programs that become part of it are collected.
    """

    __slots__ = ("inner", "outer")

    def __enter__(self) -> Tracing:
        self.inner: list[Traced] = []
        self.outer, _here.inner = _here.inner, self.inner
        return self

    def __exit__(self, *exc: object) -> None:
        _here.inner = self.outer

    def remember(
        self,
        name: str,
        fun: Callable[[], Any],
        owner: Owner | None = None,
        static: Sequence[tuple[str, Any]] = (),
    ) -> Traced | None:
        """What the observers record of the program; `None` if they keep no record."""
        traced = Traced(name, fun, self.inner, owner, static)
        for observer in observers:
            record = observer(traced)
            if record is not None:
                traced.records.append(record)
        return traced if traced.records else None


def use(traced: Traced | None) -> None:
    """Note that a remembered program becomes part of what is being traced in this thread."""
    if traced is not None and _here.inner is not None:
        _here.inner.append(traced)


def suspect(traced: Traced) -> None:
    """Make the next call of the function check its captures."""
    if not traced.suspect:
        traced.suspect = True
        owner = None if traced.owner is None else traced.owner()
        if owner is not None:
            owner.come_to_python()


def policy_of(traced: Traced) -> str:
    """What to do when the function is called and its captures have changed."""
    owner = None if traced.owner is None else traced.owner()
    return (owner and owner.stale_policy) or config.stale_captures.value


def settle(traced: Traced) -> None:
    """Look at the captures without waiting for a device; have the next call look if it must."""
    traced.look(wait=False)
    unsure = any(r.unsure for part in (traced, *traced.parts()) for r in part.records)
    if unsure or traced.untold():
        suspect(traced)


def retrace_parts(traced: Traced) -> None:
    """Have the functions whose programs became part of this one traced again, where they must.

    Tells the listeners what this program had captured.
    """
    start = time.perf_counter()
    for change in traced.changes:
        traced.publish(start, "retraced", change)
    for part in traced.parts():
        owner = None if part.owner is None else part.owner()
        if owner is not None and part.look():
            owner.retrace_within()


def must_retrace(traced: Traced, policy: str | None = None) -> bool:
    """Whether a remembered program must not be used again.

    Args:
      traced: the program that a call is about to use.
      policy: by default that of its function.

    Warnings and errors: `StaleCaptureWarning` once for each change under the policy `warn`, and
    `StaleCaptureError` under `error`.
    """
    if not traced.suspect and not traced.changes:
        return False
    policy = policy or policy_of(traced)
    if policy == "ignore":
        # It stays suspect, for when the policy is another.
        return False
    changes = traced.look() if traced.suspect else traced.changes
    if not changes:
        return False
    if policy == "retrace":
        return True
    if policy == "error":
        raise StaleCaptureError(_text(traced, changes, "It was not run."))
    new = traced.untold()
    if new:
        if len(traced.told) >= _MOST_TOLD:
            traced.told.clear()
        traced.told |= {(change.variable, change.new) for change in new}
        warning = StaleCaptureWarning(_text(traced, new, "The old program runs."))
        name = called(traced)
        warning.function, warning.changes = name.name, tuple(map(name.of, new))
        warning.remedy = remedy(name)
        warnings.warn(warning, stacklevel=source.stacklevel())
    return False


def _text(traced: Traced, changes: Sequence[Change], outcome: str) -> str:
    name = called(traced)
    lines = [name.of(change).sentence(name.name) for change in changes[:MOST_SHOWN]]
    if len(changes) > MOST_SHOWN:
        lines.append(f"And {len(changes) - MOST_SHOWN} more variables have changed.")
    return "\n".join([*lines, f"{outcome} {remedy(name)}"])


def remedy(function: Called) -> str:
    """What to do to use the new value, in two sentences."""
    how = f"`{function.name}.retrace()`" if function.is_expression else "its method `retrace()`"
    return (
        f"Call {how}, or pass the value as an argument. To always retrace, set "
        '`perspex.config.update("stale_captures", "retrace")`.'
    )
