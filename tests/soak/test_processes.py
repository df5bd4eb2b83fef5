"""Many deaths: each is named on all others within ten seconds, and they go on in Python."""

from __future__ import annotations

import os

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
