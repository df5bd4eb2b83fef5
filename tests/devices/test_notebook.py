"""What the notebook tells of the device: clock, lines, memory; and that it can be interrupted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

for needed in ("ipykernel", "jupyter_client", "nbclient", "nbconvert"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

from support.session import Ran, Session, open_session  # noqa: E402

from perspex_kernel.run import run  # noqa: E402

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


LONG = """
from perspex import lax
@perspex.jit
def long(x):
    return lax.fori_loop(0, 10**7, lambda i, x: x @ x * 0.5, x)
print("begins", flush=True)
long(x).block_until_ready()
"""


def test_interrupts(kernel: Session, figures: dict[str, str]) -> None:
    """Three times, and afterwards the kernel computes."""
    seconds = []
    for _ in range(3):
        ran = kernel.interrupt(LONG, "begins")
        assert ran.status == "error" and ran.ename == "KeyboardInterrupt", ran.traceback
        seconds.append(ran.seconds)
        kernel.ok("float(x.sum())")
    figures["interrupts return after"] = ", ".join(f"{1000 * s:.0f} ms" for s in seconds)


def test_a_session() -> None:
    """The notebook that a beginner opens first, from top to bottom."""
    ran = run(ROOT / "examples" / "quickstart.ipynb")
    assert not ran.failure, ran.failure
    assert len(ran.cells) > 5
