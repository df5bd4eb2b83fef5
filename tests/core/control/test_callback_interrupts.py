"""An interrupt ends a program at its next callback."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import perspex
from perspex import debug, jit, lax
from perspex import numpy as pnp
from perspex.runtime.callbacks import cancel_effects


@contextmanager
def interrupted(seen: list[int], turns: int) -> Iterator[None]:
    """The block ends with an interrupt, which comes after so many turns."""

    def send() -> None:
        while len(seen) < turns:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=send, daemon=True).start()
        yield


def loop(seen: list[int], turns: int, ordered: bool) -> Any:
    """A program that takes 0.1 s for each turn, and remembers the turns in `seen`."""

    def pause(i: Any) -> None:
        time.sleep(0.1)
        seen.append(int(i))

    def body(i: Any, a: Any) -> Any:
        debug.callback(pause, i, ordered=ordered)
        return a @ a / 100

    return jit(lambda a: lax.fori_loop(0, turns, body, a))


@pytest.mark.parametrize("ordered", [False, True])
def test_the_program_ends_and_starts_afresh(ordered: bool) -> None:
    seen: list[int] = []
    f, a = loop(seen, 8, ordered), pnp.ones((100, 100))
    f(a)
    perspex.effects_barrier()
    assert seen == list(range(8))
    seen.clear()
    with interrupted(seen, turns=2):
        f(a)
        perspex.effects_barrier()
    cut = len(seen)
    f(a)  # at once, in the middle of the last callback of the run before
    perspex.effects_barrier()
    # One callback was under way; after it that run has stopped.
    assert cut < 8 and seen[cut:] in ([*range(8)], [cut, *range(8)])


def test_nothing_goes_on_behind() -> None:
    seen: list[int] = []
    f, a = loop(seen, 1000, False), pnp.ones((100, 100))
    with interrupted(seen, turns=2):
        f(a).block_until_ready()
        perspex.effects_barrier()
    cancel_effects()
    time.sleep(0.3)
    count = len(seen)
    time.sleep(0.3)
    assert len(seen) == count < 1000
    assert float(jit(lambda x: x + 1)(1.0)) == 2.0
