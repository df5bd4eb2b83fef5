"""What was compiled in this session, from the events: for `%cache` and the panel."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perspex.api.stages import Traced, traced_again
from perspex.base import events, source
from perspex.jitted.compiled import Origin
from perspex.runtime.compiler import cache
from perspex_magics.display.markup import shortened

_MOST = 4_000
# Programs that were lowered and, for whatever reason, not compiled.
_MOST_UNFINISHED = 64


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
    # Why an earlier program of the function did not do: the event `recompile`.
    again: events.Event | None = None
    origin: Origin | None = None
    apart: bool = False  # by XLA, in a process of its own

    @property
    def can_be_traced(self) -> bool:
        """Whether the program is still there, so that it can be looked at."""
        origin = self.origin
        return origin is not None and None not in (origin.owner(), origin.closed())

    def traced(self) -> Traced | None:
        """The program, for whoever wants to look at it; `None` once it is gone."""
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


class Recorder:
    """Listens to the events of compiling, and keeps the last of them."""

    kinds = ("trace", "lower", "compile", "recompile")

    def __init__(self) -> None:
        self.done: deque[Compilation] = deque(maxlen=_MOST)
        self.total = 0
        self._numbers = itertools.count(1)
        # By thread, name and signature: the stages that are over of a program that is not.
        self._begun: dict[tuple[int, str, str], dict[str, events.Event]] = {}

    def __call__(self, event: events.Event) -> None:
        key = threading.get_ident(), event.name, event.signature
        if event.kind == "recompile":
            self._explain(event)
        elif event.kind != "compile":
            while len(self._begun) >= _MOST_UNFINISHED:
                self._begun.pop(next(iter(self._begun)), None)
            self._begun.setdefault(key, {})[event.kind] = event
        else:
            self._add(event, self._begun.pop(key, {}))

    def _add(self, event: events.Event, stages: dict[str, events.Event]) -> None:
        traced, lowered = stages.get("trace"), stages.get("lower")
        data = event.data
        # Two threads may be compiling.
        number = self.total = next(self._numbers)
        self.done.append(
            Compilation(
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
        )

    def _explain(self, event: events.Event) -> None:
        """Add why it was compiled to the last compilation of this name and these types."""
        for one in itertools.islice(reversed(self.done.copy()), _MOST_UNFINISHED):
            if (one.name, one.signature) == (event.name, event.signature):
                one.again = event
                return

    def remove(self, key: str) -> None:
        """Forget the compilations of one program."""
        for one in [one for one in self.done.copy() if one.key == key]:
            self.done.remove(one)

    def named(self, names: Iterable[str]) -> list[Compilation]:
        wanted = set(names)
        return [one for one in self.done.copy() if one.name in wanted]

    def names(self) -> list[str]:
        return sorted({one.name for one in self.done.copy()})


def size_text(size: int | None) -> str:
    """
    >>> size_text(2330), size_text(12), size_text(None)
    ('2.3 kB', '12 B', '')
    """
    if size is None:
        return ""
    value, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"


def milliseconds(seconds: float | None) -> str:
    """
    >>> milliseconds(0.0123), milliseconds(None)
    ('12.3', '')
    """
    return "" if seconds is None else f"{1e3 * seconds:.1f}"


def table(rows: Iterable[Compilation]) -> list[tuple[Any, ...]]:
    """The cells of a table, without its head."""
    return [
        (
            shortened(one.name, 48),
            shortened(one.signature, 80),
            one.found,
            milliseconds(one.trace),
            milliseconds(one.lower),
            milliseconds(one.compile),
            milliseconds(one.by_xla),
            size_text(one.bytes),
        )
        for one in rows
    ]
