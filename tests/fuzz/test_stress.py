"""A little of the stress, and that an order of locks which can deadlock is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from fuzz.lock_order import Order, Watched

TESTS = Path(__file__).resolve().parents[1]


def lock(order: Order, name: str) -> Watched:
    return Watched(order, threading.Lock(), name)


def test_a_cycle_of_locks_is_found() -> None:
    order = Order()
    a, b, c = (lock(order, name) for name in "abc")
    for first, second in ((a, b), (b, c)):
        with first, second:
            pass
    assert not order.cycles()
    with c, a:
        pass
    assert sorted(order.cycles()[0]) == ["a", "b", "c"]


def test_a_signal_is_no_lock() -> None:
    order = Order()
    a, signal = lock(order, "a"), lock(order, "signal")
    with a:
        signal.acquire()
    other = threading.Thread(target=signal.release)
    other.start()
    other.join()
    signal.acquire()
    with a:
        pass
    assert not order.cycles()


def test_a_little_stress() -> None:
    path = os.pathsep.join([str(TESTS.parent / "core"), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.stress", "--threads=4", "--seconds=0.1", "--interrupts=5"]
        + ["--calls=0", "--closures=0", "--shapes=0", "--seed=1"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert not done.returncode, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["threads"]["runs"] >= 4 and said["locks"]["taken"]
