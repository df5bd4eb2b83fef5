"""What is told of waiting for the device, of stages that fail, and to whom."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from support.undisturbed import undisturbed

import perspex
import perspex.numpy as pnp
from perspex.base import events
from perspex.runtime import interruptible


@pytest.fixture
def heard():
    """Events of waiting and failing, and of nothing else."""
    found: list[events.Event] = []
    stop = events.subscribe(found.append, ("wait", "failed"))
    yield found
    stop()


@pytest.fixture(scope="module")
def work():
    """A call that keeps the device busy for a while, compiled."""
    matrix = pnp.ones((400, 400))
    f = perspex.jit(lambda a: perspex.lax.fori_loop(0, 80, lambda i, a: a @ a / 400, a))
    f(matrix).block_until_ready()
    f(matrix).sum().block_until_ready()
    return lambda: f(matrix)


WAYS = {
    "block_until_ready": lambda y: y.block_until_ready(),
    "the function": perspex.block_until_ready,
    "item": lambda y: y.sum().item(),
    "tolist": lambda y: y.tolist(),
    "float": lambda y: float(y.sum()),
    "text": str,
    "device_get": perspex.device_get,
}


@pytest.mark.parametrize("wait", WAYS.values(), ids=WAYS)
@undisturbed
def test_waiting_is_told_of_and_timed(heard, work, wait) -> None:
    heard.clear()
    y = work()
    start = time.perf_counter()
    wait(y)
    took = time.perf_counter() - start
    assert [event.kind for event in heard] == ["wait"]
    assert heard[0].seconds <= took
    assert heard[0].seconds == pytest.approx(took, rel=0.5, abs=0.02)


@undisturbed
def test_what_is_there_is_not_waited_for(heard) -> None:
    x = pnp.arange(5).block_until_ready()
    heard.clear()
    assert x.block_until_ready() is x
    assert (x.sum().block_until_ready().item(), x.tolist()) == (10, [0, 1, 2, 3, 4])
    assert [event for event in heard if event.seconds > 0.01] == []


def test_numbers_come_out_as_before() -> None:
    x = pnp.array([[1.5, 2.5]])
    assert x.item(0, 1) == 2.5 and type(x.item(0)) is float
    assert x.tobytes() == np.array([[1.5, 2.5]], np.float32).tobytes()
    assert pnp.array(3, pnp.bfloat16).tolist() == 3.0
    with pytest.raises(ValueError, match="size 1"):
        x.item()


def test_a_deleted_array_still_refuses() -> None:
    x = pnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x.item()
    with pytest.raises(RuntimeError, match="deleted"):
        x.block_until_ready()


def test_waiting_of_another_kind(heard) -> None:
    """What is waited for in another thread; but compiling is no wait for the device."""
    interruptible.call(lambda: time.sleep(0.1))
    assert [event.seconds >= 0.1 for event in heard] == [True]
    with events.Phase("compile", "f"):
        interruptible.call(lambda: time.sleep(0.1))
    assert len(heard) == 1


def test_a_failing_stage_is_told_of(heard) -> None:
    def f(x):
        time.sleep(0.1)
        raise KeyError("no")

    with pytest.raises(KeyError):
        perspex.jit(f)(1.0)
    (event,) = heard
    assert (event.kind, event.name, event.data["stage"]) == ("failed", "f", "trace")
    assert event.seconds >= 0.1
    assert events.running == []


def test_a_phase_knows_its_end() -> None:
    with events.Phase("trace", "f") as phase:
        assert phase.end is None and events.is_inside("trace")
        inside = []
        thread = threading.Thread(target=lambda: inside.append(events.is_inside("trace")))
        thread.start()
        thread.join()
        assert inside == [False]  # not in that thread
    assert phase.end >= phase.start
    assert not events.is_inside("trace")


@undisturbed
def test_the_processors_time_in_phases_is_counted_once() -> None:
    def busy(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    before = events.seconds_in_phases()
    with events.Phase("trace", "f"):
        busy(0.1)
        time.sleep(0.1)
        with events.Phase("trace", "g"):
            busy(0.1)
    assert events.seconds_in_phases() - before == pytest.approx(0.2, abs=0.05)


def test_phases_that_an_interrupt_left_are_forgotten() -> None:
    events.Phase("compile", "f").__enter__()
    assert events.is_inside("compile")
    events.forget_phases()
    assert not events.is_inside("compile") and events.running == []


def test_listeners_get_the_kinds_that_they_asked_for() -> None:
    everything: list = []
    transfers: list = []
    stops = [events.subscribe(everything.append), events.subscribe(transfers.append, ["transfer"])]
    try:
        perspex.device_put(np.ones(12))
        perspex.jit(lambda x: x + 7.5)(pnp.ones(12))
    finally:
        for stop in stops:
            stop()
    assert {event.kind for event in transfers} == {"transfer"}
    assert {"transfer", "trace", "lower", "compile"} <= {event.kind for event in everything}
    assert transfers == [event for event in everything if event.kind == "transfer"]
    before = len(everything), len(transfers)
    perspex.device_put(np.ones(12))
    assert (len(everything), len(transfers)) == before
