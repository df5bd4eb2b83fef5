"""Compiled programs are found again: in memory, and on disk by the next process.

Results are compared with NumPy. Where a program came from is what the `compile` events say, and
that it was not compiled is seen by compiling being made impossible.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import config, debug
from perspex.runtime.compiler import cache, disk, storage

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


# ---- memory -------------------------------------------------------------------------------------


def test_a_function_defined_again_is_not_compiled_again(seen) -> None:
    first, moved = scale(1.25), scale(1.25, text="\n\n# moved\n")
    for f in (first, moved):
        np.testing.assert_allclose(f(X), np.sin(X) * 1.25, rtol=1e-6)
    assert sources(seen) == ["xla", "memory"]
    # What it would have cost is known, and it cost less.
    assert seen[1].data["compiled_in"] > seen[1].seconds


def test_other_programs_are_compiled(seen) -> None:
    for f, x in [
        (scale(1.5), X),
        (scale(1.5000001), X),
        (scale(1.5), X[:2]),
        (scale(1.5), X.astype(np.int32)),
    ]:
        want = np.sin(x.astype(np.float32)) * np.float32(1.5)
        np.testing.assert_allclose(f(x), want, rtol=1e-5)
    assert sources(seen, "scaled") == ["xla"] * 4


def test_captured_arrays(seen) -> None:
    """Large ones are arguments of the program, small ones a part of it: neither is mixed up."""
    for size in (8, 100):
        for fill in (1.0, 2.0):
            captured = pnp.asarray(np.full(size, fill, np.float32))
            small = np.full(size, fill, np.float32)

            def total(x, captured=captured, small=small):
                return (x + captured * small).sum()

            assert float(perspex.jit(total)(np.float32(1))) == size * (1 + fill * fill)
    assert len(sources(seen, "total")) == 4


def test_options_of_the_compiler_are_part_of_the_key(seen) -> None:
    lowered = perspex.jit(lambda x: x * 7.5).lower(X)
    for options in ({}, {"xla_cpu_enable_fast_math": True}, {"xla_cpu_enable_fast_math": False}):
        np.testing.assert_array_equal(lowered.compile(options)(X), X * np.float32(7.5))
    lowered.compile({"xla_cpu_enable_fast_math": True})
    assert sources(seen) == ["xla", "xla", "xla", "memory"]


def test_donation_is_part_of_the_key(seen) -> None:
    def double(x):
        return x * 2.25

    x = pnp.asarray(X)
    perspex.jit(double)(x)
    perspex.jit(double, donate_argnums=0)(x)
    assert sources(seen, "double") == ["xla", "xla"] and x.is_deleted()


def test_functions_that_call_python_are_not_kept(seen, folder, capsys) -> None:
    for word in ("one", "two"):

        def shout(x, word=word):
            debug.print(word + " {}", x)
            return x + 1

        np.testing.assert_array_equal(perspex.jit(shout)(np.float32(3)), 4)
        perspex.effects_barrier()
        assert capsys.readouterr().out == f"{word} 3.0\n"
    assert sources(seen, "shout") == ["xla", "xla"]
    assert disk.flush(30) and all(not e.data["key"] for e in seen if e.name == "shout")


def test_what_is_being_compiled_is_not_started_twice(seen, monkeypatch) -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), []
    inner = cache._compiled

    def slow(compile):
        calls.append(1)
        begun.set()
        assert go_on.wait(30)
        return inner(compile)

    monkeypatch.setattr(cache, "_compiled", slow)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(np.asarray(scale(9.75)(X))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    time.sleep(0.1)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert len(results) == 3 and len(calls) == 1
    for result in results:
        np.testing.assert_allclose(result, np.sin(X) * 9.75, rtol=1e-6)
    assert sorted(sources(seen)) == ["memory", "memory", "xla"]


def test_an_error_of_the_compiler_is_not_remembered() -> None:
    lowered = perspex.jit(lambda x: x * 8.5).lower(X)
    for _ in range(2):
        with pytest.raises(Exception, match="no_such_option"):
            lowered.compile({"no_such_option": True})
    np.testing.assert_array_equal(lowered.compile()(X), X * np.float32(8.5))


def test_clear_caches_forgets(seen) -> None:
    scale(2.75)(X)
    perspex.clear_caches()
    assert cache.remembered_count() == 0
    scale(2.75)(X)
    assert sources(seen) == ["xla", "xla"]


# ---- disk ---------------------------------------------------------------------------------------

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


def test_what_is_pinned_stays(seen, unpinned, monkeypatch) -> None:
    """When all is forgotten, and when there is no room; until it is let go."""
    kept, other = scale(181.5), scale(182.5)
    np.testing.assert_allclose(kept(X), np.sin(X) * 181.5, rtol=1e-6)
    other(X)
    key = bytes.fromhex(next(e.data["key"] for e in seen if e.name == "scaled"))
    assert cache.pin(key) and cache.is_pinned(key)
    perspex.clear_caches()
    seen.clear()
    np.testing.assert_allclose(kept(X), np.sin(X) * 181.5, rtol=1e-6)
    other(X)
    assert sources(seen, "scaled") == ["memory", "xla"]
    monkeypatch.setattr(cache, "_REMEMBERED", 1)
    for factor in (183.5, 184.5):
        scale(factor)(X)
    assert cache.is_remembered(key)
    cache.unpin(key)
    perspex.clear_caches()
    seen.clear()
    kept(X)
    assert sources(seen, "scaled") == ["xla"]


def test_only_so_many_can_be_pinned(unpinned, monkeypatch) -> None:
    monkeypatch.setattr(cache, "_MOST_PINNED", 2)
    assert [cache.pin(key) for key in (b"a", b"b", b"c", b"a")] == [True, True, False, True]


def test_a_program_is_evicted_from_memory_and_disk(seen, folder) -> None:
    f = scale(191.5)
    f(X)
    compiled = next(e for e in seen if e.name == "scaled")
    key, origin = bytes.fromhex(compiled.data["key"]), compiled.data["origin"]
    assert disk.flush(30) and len(entries(folder)) == 1
    origin.owner().evict(origin.closed())
    cache.evict(key)
    assert not cache.is_remembered(key) and entries(folder) == []
    seen.clear()
    np.testing.assert_allclose(f(X), np.sin(X) * 191.5, rtol=1e-6)
    assert sources(seen, "scaled") == ["xla"]


def test_the_next_process_compiles_nothing(tmp_path: Path) -> None:
    # Names are hashed otherwise in each process: no order may depend on it.
    first, second = [eval(run(PROGRAM, tmp_path / "c", PYTHONHASHSEED=seed)) for seed in "12"]
    assert first[0] == ["xla"] and second[0] == ["disk"]
    assert first[1] == second[1] >= 8
    assert first[2] and second[2]  # donation works as before
    assert first[3] == second[3]
    assert not first[4] and not second[4]
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(second[3][0], 3 * x @ x.T)
    np.testing.assert_allclose(second[3][2], np.linalg.eigvalsh(3 * x @ x.T), atol=1e-4)
    assert second[3][4] == 15 and second[3][5] == [0, 3]


def instructions(compiled) -> list[str]:
    """The program without its tables of places, which XLA writes in any order."""
    rows = [row for row in compiled.as_text().splitlines() if row.startswith((" ", "%", "ENTRY"))]
    return [re.sub(r" stack_frame_id=\d+", "", row) for row in rows]


def test_what_is_known_of_a_program_from_disk(seen, folder) -> None:
    lowered = perspex.jit(lambda x, y: (pnp.sin(x) @ y).sum()).lower(
        np.ones((4, 5), np.float32), np.ones((5, 6), np.float32)
    )
    fresh = lowered.compile()
    assert disk.flush(30)
    cache.forget()
    loaded = lowered.compile()
    assert sources(seen) == ["xla", "disk"]
    assert seen[1].data["bytes"] == entries(folder)[0].stat().st_size
    assert instructions(loaded) == instructions(fresh)
    assert loaded.cost_analysis() == fresh.cost_analysis()
    # The products and sums that matrices of these shapes take, at least.
    assert loaded.cost_analysis()["flops"] >= 2 * 4 * 5 * 6
    sizes = loaded.memory_analysis()
    assert sizes.argument_size_in_bytes == 4 * (4 * 5 + 5 * 6)
    assert sizes.output_size_in_bytes == 4
    assert sizes.temp_size_in_bytes == fresh.memory_analysis().temp_size_in_bytes


def test_a_program_that_has_run(seen, folder) -> None:
    """jaxlib makes no bytes of a program that sorts once it has run: they are made before."""
    x = np.array([[3.0, -1.0, 2.0], [1.0, 5.0, 4.0]], np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(perspex.jit(lambda x: pnp.sort(x))(x), np.sort(x))
        np.testing.assert_array_equal(perspex.jit(lambda x: pnp.argsort(x))(x), np.argsort(x))
        assert disk.flush(30)
        cache.forget()
    assert sources(seen) == ["xla", "xla", "disk", "disk"] and not disk.counts.unwritable


def test_a_program_that_cannot_be_written(seen, folder) -> None:
    class Program:
        def serialize(self) -> bytes:
            raise perspex.errors.JaxRuntimeError("UNIMPLEMENTED: not serializable")

    disk.save(disk.policy(), b"k" * 32, Program(), disk.About("f", "", 1.0), seen.append)
    assert disk.flush(30) and disk.counts.unwritable == 1
    assert not entries(folder) and not seen and not disk.problems


def test_the_folder_is_private(folder: Path) -> None:
    path = filled(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600
    assert len((folder / "secret").read_bytes()) == 32


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def swap(path: Path) -> None:
    other = filled(path.parent, 17.0)
    path.write_bytes(other.read_bytes())


def be_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def be_a_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def new_secret(path: Path) -> None:
    (path.parent / "secret").write_bytes(b"s" * 32)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another format": lambda path: flip(path, 7),
    "another code": lambda path: flip(path, 20),
    "one bit": lambda path: flip(path, 400),
    "another program": swap,
    "a pipe": be_a_pipe,
    "a link": be_a_link,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_an_entry_that_was_altered_is_never_executed(how, seen, folder, monkeypatch) -> None:
    path = filled(folder)
    DAMAGE[how](path)
    tried = []
    monkeypatch.setattr(disk, "deserialize", lambda *args: tried.append(args))
    with pytest.warns(RuntimeWarning, match="removed a damaged entry") as warned:
        result = scale(3.0)(X)
    assert str(path) in str(warned[0].message) and warned[0].filename == __file__
    np.testing.assert_allclose(result, np.sin(X) * 3, rtol=1e-6)
    assert not tried and sources(seen)[-1] == "xla"
    monkeypatch.undo()
    # It has been replaced by a good one, and nothing is said a second time.
    assert disk.flush(30)
    cache.forget()
    np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert sources(seen)[-1] == "disk"


def test_an_entry_of_another_secret_is_not_found(seen, folder, monkeypatch) -> None:
    path = filled(folder)
    new_secret(path)
    disk._opened = None
    tried = []
    monkeypatch.setattr(disk, "deserialize", lambda *args: tried.append(args))
    np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert not tried and sources(seen)[-1] == "xla"


@pytest.mark.parametrize("secret", [b"", b"short"])
def test_a_bad_secret_is_replaced(secret, folder) -> None:
    filled(folder)
    (folder / "secret").write_bytes(secret)
    disk._opened = None
    filled(folder)
    assert len((folder / "secret").read_bytes()) == 32


def test_what_jaxlib_cannot_load_is_compiled(seen, folder, monkeypatch) -> None:
    path = filled(folder)
    with monkeypatch.context() as patch:

        def fail(*args):
            raise ValueError("unknown format")

        patch.setattr(disk, "deserialize", fail)
        with pytest.warns(RuntimeWarning, match="could not be loaded.*unknown format"):
            np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert sources(seen)[-1] == "xla" and disk.flush(30) and path.exists()


def test_what_is_being_written_is_not_compiled_again(seen, folder, monkeypatch) -> None:
    assert disk.flush(30)
    may_write = threading.Event()
    write = disk._writer._write
    monkeypatch.setattr(disk._writer, "_write", lambda job: may_write.wait(30) and write(job))
    try:
        for _ in range(2):
            np.testing.assert_allclose(scale(6.0)(X), np.sin(X) * 6, rtol=1e-6)
            cache.forget()
        assert not entries(folder) and sources(seen) == ["xla", "disk"]
    finally:
        may_write.set()
    assert disk.flush(30) and len(entries(folder)) == 1 and not disk._writer.waiting


# ---- folders that are refused -------------------------------------------------------------------


def refused(path: object, seen: list, match: str) -> None:
    with config.compilation_cache_dir(path):
        with pytest.warns(RuntimeWarning, match=match):
            result = scale(4.0)(X)
        np.testing.assert_allclose(result, np.sin(X) * 4, rtol=1e-6)
        cache.forget()
        scale(4.0)(X)  # and is not told again
        assert disk.flush(30)
    assert sources(seen) == ["xla", "xla"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to(mode, seen, folder) -> None:
    folder.mkdir()
    folder.chmod(mode)
    refused(folder, seen, "other users can write to .*chmod go-w")
    assert not list(folder.iterdir())


def test_a_folder_of_somebody_else(seen, folder, monkeypatch) -> None:
    folder.mkdir(mode=0o700)
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    refused(folder, seen, f"belongs to another user .id {owner}.")
    assert not list(folder.iterdir())


def test_a_symbolic_link(seen, folder, tmp_path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "real")
    refused(folder, seen, "is a symbolic link")
    assert not list((tmp_path / "real").iterdir())


def test_a_file_in_the_way(seen, folder) -> None:
    folder.write_text("not a folder")
    refused(folder, seen, "cannot open")


def test_an_address(seen, folder) -> None:
    refused("gs://bucket/programs", seen, "gs://bucket/programs is not a folder of this machine")


def test_a_folder_that_can_only_be_read(seen, folder, monkeypatch) -> None:
    filled(folder)

    def fail(*args, **options):
        raise OSError(30, "Read-only file system")

    for name in ("utime", "replace", "unlink", "mkdir", "link"):
        monkeypatch.setattr(os, name, fail)
    disk._opened = None
    np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert sources(seen)[-1] == "disk"


def test_a_full_disk(seen, folder, monkeypatch) -> None:
    filled(folder)

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.Folder, "_write_temporary", full)
    with pytest.warns(RuntimeWarning, match="cannot be written to .*No space left") as warned:
        scale(5.5)(X)
        assert disk.flush(30)  # it goes wrong behind, and is told of at the next chance
        scale(6.5)(X)
    assert len(warned) == 1
    assert len(entries(folder)) == 1


def test_a_folder_that_was_removed_is_made_again(folder) -> None:
    path = filled(folder)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    filled(folder)
    assert entries(folder) and folder.stat().st_mode & 0o777 == 0o700
    assert path not in entries(folder)  # the secret is a new one


# ---- flags --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("enable_compilation_cache", False),
        ("compilation_cache_max_size", 0),
        ("compilation_cache_dir", None),
        ("compilation_cache_dir", ""),
    ],
)
def test_it_can_be_turned_off(flag, value, seen, folder) -> None:
    filled(folder)
    with config.find(flag)(value):
        scale(3.0)(X)
    assert sources(seen) == ["xla", "xla"] and len(entries(folder)) == 1


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("jax_persistent_cache_min_compile_time_secs", 3600),
        ("jax_persistent_cache_min_entry_size_bytes", 10**8),
        ("jax_compilation_cache_max_size", 500),
    ],
)
def test_not_all_programs_are_worth_it(flag, value, folder) -> None:
    path = filled(folder)
    with config.find(flag)(value):
        scale(7.0)(X)
        assert disk.flush(30)
    assert entries(folder) == [path]


def test_the_least_recently_used_go_first(seen, folder) -> None:
    paths = {factor: filled(folder, factor) for factor in (20.0, 21.0, 22.0, 23.0)}
    long_ago = time.time() - 1000
    for i, path in enumerate(paths.values()):
        os.utime(path, (long_ago + i, long_ago + i))
    scale(20.0)(X)  # the oldest, but used just now
    assert sources(seen)[-1] == "disk"
    size = max(path.stat().st_size for path in paths.values())
    with config.compilation_cache_max_size(3 * size + size // 2):
        new = filled(folder, 24.0)
    left = set(entries(folder))
    assert {paths[20.0], new} <= left and not {paths[21.0], paths[22.0]} & left
    assert sum(path.stat().st_size for path in left) <= 3.5 * size


def test_what_a_killed_process_began_is_removed(folder) -> None:
    filled(folder)
    for name, age in (("writing-1-old", 10_000), ("writing-2-new", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    storage.Folder(str(folder)).trim(10**9)
    assert not (folder / "writing-1-old").exists() and (folder / "writing-2-new").exists()


# ---- processes ----------------------------------------------------------------------------------


def test_the_end_of_a_process_waits_for_what_is_to_be_written(tmp_path: Path) -> None:
    run("import perspex, perspex.numpy as p\nperspex.jit(lambda x: p.sin(x))(1.0)", tmp_path / "c")
    assert len(entries(tmp_path / "c")) == 1


FORK = """
import os, warnings, perspex, perspex.numpy as p
from perspex.runtime.compiler import disk
warnings.simplefilter("ignore")
perspex.jit(lambda x: p.sin(x) + 1)(1.0)
child = os.fork()
if not child:
    # XLA does not outlive a fork, but what leads to it must not hang.
    os._exit(0 if disk.flush(5) and disk.policy() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork(tmp_path: Path) -> None:
    assert run(FORK, tmp_path / "c") == "0\n"


HAMMER = """
import sys, time, numpy as np, perspex, perspex.numpy as pnp
from perspex.runtime.compiler import cache, disk
x = np.array([0.5, -1.0, 2.0], np.float32)
print("up", flush=True)
n = 0
while n < int(sys.argv[1]):
    f = perspex.jit(lambda x, c=float(n % 7): pnp.sin(x) * c)
    np.testing.assert_allclose(f(x), np.sin(x) * (n % 7), rtol=1e-6)
    cache.forget()
    n += 1
disk.flush()
print(disk.counts.damaged, disk.problems, disk.counts.read, flush=True)
"""


def test_two_processes_one_of_which_is_killed(tmp_path: Path) -> None:
    env = {**os.environ, "PERSPEX_COMPILATION_CACHE_DIR": str(tmp_path / "c")}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)

    def start(count: int) -> subprocess.Popen:
        command = [sys.executable, "-c", HAMMER, str(count)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    killed, other = start(10**9), start(40)
    assert killed.stdout is not None and killed.stdout.readline() == "up\n"
    time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    out, _ = other.communicate(timeout=60)
    killed.communicate()
    assert other.returncode == 0
    damaged, problems, read = out.splitlines()[-1].split()
    assert (damaged, problems) == ("0", "{}") and int(read) >= 26  # 40 less two times 7
