"""Several processes that run one program together: what each of them prints, and how it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# Seconds, for a machine that is busy with other things.
TIMEOUT = 120

# `me` is the number of a process, `x` an array over the devices of all, and `raised(f)` the error.
PRELUDE = """
import os, signal, sys, time
import numpy as np
import perspex, perspex.numpy as jnp
from perspex import config, distributed, lax
from perspex.errors import ProcessEndedError, ProgramMismatchError
from perspex.sharding import NamedSharding, PartitionSpec as P
me, count, devices, address = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
config.update("num_cpu_devices", devices)
config.update("enable_preemption_service", sys.argv[5] == "preempted")
distributed.initialize(address, count, me, heartbeat_timeout_seconds=3)
mesh = perspex.make_mesh((count * devices,), ("x",), axis_types=(perspex.sharding.AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))
x = perspex.device_put(np.arange(16, dtype=np.float32).reshape(8, 2), rows)
# Gloo prints to the standard output, in several pieces.
told = open(sys.argv[6], "w", buffering=1)
def say(*values): print(*values, file=told)
def raised(f):
    try: f()
    except Exception as error: return error
    raise AssertionError("no error")
"""

# Gradient descent on rows that each process has read for itself; says the bits of the result.
TRAINING = """
w = {"a": jnp.linspace(-1, 1, 2), "b": jnp.float32(0)}
rng = np.random.default_rng(0)
data = rng.normal(size=(16, 2)).astype(np.float32)
target = (data @ np.array([2.0, -1.0], np.float32) + 0.5).astype(np.float32)
def loss(w, v, t): return jnp.mean((v @ w["a"] + w["b"] - t) ** 2)
@perspex.jit
def step(w, v, t): return perspex.tree.map(lambda p, g: p - 0.1 * g, w, perspex.grad(loss)(w, v, t))
own = slice(16 // count * me, 16 // count * (me + 1))
v, t = perspex.make_array_from_process_local_data(rows, [data[own], target[own]])
for _ in range(20): w = step(w, v, t)
say(np.asarray(w["a"]).tobytes().hex(), np.asarray(w["b"]).tobytes().hex())
"""


@dataclass
class Ended:
    """What a process has said, its errors, and its exit code."""

    out: str
    err: str
    code: int


def free_address() -> str:
    """An address of this machine, and a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def run(program: str, count: int = 2, devices: int = 1, preempted: bool = False) -> list[Ended]:
    """Run a program in `count` processes, and wait for all of them; none is left over."""
    command = [sys.executable, "-c", PRELUDE + program]
    rest = [str(count), str(devices), free_address(), "preempted" if preempted else ""]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        outs = [Path(folder, f"out{me}") for me in range(count)]
        # Files, because a pipe that nobody reads stops a process.
        errs = [Path(folder, f"err{me}") for me in range(count)]
        processes = [
            subprocess.Popen(
                [*command, str(me), *rest, str(outs[me])],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stack.enter_context(errs[me].open("w")),
            )
            for me in range(count)
        ]
        end = time.monotonic() + TIMEOUT
        try:
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0, end - time.monotonic()))
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return [
            Ended(out.read_text() if out.exists() else "", err.read_text(), process.returncode)
            for out, err, process in zip(outs, errs, processes, strict=True)
        ]


def agree(program: str, count: int = 2, devices: int = 1, preempted: bool = False) -> list[str]:
    """What each process prints, once all of them have ended well."""
    found = run(program, count, devices, preempted)
    for ended in found:
        assert ended.code == 0, ended.err[-3000:] + ended.out[-3000:]
    return [ended.out for ended in found]
