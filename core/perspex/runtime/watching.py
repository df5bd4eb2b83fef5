"""Whether the calls of this thread are watched: `runtime.resumable` is not needed before."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

here = threading.local()
"""Its `watch` is the innermost `watch_loops` of this thread, where there is one; its `kept` is
where programs put their results at once."""

running: dict[int, Any] = {}
"""The calls that are made in turns just now (`runtime.resumable.Run`), by thread."""

stopped: list[Any] = []
"""The call that an interrupt ended last."""


def innermost() -> Any:
    """The `watch_loops` that this thread is in, if it is in one."""
    return getattr(here, "watch", None)


def kept() -> list[Any] | None:
    """Where a program of this thread puts its results as soon as it has been launched."""
    return getattr(here, "kept", None)


@contextlib.contextmanager
def kept_in(results: list[Any]) -> Iterator[None]:
    """Have programs put their results into a list, where an interrupt does not lose them."""
    before = kept()
    here.kept = results
    try:
        yield
    finally:
        here.kept = before


def run(executable: Any, args: Sequence[Any]) -> list[Any] | None:
    """The results of a call made in turns; `None` if it is to be made at once."""
    watch = innermost()
    return None if watch is None else watch.run(executable, args)
