"""Loops that are stopped: they end, nothing of them is taken for a value, and others go on."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import config, lax
from perspex.base import xla
from perspex.runtime import stopping


@pytest.fixture(autouse=True)
def stoppable() -> Iterator[None]:
    before = config.stoppable_loops.value
    config.stoppable_loops.set(True)
    stopping.enable()
    yield
    stopping.release()
    config.stoppable_loops.set(before)
    config.stops.cell.set_local(xla.UNSET)


def forever(x: Any) -> Any:
    """A loop whose end never comes: `x` stays positive."""
    return lax.while_loop(lambda c: c[0] > -9.0, lambda c: pnp.sin(c) + c * 0.5, x)


def counted(x: Any) -> Any:
    """Some minutes of turns."""
    return lax.fori_loop(0, 2_000_000_000, lambda i, c: pnp.sin(c) + c * 0.5, x)


# As functions of a vector.
ENDLESS: dict[str, Callable[[Any], Any]] = {
    "while": forever,
    "while of few numbers": lambda x: forever(x[:2]),
    "while of a key": lambda x: lax.while_loop(
        lambda c: c[1] > -9.0,
        lambda c: (perspex.random.split(c[0])[0], pnp.sin(c[1]) + c[1] * 0.5),
        (perspex.random.key(0), x[0]),
    )[1],
    "fori": counted,
    "fori of a prime": lambda x: lax.fori_loop(0, 2_000_000_011, lambda i, c: pnp.sin(c), x),
    "scan": lambda x: lax.scan(
        lambda c, _: (pnp.sin(c) + c * 0.5, None), x, None, length=2_000_000_000
    )[0],
    "while in scan": lambda x: lax.scan(lambda c, _: (forever(c), c[0]), x, None, length=9)[0],
    "scan in while": lambda x: lax.while_loop(
        lambda c: c[0] > -9.0,
        lambda c: lax.fori_loop(0, 1_000_000_000, lambda i, d: pnp.sin(d) + 0.5 * d, c),
        x,
    ),
    "in a branch": lambda x: lax.cond(x[0] > 0, forever, lambda x: x, x),
    "in a jitted function": lambda x: perspex.jit(forever)(x) * 2.0,
    "vmap": perspex.vmap(
        lambda c: lax.while_loop(lambda c: c > -9.0, lambda c: pnp.sin(c) + c * 0.5, c)
    ),
    "jvp": lambda x: perspex.jvp(forever, (x,), (x,))[1],
    "donated": lambda x: forever(x + 1.0),
}  # fmt: skip


X = np.linspace(0.5, 1.0, 500, dtype="float32")


def left_behind(f: Callable[[Any], Any], x: Any = X) -> Any:
    """The result of a program that runs, and does not end."""
    out = perspex.jit(f)(pnp.asarray(x))
    assert not out.is_ready()
    return out


@pytest.mark.parametrize("f", ENDLESS.values(), ids=ENDLESS)
def test_a_loop_is_stopped(f: Callable[[Any], Any]) -> None:
    """Small programs run in the call itself, so another thread stops them."""
    jitted, ended = perspex.jit(f), threading.Event()

    def halt() -> None:
        while not ended.wait(0.02):
            stopping.halt()  # nothing happens until the program has a page

    thread = threading.Thread(target=halt)
    thread.start()
    try:
        out = jitted(pnp.asarray(X))
        xla.block_until_ready(out)  # would wait for ever
    finally:
        ended.set()
        thread.join()
    found = stopping.settle("the test")
    assert found is not None and any(x is out for x in found.given_up)
    with pytest.raises(RuntimeError, match="when the test was interrupted"):
        np.asarray(out)
    # Another call has nothing to do with it.
    assert jitted_sum(X) == pytest.approx(375.0)


@perspex.jit
def jitted_sum(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 500, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0))[1]


def test_programs_of_other_threads_go_on() -> None:
    @perspex.jit
    def turns(x: Any) -> Any:
        return lax.fori_loop(0, 100_000, lambda i, c: pnp.sin(c) + 1, x)

    expected = np.asarray(turns(X))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(np.asarray(turns(X))))
    left_behind(forever)
    thread.start()
    stopping.halt()
    thread.join()
    stopping.settle("the test")
    np.testing.assert_array_equal(found[0], expected)


READS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "print": str,
    "item": lambda x: x[0],
    "operator": lambda x: x + 1,
    "jitted function": perspex.jit(pnp.sin),
    "tolist": lambda x: x.tolist(),
    "wait": lambda x: x.block_until_ready(),
    "device_get": perspex.device_get,
    "stack": lambda x: pnp.stack([x, x]),
    "NumPy": np.sin,
}


def test_what_was_stopped_has_no_value() -> None:
    out = left_behind(forever)
    later = out + 1.0
    stopping.stop(0.0, "the test")
    for read in READS.values():
        for x in (out, later):
            with pytest.raises(RuntimeError, match="has no value: it was not computed when the"):
                read(x)
    assert repr(out) == "Array(stopped, float32[500])"
    assert out.shape == (500,)


def test_the_state_of_a_loop_is_kept() -> None:
    @perspex.jit
    def train(w: Any) -> Any:
        step, w = lax.while_loop(
            lambda c: c[1][0] > -9.0, lambda c: (c[0] + 1, c[1] * 0.5 + 1.0), (0, w)
        )
        return {"w": w, "step": step, "mean": w.mean()}

    out = train(pnp.zeros(3000))
    later = train(out["w"])  # in the queue
    (stopped,) = stopping.stop(0.01).programs
    assert stopped.name == "train" and later is not None
    step, w = int(stopped.value["step"]), np.asarray(stopped.value["w"])
    assert stopped.value["mean"] is None  # on a busy machine no turn may have begun
    np.testing.assert_allclose(w, 2.0 - 2.0 * 0.5 ** min(step, 60), rtol=1e-6)


def halving(w: Any) -> Any:
    """An endless loop from zeros whose state tells the turn: 2 - 2 / 2**step."""
    return lax.while_loop(lambda c: c[1][0] > -9.0, lambda c: (c[0] + 1, c[1] * 0.5 + 1.0), (0, w))


with_rule = perspex.custom_jvp(halving)
with_rule.defjvp(lambda primals, tangents: (halving(*primals), halving(*tangents)))
WITHIN: dict[str, Callable[[Any], Any]] = {
    "a jitted function": perspex.jit(halving),
    "two of them": perspex.jit(perspex.jit(halving)),
    "a branch": lambda w: lax.cond(w[0] < 1.0, halving, lambda w: (0, w), w),
    "a branch beside one that passes it on": lambda w: lax.cond(
        w[0] < 1.0, lambda n, w: halving(w), lambda n, w: (n, w), 5, w
    ),
    "a function with its own derivative": with_rule,
    "a checkpoint": perspex.checkpoint(halving),
}


@pytest.mark.parametrize("f", WITHIN.values(), ids=WITHIN)
def test_the_state_of_a_loop_within_is_kept(f: Callable[[Any], Any]) -> None:
    out = perspex.jit(lambda w: (*f(w), w.sum()))(pnp.zeros(3000))
    (stopped,) = stopping.stop(0.01).programs
    step, w, _ = stopped.value
    assert out is not None  # on a busy machine no turn may have begun
    np.testing.assert_allclose(w, 2.0 - 2.0 * 0.5 ** min(int(step), 60), rtol=1e-6)


def test_the_state_is_kept_where_nothing_else_is_left_of_the_function() -> None:
    """As in `jit(lambda w: ...)(w)`, whose program a cache may hold, and whose name nobody."""
    for _ in range(2):
        out = perspex.jit(lambda w: halving(w)[1])(pnp.zeros(3000))
        gc.collect()
        (stopped,) = stopping.stop(0.01).programs
        assert stopped.name == "<lambda>" and stopped.value.shape == out.shape
        stopping.release()


def test_the_state_is_kept_where_nobody_holds_the_result() -> None:
    """As in `float(jit(f)(x)[0])`."""
    first = perspex.jit(lambda w: halving(w)[1])(pnp.zeros(3000))[0]
    (stopped,) = stopping.stop(0.01).programs
    assert stopped.value.shape == (3000,) and first.is_deleted()
    del stopped
    stopping.release()
    large = weakref.ref(perspex.jit(lambda w: w * halving(w[:10])[0])(pnp.zeros(2**23)))
    stopping.stop(0.01)
    assert large() is None  # 32 MiB


def twice(w: Any) -> Any:
    return halving(halving(w)[1])


def outer(w: Any) -> Any:
    return lax.while_loop(lambda c: c[1][0] > -9.0, lambda c: halving(c[1]), (0, w))


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (halving, False),
        (lambda w: lax.cond(w[0] < 1.0, halving, halving, w), False),
        (lambda w: lax.scan(lambda c, x: (c + x, None), halving(w)[1], pnp.ones((3, 3000))), False),
        (twice, True),
        (outer, True),
        (lambda w: lax.cond(w[0] < 1.0, outer, halving, w), True),
        (perspex.jit(outer), True),
    ],
    ids=["one", "a branch", "a short one after it", "two", "nested", "in a branch", "in a call"],
)
def test_values_of_several_loops_are_told_from_those_of_one(
    f: Callable[[Any], Any], expected: bool
) -> None:
    out = perspex.jit(f)(pnp.zeros(3000))
    (stopped,) = stopping.stop(0.01).programs
    assert out is not None and stopped.is_mixed is expected


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda w: perspex.jit(halving)(w)[1] * 2.0, [False]),
        (lambda w: perspex.jit(lambda w: (halving(w)[1], w))(w), [True, False]),
        (lambda w: perspex.jit(lambda w: w)(halving(w)[1]), [True]),
        (lambda w: lax.cond(w[0] < 1, lambda w: halving(w)[1], lambda w: 2 * w, w), [False]),
        (lambda w: lax.cond(w[0] < 1, lambda w: w, lambda w: w, w), [False]),
    ],
    ids=["more is done", "one of two", "passed on", "a branch that computes", "no loop"],
)
def test_which_results_are_states(f: Callable[[Any], Any], expected: list[bool]) -> None:
    assert stopping.states(perspex.make_jaxpr(f)(pnp.zeros(3)).jaxpr) == expected


def test_short_programs_in_a_queue_end_by_themselves() -> None:
    @perspex.jit
    def turn(x: Any) -> Any:
        return lax.fori_loop(0, 10_000, lambda i, c: pnp.sin(c) + 1, x)

    x = turn(pnp.ones(1000))
    expected = x.block_until_ready()
    for _ in range(3):
        x = turn(expected)
    found = stopping.stop(5.0)
    assert not found.is_stopped
    np.testing.assert_array_equal(x, turn(expected))


def test_a_loop_that_ends_at_once_has_no_value_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine all of a loop may end before this thread goes on."""
    out = left_behind(forever)
    memory = stopping._page.memory

    class Slow:
        def __setitem__(self, at: Any, value: int) -> None:
            memory[at] = value
            out.block_until_ready()

    monkeypatch.setattr(stopping._page, "memory", Slow())
    assert stopping.stop(0.0).given_up == (out,) and out.is_deleted()


