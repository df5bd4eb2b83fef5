"""Compiled programs of one run of the tests are there in the next (`tests/support/kept.py`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import kept

TEST = "tests/core/numpy/test_sorting.py"


@pytest.mark.parametrize(
    "path, is_kept",
    [
        (TEST, True),
        ("tests/core/numpy/indexing/test_at.py", True),
        ("core/perspex/numpy/sorting.py", True),
        ("README.md", True),
        ("tests/core/experimental/sparse/test_products.py", True),
        ("tests/core/export/test_dynamic.py", True),
        ("tests/core/runtime/test_resumable.py", True),
        ("tests/core/runtime/compiler/test_cache.py", False),
        ("tests/core/jitted/test_misses.py", False),
        ("tests/magics/errors/test_remedies.py", True),
        ("tests/magics/compiling/test_cache.py", False),
        ("tests/magics/panel/test_panel.py", False),
        ("tests/kernel/test_cache.py", False),
    ],
)
def test_tests_about_compiling_find_nothing(
    path: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "PLACE", "/somewhere")
    assert (kept.ROOT / path).exists()
    assert kept.place(kept.ROOT / path) == ("/somewhere" if is_kept else None)
    monkeypatch.setattr(kept, "PLACE", "")
    assert kept.place(kept.ROOT / path) is None


def run(folder: Path) -> dict[str, int]:
    """The programs in the folder, with the time of writing, when some tests have run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TEST, "-k", "sort"]
    env = {**os.environ, "PERSPEX_TEST_CACHE": str(folder)}
    out = subprocess.run(command, cwd=kept.ROOT, env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout
    return {path.name: path.stat().st_ino for path in folder.glob("*.xla")}


def test_the_next_run_compiles_nothing(tmp_path: Path) -> None:
    first = run(tmp_path / "programs")
    assert len(first) > 5
    assert run(tmp_path / "programs") == first


def test_what_was_not_used_for_longest_goes_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kept.storage.Folder(str(tmp_path))
    for n in range(4):
        folder.put(bytes([n]), b"x" * 1000)
        (newest,) = {path for path in tmp_path.glob("*.xla") if path.stat().st_mtime > 1000}
        os.utime(newest, (n, n))
    size = newest.stat().st_size
    kept.trim(str(tmp_path), limit=3 * size)
    assert sorted(path.stat().st_mtime for path in tmp_path.glob("*.xla")) == [2, 3]


def test_a_cache_of_whoever_runs_them_is_not_used(tmp_path: Path) -> None:
    """Tests that count compilations would find programs there from the second run on."""
    names = ["PERSPEX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR"]
    env = {**os.environ, **dict.fromkeys(names, str(tmp_path))}
    tests = "tests/core/runtime/compiler/test_cache.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    command += ["-k", "test_clear_caches_forgets or test_other_programs_are_compiled"]
    out = subprocess.run(command, cwd=kept.ROOT, env=env, capture_output=True, text=True)
    assert "2 passed" in out.stdout, out.stdout
    assert not list(tmp_path.iterdir())
