"""What the notebook tells of the device: clock, lines, memory; and that it can be interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import perspex

try:
    from support.session import Ran, Session, open_session

    from perspex_command.run import run
    from perspex_magics.compiling.exactness import rounding
except ModuleNotFoundError as error:
    if str(error.name).startswith("perspex"):
        raise
    pytest.skip(f"{error.name} is not installed", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]

SETUP = """
import json, perspex, perspex.numpy as jnp
x = jnp.full((1024, 1024), 0.001)

@perspex.jit
def f(x):
    y = x @ x
    z = jnp.sort(y, axis=1)
    return (z @ x).sum()

float(f(x)), perspex.devices()[0].platform
"""


@pytest.fixture(scope="module")
def kernel() -> Any:
    with open_session() as session:
        session.ok(SETUP)
        yield session


def shown(ran: Ran, kind: str) -> dict[str, Any]:
    """What a cell displayed of a kind, as JSON."""
    name = f"application/vnd.perspex.{kind}+json"
    found = [out["content"]["data"] for out in ran.outputs if "data" in out["content"]]
    data: list[dict[str, Any]] = [bundle[name] for bundle in found if name in bundle]
    assert data, f"no {kind} was shown"
    return data[-1]


def test_the_clock_adds_up(kernel: Session) -> None:
    kernel.ok("%clock all")
    data = shown(kernel.ok("for _ in range(30): y = f(x)\ny.block_until_ready()"), "clock")
    # How many processors others used is no time.
    parts = [v for name, v in data.items() if isinstance(v, float) and name != "others"]
    known = sum(parts) - data["wall"] - (data["after"] or 0)
    assert known == pytest.approx(data["wall"], rel=0.02)
    assert data["device"] > 0
    kernel.ok("%clock on")


def test_the_time_of_lines(kernel: Session, figures: dict[str, str]) -> None:
    data = shown(kernel.ok("%%profile --all --roofline\nfor _ in range(5): y = f(x)"), "profile")
    lines = {line["line"]: line["seconds"] for line in data["lines"]}
    assert {6, 7, 8} <= lines.keys()
    parts = sum(lines.values()) + data["unplaced"]
    assert parts == pytest.approx(data["device"], rel=1e-3)
    assert 0 < data["device"] <= data["wall"]
    peak = data["peaks"]["float32"]
    figures["peak in float32"] = (
        f"{peak['flops'] / 1e12:.3g} TFLOP/s, {peak['bytes'] / 1e9:.4g} GB/s, by the kernel"
    )


def test_memory_by_owner(kernel: Session) -> None:
    kernel.ok("weights = jnp.ones((512, 1024))")
    shown_ = kernel.ok("%buffers")
    text = str([out["content"] for out in shown_.outputs])
    assert "weights" in text and "2.00 MiB" in text


def test_too_much_names_owners(kernel: Session) -> None:
    ran = kernel.run("jnp.zeros((10**6, 10**6)).block_until_ready()")
    assert ran.status == "error" and "RESOURCE_EXHAUSTED" in ran.traceback
    assert "`x`" in ran.traceback or "weights" in ran.traceback, ran.traceback
    kernel.ok("float(f(x))")


def test_rounded_products_are_told(kernel: Session) -> None:
    """Once, where a device rounds what it multiplies."""
    cell = "import numpy as np\nw = np.linspace(0.0, 1.0, 33**2).reshape(33, 33)\n"
    cell += "print(np.abs(jnp.asarray(w, jnp.float32) @ jnp.asarray(w, jnp.float32) - w @ w).max())"
    ran = kernel.ok(cell)
    name = "application/vnd.perspex.precision+json"
    found = [name in out["content"].get("data", ()) for out in ran.outputs]
    assert any(found) == (rounding(perspex.devices()[0]) is not None)


LONG = """
import time
from perspex import lax
@perspex.jit
def long(x, turns):
    return lax.fori_loop(0, turns, lambda i, x: x @ x * 0.5, x)

long(x, 20).block_until_ready()
begin = time.perf_counter()
long(x, 20).block_until_ready()
turns = int(20 * 5 / (time.perf_counter() - begin))  # 5 s
"""


def test_interrupts(kernel: Session, figures: dict[str, str]) -> None:
    """Three times: the kernel answers at once, and computes when the device is free again."""
    kernel.ok(LONG)
    seconds = []
    for _ in range(3):
        cell = "print('begins', flush=True)\nlong(x, turns).block_until_ready()"
        ran = kernel.interrupt(cell, "begins")
        assert ran.status == "error" and ran.ename == "KeyboardInterrupt", ran.traceback
        seconds.append(ran.seconds)
        kernel.ok("assert len('abc') == 3")
        kernel.ok("float(x.sum())")
    figures["interrupts return after"] = ", ".join(f"{1000 * s:.0f} ms" for s in seconds)


def test_a_session() -> None:
    """The notebook that a beginner opens first, from top to bottom."""
    ran = run(ROOT / "examples" / "quickstart.ipynb")
    assert not ran.failure, ran.failure
    assert len(ran.cells) > 5
