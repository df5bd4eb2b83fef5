"""Interrupts at random moments of a mixed workload: nothing hangs, and nothing is lost.

One for each kind of work by default; as many as the environment variable PERSPEX_SOAK says, if it
is set. PERSPEX_SOAK_SEED chooses other moments.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from support.session import TIMEOUT, Session, open_session

COUNT = int(os.environ.get("PERSPEX_SOAK", "19"))
SEED = int(os.environ.get("PERSPEX_SOAK_SEED", "1"))
# Seconds from the moment that a cell runs to the interrupt, at most.
LONGEST = 0.6

DEFINITIONS = """
import asyncio, time
import numpy as np
import perspex, perspex.numpy as jnp
from perspex import lax
from perspex.core import Tracer

turn = 0
kept = jnp.arange(6.0)
kept_too = {"a": [jnp.ones((2, 3)), 7], "b": "text"}
x, w = jnp.linspace(0.0, 1.0, 50), jnp.full(50, 0.5)
u, v = jnp.zeros(50), jnp.ones(50)
before = dict(kept=kept, kept_too=kept_too, x=x, w=w)
a = jnp.full((300, 300), 1 / 300)
heard = []

def loss(w, x):
    return jnp.sum((jnp.tanh(w * x) - 0.3) ** 2)

step = perspex.jit(lambda w, x: w - 0.1 * perspex.grad(loss)(w, x))
powers = perspex.jit(lambda a: lax.fori_loop(0, 40, lambda i, y: y @ a, a))

def hear(i):
    heard.append(int(i))
    time.sleep(0.005)

@perspex.jit
def loud(a):
    def body(i, y):
        perspex.debug.callback(hear, i)
        return y @ a
    return lax.fori_loop(0, 100, body, a)

def unrolled(n, c):
    def f(x):
        for i in range(n):
            x = jnp.sin(x) * c + i
        return x
    return f

def total(n):
    return lambda x: unrolled(n, 1.5)(x).sum()
"""

# Each takes about as long as the longest wait for the interrupt.
WORKLOADS = {
    "tracing": "perspex.make_jaxpr(unrolled(60_000, 1.5))(x)",
    "tracing a gradient": "perspex.make_jaxpr(perspex.grad(total(3_000)))(x)",
    "lowering": "perspex.jit(unrolled(8_000, 1.5)).lower(x)",
    "compiling": "perspex.jit(unrolled(150, 1 + turn / 1000))(x)",
    "a jitted loop": "for _ in range(20_000): w2 = step(w, x)",
    "long programs": "y = a\nfor _ in range(50): y = powers(y)\ny.block_until_ready()",
    "eager operations": "y = x\nfor i in range(20_000): y = y * 0.5 + i",
    "eager shapes": "for i in range(1, 60): jnp.sin(jnp.ones(i + 60 * turn)).sum()",
    "callbacks": "loud(a).block_until_ready()",
    "the end of a cell": "y = loud(a)",
    "printing": "for _ in range(60): print(powers(a)[0, :3])",
    "a result": "powers(powers(powers(powers(a))))[0]",
    "a cell under %%jit": (
        "%%jit\nu = x\nfor i in range(120): u = jnp.sin(u) + 0.1 * w\nv = u + 1.0\n#{turn}"
    ),
    "a cell under %%grad": "%%grad w\ny = w\nfor i in range(2_000): y = jnp.sin(y)\njnp.sum(y)",
    "awaiting": "for _ in range(60): await asyncio.sleep(0.01)",
    "awaiting and computing": "for _ in range(60):\n    await asyncio.sleep(0)\n    y = powers(a)",
    "NumPy": "for _ in range(20): np.linalg.svd(np.random.rand(100, 100))",
    "Python": "z = 0\nfor i in range(10_000_000): z += i",
    "sleeping": "time.sleep(0.5)",
}

# What has to hold after each, whatever was interrupted. The numbers come from NumPy.
CHECK = """
wn, xn = np.full(50, 0.5, np.float32), np.linspace(0, 1, 50, dtype=np.float32)
t = np.tanh(wn * xn)
assert np.allclose(step(w, x), wn - 0.1 * 2 * (t - 0.3) * (1 - t * t) * xn, atol=1e-5)
assert all(globals()[name] is value for name, value in before.items())
assert not [name for name, value in list(globals().items()) if isinstance(value, Tracer)]
assert np.array_equal(kept, np.arange(6)) and kept_too["a"][1] == 7
assert np.allclose(v, np.asarray(u) + 1)
fresh = perspex.jit(lambda z: jnp.cumsum(z) + turn)
assert np.array_equal(fresh(jnp.arange(4)), np.array([0, 1, 3, 6]) + turn)
assert float(perspex.grad(lambda s: s ** 3)(2.0)) == 12.0
assert np.allclose(powers(a), np.full((300, 300), 1 / 300), atol=1e-6)
"""


def until_running(session: Session, msg_id: str) -> None:
    """Wait until the kernel has taken up the cell."""
    while True:
        message = session.client.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") == msg_id:
            return


@pytest.mark.timeout(120 + 10 * COUNT)
def test_random_interrupts(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    names = list(WORKLOADS)
    seen: Counter[str] = Counter()
    slowest = {name: 0.0 for name in names}
    # Without what earlier runs have compiled.
    with open_session(env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}) as session:
        session.ok(DEFINITIONS)
        session.ok(CHECK)
        for turn in range(1, COUNT + 1):
            name = names[turn % len(names)]
            session.ok(f"turn = {turn}")
            msg_id = session.send(WORKLOADS[name].replace("{turn}", str(turn)))
            until_running(session, msg_id)
            time.sleep(draw.uniform(0, LONGEST))
            sent = time.monotonic()
            session.manager.interrupt_kernel()
            ran = session.wait(msg_id, sent)
            assert ran.status == "ok" or ran.ename in ("KeyboardInterrupt", "CancelledError"), (
                name,
                ran.traceback,
            )
            seen[ran.ename or "ok"] += 1
            slowest[name] = max(slowest[name], ran.seconds if ran.ename else 0.0)
            check = session.run(CHECK)
            assert check.status == "ok", (turn, name, ran.traceback, check.traceback)
        assert session.manager.is_alive()
    print(f"{COUNT} interrupts, seed {SEED}: {dict(seen)}; slowest to end, in seconds:")
    print({name: round(seconds, 2) for name, seconds in slowest.items()})
    assert seen["KeyboardInterrupt"] > COUNT / 4
