"""Cells whose structure is known: what the clock says of each part, against clocks inside of them.

Every part within a tenth or 20 ms, and nothing is idle while the device or Python works.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.session import Session, open_session
from support.undisturbed import undisturbed

CLOCK = "application/vnd.perspex.clock+json"
PARTS = ("trace", "lower", "compile", "device", "transfer", "python", "idle")

SETUP = """
import asyncio, contextlib, io, threading, time
import numpy as np, perspex, perspex.numpy as jnp
spent = {}
@contextlib.contextmanager
def kind(name):
    begun = time.perf_counter()
    try:
        yield
    finally:
        spent[name] = spent.get(name, 0.0) + time.perf_counter() - begun
def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass
def python(seconds):
    with kind("python"): busy(seconds)
def idle(seconds):
    with kind("idle"): time.sleep(seconds)
def traced(seconds):
    count = len(made)
    def f(x):
        with kind("trace"): busy(seconds)
        return x * (count + 2.0)
    made.append(f)
    perspex.jit(f).trace(1.0)
made = []
a = jnp.ones((500, 500))
work = perspex.jit(lambda a: perspex.lax.fori_loop(0, 60, lambda i, a: a @ a / 500, a))
total = perspex.jit(lambda a: work(a).sum())
host = np.ones((6_000, 6_000), np.float32)
work(a).block_until_ready(); total(a).block_until_ready(); jnp.array(host).block_until_ready()
both = perspex.jit(lambda a, x: work(a) + x)
float(work(a)[0, 0]); str(work(a)); both(a, np.ones((500, 500), np.float32)).block_until_ready();
class Later:
    def __init__(self): self.y = work(a)
"""

# Waits for the device that the core sees, and those that it does not.
WAITS = {
    "block": "work(a).block_until_ready()",
    "float": "float(total(a))",
    "item": "total(a).item()",
    "element": "float(work(a)[0, 0])",
    "text": "str(work(a))",
    "numpy": "np.asarray(work(a))",
    "sum by numpy": "np.sum(work(a))",
    "memory": "memoryview(work(a))",
    "get": "perspex.device_get(work(a))",
    "list": "total(a).tolist()",
}
CELLS = {
    "Python": "python(0.3)",
    "a sleep": "idle(0.3)",
    "both": "python(0.2); idle(0.3); python(0.1)",
    "await": "with kind('idle'): await asyncio.sleep(0.3)",
    "a lock": "with kind('idle'): threading.Event().wait(0.3)",
    "a thread of Python": (
        "thread = threading.Thread(target=busy, args=(0.3,))\n"
        "with kind('python'): thread.start(); thread.join()"
    ),
    "tracing": "traced(0.3)",
    "tracing and a sleep": "traced(0.2); idle(0.2)",
    "tracing and Python": "traced(0.2); python(0.2)",
    "a transfer": "with kind('transfer'): z = jnp.array(host)",
    **{f"wait: {name}": f"with kind('device'): {wait};" for name, wait in WAITS.items()},
    "wait and sleep": "with kind('device'): np.asarray(work(a));\nidle(0.3)",
    "wait and Python": "python(0.3)\nwith kind('device'): np.asarray(work(a));",
    "two kinds of wait": (
        "with kind('device'): work(a).block_until_ready(); np.asarray(work(a));\npython(0.1)"
    ),
    "trace, wait, sleep": "traced(0.2)\nwith kind('device'): np.asarray(work(a));\nidle(0.2)",
    "an object's array": "with kind('device'): np.asarray(Later().y);",
}


@pytest.fixture(scope="module")
def cells() -> Iterator[Session]:
    if "PERSPEX_SOAK" not in os.environ:
        pytest.skip("takes a machine that does nothing else: for PERSPEX_SOAK")
    with open_session() as session:
        session.ok(SETUP)
        session.ok("%clock all")
        yield session


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len(CELLS) == 25


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@undisturbed
def test_the_parts_of_a_cell(cells: Session, cell: str) -> None:
    cells.ok("spent.clear()")
    ran = cells.ok(cell)
    (line,) = [m for m in ran.outputs if CLOCK in m["content"].get("data", {})]
    said = line["content"]["data"][CLOCK]
    spent = eval(cells.ok("spent").text)
    for part in PARTS:
        found, expected = said[part], spent.get(part, 0.0)
        assert abs(found - expected) <= max(0.02, 0.1 * expected), (part, said, spent)
