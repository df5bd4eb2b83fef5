"""Lines for whoever waits: that something still lasts, and for how long it has.

Only the standard library is imported, because importing the rest is the first thing that lasts.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

# Seconds without a line, after which whoever waits wonders.
_EVERY = 5.0


def say(began: float, text: str) -> None:
    """Print how long ago something began, and what there is to say of it."""
    print(f"{time.perf_counter() - began:8.2f} s  {text}", flush=True)


@contextlib.contextmanager
def patiently(what: str) -> Iterator[None]:
    """Say every five seconds that something lasts, until it has ended."""
    began, ended = time.perf_counter(), threading.Event()

    def tell() -> None:
        while not ended.wait(_EVERY):
            say(began, f"still {what}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
