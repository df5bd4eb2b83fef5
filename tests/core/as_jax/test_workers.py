"""Workers find the same `jax` as the process that starts them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORK = """
import sys

def doubled(i):
    import jax, jax.numpy as jnp
    return float(jax.jit(lambda x: x * 2)(jnp.float32(i))), jax.__perspex__.__name__

def has_perspex(i):
    return any(name.startswith("perspex") for name in sys.modules)
"""
SCRIPT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import jax.numpy as jnp
from work import doubled, has_perspex

def here(i):
    return float(jnp.float32(i) + 1)

if __name__ == "__main__":
    jnp.ones(3) + 1
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(pool.map(doubled, [1, 2]), pool.map(here, [3]))
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        print([*pool.map(doubled, [4])])
"""
LAZY = """
import multiprocessing
from work import has_perspex

if __name__ == "__main__":
    import perspex.as_jax

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(has_perspex, [0]))
"""
JOBLIB = """
import joblib, jax.numpy as jnp
from work import doubled

if __name__ == "__main__":
    print(joblib.Parallel(2)(joblib.delayed(doubled)(i) for i in range(2)))
    print(joblib.Parallel(2)(joblib.delayed(lambda i: float(jnp.cos(i)))(0.0) for i in range(2)))
"""


def run(folder: Path, script: str, *args: str) -> str:
    (folder / "work.py").write_text(WORK)
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "perspex.as_jax", "script.py", *args],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_of_multiprocessing(method: str, tmp_path: Path) -> None:
    assert run(tmp_path, SCRIPT, method) == (
        "[(2.0, 'perspex'), (4.0, 'perspex')] [4.0]\n[(8.0, 'perspex')]\n"
    )


def test_a_worker_without_jax_does_not_import_perspex(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "lazy.py").write_text(LAZY)
    done = subprocess.run(
        [sys.executable, "lazy.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "[False]\n", done.stderr


@pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="joblib is not installed")
def test_workers_of_joblib(tmp_path: Path) -> None:
    assert run(tmp_path, JOBLIB) == "[(0.0, 'perspex'), (2.0, 'perspex')]\n[1.0, 1.0]\n"
