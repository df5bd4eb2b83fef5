"""Cells that take all memory end with an error that names owners, and the kernel lives.

The limit is one that is set here, so that the machine has room to spare.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.session import Session, open_session

# One kernel survives so many in a row.
TRIES = 50 if os.environ.get("PERSPEX_SOAK") else 5
SETUP = """
import gc
import perspex, perspex.numpy as jnp
from perspex.runtime import memory
from perspex_magics.memory import guard
from perspex_magics.session import find
weights = jnp.ones(1 << 22).block_until_ready()
watching = find(get_ipython(), guard.Guard)
if watching.held() is None:
    print("unknown")
else:
    most = watching.held() + (2 << 30)
    watching.available = lambda: min(most - watching.held(), memory.available())
"""
GROWING = """
kept = []
for i in range(10_000):
    kept.append(jnp.full((16, 1 << 20), float(i)).block_until_ready())
"""
CELLS = {
    "a growing list": (GROWING, "CellMemoryError", "kept"),
    "an enormous array": ("jnp.zeros((10**6, 10**6))", "JaxRuntimeError", "weights"),
    "temporary values": (
        "perspex.jit(lambda x: jnp.sort(x[:1_000_000, None] * x[:1_000_000]).sum())(weights)",
        "JaxRuntimeError",
        "weights",
    ),
}


@pytest.fixture(scope="module")
def kernel() -> Iterator[Session]:
    with open_session() as session:
        if "unknown" in session.ok(SETUP).stdout:
            pytest.skip("the memory of a process is not known here: there is no /proc")
        yield session


@pytest.mark.parametrize("cell", CELLS)
def test_the_kernel_lives(kernel: Session, cell: str) -> None:
    code, error, owner = CELLS[cell]
    pid = kernel.ok("import os; os.getpid()").text
    for _ in range(TRIES):
        ran = kernel.run(code)
        assert ran.status == "error" and ran.ename == error, ran.traceback
        assert owner in ran.traceback.split(f"{error}: ")[-1], ran.traceback
        kernel.ok("kept = []; _ = gc.collect()")
    assert kernel.ok("os.getpid()").text == pid
    assert kernel.ok("float(weights.sum())").text == str(float(1 << 22))
