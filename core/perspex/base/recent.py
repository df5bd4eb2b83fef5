"""What was used last: a dictionary of bounded size, for caches that threads share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """At most `most` values by key; the one that was not used for longest goes first.

    With `weigh`, a function of a key and its value, `most` is what all values may weigh together. A
    value that is heavier than that by itself is not kept.

    Keys in `pinned` stay, also when everything is cleared. `put`, setting an item, `get` and
    `recall` are uses; `peek`, `in`, subscripts and iteration are not. Threads may use one at the
    same time; `entries` is a copy to iterate over. `None` is no value.

    >>> recent = Recent(2)
    >>> recent.put("a", 1), recent.put("b", 2), recent.get("a"), recent.put("c", 3)
    (None, None, 1, 2)
    >>> recent.entries(), recent.recall("d", lambda: 4), len(recent)
    ([('a', 1), ('c', 3)], 4, 2)
    """

    __slots__ = ("_lock", "most", "pinned", "weigh")

    def __init__(
        self, most: int, pinned: Container[K] = (), weigh: Callable[[K, V], int] | None = None
    ) -> None:
        super().__init__()
        self.most = most
        self.pinned = pinned
        self.weigh = weigh
        # Taken again where collecting garbage, which may happen anywhere, ends in here.
        self._lock = threading.RLock()

    def put(self, key: K, value: V) -> V | None:
        """Keep a value; returns the first that had to go for it, if one had to."""
        with self._lock:
            super().pop(key, None)
            super().__setitem__(key, value)
            if self.weigh is not None:
                return self._lighten(self.weigh)
            if len(self) <= self.most:
                return None
            oldest = next((other for other in self if other not in self.pinned), None)
            return None if oldest is None else super().pop(oldest)

    def _lighten(self, weigh: Callable[[K, V], int]) -> V | None:
        excess = sum([weigh(key, value) for key, value in self.items()]) - self.most
        gone: list[V] = []
        for key in [key for key in self if key not in self.pinned] if excess > 0 else ():
            gone.append(super().pop(key))
            excess -= weigh(key, gone[-1])
            if excess <= 0:
                break
        return gone[0] if gone else None

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, which is the one used last then."""
        with self._lock:
            if key not in self:
                return default
            value = super().pop(key)
            super().__setitem__(key, value)
            return value

    def peek(self, key: K) -> V | None:
        """The value of a key, without using it."""
        return super().get(key)

    def recall(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made if there is none."""
        found: V | None = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def pop(self, key: K, default: Any = None) -> Any:
        """Take a key out; returns its value, or `default`."""
        with self._lock:
            return super().pop(key, default)

    def clear(self) -> None:
        """Forget everything that is not pinned."""
        with self._lock:
            kept = [(key, value) for key, value in self.items() if key in self.pinned]
            super().clear()
            super().update(kept)

    def entries(self) -> list[tuple[K, V]]:
        """All keys and values, the last used at the end."""
        with self._lock:
            return list(self.items())
