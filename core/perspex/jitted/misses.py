"""Why XLA compiles a jitted function again, and how often it has done so.

Where an earlier compilation resembles that of a call, the call's is published as the event
`recompile`: the differences from the nearest earlier calls (`jitted.comparing`), what it cost, how
often this function and this line were compiled. A function that a loop defines on each turn is new
to `jit` each time; its code object says that it is the same.

Nothing here runs unless somebody listens to events.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import time
import types
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from perspex.base import events, source
from perspex.base.recent import Recent
from perspex.jitted.comparing import MOST, compare
from perspex.jitted.differences import Difference, Miss
from perspex.jitted.signature import Key
from perspex.runtime.transfer import signature

# This many functions of one text, jitted one after the other, are taken for a loop.
FRESH = 3
_MOST_LOGS = 1_000
_MOST_SEEN = 256
_MOST_WRAPPERS = 32
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Log:
    """What is remembered of all functions of one text that were jitted in one place."""

    def __init__(self, codes: Sequence[types.CodeType | None]) -> None:
        self.codes = codes  # kept alive, since their ids are the key
        self.compiles = 0
        self.objects = 0
        self.seen = Recent[int, None](_MOST_SEEN)
        self.sites: Counter[tuple[str, int]] = Counter()

    def note(self, key: Key, at: source.Source | None) -> int:
        """Count a compilation; returns how many there were from this line."""
        self.compiles += 1
        self.seen[hash(key)] = None
        if at is None:
            return 0
        if len(self.sites) > _MOST_SEEN:
            self.sites.clear()
        site = at.frame.file, at.frame.line
        self.sites[site] += 1
        return self.sites[site]


_logs = Recent[Any, Log](_MOST_LOGS)


def layers_of(fun: Any) -> list[Any]:
    """A callable and what is inside of it: methods, partials and wrappers, such as that of `grad`.

    The last is what the user wrote.
    """
    found = [fun]
    while len(found) < _MOST_WRAPPERS:
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            break
        found.append(fun)
    return found


def code_of(fun: Any) -> types.CodeType | None:
    """The code that the user wrote for a function that may be wrapped; `None` where it is not."""
    return getattr(layers_of(fun)[-1], "__code__", None)


class Owner(Protocol):
    """What is asked of a jitted function: see `jitted.compiled.Compiled`."""

    name: str
    options: Any
    made_at: source.Source | None
    executables: Recent[Any, Any]
    forgotten: dict[int, tuple[Difference, ...]]
    log: Log | None

    @property
    def fun(self) -> Callable[..., Any]: ...


def is_ours(fun: Any) -> bool:
    """Whether a function is one of Perspex's own, which no user has written."""
    code = code_of(fun)
    return code is not None and code.co_filename.startswith(_HOME)


def _log_of(owner: Owner) -> Log:
    codes = tuple([getattr(layer, "__code__", None) for layer in layers_of(owner.fun)])
    # A cell under a magic is run by a function of ours, the same for all cells.
    if codes[-1] is None or source.is_internal(codes[-1].co_filename):
        return Log(codes)
    settings = tuple([_settings(layer) for layer in layers_of(owner.fun)])
    key = (tuple(map(id, codes)), settings, owner.options, owner.made_at)
    found = _logs.get(key)
    if found is None:
        found = _logs[key] = Log(codes)
    return found


def _settings(fun: Any, depth: int = 0) -> tuple[Any, ...]:
    """The settings of our transforms around a function, such as the `argnums` of `grad`.

    With other settings the same function has another program, so it must be compiled again.
    """
    code = getattr(fun, "__code__", None)
    if code is None or depth > _MOST_WRAPPERS or not source.is_internal(code.co_filename):
        return ()
    found: list[Any] = []
    for cell in fun.__closure__ or ():
        value = cell.cell_contents
        if callable(value):
            found.append(_settings(value, depth + 1))
        else:
            with contextlib.suppress(ValueError):  # neither numbers and text nor made of them
                found.append(marshal.dumps(value))
    return tuple(found)


def find(owner: Owner, key: Key) -> Miss:
    """Why a call of `owner` has no executable under `key`.

    Calls that were forgotten are known by their hash, so that nothing is kept alive. The hash of a
    structure does not depend on the keys of dicts: a call with other keys may pass for one of them.
    """
    because = owner.forgotten.get(hash(key))
    if because is None and not owner.executables:
        because = next(iter(owner.forgotten.values()), None)
    if because is not None:
        return Miss.because(*because)
    if owner.executables:
        earlier = [key for key, _ in owner.executables.entries()[-MOST:]]
        return compare(key, earlier, owner.fun)
    if owner.log is None:
        owner.log = _log_of(owner)
        owner.log.objects += 1
        if owner.log.objects >= FRESH and hash(key) in owner.log.seen:
            before = f"{owner.log.objects - 1} function objects of this text"
            return Miss.because(Difference("function", owner.name, before, "a new one"))
    return Miss()


def cleared(owner: Owner) -> Difference:
    """The reason for programs that the user cleared."""
    return Difference("cleared", owner.name, "compiled", "forgotten")


def forget(owner: Owner, because: Sequence[Difference] = ()) -> None:
    """Note that the programs of `owner` are about to be forgotten, and why."""
    reason = tuple(because) or (cleared(owner),)
    if because:
        # What was forgotten before, and not compiled since, differs by this as well.
        for key, before in owner.forgotten.items():
            owner.forgotten[key] = _since(before, because) or (cleared(owner),)
    if len(owner.forgotten) > _MOST_SEEN:
        owner.forgotten.clear()
    for key, _ in owner.executables.entries()[-MOST:]:
        owner.forgotten[hash(key)] = reason


def _since(before: Sequence[Difference], later: Sequence[Difference]) -> tuple[Difference, ...]:
    """Two changes, one after the other, as one; what is as it was is no difference."""
    found = {(each.kind, each.name): each for each in before if each.kind != "cleared"}
    for each in later:
        first = found.get((each.kind, each.name), each)
        found[each.kind, each.name] = each._replace(old=first.old)
    return tuple([each for each in found.values() if each.old != each.new])


def report(
    owner: Owner,
    key: Key,
    miss: Miss,
    lowering: int,
    stages: Sequence[float],
    at: source.Source | None,
) -> None:
    """Count a miss, and publish it if something like it was compiled before.

    `lowering` is the number of what was compiled; `stages` are the times at which tracing, lowering
    and compiling began; the last ends now.
    """
    fun = owner.fun
    owner.forgotten.pop(hash(key), None)
    if is_ours(fun):
        return
    if owner.log is None:
        owner.log = _log_of(owner)
    here = owner.log.note(key, at)
    if not miss.ways:
        return
    start, traced, lowered = stages
    code = code_of(fun)
    events.publish(
        "recompile",
        owner.name,
        start,
        signature(key[0].avals),
        at,
        lowering=lowering,
        differences=miss.ways,
        combination=miss.combination,
        cause=miss.cause,
        trace=traced - start,
        lower=lowered - traced,
        compile=time.perf_counter() - lowered,
        compiles=owner.log.compiles,
        compiles_here=here,
        closes_over=() if code is None else code.co_freevars,
        defined=None if code is None else (code.co_filename, code.co_firstlineno),
        owner=weakref.ref(owner),
    )
