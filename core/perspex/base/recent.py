"""A dictionary that forgets what was used longest ago, for caches that threads share."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A dictionary of at most `most` entries, the ones used last, in the order of their use.

    Setting an item and `get` are uses; `in`, subscripts and iteration are not. Threads may use one
    at the same time; `entries` is a copy to iterate over.

    >>> recent = Recent[str, int](2)
    >>> recent["a"], recent["b"] = 1, 2
    >>> recent.get("a")
    1
    >>> recent["c"] = 3
    >>> dict(recent)
    {'a': 1, 'c': 3}
    """

    __slots__ = ("_lock", "most")

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        # Taken again where collecting garbage, which may happen anywhere, ends in here.
        self._lock = threading.RLock()

    def __setitem__(self, key: K, value: V) -> None:
        with self._lock:
            self.pop(key, None)
            super().__setitem__(key, value)
            while len(self) > self.most:
                del self[next(iter(self))]

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, which is the one used last then."""
        with self._lock:
            if key not in self:
                return default
            value = self.pop(key)
            super().__setitem__(key, value)
            return value

    def pop(self, key: K, *default: Any) -> Any:
        """Forget a key; its value, or `default`."""
        with self._lock:
            return super().pop(key, *default)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            super().clear()

    def entries(self) -> list[tuple[K, V]]:
        """All keys and values, those used last at the end."""
        with self._lock:
            return list(self.items())
