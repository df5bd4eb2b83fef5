"""Programs that a process of its own compiles: the same programs, and an interrupt ends it.

Numbers are compared with NumPy and, bit by bit, with those of the same program compiled here. Which
process compiled is what the `compile` events say.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import is_running

import perspex
import perspex.numpy as pnp
from perspex import config, lax
from perspex.runtime.compiler import cache, child, compiling, disk
from perspex.runtime.interruptible import Stop, StoppedError

CORE = Path(__file__).resolve().parents[4] / "core"
X = np.linspace(-1, 1, 24, dtype=np.float32)
# What starting and ending a process may take on a busy machine.
SOON = 60.0


@pytest.fixture
def seen() -> Iterator[list]:
    found: list = []
    stop = perspex.events.subscribe(found.append, ["compile"])
    yield found
    stop()


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All programs are compiled in a process of their own, and each for the first time."""
    monkeypatch.setattr(compiling, "LONG", 0)
    with config.compiler_process(True):
        cache.forget()
        yield


@pytest.fixture(autouse=True)
def nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "problem", "")


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + SOON
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _wave(x: Any, turns: int) -> Any:
    for _ in range(turns):
        x = pnp.sin(x) * 1.5 + x * 0.25
    return x


def _wave_by_numpy(x: np.ndarray, turns: int) -> np.ndarray:
    x = x.astype(np.float64)
    for _ in range(turns):
        x = np.sin(x) * 1.5 + x * 0.25
    return x


# ---- the same programs --------------------------------------------------------------------------


def _loss(w: Any) -> Any:
    return pnp.sum(pnp.tanh(pnp.reshape(X, (6, 4)) @ w) ** 2)


W = X[:16].reshape(4, 4)
POSITIVE = (W @ W.T + 4 * np.eye(4, dtype=np.float32)).astype(np.float32)

