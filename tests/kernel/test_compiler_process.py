"""In a notebook a long compilation is one that the stop button ends, whoever else is compiling."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest
from support.processes import is_running
from support.session import Session, open_session

BEHIND = "application/vnd.perspex.behind+json"
CLOCK = "application/vnd.perspex.clock+json"
HEARTBEAT = "application/vnd.perspex.heartbeat+json"
SOON = 60.0

SETUP = """
import os, signal, threading, time
import numpy as np
import perspex, perspex.numpy as jnp
from perspex import lax
from perspex.runtime.compiler import compiling

def wave(turns):
    def long(x):
        for _ in range(turns):
            x = jnp.sin(x) * 1.5 + x * 0.25
        return x
    return long

def wave_by_numpy(x, turns):
    x = x.astype(np.float64)
    for _ in range(turns):
        x = np.sin(x) * 1.5 + x * 0.25
    return x

def compiles():
    return any(process.has_begun for process in compiling._living.copy())

def press_stop():
    # As soon as a process of its own compiles.
    def press():
        while not compiles():
            time.sleep(0.005)
        pids[:] = compiling.processes()
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press).start()

pids = []
x = np.linspace(-1, 1, 8, dtype=np.float32)
long = perspex.jit(wave(1_500))
"""


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory, jupyter_home: object) -> Iterator[Session]:
    cache = str(tmp_path_factory.mktemp("cache"))
    with open_session(env={**os.environ, "XDG_CACHE_HOME": cache}) as session:
        session.ok(SETUP)
        yield session


def shown(outputs: list[dict], mime: str) -> list[dict]:
    bundles = [output["content"].get("data", {}) for output in outputs]
    return [bundle for bundle in bundles if mime in bundle]


def ends(pid: int) -> bool:
    end = time.monotonic() + SOON
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_running(pid)


def test_the_stop_button_ends_a_compilation(session: Session) -> None:
    ran = session.run("press_stop()\nlong(x)")
    assert ran.ename == "KeyboardInterrupt"
    # Nothing goes on, so nothing is told of it.
    assert not shown(ran.outputs, BEHIND)
    (pid,) = json.loads(session.ok("pids").text)
    assert ends(pid)
    assert session.ok("from perspex.runtime import interruptible; interruptible.left").text == "[]"
    # The next program is compiled here, and the same one again in a new process.
    ran = session.ok(
        "y = np.asarray(perspex.jit(lambda x: x * 2 - 0.5)(x)); (y == x * 2 - 0.5).all()"
    )
    assert "True" in ran.text
    (line,) = shown(ran.outputs, CLOCK)
    assert line[CLOCK]["sources"] == {"xla": 1}
    ran = session.ok("out = np.asarray(long(x)); float(abs(out - wave_by_numpy(x, 1_500)).max())")
    assert float(ran.text) < 1e-4
    (line,) = shown(ran.outputs, CLOCK)
    assert line[CLOCK]["sources"] == {"own process": 1}
    assert "(own process)" in line["text/plain"]
    assert session.ok("len(compiling.processes()), pids[0] in compiling.processes()").text == (
        "(1, False)"
    )
    # `%cache` knows, and the disk has it: after a restart nothing is compiled.
    said = shown(session.ok("%cache").outputs, "text/plain")[0]["text/plain"]
    assert "compiled in a separate process, which an interrupt stops: 1 program" in said
    said = shown(session.ok("%cache long").outputs, "text/plain")[0]["text/plain"]
    assert "compiled by XLA in a separate process in" in said
    session.manager.restart_kernel(now=True)
    session.client.wait_for_ready(timeout=60)
    session.ok(SETUP)
    ran = session.ok("out = np.asarray(long(x)); float(abs(out - wave_by_numpy(x, 1_500)).max())")
    assert float(ran.text) < 1e-4
    assert shown(ran.outputs, CLOCK)[0][CLOCK]["sources"] == {"disk": 1}


def test_the_process_ends_with_its_kernel(session: Session) -> None:
    session.ok("long(x)")
    (pid,) = json.loads(session.ok("compiling.processes()").text)
    assert is_running(pid)
    session.manager.shutdown_kernel(now=True)
    assert ends(pid)


def test_the_heartbeat_says_what_an_interrupt_does(session: Session) -> None:
    # 300 loops take over 5 s.
    ran = session.run(
        "@perspex.jit\n"
        "def loops(x):\n"
        "    for _ in range(300):\n"
        "        x, _ = lax.scan(lambda y, _: (jnp.sin(y) * y + jnp.cumsum(y), None), x, None, 9)\n"
        "    return x\n"
        "def press():\n"
        "    while not compiles(): time.sleep(0.01)\n"
        "    time.sleep(3.5)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=press).start()\n"
        "loops(x)"
    )
    assert ran.ename == "KeyboardInterrupt"
    told = [bundle["text/plain"] for bundle in shown(ran.outputs, HEARTBEAT)]
    assert any("compiling `loops`" in text and "an interrupt stops it" in text for text in told)


def test_a_compilation_that_is_left_here_holds_nothing_up(session: Session) -> None:
    """A program that was too small to be taken for long: what comes next goes elsewhere."""
    session.ok(
        "compiling.LONG = 10**9\n"
        "begun, here = threading.Event(), compiling.here\n"
        "def noted(*args):\n"
        "    begun.set()\n"
        "    return here(*args)\n"
        "compiling.here = noted\n"
        "def press():\n"
        "    begun.wait()\n"
        "    os.kill(os.getpid(), signal.SIGINT)"
    )
    ran = session.run(
        "threading.Thread(target=press).start()\nperspex.jit(lambda x: wave(8_000)(x))(x)"
    )
    assert ran.ename == "KeyboardInterrupt"
    ((told),) = shown(ran.outputs, BEHIND)
    assert told["text/plain"].startswith("XLA is still compiling")
    ran = session.ok(
        "y = np.asarray(perspex.jit(lambda x: x * 4 - 0.5)(x)); (y == x * 4 - 0.5).all()"
    )
    assert "True" in ran.text
    assert shown(ran.outputs, CLOCK)[0][CLOCK]["sources"] == {"own process": 1}


def test_a_user_decides(session: Session) -> None:
    session.ok("perspex.config.update('compiler_process', False)")
    ran = session.ok("long(x).block_until_ready();")
    assert shown(ran.outputs, CLOCK)[0][CLOCK]["sources"] == {"xla": 1}
    assert session.ok("compiling.processes()").text == "[]"


def test_what_is_shown_of_a_program_that_was_compiled_apart(session: Session) -> None:
    session.ok("compiling.LONG = 0")
    ran = session.ok(
        "%%profile\n@perspex.jit\ndef f(a):\n    return jnp.sin(a @ a)\nf(jnp.ones((300, 300)))"
    )
    text = json.dumps([output["content"] for output in ran.outputs])
    assert "jnp.sin(a @ a)" in text
    ran = session.ok("%hlo f(jnp.ones((300, 300)))")
    assert "sine" in json.dumps([output["content"] for output in ran.outputs])
    ran = session.ok(
        "f.lower(jnp.ones((300, 300))).compile().cost_analysis()['flops'] > 2 * 300**3 - 1"
    )
    assert ran.text == "True"
