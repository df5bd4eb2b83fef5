"""Compiled programs on disk are found by the next process; the flags; processes at once.

That a program was not compiled is seen by compiling being made impossible.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.compiled import PROGRAM, X, entries, filled, run, scale, sources
from support.compiled import folder as folder
from support.compiled import seen as seen

import perspex
import perspex.numpy as pnp
from perspex import config
from perspex.runtime.compiler import cache, disk, storage


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


def test_what_is_known_of_a_program_from_disk(seen, folder, monkeypatch) -> None:
    lowered = perspex.jit(lambda x, y: (pnp.sin(x) @ y).sum()).lower(
        np.ones((4, 5), np.float32), np.ones((5, 6), np.float32)
    )
    fresh = lowered.compile()
    assert disk.flush(30)
    cache.forget()
    monkeypatch.delattr(cache, "bytes_taken")  # XLA takes long to say
    loaded = lowered.compile()
    (entry,) = cache._memory.values()
    assert entry.takes == 4 + fresh.memory_analysis().temp_size_in_bytes
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
    about = disk.About("f", "", 1.0, 0)
    assert not disk.save(disk.policy(), b"k" * 32, None, about, seen.append)
    assert disk.flush(30) and disk.counts.unwritable == 1
    assert not entries(folder) and not seen and not disk.problems


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


@pytest.mark.parametrize("platform", ["cuda", "rocm", "cpu"])
def test_where_xla_keeps_what_it_found_fastest(folder, platform: str) -> None:
    """Beside the programs, where there is something to try; the user's own folder comes first."""
    client = SimpleNamespace(_raw_platform=platform, platform_version="PJRT C API 12")
    place = perspex.devices()[0]

    def chosen(client: SimpleNamespace) -> str:
        options = cache.options_for(place)
        disk.keep_tuning(disk.policy(), client, options)
        debug = options.executable_build_options.debug_options
        return debug.xla_gpu_per_fusion_autotune_cache_dir

    found = chosen(client)
    if platform == "cpu":
        assert not found
        return
    assert Path(found).is_dir() and Path(found).parent == folder
    assert Path(found).stat().st_mode & 0o777 == 0o700
    assert chosen(client) == found
    assert chosen(SimpleNamespace(_raw_platform=platform, platform_version="another")) != found
    with config.compilation_cache_dir(None):
        assert not chosen(client)
    options = cache.options_for(place)
    options.executable_build_options.debug_options.xla_gpu_per_fusion_autotune_cache_dir = "/mine"
    disk.keep_tuning(disk.policy(), client, options)
    debug = options.executable_build_options.debug_options
    assert debug.xla_gpu_per_fusion_autotune_cache_dir == "/mine"
