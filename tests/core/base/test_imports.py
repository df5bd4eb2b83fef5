"""Python's import lock, where an interrupt comes at the worst moment."""

from __future__ import annotations

import _imp
import importlib._bootstrap as bootstrap
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from perspex.base import imports

# No such module: the interrupt comes before Python looks for it.
NAME = "xdrlib_of_nobody"


@pytest.fixture
def left_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt that Python sees just after it has taken the lock."""

    def acquire_lock() -> None:
        _imp.acquire_lock()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        names = {name: getattr(_imp, name) for name in dir(_imp)}
        patch.setattr(bootstrap, "_imp", SimpleNamespace(**names | {"acquire_lock": acquire_lock}))
        with pytest.raises(KeyboardInterrupt):
            importlib_import(NAME)
    assert _imp.lock_held()


def importlib_import(name: str) -> Any:
    return bootstrap._gcd_import(name)


def test_other_threads_can_import_again(left_locked: None) -> None:
    imports.free_lock()
    assert not _imp.lock_held()
    sys.modules.pop("colorsys", None)
    thread = threading.Thread(target=importlib_import, args=("colorsys",), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive() and "colorsys" in sys.modules


def test_an_import_in_a_thread_frees_the_lock_first(left_locked: None) -> None:
    sys.modules.pop("colorsys", None)
    imports.undisturbed("colorsys")
    assert "colorsys" in sys.modules


def test_the_lock_of_another_thread_is_left_alone() -> None:
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        _imp.acquire_lock()
        taken.set()
        done.wait()
        _imp.release_lock()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert taken.wait(60)
        imports.free_lock()
        assert _imp.lock_held()
    finally:
        done.set()
        thread.join()
    assert not _imp.lock_held()
