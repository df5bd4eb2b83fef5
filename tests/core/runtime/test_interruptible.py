"""Ctrl-C ends the wait for a compile and for a computation, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[3] / "core"

PRELUDE = """
import os, signal, sys, threading, time, traceback
import numpy as np, perspex, perspex.numpy as pnp
from perspex import lax

def interrupted(work, begun=None):
    # In `work` the signal comes from outside the main thread, as a notebook's does.
    def send():
        time.sleep(0.5) if begun is None else begun.wait()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
    try:
        work()
    except KeyboardInterrupt:
        return
    raise RuntimeError("the work ended before the interrupt")

def fail(*error):
    traceback.print_exception(*error)
    os._exit(1)

sys.excepthook = fail  # an ordinary exit would wait for what goes on behind

x = np.ones(8, np.float32)
"""

CASES = {
    "compiling": """
def long(x):
    for i in range(8000):
        x = pnp.sin(x) * 1.5 + x
    return x
from perspex.runtime import interruptible
from perspex.runtime.compiler import compiling
begun, here = threading.Event(), compiling.here
def watched(*work):
    begun.set()
    return here(*work)
compiling.here = watched
lowered = perspex.jit(long).lower(x)
interrupted(lowered.compile, begun)
assert len(interruptible.left) == 1, "it goes on behind, so nobody waited for it"
""",
    # As if it had arrived a moment before the wait began, when nothing wakes the main thread up.
    "a signal that wakes another thread": """
from perspex.runtime import interruptible
begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
def work():
    begun.set()
    go_on.wait(60)
    ended.set()
def send():
    begun.wait()
    time.sleep(0.05)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
threading.Thread(target=send).start()
try:
    interruptible.call(work)
except KeyboardInterrupt:
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(60)
else:
    raise RuntimeError("the work ended before the interrupt")
""",
    # MLIR calls Python for each operation, and makes another error of what is raised there.
    "preparing a module": """
from perspex.hlo.numbering import numbered_bytecode
def long(x):
    for i in range(2000):
        x = pnp.sin(x) * 1.5
    return x
module = perspex.jit(long).lower(x).compiler_ir()
def prepare():
    while True:
        numbered_bytecode(module)
for _ in range(10):
    interrupted(prepare)
""",
    "tracing": """
def endless(x):
    while True:
        x = x + 1
interrupted(lambda: perspex.jit(endless)(x))
""",
    "computing": """
a = perspex.device_put(np.ones((600, 600), np.float32) / 600)
slow = perspex.jit(lambda a: lax.fori_loop(0, 3_000, lambda i, y: y @ a, a))
out = slow(a)
interrupted(out.block_until_ready)
interrupted(lambda: float(out[0, 0]))
assert not out.is_ready(), "nobody waited for it"
""",
}


@pytest.mark.parametrize("name", CASES)
def test_interrupt(name) -> None:
    # Afterwards everything works, and outside every trace.
    after = "assert (np.asarray(x) + 1 == 2).all() and float(perspex.jit(pnp.sum)(x)) == 8"
    env = {**os.environ, "PYTHONPATH": str(CORE)}
    code = f"{PRELUDE}{CASES[name]}\n{after}\nos._exit(0)\n"
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
