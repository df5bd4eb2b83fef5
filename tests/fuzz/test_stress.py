"""Threads, interrupts and long use, each in a process of its own (`fuzz.stress`); and the watch on
the order of locks.

`PERSPEX_SOAK` says how many turns there are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from fuzz.stress_locks import Order, Watched

SOAK = int(os.environ.get("PERSPEX_SOAK", "0"))
SEED = os.environ.get("PERSPEX_SOAK_SEED", "1")
# Turns by default, and for each one of PERSPEX_SOAK.
PARTS = {"threads": (4, 1), "interrupts": (20, 2)} | ({"memory": (0, 10)} if SOAK else {})


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("part", PARTS)
def test_under_stress(part: str) -> None:
    least, each = PARTS[part]
    command = [sys.executable, "-m", "fuzz.stress", part]
    turns = str(max(least, each * SOAK))
    path = os.pathsep.join(["tests", *sys.path])
    run = subprocess.run(
        [*command, "--turns", turns, "--seed", SEED],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_circle_of_locks_is_found() -> None:
    order = Order()
    a, b, c = [Watched(threading.Lock(), site, order) for site in "abc"]
    for first, second in ((a, b), (b, c)):
        with first, second:
            pass
    assert not order.circles()
    with c, a:
        pass
    assert sorted(order.circles())[0] == ["a", "b", "c", "a"] and "held here" in order.report()


def test_two_locks_of_one_line_have_an_order() -> None:
    order = Order()
    one, other = [Watched(threading.RLock(), "table", order) for _ in range(2)]
    with one, other, one:  # taken again
        pass
    assert not order.circles()
    with other, one:
        pass
    assert order.circles() == [["table", "table"]]


def test_what_another_thread_releases_is_no_lock() -> None:
    order = Order()
    signal, lock = [Watched(threading.Lock(), site, order) for site in ("signal", "lock")]
    signal.acquire()
    with lock:
        pass
    thread = threading.Thread(target=signal.release)
    thread.start()
    thread.join()
    with lock, signal:
        pass
    assert order.signals == {"signal"} and not order.circles()
