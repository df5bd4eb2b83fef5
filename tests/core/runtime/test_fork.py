"""A child of a process that computes: what it can do, and what raises instead of waiting."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# The child writes what it did; the parent ends it after ten seconds.
PROGRAM = """
import os, signal, sys, time
import numpy as np, perspex, perspex.numpy as pnp
f = perspex.jit(lambda x: x + 1)
x = pnp.ones(3)
y = f(x)
x + x, y.block_until_ready()
compiled = f.lower(x).compile()
pid = os.fork()
if pid == 0:
    try:
        print("worked", {work})
    except RuntimeError as error:
        print("refused", error)
    sys.stdout.flush()
    os._exit(0)
for _ in range(1000):
    if os.waitpid(pid, os.WNOHANG)[0]:
        break
    time.sleep(0.01)
else:
    os.kill(pid, signal.SIGKILL)
    print("hangs")
print("parent", float(f(x)[0]))
"""


def run(work: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{work}", work)],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "work",
    [
        "f(x)",
        "x + x",
        "compiled(x)",
        "perspex.jit(lambda x: x * 7)(x)",
        "pnp.asarray(np.ones(3))",
        "perspex.grad(lambda x: x ** 2)(1.0)",
        "(perspex.make_jaxpr(perspex.grad(lambda x: x ** 2))(1.0), f(x))",
    ],
)
def test_what_computes_is_refused_in_the_child(work: str) -> None:
    done = run(work)
    assert done.stdout.startswith("refused"), done.stdout + done.stderr
    assert "forked" in done.stdout and 'get_context("spawn")' in done.stdout
    assert done.stdout.endswith("parent 2.0\n")
    assert "RuntimeWarning: os.fork() was called" in done.stderr
    assert "<string>:9" in done.stderr


@pytest.mark.parametrize("work", ["np.asarray(y).tolist()", "y.tolist()"])
def test_what_is_computed_can_be_read(work: str) -> None:
    assert run(work).stdout == "worked [2.0, 2.0, 2.0]\nparent 2.0\n"


def test_a_fork_before_the_first_computation_is_none_of_ours() -> None:
    program = (
        "import os, perspex\npid = os.fork()\n"
        "if pid == 0: os._exit(int(perspex.numpy.ones(3).sum()))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_what_executes_a_program_at_once_is_no_reason_to_warn() -> None:
    program = (
        "import os, pty, subprocess, perspex\nperspex.numpy.ones(3) + 1\n"
        "subprocess.run(['true'], preexec_fn=os.getpid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""


def test_this_process_is_no_child() -> None:
    from perspex.runtime import fork

    assert not fork.is_child and os.getpid() > 0
