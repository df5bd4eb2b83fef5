"""Memory over many calls and many failures: what a session does again and again leaves nothing.

The figures are of a process of its own, after everything that is kept on purpose has been made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.session import open_session

COUNT = 20_000 if "PERSPEX_SOAK" in os.environ else 2_000
FAILURES = 500 if "PERSPEX_SOAK" in os.environ else 50
# MiB. Malloc keeps a few for later.
MOST = 10.0

RSS = """
import ctypes, gc

def rss():
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20
"""
CALLS = """
import perspex, perspex.numpy as jnp
x = jnp.ones(10)
f = perspex.jit(lambda x: x * 2 + 1)

def run(count):
    for _ in range(count):
        f(x), jnp.sin(x) + x
    for _ in range(count // 30):
        perspex.jit(lambda x: jnp.sin(x) * 2 + 1)(x)

run(1_000)
before = rss()
run(COUNT)
print(rss() - before)
"""
# Of a process of its own, that has made 50 others before.
CLOSURES = """
import perspex, perspex.numpy as jnp
x = jnp.ones(10)

def run(start, count):
    for i in range(start, start + count):
        perspex.jit(lambda x, k=float(i): jnp.sin(x) * k + 1)(x)

run(100_000, 50)
before = rss()
run(1, COUNT)
print(rss() - before)
"""
CLOSED = 700 if "PERSPEX_SOAK" in os.environ else 100
# While tracing, twice; in Python; in a cell under a magic; a syntax error.
FAILING = [
    "perspex.jit(lambda x: x + [1])(big)",
    "perspex.jit(lambda x: 1 if x[0] > 0 else 2)(big + 1)",
    "raise ValueError(big)",
    "%%jit\nz = big + nowhere",
    "f(",
]


def grown(program: str, count: int) -> float:
    """MiB that a program says a process has grown by."""
    command = [sys.executable, "-c", RSS + program.replace("COUNT", str(count))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return float(done.stdout)


def test_calls_leave_nothing() -> None:
    found = grown(CALLS, COUNT)
    print(f"{COUNT:,} calls and {COUNT // 30} short-lived functions: {found:.1f} MiB")
    assert found < MOST


def test_short_lived_functions_leave_little() -> None:
    found = grown(CLOSURES, CLOSED)
    print(f"{CLOSED} jitted functions, each called once: {found:.1f} MiB")
    assert found < MOST


def test_cells_that_fail_leave_nothing(tmp_path: Path) -> None:
    with open_session(env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}) as session:
        session.ok(RSS + "import perspex, perspex.numpy as jnp\nbig = jnp.ones(1_000_000)")

        def fail(count: int) -> float:
            for i in range(count):
                assert session.run(FAILING[i % len(FAILING)]).status == "error"
            return float(session.ok("rss()").text)

        before = fail(100)
        more = fail(FAILURES) - before
        print(f"{FAILURES} failing cells: {more:.1f} MiB")
        assert more < MOST
