"""An interrupt gets every kind of cell back, soon, and the kernel goes on."""

from __future__ import annotations

import pytest

from session import Session, open_session

# What a person takes for "at once" on a busy machine; each takes far longer when left alone.
SOON = 3.0

BUSY = {
    "a Python loop": "while True: pass",
    "a sleep": "import time; time.sleep(60)",
    "awaiting": "import asyncio; await asyncio.sleep(60)",
    "an async cell that computes": "import asyncio; await asyncio.sleep(0)\nwhile True: pass",
    "a task that computes": (
        "import asyncio\nasync def spin():\n    while True: pass\nawait asyncio.gather(spin())"
    ),
    "input": "input()",
}


@pytest.mark.parametrize("body", BUSY.values(), ids=BUSY)
def test_interrupt(live: Session, body: str) -> None:
    ran = live.interrupt(f"print('started')\n{body}", after="started")
    assert ran.status == "error"
    assert ran.ename in ("KeyboardInterrupt", "CancelledError")
    assert ran.seconds < SOON
    assert live.ok("6 * 7").text == "42"


# Each takes over 10 s on two cores if nobody interrupts it.
DEVICE = {
    "tracing": (
        "@perspex.jit\n"
        "def f(x):\n"
        "    for _ in range(10_000_000): x = jnp.sin(x)\n"
        "    return x\n"
        "print('started')\n"
        "f(1.0)"
    ),
    "compiling": (
        "@perspex.jit\n"
        "def f(x):\n"
        "    for _ in range(4_000): x = x * jnp.sin(x)\n"
        "    return x\n"
        "print('started')\n"
        "f(jnp.ones(10))"
    ),
    "computing": (
        "@perspex.jit\n"
        "def f(a):\n"
        "    for _ in range(400): a = a @ a / 2_000\n"
        "    return a\n"
        "a = f(jnp.ones((2_000, 2_000)))\n"
        "print('started')\n"
        "a.block_until_ready()"
    ),
    "waiting for numbers": (
        "import numpy as np\n"
        "@perspex.jit\n"
        "def f(a):\n"
        "    for _ in range(400): a = a @ a / 2_000\n"
        "    return a\n"
        "a = f(jnp.ones((2_000, 2_000)))\n"
        "print('started')\n"
        "float(a[0, 0])"
    ),
    "a cell under %%jit": (
        "%%jit\nprint('started')\nx = jnp.ones(10)\nfor _ in range(10_000_000): x = jnp.sin(x)"
    ),
}


@pytest.mark.parametrize("cell", DEVICE.values(), ids=DEVICE)
def test_interrupt_while_the_core_works(cell: str) -> None:
    # A kernel of its own: what XLA has begun goes on behind the interrupt.
    with open_session() as session:
        session.ok("import perspex, perspex.numpy as jnp\nx = 'kept'")
        ran = session.interrupt(cell, after="started")
        assert ran.ename == "KeyboardInterrupt"
        assert ran.seconds < SOON
        assert session.ok("x").text == "'kept'"


def test_interrupt_reaches_the_cell_that_awaits(live: Session) -> None:
    ran = live.interrupt(
        "import asyncio\nprint('started')\n"
        "try:\n    await asyncio.sleep(60)\nfinally:\n    print('cleaned up')",
        after="started",
    )
    assert ran.ename == "CancelledError"
    assert "cleaned up" in ran.stdout


def test_idle_kernel_ignores_interrupts(live: Session) -> None:
    live.manager.interrupt_kernel()
    assert live.ok("'alive'").text == "'alive'"


def test_tasks_left_behind_go_on(live: Session) -> None:
    live.ok(
        "import asyncio\n"
        "async def count():\n"
        "    global ticks\n"
        "    while True:\n"
        "        ticks += 1\n"
        "        await asyncio.sleep(0.01)\n"
        "ticks = 0\n"
        "counting = asyncio.create_task(count())"
    )
    live.interrupt("print('started')\nawait asyncio.sleep(60)", after="started")
    live.ok("before = ticks; await asyncio.sleep(0.2)")
    assert live.ok("ticks > before, counting.cancel()").text == "(True, True)"


def test_restart() -> None:
    with open_session() as session:
        session.ok("kept = 1")
        session.manager.restart_kernel(now=True)
        session.client.wait_for_ready(timeout=60)
        assert session.run("kept").ename == "NameError"
