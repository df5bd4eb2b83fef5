"""An interrupt gets every kind of cell back, soon, and the kernel goes on."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.session import TIMEOUT, Session, open_session

# Each takes far longer, most for ever, when left alone.
SOON = 30.0

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


def test_an_impatient_finger(live: Session) -> None:
    """Interrupts come in while the first one is being cleaned up after."""
    live.ok(
        "import perspex.numpy as jnp\nx, steps = jnp.ones(3), []\n"
        "def clean_up():\n    for i in range(200_000): steps.append(i)"
    )
    msg_id = live.send(
        "%%jit\ntry:\n    print('started')\n    while True: x = x + 1\nfinally: clean_up()"
    )
    live.until_output(msg_id, "started")
    for _ in range(5):
        live.manager.interrupt_kernel()
        time.sleep(0.001)
    ran = live.wait(msg_id)
    assert ran.ename == "KeyboardInterrupt"
    assert live.ok("len(steps), x.tolist()").text == "(200000, [1.0, 1.0, 1.0])"


def test_interrupt_where_python_ignores_exceptions(live: Session) -> None:
    """In the callback of a weak reference, which such an exception only ends."""
    ran = live.interrupt(
        "import time, weakref\n"
        "class Thing: pass\n"
        "def gone(ref):\n"
        "    end = time.monotonic() + 60\n"
        "    while time.monotonic() < end: pass\n"
        "    print('not interrupted')\n"
        "thing = Thing()\n"
        "ref = weakref.ref(thing, gone)\n"
        "print('started')\n"
        "del thing\n"
        "while True: pass",
        after="started",
    )
    assert ran.ename == "KeyboardInterrupt" and ran.seconds < SOON
    assert "not interrupted" not in ran.stdout and "ignored" not in ran.stderr
    assert live.ok("6 * 7").text == "42"


def test_a_del_that_raises_an_interrupt_interrupts_nothing(live: Session) -> None:
    ran = live.run(
        "class Gone:\n    def __del__(self): raise KeyboardInterrupt('of its own')\n"
        "import time\ngone = Gone()\ndel gone\n"
        "for _ in range(20): time.sleep(0.05)\n'whole'"
    )
    assert ran.status == "ok", ran.traceback
    assert ran.text == "'whole'" and "of its own" in ran.stderr


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


# ---- what goes on behind ------------------------------------------------------------------------

MIME = "application/vnd.perspex.behind+json"
# XLA needs about 2 s of processor time to compile the first, and to run the second.
SLOW = """
import sys
import perspex, perspex.numpy as jnp
from perspex import lax
from perspex.base import events
from perspex.runtime.compiler import compiling

seen = []
events.subscribe(lambda event: seen.append((event.kind, event.name, event.data.get("source"))))

def is_in_xla():
    # The phase begins before, with work of Python's that an interrupt ends.
    phases = [(phase.kind, phase.name) for phase in events.running]
    for frame in sys._current_frames().values():
        while frame is not None and frame.f_code is not compiling.here.__code__:
            frame = frame.f_back
        if frame is not None:
            return ("compile", "slow_to_compile") in phases
    return False

@perspex.jit
def slow_to_compile(x):
    for _ in range(4_000):
        x = x * jnp.sin(x) + 1.5
    return x

@perspex.jit
def slow_to_run(a):
    y = a  # without a loop, which an interrupt would end
    for _ in range(120): y = y @ a
    return y

a = jnp.full((1_000, 1_000), 1e-3)
slow_to_run(a).block_until_ready()
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    # Without what earlier runs have compiled, and compiling where it cannot be stopped.
    cache = str(tmp_path_factory.mktemp("cache"))
    env = {**os.environ, "XDG_CACHE_HOME": cache, "PERSPEX_COMPILER_PROCESS": "0"}
    with open_session(env=env) as session:
        session.ok(SLOW)
        yield session


