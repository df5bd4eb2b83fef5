"""What compiled functions print and call belongs to the cell that started them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.session import Session

# Turns of 10 ms and more, so that a call would return before the loop is done.
DEFINITIONS = """
import threading, time
import perspex, perspex.numpy as jnp
from perspex import lax

pauses = 0
def pause(i):
    global pauses
    pauses += 1
    time.sleep(0.01)

def loop(call, turns):
    def body(state):
        i, a = state
        call(i)
        perspex.debug.callback(pause, i)
        return i + 1, a @ a / 100
    return lambda a: lax.while_loop(lambda s: s[0] < turns, body, (0, a))[1]

a = jnp.ones((100, 100))
show = perspex.jit(loop(lambda i: perspex.debug.print("turn {}", i, ordered=True), 5))
show_later = perspex.jit(loop(lambda i: perspex.debug.print("turn {}", i, ordered=True), 5))
forever = perspex.jit(loop(lambda i: None, 100_000))

def fail(i):
    raise ValueError(f"turn {i} failed")

failing = perspex.jit(loop(lambda i: perspex.debug.callback(fail, i), 5))
"""
TURNS = "".join([f"turn {i}\n" for i in range(5)])


@pytest.fixture(scope="module")
def ready(live: Session) -> Iterator[Session]:
    live.ok(DEFINITIONS)
    live.ok("show(a)")
    yield live


@pytest.mark.parametrize("name", ["show", "show_later"])
def test_prints_arrive_in_the_cell_of_the_call(ready: Session, name: str) -> None:
    """One was compiled in an earlier cell, the other is compiled in this one."""
    first, second = ready.send(f"y = {name}(a)"), ready.send("print('quick')")
    assert ready.wait(first).stdout == TURNS
    assert ready.wait(second).stdout == "quick\n"


def test_prints_of_a_thread_arrive_with_those_of_the_cell(ready: Session) -> None:
    ran = ready.ok(
        "worker = threading.Thread(target=show, args=(a,)); worker.start(); worker.join()"
    )
    assert ran.stdout == TURNS


def test_prints_come_in_async_cells(ready: Session) -> None:
    ran = ready.ok("import asyncio\nawait asyncio.sleep(0.01)\ny = show(a)")
    assert ran.stdout == TURNS


def test_an_error_of_a_callback_is_that_of_the_cell(ready: Session) -> None:
    ran = ready.run("y = failing(a)")
    assert (ran.status, ran.ename) == ("error", "JaxRuntimeError")
    assert "the callback `fail` of debug.callback at Cell In[" in ran.reply["evalue"]
    # The user's line, and none of ours or of XLA's.
    assert "raise ValueError(f" in ran.traceback and "ValueError: turn 0 failed" in ran.traceback
    assert "perspex/" not in ran.traceback and "site-packages" not in ran.traceback
    assert ready.ok("show(a); 6 * 7").text == "42"


@pytest.mark.parametrize("cell", ["forever(a)", "y = forever(a)\ny.block_until_ready()"])
def test_an_interrupt_stops_the_program(ready: Session, cell: str) -> None:
    ran = ready.interrupt(f"print('started')\n{cell}", after="started")
    assert ran.ename == "KeyboardInterrupt"
    # The program itself has ended, too, and not just the cell.
    ready.ok("time.sleep(0.3); before = pauses; time.sleep(0.3); assert before == pauses")
    assert ready.ok("y = show(a)").stdout == TURNS
