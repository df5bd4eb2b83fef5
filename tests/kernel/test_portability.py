"""Without /proc, which only Linux has: nothing fails, and what was read there is not claimed.

An audit hook refuses the folder to every process that is started here, as on macOS; what macOS has
besides Linux cannot be simulated. It also takes away what Python offers on Linux alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from support import kept

HOOK = """
import os, sys

def refuse(event, details):
    if event in ("open", "os.listdir", "os.scandir") and details:
        path = details[0]
        path = path.decode() if isinstance(path, bytes) else str(path)
        if path == "/proc" or path.startswith("/proc/"):
            raise FileNotFoundError(2, "No such file or directory", path)

sys.addaudithook(refuse)
for name in ("sched_getaffinity", "sched_setaffinity"):
    if hasattr(os, name):
        delattr(os, name)
"""

PROGRAM = """
import os
for path in ("/proc/meminfo", "/proc/self/maps"):
    try:
        open(path)
    except FileNotFoundError:
        continue
    raise SystemExit(f"{path} can be read")

import numpy as np
import perspex, perspex.numpy as jnp
from perspex.runtime import memory, threads
from perspex.runtime.compiler import cache, compiling, pressure
from perspex_magics.compiling.abandoned import Meter
from perspex_magics.memory import guard

f = perspex.jit(perspex.grad(lambda x: (jnp.sin(x) @ x)))
x = np.arange(3.0, dtype=np.float32)
np.testing.assert_allclose(f(x), np.cos(x) * x + np.sin(x), rtol=1e-5)
assert memory.available() is None
memory.check_room("f", 1 << 60)  # nothing is known, so nothing is refused
assert threads.times() is None
assert guard.resident() is None and Meter([]).read() is None
assert pressure.mappings() == 0
assert compiling._killed_for_memory() == 0
assert b"cores" in cache._processor() and os.uname().nodename.encode() in cache._processor()
print("done")
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that have no /proc."""
    folder = tmp_path_factory.mktemp("hook")
    (folder / "sitecustomize.py").write_text(HOOK)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **kept.environment(), "PYTHONPATH": path}


def run(without: dict[str, str], *words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *words], env=without, cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_library(without: dict[str, str]) -> None:
    assert run(without, "-c", PROGRAM).splitlines()[-1] == "done"


def test_the_doctor(without: dict[str, str]) -> None:
    assert "Perspex can be used." in run(without, "-m", "perspex_command", "doctor")


def test_the_kernel(without: dict[str, str], tmp_path: Path) -> None:
    """It compiles in a process of its own, tells the time, and says what is stale."""
    cells = [
        "try:\n    open('/proc/self/stat')\nexcept FileNotFoundError: print('no /proc')",
        "import jax, jax.numpy as jnp\nrate = 2.0\n@jax.jit\ndef f(x):\n    return rate * x",
        "f(jnp.ones(3))",
        "rate = 3.0",
        "f(jnp.ones(3))",
        "%%jit --name unusual\ny = jnp.arange(4.0) + 0.5",
        "%buffers --all",
        "%cache --all",
    ]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, tmp_path / "small.ipynb")
    words = ["-m", "perspex_command", "run", "small.ipynb", "--html", "small.html"]
    run(without, *words, cwd=tmp_path)
    page = (tmp_path / "small.html").read_text(encoding="utf-8")
    for text in ("no /proc", "Stale capture", "unusual", "float32[3]"):
        assert text in page, text
