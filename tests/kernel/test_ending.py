"""A kernel that is asked to stop does so by itself and says that all went well."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.session import TIMEOUT, Session, open_session

# Nothing that runs uses a global name: IPython deletes those first when a kernel ends.
START = """
import threading, time
seen = []
def start(seen):
    import perspex, perspex.numpy as jnp
    from perspex import lax
    a = jnp.ones((300, 300))
    def note(i):
        seen.append(i)
{work}
    threading.Thread(target=work, daemon=True).start()
start(seen)
while len(seen) < 3: time.sleep(0.01)
"""
# Each runs compiled programs in a thread that Python does not wait for.
BUSY = {
    "one program after another": """
    step = perspex.jit(lambda a: a @ a / 300)
    def work():
        while True:
            note(step(a).block_until_ready())
""",
    "one program that calls Python": """
    def body(state):
        i, a = state
        perspex.debug.callback(note, i)
        return i + 1, a @ a / 300
    endless = perspex.jit(lambda a: lax.while_loop(lambda s: s[0] < 10**9, body, (0, a))[1])
    def work():
        endless(a).block_until_ready()
""",
    "operation by operation": """
    def work():
        b = a
        while True:
            b = jnp.sin(b) @ b
            note(b.sum().item())
""",
}
LONG = """
import perspex, perspex.numpy as jnp
from perspex import lax
long = perspex.jit(lambda a: lax.fori_loop(0, 10**9, lambda i, b: b @ b / 300, a))
a = jnp.ones((300, 300))
long.lower(a).compile();
"""


def ended(session: Session) -> int:
    """Ask for the end, as a notebook does, and wait for it: nobody kills the kernel."""
    session.client.shutdown()
    return session.manager.provisioner.process.wait(TIMEOUT)


@pytest.mark.parametrize("work", BUSY.values(), ids=BUSY)
def test_a_thread_runs_programs(work: str) -> None:
    with open_session() as session:
        session.ok(START.format(work=work))
        assert ended(session) == 0


def test_a_program_runs_on_after_an_interrupt() -> None:
    with open_session() as session:
        session.ok(LONG)
        ran = session.interrupt("print('started')\nlong(a).block_until_ready()", after="started")
        assert ran.ename == "KeyboardInterrupt"
        assert ended(session) == 0


def test_open_files_are_written(tmp_path: Path) -> None:
    """Those of a cell and those of a module."""
    (tmp_path / "keeps.py").write_text("out = open('module', 'wb')\nout.write(b'kept')")
    with open_session(cwd=str(tmp_path)) as session:
        session.ok("import keeps\nout = open('cell', 'w'); out.write('kept')")
        assert ended(session) == 0
    assert [(tmp_path / name).read_text() for name in ("cell", "module")] == ["kept"] * 2


def test_what_was_registered_for_the_end_is_called(tmp_path: Path) -> None:
    with open_session(cwd=str(tmp_path)) as session:
        session.ok("import atexit, pathlib, tempfile\nfolder = tempfile.TemporaryDirectory()")
        session.ok("atexit.register(pathlib.Path('called').touch)")
        folder = Path(session.ok("print(folder.name)").stdout.strip())
        session.ok("import threading; thread = threading.Thread(target=lambda: None)")
        assert folder.exists() and ended(session) == 0
    assert (tmp_path / "called").exists() and not folder.exists()


@pytest.mark.parametrize(
    ("argument", "status"),
    [("--version", 0), ("--PerspexKernel.as_jax=perhaps", 1), ("--no-such-option", 2)],
)
def test_the_status_without_a_kernel(argument: str, status: int) -> None:
    command = [sys.executable, "-m", "perspex_kernel_launcher", argument]
    assert subprocess.run(command, capture_output=True, timeout=TIMEOUT).returncode == status


def alarm(error: str) -> str:
    """A signal whose handler raises when the cell is over."""
    return (
        "import signal\ndef ring(*args):\n    open('over', 'w').close()\n"
        f"    raise {error}('ring')\n"
        "signal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.2)"
    )


# Each of them ends ipykernel 7.4. They leave a file when they do.
ENDINGS = {
    "the loop is stopped": (
        "import asyncio\nopen('over', 'w').close()\nasyncio.get_event_loop().stop()"
    ),
    "it is stopped later": (
        "import asyncio\nloop = asyncio.get_event_loop()\n"
        "loop.call_later(0.2, lambda: (open('over', 'w').close(), loop.stop()))"
    ),
    "an alarm exits": alarm("SystemExit"),
    "an alarm raises": alarm("TimeoutError"),
    "an alarm interrupts": alarm("KeyboardInterrupt"),
}


def test_the_loop_goes_on_when_a_cell_has_ended_it(tmp_path: Path) -> None:
    with open_session(cwd=str(tmp_path)) as session:
        for name, code in ENDINGS.items():
            session.ok(code)
            while not (tmp_path / "over").exists():
                time.sleep(0.02)
            (tmp_path / "over").unlink()
            assert session.ok("6 * 7").text == "42", name
        process = session.manager.provisioner.process
        session.manager.shutdown_kernel(now=False)
        assert process.wait(TIMEOUT) == 0
