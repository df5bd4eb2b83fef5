"""What tests of the caches of compiled programs have in common."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import config
from perspex.runtime.compiler import cache, disk

X = np.array([0.5, -1.0, 2.0], np.float32)


@pytest.fixture
def seen() -> Iterator[list]:
    found: list = []
    stop = perspex.events.subscribe(found.append, ["compile"])
    yield found
    stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache on disk of this test alone, with nothing in memory."""
    monkeypatch.setattr(disk, "problems", {})
    monkeypatch.setattr(disk, "counts", disk.Counts())
    cache.forget()
    with config.compilation_cache_dir(tmp_path / "compiled"):
        yield tmp_path / "compiled"
        assert disk.flush(30)
    disk._opened = None


@pytest.fixture
def unpinned() -> Iterator[None]:
    yield
    cache.unpin()


def sources(seen: list, name: str = "") -> list[str]:
    return [e.data["source"] for e in seen if not name or e.name == name]


def scale(factor: float, text: str = "") -> perspex.jit:
    """A function of its own each time, with `factor` written into the program."""
    space: dict = {"pnp": pnp}
    exec(f"{text}def scaled(x):\n    return pnp.sin(x) * {factor}", space)
    return perspex.jit(space["scaled"])


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.xla"))


def filled(folder: Path, factor: float = 3.0) -> Path:
    """Compile one program into the folder, and forget it in memory."""
    before = set(entries(folder))
    np.testing.assert_allclose(scale(factor)(X), np.sin(X) * factor, rtol=1e-6)
    assert disk.flush(30)
    cache.forget()
    (new,) = set(entries(folder)) - before
    return new


PROGRAM = """
import numpy as np, perspex, perspex.numpy as pnp
from perspex.runtime.compiler import disk
sources = []
perspex.events.subscribe(lambda e: sources.append(e.data["source"]), ["compile"])
x = pnp.arange(6.0).reshape(2, 3)
eager = (x + x * 2) @ x.T
key = perspex.random.normal(perspex.random.key(0), (4,))
values = pnp.linalg.eigh(eager)[0]
@perspex.jit
def step(w, x):
    return w - 0.1 * perspex.grad(lambda w: pnp.tanh(x @ w).sum())(w)
w = step(pnp.ones(3), x)
def loop(c, x):
    return c + x.sum(), c
total, parts = perspex.lax.scan(loop, 0.0, x)
given = pnp.ones((3, 3))
taken = perspex.jit(lambda a: a * 2, donate_argnums=0)(given)
np.set_printoptions(precision=9)
results = [np.asarray(a).tolist() for a in (eager, key, values, w, total, parts, taken)]
print(repr((sorted(set(sources)), len(sources), given.is_deleted(), results, disk.problems)))
"""


def run(code: str, folder: Path, **environment: str) -> str:
    env = {**os.environ, "PERSPEX_COMPILATION_CACHE_DIR": str(folder), **environment}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
