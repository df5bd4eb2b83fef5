"""The record of this session's compilations, made from events, for `%cache` and the panel."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from perspex.api.stages import Traced, traced_again
from perspex.base import events, source
from perspex.base.recent import Recent
from perspex.jitted.compiled import Compiled, Origin
from perspex.jitted.fused import Fused
from perspex.runtime.compiler import cache
from perspex_magics.compiling.callables import Paths
from perspex_magics.programs.program import outputs_of

_MOST = 4_000
# Programs that were traced or lowered but not compiled yet, and those compiled a moment ago, whose
# cause is still to come.
_MOST_UNFINISHED = 64
# How often a function may be wrapped, and the folders in which packages are installed.
_MOST_WRAPPED = 20
_MAGICS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_PACKAGES = frozenset(("site-packages", "dist-packages"))


@dataclass(slots=True, eq=False)
class Compilation:
    """One program: how it came to be, in seconds. What did not happen is `None`."""

    name: str
    signature: str
    at: source.Source | None
    found: str  # `xla`, `memory` or `disk`
    trace: float | None
    lower: float | None
    compile: float
    by_xla: float  # how long XLA took for it, now or once
    key: str
    size: int | None
    number: int  # counted from 1
    device: str
    equations: int | None = None
    # Why no earlier program of the function could be used: the event `recompile`.
    again: events.Event | None = None
    origin: Origin | None = None
    apart: bool = False  # by XLA, in a process of its own
    # Whether the function is not the user's own, and the names that it assigns if it is a cell.
    is_library: bool = False
    outputs: list[str] | None = None

    def called(self, paths: Paths) -> str:
        """Its name, or the path of the jitted method or object: `model.layers[2].step`."""
        owner = None if self.is_library or self.origin is None else self.origin.owner()
        return paths.of(owner) or self.name

    @property
    def can_be_traced(self) -> bool:
        """Whether the program still exists, so that it can be inspected."""
        origin = self.origin
        return origin is not None and None not in (origin.owner(), origin.closed())

    def traced(self) -> Traced | None:
        """The program, to be inspected; `None` once it is gone."""
        return self.origin and traced_again(self.origin, self.device)

    @property
    def bytes(self) -> int | None:
        """On disk; a program that was compiled is written there a moment later."""
        if self.size is None and self.key:
            self.size = cache.size(bytes.fromhex(self.key))
        return self.size

    @property
    def seconds(self) -> float:
        return (self.trace or 0.0) + (self.lower or 0.0) + self.compile


def is_users(owner: Compiled) -> bool:
    """Whether a jitted function was written by the user: not by Perspex, and not in a package."""
    if isinstance(owner, Fused):
        return False
    function = owner.fun
    if outputs_of(function) is not None:
        return True
    for _ in range(_MOST_WRAPPED):
        inside = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inside is None:
            break
        function = inside
    code = getattr(function, "__code__", None)
    if code is None:
        return type(function).__module__ == "__main__"
    is_installed = not _PACKAGES.isdisjoint(code.co_filename.replace("\\", "/").split("/"))
    if code.co_filename.startswith(_MAGICS):
        return True  # made of what the user wrote behind a magic
    return not is_installed and not source.is_internal(code.co_filename)


class Recorder:
    """Listens to the events of compiling, and keeps the last of them."""

    kinds = ("trace", "lower", "compile", "recompile")

    def __init__(self) -> None:
        self.done: deque[Compilation] = deque(maxlen=_MOST)
        self.total = 0
        self._numbers = itertools.count(1)
        # The stages that are over of programs that are not: by program, and by lowering.
        self._traced: Recent[object, events.Event] = Recent(_MOST_UNFINISHED)
        self._lowered: Recent[int, events.Event] = Recent(_MOST_UNFINISHED)
        self._latest: Recent[int, Compilation] = Recent(_MOST_UNFINISHED)

    def __call__(self, event: events.Event) -> None:
        data = event.data
        if event.kind == "trace":
            if data["program"] is not None:
                self._traced.put(data["program"], event)
        elif event.kind == "lower":
            self._lowered.put(data["lowering"], event)
        elif event.kind == "compile":
            self._add(event)
        elif one := self._latest.get(data["lowering"]):
            one.again = event

    def _add(self, event: events.Event) -> None:
        data = event.data
        lowered = self._lowered.pop(data["lowering"])
        traced = None if lowered is None else self._traced.pop(lowered.data["program"])
        # Two threads may be compiling.
        number = self.total = next(self._numbers)
        one = Compilation(
            event.name,
            event.signature,
            event.at,
            data["source"],
            None if traced is None else traced.seconds,
            None if lowered is None else lowered.seconds,
            event.seconds,
            data["compiled_in"],
            data["key"],
            data["bytes"],
            number,
            data["device"],
            None if lowered is None else lowered.data["eqns"],
            None,
            data["origin"],
            data.get("apart", False),
        )
        owner = one.origin and one.origin.owner()
        one.is_library = owner is None or not is_users(owner)
        one.outputs = None if owner is None else outputs_of(owner.fun)
        self.done.append(one)
        self._latest.put(data["lowering"], one)

    def remove(self, key: str) -> None:
        """Forget the compilations of one program."""
        for one in [one for one in self.done.copy() if one.key == key]:
            self.done.remove(one)

    def named(self, names: Iterable[str]) -> list[Compilation]:
        wanted = set(names)
        return [one for one in self.done.copy() if one.name in wanted]

    def names(self) -> list[str]:
        return sorted({one.name for one in self.done.copy()})