def notices(outputs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """What the outputs say of work behind: as JSON and as text."""
    bundles = [output["content"].get("data", {}) for output in outputs]
    return [(data[MIME], data["text/plain"]) for data in bundles if MIME in data]


def last_update(session: Session, msg_id: str) -> tuple[dict[str, Any], str]:
    """The notice of an interrupted cell when the work behind it has ended."""
    while True:
        message = session.client.get_iopub_msg(timeout=TIMEOUT)
        told = notices([message])
        is_of_cell = message["parent_header"].get("msg_id") == msg_id
        if told and is_of_cell and told[0][0]["ended"]:
            assert message["msg_type"] == "update_display_data"
            return told[0]


def wait_for_reply(session: Session, msg_id: str) -> None:
    """Wait until a cell has succeeded, whatever else has been seen of it."""
    while True:
        reply = session.client.get_shell_msg(timeout=TIMEOUT)
        if reply["parent_header"].get("msg_id") == msg_id:
            assert reply["content"]["status"] == "ok", reply["content"]
            return


def cpu_seconds(session: Session) -> float:
    """What the system says the kernel has used, but for the thread that runs the cells."""
    process = session.manager.provisioner.pid  # type: ignore[union-attr]

    def used(file: str) -> int:
        fields = Path(file).read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    ticks = used(f"/proc/{process}/stat") - used(f"/proc/{process}/task/{process}/stat")
    return ticks / os.sysconf("SC_CLK_TCK")


class Behind:
    """What the system counts of work behind an interrupted cell, to compare a notice with.

    However busy the machine is, the same work takes the same processor time, but nobody can say how
    much of it is left when the cell has ended.
    """

    # Threads of the kernel that are none of the work use less; the system counts by 0.01 s.
    OTHERS = 0.5

    def __init__(self, session: Session) -> None:
        self.session = session
        self.begun, self.used = time.monotonic(), cpu_seconds(session)

    def replied(self) -> None:
        """The interrupted cell has ended: from some time before on the kernel counts."""
        self.reply = cpu_seconds(self.session)

    def check(self, data: dict[str, Any]) -> None:
        """Compare with the last notice, which has just come."""
        now, seconds = cpu_seconds(self.session), time.monotonic() - self.begun
        assert now - self.reply - self.OTHERS <= data["cpu"] <= now - self.used + 0.1
        assert data["cpu"] > 0 and 0 < data["seconds"] < seconds


def interrupted(session: Session, cell: str, once: str) -> tuple[str, Any]:
    """Interrupt a cell as soon as `once`, an expression that a subshell evaluates, is true."""
    subshell = session.client.session.msg("create_subshell_request", {})
    session.client.control_channel.send(subshell)
    name = session.client.get_control_msg(timeout=TIMEOUT)["content"]["subshell_id"]
    msg_id = session.send(cell)
    while True:
        content = {"code": "", "silent": True, "user_expressions": {"is_so": once}}
        question = session.client.session.msg("execute_request", content)
        question["header"]["subshell_id"] = name
        session.client.shell_channel.send(question)
        reply = session.client.get_shell_msg(timeout=TIMEOUT)
        assert reply["parent_header"]["msg_id"] != msg_id, "the cell ended too early"
        if reply["content"]["user_expressions"]["is_so"]["data"]["text/plain"] == "True":
            break
        time.sleep(0.01)
    session.manager.interrupt_kernel()
    ran = session.wait(msg_id)
    deleting = session.client.session.msg("delete_subshell_request", {"subshell_id": name})
    session.client.control_channel.send(deleting)
    session.client.get_control_msg(timeout=TIMEOUT)
    return msg_id, ran


def test_a_compilation_left_behind_is_told_of_and_used(slow: Session) -> None:
    x = "slow_to_compile(jnp.ones(10))"
    behind = Behind(slow)
    msg_id, ran = interrupted(slow, x, once="is_in_xla()")
    behind.replied()
    assert ran.ename == "KeyboardInterrupt"
    # The line of the user's is the last that is shown.
    assert ran.traceback.count("----> ") == 1 and "perspex_kernel" not in ran.traceback
    ((data, text),) = notices(ran.outputs)
    assert data["doing"] == ["compiling `slow_to_compile`"] and not data["ended"]
    assert text == (
        "XLA is still compiling `slow_to_compile`: an interrupt cannot stop it. "
        "`%restart` ends it and keeps the variables.\n"
        "`%explain behind` says more."
    )
    # The next cell hears of it, too.
    ran = slow.ok("seen.clear()")
    ((data, text),) = notices(ran.outputs)
    assert "Still compiling `slow_to_compile`" in text and "interrupt of Cell In[" in text
    # The same program again waits for that compilation, and starts none.
    again = slow.send(x)
    data, text = last_update(slow, msg_id)
    behind.check(data)
    wait_for_reply(slow, again)
    assert slow.ok("[e[2] for e in seen if e[:2] == ('compile', 'slow_to_compile')]").text == (
        "['memory']"
    )
    assert text.startswith("Finished compiling `slow_to_compile`, ")


def test_a_computation_left_behind_is_told_of(slow: Session) -> None:
    cell = "y = slow_to_run(slow_to_run(a))\nprint('started')\ny.block_until_ready()"
    msg_id = slow.send(cell)
    slow.until_output(msg_id, "started")
    behind = Behind(slow)
    slow.manager.interrupt_kernel()
    ran = slow.wait(msg_id)
    behind.replied()
    assert ran.ename == "KeyboardInterrupt"
    ((data, _),) = notices(ran.outputs)
    assert data["doing"] == ["computing `y`"]
    data, text = last_update(slow, msg_id)
    behind.check(data)
    assert text.startswith("Finished computing `y`, ")
    # Now that nothing goes on, nothing is told, and the numbers are right: 1e-3 * 1000 is 1.
    ran = slow.ok("abs(float(y[0, 0]) - 1e-3) < 1e-6")
    assert ran.text == "True" and not notices(ran.outputs)


def test_nothing_is_told_where_nothing_goes_on(slow: Session) -> None:
    ran = slow.interrupt("print('started')\nwhile True: pass", after="started")
    assert ran.ename == "KeyboardInterrupt" and not notices(ran.outputs)


LOOPS = """
import numpy as np, perspex, perspex.numpy as jnp
from perspex import lax

def endless(x):
    return lax.while_loop(lambda c: c[0] > -9, lambda c: jnp.sin(c) + c * 0.5, x)

@perspex.jit
def train(w):
    w = endless(w)
    return w, w.mean()

small, large = jnp.ones(2), jnp.ones(10_000)
"""
# Each would go on for ever. `y` is what a front end would be left with.
ENDLESS = {
    "a wait": "y = perspex.jit(endless)(large)\nprint('started')\ny.block_until_ready()",
    "NumPy's wait": "y = perspex.jit(endless)(large)\nprint('started')\nnp.asarray(y)",
    "a program that runs in the call": "print('started')\ny = perspex.jit(endless)(small)",
    "a full queue": (
        "y = large\nprint('started')\nf = perspex.jit(endless)\nfor _ in range(100): y = f(y)"
    ),
    "an operation by itself": "print('started')\ny = endless(large)\nprint(y)",
    "%%jit": "%%jit\nprint('started')\ny = endless(large)",
}


@pytest.fixture(scope="module")
def looping() -> Iterator[Session]:
    with open_session() as session:
        session.ok(LOOPS)
        yield session


@pytest.mark.parametrize("cell", ENDLESS.values(), ids=ENDLESS)
def test_an_interrupt_ends_loops(looping: Session, cell: str) -> None:
    looping.ok("y = None")
    if cell.startswith("%%jit"):
        # It returns before its program is done.
        looping.ok(cell)
        cell = "print('started')\ny.block_until_ready()"
    ran = looping.interrupt(cell, after="started")
    assert ran.ename == "KeyboardInterrupt"
    # A program of the next cell would wait for that of the last one for ever.
    assert looping.ok("float((large + 1).sum())").text == "20000.0"
    ran = looping.run("y is None or y + 1")
    assert ran.text == "True" or "has no value: it was not computed when Cell In[" in ran.traceback


def test_the_state_of_a_stopped_loop_is_in_the_notebook(looping: Session) -> None:
    ran = looping.interrupt(
        "w, m = train(large)\nprint('started')\nm.block_until_ready()", after="started"
    )
    (text,) = [
        m["content"]["data"]["text/plain"]
        for m in ran.outputs
        if "application/vnd.perspex.stopped+json" in m["content"].get("data", {})
    ]
    assert text == (
        "Stopped `train`. `w`, `m` have no value. `_stopped` is what `train` had computed by then."
        "\n`%explain stopped` says more."
    )
    # The loop goes to the fixed point of sin(c) + c / 2.
    cell = "float(_stopped[0][0]), _stopped[1], abs(np.sin(1.895494) - 1.895494 / 2) < 1e-6"
    assert looping.ok(cell).text.startswith("(1.89549") and "None, " in looping.ok(cell).text


IN_TURNS = """
def nested(x):
    def turn(c):
        return c[0] + 1, lax.fori_loop(0, c[2], lambda i, n: n ^ i, c[1]), c[2], jnp.sin(c[3])
    return lax.while_loop(lambda c: c[0] > -9, turn, (0, 0, 1_001, x))
nested = perspex.jit(nested)
loops = perspex.watch_loops(lambda moment: print('started'), every=0.0)
"""


def test_several_loops_that_were_stopped_are_told_from_one(looping: Session) -> None:
    looping.ok(f"from perspex.runtime import client\n{IN_TURNS}")
    # This program runs in the call itself.
    _, ran = interrupted(looping, "y = nested(large)", once="bool(client.held)")
    (text,) = [
        m["content"]["data"]["text/plain"]
        for m in ran.outputs
        if "application/vnd.perspex.stopped+json" in m["content"].get("data", {})
    ]
    assert text.endswith(
        "`_stopped` is what `nested` had computed by then. `nested` has several loops, and more "
        "than one may have been cut short. In `perspex.watch_loops()` a call ends between two "
        "turns.\n`%explain stopped` says more."
    )


@pytest.mark.parametrize("x", ["small", "large"])
def test_a_call_in_turns_stops_between_two_of_them_and_goes_on(looping: Session, x: str) -> None:
    """Whether its programs run in the call itself, as small ones do, or beside it."""
    looping.ok(IN_TURNS)
    turns = []
    for call in (f"nested({x})", "loops.resume()"):
        ran = looping.interrupt(f"with loops: y = {call}", after="started")
        assert ran.ename == "KeyboardInterrupt"
        (text,) = [
            m["content"]["data"]["text/plain"]
            for m in ran.outputs
            if "application/vnd.perspex.stopped+json" in m["content"].get("data", {})
        ]
        turn = int(looping.ok("loops.moment.turn").text)
        assert text.startswith(
            "Stopped `nested`. `_stopped` is what `nested` had computed by then. It is at turn "
            f"{turn:,}; `resume()` of `watch_loops` goes on."
        )
        # No turn of the inner loop is missing: 0 ^ 1 ^ ... ^ 1000 is 1000.
        assert (
            looping.ok("int(_stopped[0]), int(_stopped[1])").text
            == f"({turn}, {1000 * (turn % 2)})"
        )
        turns.append(turn)
    assert 0 < turns[0] < turns[1]


WAIT = "application/vnd.perspex.wait+json"


def waited_for(session: Session, cell: str) -> str:
    """The line under a cell that waits for long, which goes when the cell is interrupted."""
    msg_id, text = session.send(cell), ""
    while not text:
        message = session.client.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") == msg_id:
            assert message["content"].get("execution_state") != "idle", "it did not wait"
            data = message["content"].get("data", {})
            text = data["text/plain"] if WAIT in data else ""
    session.manager.interrupt_kernel()
    ran = session.wait(msg_id)
    assert ran.ename == "KeyboardInterrupt"
    shown = [m["content"]["data"] for m in ran.outputs if WAIT in m["content"].get("data", {})]
    assert shown and not shown[-1][WAIT]["waiting"]
    return text


def test_a_long_wait_is_told_of(looping: Session) -> None:
    text = waited_for(looping, "w, m = train(large)\nm.block_until_ready()")
    assert re.match(r"waiting for `w`, `m` \(`train`\): \d\.\d\d s", text), text


def test_a_call_in_turns_says_how_far_it_has_come(looping: Session) -> None:
    looping.ok(IN_TURNS)
    looping.ok("def rows(x): return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 2**30)[0]")
    with_turns = "with perspex.watch_loops(): y = "
    text = waited_for(looping, f"{with_turns}nested(small)")
    assert re.match(r"`nested`: turn [\d,]+ of the loop at Cell In\[\d+\]:\d \(nested\), \d", text)
    text = waited_for(looping, f"{with_turns}perspex.jit(rows)(large)")
    line = r"`rows`: turn [\d,]+ of 1,073,741,824 of the loop at .*, \d.* s; about [\d,.]+ \w+ left"
    assert re.match(line, text), text
