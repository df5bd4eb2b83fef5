"""What was compiled in this session, from the events: for `%cache`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perspex import events, source
from perspex.runtime import cache

_MOST = 2_000
# Programs that were lowered and, for whatever reason, not compiled.
_MOST_UNFINISHED = 64


@dataclass(slots=True)
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

    kinds = ("trace", "lower", "compile")

    def __init__(self) -> None:
        self.done: deque[Compilation] = deque(maxlen=_MOST)
        # By thread, name and signature: the stages that are over of a program that is not.
        self._begun: dict[tuple[int, str, str], dict[str, float]] = {}

    def __call__(self, event: events.Event) -> None:
        key = threading.get_ident(), event.name, event.signature
        if event.kind != "compile":
            while len(self._begun) >= _MOST_UNFINISHED:
                self._begun.pop(next(iter(self._begun)), None)
            self._begun.setdefault(key, {})[event.kind] = event.seconds
            return
        stages = self._begun.pop(key, {})
        data = event.data
        self.done.append(
            Compilation(
                event.name,
                event.signature,
                event.at,
                data["source"],
                stages.get("trace"),
                stages.get("lower"),
                event.seconds,
                data["compiled_in"],
                data["key"],
                data["bytes"],
            )
        )

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
            one.name,
            one.signature,
            one.found,
            milliseconds(one.trace),
            milliseconds(one.lower),
            milliseconds(one.compile),
            milliseconds(one.by_xla),
            size_text(one.bytes),
        )
        for one in rows
    ]
