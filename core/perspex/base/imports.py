"""Imports that an interrupt must not reach, and the lock of Python's that one can leave locked."""

from __future__ import annotations

import contextlib
import importlib
import threading
from typing import Any

_imp: Any = importlib.import_module("_imp")


def free_lock() -> None:
    """Release Python's import lock if an interrupt has left it with this thread.

    Python takes it for a moment around each lookup of a module's own lock, and an interrupt that
    comes between the taking and the `try` behind it leaves it taken: the thread does not notice,
    and no other thread can import anything again. No import that goes on holds it while other code
    runs, so it may be released wherever this is called.
    """
    with contextlib.suppress(RuntimeError):  # another thread has it
        while _imp.lock_held():
            _imp.release_lock()


def undisturbed(name: str) -> None:
    """Import a module in a thread that no interrupt reaches."""
    free_lock()
    thread = threading.Thread(target=importlib.import_module, args=(name,), daemon=True)
    thread.start()
    thread.join()