def test_nothing_runs() -> None:
    assert stopping.stop(0.0) == stopping.Outcome()


def test_from_another_thread() -> None:
    """`halt` ends what runs; the arrays have their numbers until `settle`."""
    out = left_behind(forever)
    stopping.halt()
    out.block_until_ready()  # would wait for ever
    found = stopping.settle("the test")
    assert found is not None and any(x is out for x in found.given_up)
    with pytest.raises(RuntimeError, match="no value"):
        np.asarray(out)
    assert stopping.settle("the test") is None


def test_ahead_of_time() -> None:
    lowered = perspex.jit(forever).lower(pnp.ones(500))
    compiled = lowered.compile()
    out = compiled(pnp.ones(500))
    assert stopping.stop(0.01).is_stopped and out.is_deleted()
    # What is shown is the user's program.
    for text in (lowered.as_text(), compiled.as_text()):
        assert "64]" not in text and "64xi32" not in text
    assert "pjit" not in str(perspex.make_jaxpr(forever)(pnp.ones(500)))


def test_the_page_is_no_array_of_the_users() -> None:
    x = pnp.ones(500)
    before = len(perspex.live_arrays())
    perspex.jit(lambda x: lax.while_loop(lambda c: c[0] < 0, lambda c: c - 1, x))(x)
    assert len(perspex.live_arrays()) == before