# Each with what NumPy makes of it, where NumPy has it.
PROGRAMS: dict[str, tuple[Callable, np.ndarray, Callable | None]] = {
    "elementwise": (lambda x: pnp.exp(x) / 3 + x, X, lambda x: np.exp(x) / 3 + x),
    "a gradient": (lambda w: perspex.grad(_loss)(w), W, None),
    "a loop": (
        lambda x: lax.fori_loop(0, 9, lambda i, y: y * 1.25 + i, x),
        X,
        lambda x: [x := x * np.float32(1.25) + i for i in range(9)][-1],
    ),
    "sorting": (lambda x: pnp.sort(pnp.sin(40 * x)), X, lambda x: np.sort(np.sin(40 * x))),
    "LAPACK": (lambda a: pnp.linalg.cholesky(a), POSITIVE, np.linalg.cholesky),
    "eigenvalues": (lambda a: pnp.linalg.eigvalsh(a), POSITIVE, np.linalg.eigvalsh),
    "a transform": (lambda x: abs(pnp.fft.fft(x)), X, lambda x: np.abs(np.fft.fft(x))),
    "random numbers": (
        lambda x: x + perspex.random.normal(perspex.random.key(3), x.shape),
        X,
        None,
    ),
    "half precision": (
        lambda x: pnp.cumsum(x.astype(pnp.bfloat16)).astype(pnp.float32),
        np.ones(24, np.float32),
        np.cumsum,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_this_process(name: str, apart: None, seen: list) -> None:
    function, x, by_numpy = PROGRAMS[name]
    there = np.asarray(perspex.jit(function)(x))
    assert seen[-1].data["apart"] and seen[-1].data["source"] == "xla"
    cache.forget()
    with config.compiler_process(False):
        here = np.asarray(perspex.jit(lambda x: function(x))(x))
    assert not seen[-1].data["apart"]
    assert there.tobytes() == here.tobytes()
    if by_numpy is not None:
        np.testing.assert_allclose(there, by_numpy(x), rtol=2e-5, atol=2e-5)


def test_64_bits(apart: None, seen: list) -> None:
    with config.enable_x64(True):
        x = np.linspace(0, 3, 7)
        out = perspex.jit(lambda x: pnp.sin(x) * np.pi)(x)
    assert seen[-1].data["apart"] and out.dtype == np.float64
    np.testing.assert_allclose(out, np.sin(x) * np.pi, rtol=1e-15)


def _lines(compiled: Any) -> list[str]:
    """The instructions of a compiled program and what they are made of, by name.

    The tables of names and lines at its head are in another order after a program was read.
    """
    text = compiled.as_text()
    return re.sub(r" stack_frame_id=\d+", "", text[text.index("\n\n%") :]).splitlines()


def test_what_is_known_of_a_program(apart: None, seen: list) -> None:
    lowered = perspex.jit(_wave, static_argnums=1).lower(X, 5)
    compiled = lowered.compile()
    assert seen[-1].data["apart"]
    cache.forget()
    with config.compiler_process(False):
        here = lowered.compile()
    assert not seen[-1].data["apart"]
    assert compiled.cost_analysis() == here.cost_analysis()
    assert str(compiled.memory_analysis()) == str(here.memory_analysis())
    # The number of an operation leads from an instruction to the user's line.
    assert re.search(r'op_name="sin#\d+"', compiled.as_text())
    assert _lines(compiled) == _lines(here)


def test_options_arrive(apart: None, seen: list) -> None:
    plain = perspex.jit(lambda x: _wave(x, 3)).lower(X)
    asked = plain.compile({"xla_disable_hlo_passes": "fusion"})
    # Each product for itself.
    alone = "wrapped_multiply"
    assert alone not in plain.compile().as_text() and alone in asked.as_text()
    assert [event.data["apart"] for event in seen] == [True, True]


def test_what_xla_refuses_is_refused_as_it_is_here(apart: None) -> None:
    lowered = perspex.jit(lambda x: x + 1).lower(X)
    with pytest.raises(Exception) as there:
        lowered.compile({"xla_there_is_no_such_option": True})
    with config.compiler_process(False), pytest.raises(Exception) as here:
        lowered.compile({"xla_there_is_no_such_option": True})
    assert (there.type, str(there.value)) == (here.type, str(here.value))
    assert "xla_there_is_no_such_option" in str(here.value)


def test_donation(apart: None, seen: list) -> None:
    x = perspex.device_put(X)
    out = perspex.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert seen[-1].data["apart"] and x.is_deleted()
    np.testing.assert_array_equal(out, X * 2)


def test_the_disk_keeps_what_was_compiled_apart(
    apart: None, seen: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with config.compilation_cache_dir(str(tmp_path / "cache")):
        for source in ("xla", "disk"):
            out = perspex.jit(lambda x: pnp.sort(x * 3) - 0.75)(X)
            np.testing.assert_array_equal(out, np.sort(X * 3) - np.float32(0.75))
            assert seen[-1].data["source"] == source
            assert seen[-1].data["apart"] == (source == "xla")
            assert disk.flush(SOON)
            cache.forget()
            perspex.clear_caches()


# ---- when ---------------------------------------------------------------------------------------


def test_small_programs_stay_here(seen: list) -> None:
    with config.compiler_process(True):
        perspex.jit(lambda x: _wave(x, 11))(X)
        assert not seen[-1].data["apart"]


def test_programs_that_call_python_stay_here(apart: None, seen: list) -> None:
    kind = perspex.ShapeDtypeStruct(X.shape, X.dtype)
    out = perspex.jit(lambda x: perspex.pure_callback(np.cbrt, kind, x))(X)
    np.testing.assert_array_equal(out, np.cbrt(X))
    assert not seen[-1].data["apart"]


def test_everything_is_compiled_apart_while_an_abandoned_compilation_goes_on(
    seen: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perspex.runtime import interruptible

    with config.compiler_process(True):
        left = interruptible.Left("compile", "slow", 0.0, threading.current_thread())
        try:
            np.testing.assert_array_equal(perspex.jit(lambda x: x + 4.25)(X), X + 4.25)
        finally:
            left.end()
        assert seen[-1].data["apart"]
        perspex.jit(lambda x: x + 5.25)(X)
        assert not seen[-1].data["apart"]


def test_threads_compile_at_once(apart: None, seen: list) -> None:
    outs: dict[int, Any] = {}

    def work(n: int) -> None:
        with config.compiler_process(True):
            outs[n] = perspex.jit(lambda x: x * n + 0.5)(X)

    threads = [threading.Thread(target=work, args=[n]) for n in range(2, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, out in outs.items():
        np.testing.assert_allclose(out, X * n + 0.5, rtol=1e-6, atol=1e-6)
    assert len(outs) == 7 and any(event.data["apart"] for event in seen)


# ---- processes that end -------------------------------------------------------------------------


def test_an_idle_process_ends_and_is_gone(
    apart: None, seen: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    while compiling._idle:
        compiling._idle.pop()[1].end()
    monkeypatch.setattr(compiling, "IDLE", 0.2)
    monkeypatch.setattr(compiling, "_retiring", None)
    perspex.jit(lambda x: x - 6.25)(X)
    assert seen[-1].data["apart"]
    assert eventually(lambda: not compiling.processes())


def test_a_process_that_was_ended_while_idle_is_replaced(apart: None, seen: list) -> None:
    perspex.jit(lambda x: x - 7.25)(X)
    before = compiling.processes()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    np.testing.assert_array_equal(perspex.jit(lambda x: x - 8.25)(X), X - np.float32(8.25))
    assert seen[-1].data["apart"] and not compiling.problem
    assert not set(before) & set(compiling.processes()) or len(before) > 1


@contextmanager
def ended_while_it_compiles(number: int) -> Iterator[None]:
    """Send a signal to the process that compiles as soon as it does."""

    def end() -> None:
        assert eventually(lambda: any(p.has_begun for p in busy()))
        for process in busy():
            os.kill(process.popen.pid, number)

    def busy() -> list:
        idle = [process for _, process in compiling._idle]
        return [process for process in compiling._living.copy() if process not in idle]

    for process in compiling._living:
        process.has_begun = False
    thread = threading.Thread(target=end)
    thread.start()
    yield
    thread.join()


def test_a_process_that_somebody_ends_is_done_without(apart: None, seen: list) -> None:
    with ended_while_it_compiles(signal.SIGKILL):
        out = perspex.jit(lambda x: _wave(x, 900))(X)
    assert not seen[-1].data["apart"]
    np.testing.assert_allclose(out, _wave_by_numpy(X, 900), rtol=1e-4, atol=1e-4)
    perspex.jit(lambda x: x - 9.25)(X)
    assert seen[-1].data["apart"]


def test_a_crash_of_xla_is_an_error(apart: None, seen: list) -> None:
    def doomed(x: Any) -> Any:
        return _wave(x, 901)

    with (
        ended_while_it_compiles(signal.SIGSEGV),
        pytest.raises(perspex.errors.JaxRuntimeError, match=r"compiled `doomed` \(SIGSEGV\)"),
    ):
        perspex.jit(doomed)(X)
    perspex.jit(lambda x: x - 10.25)(X)
    assert seen[-1].data["apart"]


def test_no_memory_is_an_error(apart: None, seen: list, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system counts of the processes that it has ended is not ours to bring about."""
    counts = iter([3, 4])
    monkeypatch.setattr(compiling, "_killed_for_memory", lambda: next(counts, 4))

    def large(x: Any) -> Any:
        return _wave(x, 902)

    with (
        ended_while_it_compiles(signal.SIGKILL),
        pytest.raises(perspex.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED.*`large`"),
    ):
        perspex.jit(large)(X)


def test_another_jaxlib_is_not_believed(
    apart: None, seen: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `pip install` in a session: what is imported now is not what is imported next."""
    while compiling._idle:
        compiling._idle.pop()[1].end()
    monkeypatch.setattr(child, "versions", lambda *_: (b"0.0.1", b"cpu"))
    np.testing.assert_array_equal(perspex.jit(lambda x: x - 11.25)(X), X - np.float32(11.25))
    assert not seen[-1].data["apart"] and "cannot be used" in compiling.problem


def test_no_python_to_start(
    apart: None, seen: list, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    while compiling._idle:
        compiling._idle.pop()[1].end()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    np.testing.assert_array_equal(perspex.jit(lambda x: x - 12.25)(X), X - np.float32(12.25))
    assert not seen[-1].data["apart"] and "no-python" in compiling.problem


def test_work_that_was_asked_to_end_does_not_begin() -> None:
    stop = Stop()
    assert stop.ask()
    with pytest.raises(StoppedError):
        stop.enter()
    stop = Stop()
    stop.enter()
    assert not stop.ask()


# ---- interrupts, in processes of their own ------------------------------------------------------

PRELUDE = """
import os, signal, sys, threading, time, traceback
import numpy as np, perspex, perspex.numpy as pnp
from perspex import config, events, lax
from perspex.runtime import interruptible
from perspex.runtime.compiler import compiling
from perspex.sharding import Mesh, NamedSharding, PartitionSpec

config.update("compiler_process", True)
x = np.linspace(-1, 1, 8, dtype=np.float32)
seen = []
events.subscribe(seen.append, ["compile"])

def wave(turns):
    def long(x):
        for _ in range(turns):
            x = pnp.sin(x) * 1.5 + x * 0.25
        return x
    return long

def by_numpy(turns):
    y = x.astype(np.float64)
    for _ in range(turns):
        y = np.sin(y) * 1.5 + y * 0.25
    return y

def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

def compiles():
    return any(process.has_begun for process in compiling._living.copy())

def tell(number):
    for pid in compiling.processes():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

def interrupted(work, once=compiles):
    # The interrupt comes once the condition holds. The compiler stands still from when it has
    # begun until then: however busy the machine is, the work cannot end before the interrupt.
    def send():
        until(compiles)
        tell(signal.SIGSTOP)
        until(once)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        work()
    except KeyboardInterrupt:
        pass
    else:
        raise RuntimeError("the work ended before the interrupt")
    finally:
        tell(signal.SIGCONT)
    thread.join()

def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

def fail(*error):
    traceback.print_exception(*error)
    os._exit(1)

sys.excepthook = fail
"""

CASES = {
    # That the process is gone says that nobody waited for it: one that has compiled lives on.
    "an interrupt ends it, and nothing waits": """
def loops(x):
    for _ in range(300):
        x, _ = lax.scan(lambda y, _: (pnp.sin(y) * y + pnp.cumsum(y), None), x, None, 10)
    return x

endless = perspex.jit(loops).lower(x)
pids = []
def begun():
    pids[:] = compiling.processes()
    return compiles()
interrupted(endless.compile, begun)
assert not seen and not interruptible.left
until(lambda: not is_there(pids[0]))
for n in range(8):
    np.testing.assert_allclose(perspex.jit(lambda x: x * 3 + n)(x), x * 3 + n, rtol=1e-5)
    assert not seen[-1].data["apart"]
assert [event.name for event in seen] == ["<lambda>"] * 8
""",
    "the same again": """
long = perspex.jit(wave(1500))
interrupted(lambda: long(x))
assert not seen
np.testing.assert_allclose(long(x), by_numpy(1500), rtol=1e-4, atol=1e-4)
assert seen[-1].data["apart"] and seen[-1].data["source"] == "xla"
""",
    "one thread's interrupt is not another's": """
lowered = perspex.jit(wave(1500)).lower(x)
out = []
def same():
    out.append(np.asarray(perspex.jit(wave(1500))(x)))
other = threading.Thread(target=same)
def begun():
    if compiles() and not other.is_alive():
        other.start()
        time.sleep(0.5)  # it traces, and then waits for this program
        return True
    return False
interrupted(lowered.compile, begun)
other.join()
np.testing.assert_allclose(out[0], by_numpy(1500), rtol=1e-4, atol=1e-4)
""",
    "scripts have no such process": """
config.update("compiler_process", None)
perspex.jit(wave(1500))(x)
assert not seen[-1].data["apart"] and not compiling.processes()
""",
    "a fork goes its own way": """
def sizes(turns):
    return perspex.jit(wave(turns))(x)
sizes(1500)
pid = compiling.processes()[0]
child = os.fork()
if child == 0:
    assert not compiling.processes()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
sizes(1501)
assert compiling.processes() == [pid] and seen[-1].data["apart"]
""",
    "several devices": """
config.update("num_cpu_devices", 3)
compiling.LONG = 0
second = perspex.devices()[2]
out = perspex.jit(lambda x: x * 2 + 0.5)(perspex.device_put(x, second))
assert seen[-1].data["apart"] and out.devices() == {second}
np.testing.assert_array_equal(out, x * 2 + np.float32(0.5))
mesh = Mesh(np.array(perspex.devices()[:2]), ("a",))
spread = perspex.device_put(x, NamedSharding(mesh, PartitionSpec("a")))
out = perspex.jit(lambda x: pnp.sin(x) + x.sum())(spread)
assert seen[-1].data["apart"] and len(out.devices()) == 2
np.testing.assert_allclose(out, np.sin(x) + x.sum(), atol=1e-6)
""",
}


def script(code: str) -> tuple[list[str], dict[str, str]]:
    env = {**os.environ, "PYTHONPATH": str(CORE)}
    return [sys.executable, "-c", f"{PRELUDE}{code}"], env


@pytest.mark.parametrize("name", CASES)
def test_interrupts(name: str) -> None:
    command, env = script(CASES[name])
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


# The second has a child that lives on, with whatever it got of the pipes.
PARENTS = {
    "alone": "",
    "with a child": "if os.fork() == 0: time.sleep(60); os._exit(0)\n",
}


@pytest.mark.parametrize("name", PARENTS)
def test_the_process_ends_with_the_one_that_asked(name: str) -> None:
    command, env = script(
        "perspex.jit(wave(1500))(x)\n"
        f"{PARENTS[name]}"
        "def tell():\n"
        "    until(lambda: len(compiling.processes()) == 1 and compiles())\n"
        "    print(compiling.processes()[0], flush=True)\n"
        "next(iter(compiling._living)).has_begun = False\n"
        "threading.Thread(target=tell).start()\n"
        "perspex.jit(wave(8000))(x)\n"
    )
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            assert is_there(pid)
            parent.kill()
            parent.wait()
            assert eventually(lambda: not is_running(pid))
        finally:
            with contextlib.suppress(ProcessLookupError):  # nobody is left
                os.killpg(parent.pid, signal.SIGKILL)
