"""`kill -9` of an engine at any moment: the notebook has control and a name within 10 s."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from support.session import Session, open_session

ROUNDS = 30 if "PERSPEX_SOAK" in os.environ else 1

CELL = """%%spmd
import time, numpy as np, perspex
mesh = perspex.make_mesh((8,), ("x",))
x = perspex.device_put(np.ones(8, np.float32), perspex.NamedSharding(mesh, perspex.P("x")))
f = perspex.jit(lambda x: (x * 2).sum())
for i in range(100_000):
    f(x)
    time.sleep(0.01)
"""
PIDS = (
    "from perspex_magics.session import part\nfrom perspex_magics.cluster.magic import Cluster\n"
    "part(get_ipython(), Cluster).engines.pids"
)


@pytest.fixture(scope="module")
def cluster(jupyter_home: object) -> Iterator[Session]:
    with open_session() as session:
        session.ok("%cluster start -n 4 --devices 2")
        yield session
        session.run("%cluster stop")


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_killed_engine_is_named_and_the_cluster_starts_again(cluster: Session, turn: int) -> None:
    pick = random.Random(turn)
    victim, moment = pick.randrange(4), pick.uniform(0.0, 3.0)
    pids = eval(cluster.ok(PIDS).text)
    killed: list[float] = []

    def kill() -> None:
        os.kill(pids[victim], signal.SIGKILL)
        killed.append(time.monotonic())

    timer = threading.Timer(moment, kill)
    timer.start()
    ran = cluster.run(CELL)
    took = time.monotonic() - killed[0]
    assert ran.ename == "SpmdError"
    first = ran.reply["evalue"].splitlines()[0]
    assert first.startswith(f"process {victim} (pid {pids[victim]}) died while it ran the cell")
    assert took < 10, f"killed after {moment:.2f} s, it took {took:.1f} s"
    print(f"process {victim} killed after {moment:.2f} s: named after {took:.1f} s")
    assert "4 of 4 engines live" in cluster.ok("%cluster restart").stdout
