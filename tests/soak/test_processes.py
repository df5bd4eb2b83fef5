"""Four processes: each of many deaths is named within ten seconds; training gives one result."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support import several

ROUNDS = 30 if "PERSPEX_SOAK" in os.environ else 3

DEATH = """
f = perspex.jit(lambda a: a.sum())
f(x)
from perspex.experimental import multihost_utils
multihost_utils.sync_global_devices("ready")
if me == DIES:
    os.kill(os.getpid(), signal.SIGKILL)
start = time.monotonic()
error = raised(lambda: f(x))
say(type(error).__name__, error.processes, round(time.monotonic() - start, 1))
say(jnp.arange(3).sum())
"""


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_death_is_named_within_ten_seconds(turn: int) -> None:
    dies = turn % 4
    found = several.run(DEATH.replace("DIES", str(dies)), count=4, devices=2)
    for me, ended in enumerate(found):
        if me != dies:
            first, rest = ended.out.splitlines()
            assert first.startswith(f"ProcessEndedError ({dies},) "), ended.err[-3000:]
            # Heartbeats count as missing after 3 s.
            assert float(first.split()[-1]) < 10
            assert rest == "3"


def test_training_gives_one_result_however_many_processes_there_are() -> None:
    alone, *others = [several.agree(several.TRAINING, n, d) for n, d in ((1, 1), (2, 2), (4, 2))]
    expected = numbers(alone[0])
    for outs in others:
        assert len(set(outs)) == 1
        np.testing.assert_allclose(numbers(outs[0]), expected, rtol=0, atol=1e-6)


def numbers(said: str) -> np.ndarray:
    """The numbers whose bits a process has said."""
    return np.concatenate([np.frombuffer(bytes.fromhex(x), np.float32) for x in said.split()])
