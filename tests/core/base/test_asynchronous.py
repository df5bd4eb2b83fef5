"""Errors from outside come, or do not; in processes of their own, since a thread may stop."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from perspex.base.asynchronous import raise_in, take_back

TAKEN_BACK = """
import sys, threading
from perspex.base.asynchronous import raise_in, take_back

def f():
    return 1

take_back()
sys.{watch}(lambda *args: None)
f()
sys.{watch}(None)
print("went on")
"""


def test_an_error_comes() -> None:
    with pytest.raises(ZeroDivisionError):
        raise_in(threading.get_ident(), ZeroDivisionError)
        while True:
            pass


def test_what_is_taken_back_does_not_come() -> None:
    for _ in range(100):
        take_back()
    assert sum(range(1000)) == 499500


@pytest.mark.parametrize("watch", ["setprofile", "settrace"])
def test_python_goes_on_under_a_profiler(watch: str) -> None:
    """CPython 3.11 does not where an error is taken back by asking for none."""
    out = subprocess.run(
        [sys.executable, "-c", TAKEN_BACK.format(watch=watch)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert out.stdout == "went on\n", out.stderr
