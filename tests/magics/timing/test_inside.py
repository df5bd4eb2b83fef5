"""Programs that run in the thread that calls them, seen from another one."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from support.shells import Notebook
from support.undisturbed import undisturbed

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex_magics.compiling import waits
from perspex_magics.timing.inside import Inside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts waits")
TIMEOUT = 60.0
MIME = "application/vnd.perspex.clock+json"
LONG = """
import time
from perspex import lax
n = 10**8
@perspex.jit
def long(n):
    return lax.fori_loop(0, n, lambda i, total: total + 1.0 / (i + 1.0), 0.0)
def f(n):
    return long(n)
long(1), long(1);
"""


@perspex.jit
def long(n):
    return lax.fori_loop(0, n, lambda i, total: total + 1.0 / (i + 1.0), 0.0)


@perspex.jit
def short(x):
    return x + 1


class Holder:
    program = staticmethod(long)


def seen(call: Callable[[], object], wanted: str = "") -> list[str]:
    """What another thread sees while this one calls again and again.

    It looks until it has seen what is wanted; otherwise 50 times, with calls between the looks.
    """
    found: list[str] = []
    calls, is_over = 0, threading.Event()
    inside = Inside(threading.get_ident(), threading.get_native_id())

    def watch() -> None:
        before = 0
        while wanted not in found if wanted else len(found) < 50:
            time.sleep(0.005)
            if wanted or calls > before + 1:
                found.append(inside.look())
                before = calls
        is_over.set()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    end = time.monotonic() + TIMEOUT
    while not is_over.is_set() and time.monotonic() < end:
        call()
        calls += 1
    assert is_over.is_set()
    thread.join()
    return found


def test_a_loop_is_seen_by_the_name_that_calls_it() -> None:
    held = Holder()
    for call in (lambda: long(10**8), lambda: held.program(10**8)):
        call()
        assert seen(call, "`long`")


def test_a_program_without_a_name_is_seen() -> None:
    nameless = perspex.jit(functools.partial(long.__wrapped__))
    assert seen(lambda: nameless(10**8), "a program")


def test_operations_are_seen_in_the_core() -> None:
    x = pnp.ones((4_000, 4_000))
    assert seen(lambda: pnp.concatenate([x, x]), "an operation")


def test_the_first_call_of_a_program_is_seen() -> None:
    done: list[object] = []

    def call() -> None:
        n = len(done)
        first = perspex.jit(lambda x: lax.fori_loop(0, 10**8, lambda i, y: y + 1.0 / (i + n), x))
        done.append(first(0.0))

    assert seen(call, "`<lambda>`")


@undisturbed
def test_short_calls_are_no_long_ones() -> None:
    x = pnp.ones(3)
    short(x)
    found = seen(lambda: [short(x) for _ in range(1_000)])
    assert found.count("") >= 45


def test_what_is_no_program_is_not_seen() -> None:
    a = np.ones((300, 300))
    for call in (lambda: a @ a, lambda: sum(range(100_000)), lambda: a.sum()):
        assert set(seen(call)) == {""}


@pytest.mark.parametrize("call", ["long(n)", "float(long(n))", "f(n)"])
@undisturbed
def test_the_clock_counts_them_for_the_device(notebook: Notebook, call: str) -> None:
    notebook.ok(LONG)
    notebook.ok("%clock all")
    notebook.ok(f"begun = time.thread_time()\ny = {call}\nspent = time.thread_time() - begun")
    (line,) = [bundle[MIME] for bundle in notebook.displayed if MIME in bundle]
    assert line["device"] == pytest.approx(notebook.ns["spent"], rel=0.1, abs=0.05)
    assert line["python"] < 0.1


def test_a_long_one_is_told_while_it_runs(notebook: Notebook, monkeypatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(waits, "_LONG", 0.5)
    monkeypatch.setattr(waits.Wait, "_has_kernel", True)
    monkeypatch.setattr(waits.Wait, "_publish", lambda wait, data, text: told.append(text))
    notebook.ok(LONG)
    notebook.ns["told"] = told
    notebook.ok("while not told: long(5 * n)")
    assert told[0].startswith("the device is computing `long`: ")
