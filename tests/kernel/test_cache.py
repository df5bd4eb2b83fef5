"""Compiled programs outlive the kernel, and several kernels share them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.session import Session, open_session

# Rounds of killing a kernel; 100 take some minutes.
ROUNDS = int(os.environ.get("PERSPEX_SOAK", "3"))

FOLLOW = """
import perspex, numpy as np, jax, jax.numpy as jnp
from perspex.runtime.compiler import cache, disk
sources = []
_ = perspex.events.subscribe(lambda e: sources.append(e.data["source"]), ["compile"])
"""
WORK = """
x = jnp.linspace(0.0, 1.0, 50)
w = jax.random.normal(jax.random.key(0), (50,)) * 0
@jax.jit
def step(w):
    return w - 0.1 * jax.grad(lambda w: ((x * w - 3 * x) ** 2).mean())(w)
for _ in range(300):
    w = step(w)
float(w[-1] + x[-1])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kernels of this test keep their programs: the user's cache, moved."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv("PERSPEX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    return tmp_path / "caches" / "perspex" / "compiled"


def test_a_restart_compiles_nothing(folder: Path) -> None:
    results, seconds = [], []
    with open_session() as session:
        for _ in range(2):
            session.ok(FOLLOW)
            ran = session.ok(WORK)
            results.append(ran.text)
            seconds.append(ran.seconds)
            found = eval(session.ok("(sources, disk.flush(30), disk.problems)").text)
            assert found[1:] == (True, {})
            expected = "xla" if len(results) == 1 else "disk"
            assert set(found[0]) == {expected} and len(found[0]) > 5
            session.manager.restart_kernel(now=True)
            session.client.wait_for_ready(timeout=60)
    assert results[0] == results[1]
    # Each step takes the last weight 2 * 0.1 / 50 of its way to 3.
    assert float(results[0]) == pytest.approx(3 * (1 - (1 - 0.2 / 50) ** 300) + 1, rel=1e-4)
    assert seconds[1] < seconds[0]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_it_can_be_turned_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSPEX_ENABLE_COMPILATION_CACHE", "0")
    with open_session() as session:
        session.ok(FOLLOW)
        assert session.ok("float(jnp.sin(0.0))").text == "0.0"
        shown = session.ok("%cache").outputs
        texts = [o["content"]["data"]["text/plain"] for o in shown if "data" in o["content"]]
        assert any("because the flag `enable_compilation_cache` is off" in text for text in texts)
    assert not folder.exists()


# ---- two kernels, one of which is killed --------------------------------------------------------

HAMMER = """
def hammer(count, begin=0):
    for n in range(begin, begin + count):
        c = float(n % 11)
        f = jax.jit(lambda x: jnp.sin(x) * c + x.sum())
        x = np.array([0.5, -1.0, 2.0], np.float32)
        np.testing.assert_allclose(f(x), np.sin(x) * c + 1.5, rtol=1e-5)
        cache.forget()
        if n % 5 == 0:
            disk.flush()
            disk.policy().folder.trim(12_000)
"""
# Makes the kernel's next write stop half way, or just before the file gets its name.
STOP_IN_WRITE = """
from perspex.runtime.compiler import storage
import builtins, pathlib, time
here = pathlib.Path({here!r})
class Half:
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *exc):
        self.file.close()
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        here.touch()
        time.sleep(600)
if {half}:
    def half_open(fd, mode):
        file = builtins.open(fd, mode)
        return Half(file) if mode == "wb" else file
    storage.open = half_open
else:
    def unnamed(self, name, data):
        self._write_temporary(data)
        here.touch()
        time.sleep(600)
    storage.Folder._write = unnamed
"""


@contextlib.contextmanager
def hammering(session: Session, count: int) -> Iterator[None]:
    """While this lasts the kernel works; at the end it must have gone well."""
    msg_id = session.send(f"hammer({count})")
    yield
    ran = session.wait(msg_id)
    assert ran.status == "ok", ran.traceback
    assert "RuntimeWarning" not in ran.stderr, ran.stderr


def kill_in_the_middle(victim: Session, how: int, here: Path) -> None:
    """Kill a kernel in the middle of a write, or at any moment."""
    if how < 2:
        victim.ok(STOP_IN_WRITE.format(here=str(here), half=how == 0))
    victim.send("hammer(10**9, begin=3)")
    if how < 2:
        deadline = time.monotonic() + 60
        while not here.exists():
            assert time.monotonic() < deadline, "the kernel never wrote"
            time.sleep(0.01)
        here.unlink()
    else:
        time.sleep(random.random())
    os.kill(victim.manager.provisioner.pid, signal.SIGKILL)


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_one_of_two_kernels_is_killed(folder: Path, tmp_path: Path) -> None:
    with open_session() as other, open_session() as victim:
        other.ok(FOLLOW + HAMMER)
        for n in range(ROUNDS):
            victim.ok(FOLLOW + HAMMER)
            if n % 3 < 2:
                # Something has to be missing, for the victim to write it.
                victim.ok("disk.policy().folder.clear()")
            with hammering(other, 40):
                kill_in_the_middle(victim, n % 3, tmp_path / "half")
            victim.manager.restart_kernel(now=True)
            victim.client.wait_for_ready(timeout=60)
        found = eval(other.ok("(disk.counts.damaged, disk.problems, disk.counts.read)").text)
        assert found[:2] == (0, {}) and found[2] > 0
        # What was left half written is under a name that nobody reads.
        for path in folder.glob("writing-*"):
            assert path.suffix != ".xla"
        victim.ok(FOLLOW + HAMMER + "hammer(40)\ndisk.flush()")
        assert victim.ok("(disk.counts.damaged, disk.problems)").text == "(0, {})"