def test_results_are_the_same_bit_by_bit() -> None:
    def loops(x: Any) -> list[Any]:
        def step(c: Any, a: Any) -> Any:
            return pnp.tanh(c * 0.9 + a), c.sum()

        xs = pnp.linspace(-1.0, 1.0, 10_007)
        return [
            lax.while_loop(lambda c: pnp.max(c) > 1e-3, lambda c: c * 0.99 - 1e-4 * c**2, x),
            *lax.scan(step, x, xs),
            *lax.scan(step, x, xs, reverse=True, unroll=3),
            perspex.grad(lambda x: lax.scan(step, x, xs)[1].sum())(x),
            perspex.vmap(lambda c: lax.while_loop(lambda c: c < 2, lambda c: c * 1.01, c))(x),
        ]

    x = pnp.linspace(0.1, 1.0, 300)
    watched = perspex.jit(loops)(x)
    config.stoppable_loops.set(False)
    plain = perspex.jit(lambda x: loops(x))(x)
    for one, other in zip(watched, plain, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


IN_A_CALL = """
import os, signal, threading
import numpy as np
import perspex
from perspex import config, lax
from perspex.runtime import interruptible, stopping

config.stoppable_loops.set(True)
stopping.enable()
signal.signal(signal.SIGINT, signal.default_int_handler)
gate = threading.Event()

def wait(i):
    if i == 0:
        os.kill(os.getpid(), signal.SIGINT)
        while not gate.wait(0.01):  # takes and releases what Python runs under
            pass

def turn(state):
    perspex.debug.callback(wait, state[0])
    return state[0] + 1, state[1] * 0.5

f = perspex.jit(lambda x: lax.while_loop(lambda s: s[0] < 1_000_000, turn, (0, x)))
try:
    f(np.ones(3, "float32"))
except KeyboardInterrupt:
    pass
assert interruptible.left and stopping._page.arrays, "the call has not returned"
stopping.stop(0.01)
gate.set()
while interruptible.left:
    gate.wait(0.01)
    stopping.drop()
stopping.drop()
assert not stopping._unclosed
total = perspex.jit(lambda x: lax.fori_loop(0, 4, lambda i, c: c + x, 0.0))
assert total(2.0) == 8.0
print("done")
"""


def test_a_program_whose_call_has_not_returned() -> None:
    """XLA runs it in the call, which waits for Python in a callback of the program's."""
    run = subprocess.run(
        [sys.executable, "-c", IN_A_CALL], capture_output=True, text=True, timeout=100
    )
    assert run.stdout == "done\n", run.stderr
