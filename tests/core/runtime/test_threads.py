"""Threads that Python has not started, and what the processors have run them."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex.runtime import threads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells threads apart")


def test_a_thread_has_been_run_as_long_as_it_says_itself() -> None:
    before = time.thread_time()
    found = threads.used(threading.get_native_id())
    assert before <= found <= time.thread_time()


def test_a_thread_that_is_not_there_has_used_nothing() -> None:
    assert threads.used(1 << 23) == 0  # beyond the most that Linux gives


def test_those_of_python_are_told_from_others() -> None:
    wait = threading.Event()
    thread = threading.Thread(target=wait.wait)
    thread.start()
    try:
        assert thread.native_id not in threads.native()
        assert thread.native_id in threads.native([thread])
    finally:
        wait.set()
        thread.join()


def test_xla_works_in_threads_of_its_own() -> None:
    x = pnp.ones((500, 500))
    work = perspex.jit(lambda a: perspex.lax.fori_loop(0, 30, lambda i, a: a @ a / 500, a))
    np.asarray(work(x))
    threads.look()
    before = threads.times()
    np.asarray(work(x))
    after = threads.times()
    assert before is not None and after is not None
    assert threading.get_native_id() not in after
    assert sum(after.values()) > sum(before.values())
