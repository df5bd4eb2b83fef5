"""What is published while functions are traced, lowered, compiled and fed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex.base import events, source

CORE = Path(__file__).resolve().parents[3] / "core"


@pytest.fixture
def seen():
    found: list = []
    stop = events.subscribe(found.append)
    yield found
    stop()


def kinds(seen, name):
    return [e.kind for e in seen if e.name == name]


def test_stages_of_a_first_call(seen) -> None:
    def double(x):
        return pnp.sin(x) * 2

    before = time.perf_counter()
    perspex.jit(double)(np.ones(3, np.float32))
    wall = time.perf_counter() - before
    assert kinds(seen, "double") == ["cache", "trace", "lower", "compile"]
    for event in seen:
        assert 0 <= event.seconds <= wall and event.start >= before
        if event.name == "double":
            assert event.signature == "f32[3]"
            assert "test_events.py" in source.summary(event.at)
    (trace,) = [e for e in seen if e.kind == "trace"]
    assert trace.data["eqns"] == 2


def test_a_body_that_is_traced_outside_of_a_program_is_told_of(seen) -> None:
    def body(carry, x):
        return carry + x, pnp.sin(x)

    perspex.lax.scan(body, np.float32(0), np.ones(3, np.float32))
    (trace,) = [e for e in seen if e.kind == "trace" and e.name == "body"]
    assert trace.data["eqns"] == 2 and trace.signature == "f32[], f32[]"
    perspex.lax.scan(body, np.float32(0), np.ones(3, np.float32))  # it is remembered
    assert kinds(seen, "body") == ["trace"]
    seen.clear()
    whole = perspex.jit(lambda x: perspex.lax.scan(lambda c, x: (c * x, x), x, x[None])[0])
    whole(np.float32([2.0]))
    assert [e.name for e in seen if e.kind == "trace"] == ["<lambda>"]


def test_nothing_on_a_repeated_call(seen) -> None:
    f = perspex.jit(lambda x: x * 3)
    x = pnp.ones(3)
    f(x)
    seen.clear()
    for _ in range(5):
        f(x)
    assert seen == []


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        ((np.ones(3, "f"), 1), (np.ones(4, "f"), 1), "`x`: f32[3] -> f32[4]"),
        ((np.ones(3, "f"), 1), (np.ones(3, "i"), 1), "`x`: f32[3] -> i32[3]"),
        ((np.ones((), "f"), 1), (1.0, 1), "`x`: f32[] -> f32[] (weakly typed)"),
        ((np.ones(3, "f"), 1), (np.ones(3, "f"), 2), "static `n`: 1 -> 2"),
        (({"a": 1.0}, 1), ({"b": 1.0}, 1), "tree of arguments"),
    ],
)
def test_cause_of_a_miss(seen, first, second, cause) -> None:
    def f(x, n):
        return x

    f.__code__ = f.__code__.replace()  # no other test's function has this code object
    g = perspex.jit(f, static_argnums=1)
    g(*first)
    g(*second)
    misses = [e.data["cause"] for e in seen if e.kind == "cache" and e.name == "f"]
    assert misses[0] == "first call"
    assert cause in misses[1]


def test_closest_earlier_call_is_compared(seen) -> None:
    def f(x, n):
        return x

    g = perspex.jit(f, static_argnums=1)
    g(np.ones(3, "f"), 1)
    g(np.ones(5, "f"), 2)
    g(np.ones(5, "f"), 1)  # differs from each earlier call in one thing
    cause = [e.data["cause"] for e in seen if e.kind == "cache"][-1]
    assert cause == "new combination: static `n`: 2 -> 1, or `x`: f32[3] -> f32[5]"


def test_transfers_are_counted(seen) -> None:
    x = perspex.device_put(np.ones((10, 10), np.float32))
    np.asarray(x + 1)
    moved = [(e.data["direction"], e.data["bytes"]) for e in seen if e.kind == "transfer"]
    assert moved[0] == ("in", 400)


def test_a_failing_listener_does_not_reach_the_user(monkeypatch) -> None:
    reported = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)

    def broken(event):
        raise RuntimeError("listener")

    stop = perspex.events.subscribe(broken)
    try:
        np.testing.assert_array_equal(perspex.jit(lambda x: x + 5)(np.ones(2)), [6, 6])
    finally:
        stop()
    assert reported and all(str(r.exc_value) == "listener" for r in reported)


def test_a_failing_listener_is_told_of_by_python_itself() -> None:
    """Whose hook takes arguments that only Python can make."""
    code = """
import numpy as np, perspex
def broken(event): raise RuntimeError("of the listener")
perspex.events.subscribe(broken)
assert perspex.jit(lambda x: x + 5)(np.ones(2))[0] == 6
"""
    env = {**os.environ, "PYTHONPATH": str(CORE)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert "Exception ignored" in out.stderr and "RuntimeError: of the listener" in out.stderr
    assert "<in a listener to Perspex's events: <function broken" in out.stderr


def test_nobody_hears_of_what_only_looks(seen) -> None:
    """Nor is it among what is going on, in this thread; another thread is heard as ever."""
    running: list[int] = []

    def look(x):
        running.append(len(events.running))
        return x + 71

    with events.unheard():
        perspex.jit(look)(pnp.ones(3))
        other = threading.Thread(target=perspex.jit(lambda x: x + 72), args=[pnp.ones(3)])
        other.start()
        other.join()
    assert running == [0]
    assert {event.name for event in seen if event.kind == "compile"} == {"<lambda>"}
    perspex.jit(lambda x: look(x) + 73)(pnp.ones(3))
    assert running == [0, 1]
