"""The record of compilations: each stage and each cause belongs to the program it is of.

Functions that are called the same and take the same types are told apart by nothing but that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import perspex
import perspex.numpy as jnp
from perspex.base import events
from perspex_magics.compiling.compilations import Recorder


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    stop = events.subscribe(recorder, recorder.kinds)
    yield recorder
    stop()


def test_two_lambdas_traced_before_either_is_compiled(recorder: Recorder) -> None:
    heard: list[events.Event] = []
    stop = events.subscribe(heard.append, ("trace",))
    x = jnp.ones(23)
    first = perspex.jit(lambda x: x + 1.5).trace(x)
    second = perspex.jit(lambda x: jnp.sin(x) * 2.5 - x).trace(x)
    stop()
    second.lower().compile()
    first.lower().compile()
    of_first, of_second = [event for event in heard if event.name == "<lambda>"]
    assert [(one.trace, one.equations) for one in recorder.named(["<lambda>"])] == [
        (of_second.seconds, 3),
        (of_first.seconds, 1),
    ]


def test_two_threads_that_compile_two_lambdas_again(recorder: Recorder) -> None:
    """One thread stops between its compilation and what is said of it until the other is done."""
    ones = {n: jnp.ones(n) for n in (29, 31)}
    functions = [perspex.jit(lambda x: x * 3.5), perspex.jit(lambda x: x - 4.5)]
    for function in functions:
        function(ones[29])
    compiled, go_on = threading.Event(), threading.Event()

    def call(function: object) -> None:
        function(ones[31])  # type: ignore[operator]

    threads = [threading.Thread(target=call, args=(function,)) for function in functions]

    def wait(event: events.Event) -> None:
        if threading.current_thread() is threads[0]:
            compiled.set()
            assert go_on.wait(60)

    said: list[events.Event] = []
    stops = [events.subscribe(wait, ("compile",)), events.subscribe(said.append, ("recompile",))]
    threads[0].start()
    assert compiled.wait(60)
    threads[1].start()
    threads[1].join()
    go_on.set()
    threads[0].join()
    for stop in stops:
        stop()
    rows = recorder.named(["<lambda>"])
    assert [one.signature for one in rows] == ["f32[29]", "f32[29]", "f32[31]", "f32[31]"]
    # That of the second thread was said first.
    assert [one.again for one in rows] == [None, None, said[1], said[0]]
    assert said[0].at is not None and said[0] is not said[1]
