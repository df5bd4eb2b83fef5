"""Compiled programs that one run of the tests keeps for the next.

Most of the time of the tests is XLA's. In the folders of `FOLDERS`, but for those of `TOLD`, tests
ask what a program computes, not how it came to be compiled; so do those of `FILES`. Perspex's own
cache keeps their programs, and those of all doctests, on disk. The key of an entry is the program,
XLA's options, the version of jaxlib and the processor, so a program that is lowered otherwise than
before is compiled.

`PERSPEX_TEST_CACHE` names the folder; set to nothing, it switches this off. All other tests compile
as they would without it. So does a process that a test starts, unless it has `environment()`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import quick

from perspex import config
from perspex.runtime.compiler import disk, storage

ROOT = Path(__file__).resolve().parents[2]
PLACE = os.environ.get("PERSPEX_TEST_CACHE", str(ROOT / "build" / "test-cache"))
# Besides those that are quick, folders whose programs are compiled as users' are.
FOLDERS = quick.FOLDERS | {"typing"}
# Files outside of them that compile much, and ask what it computes.
FILES = {"test_resumable.py", "test_stopping.py"}
# Folders in which tests ask what was compiled, what it took, and what the user is told of it.
TOLD = {"compiling", "jitted", "panel", "timing", "widgets"}
# Bytes. One run of all tests leaves a quarter of it.
LIMIT = 10**9


def place(path: Path) -> str | None:
    """Where the programs of the tests in a file are kept; `None` for nowhere."""
    if not PLACE:
        return None
    is_value = quick.lies_in(path, FOLDERS) and not quick.lies_in(path, TOLD)
    is_value |= path.name in FILES
    return PLACE if quick.is_doctest(path) or is_value else None


def environment() -> dict[str, str]:
    """Variables with which another process keeps its programs there, too."""
    if not PLACE:
        return {}
    names = {"DIR": PLACE, "MAX_SIZE": "-1"}
    return {f"PERSPEX_COMPILATION_CACHE_{name}": value for name, value in names.items()}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep what is compiled while modules of tests are imported, for their cases."""
    with config.compilation_cache_dir(PLACE or None), config.compilation_cache_max_size(-1):
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def kept_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the tests of a module find what earlier runs have compiled."""
    folder = place(request.path)
    if folder is None:
        yield
        return
    # Looking for what has to go takes long in so large a folder: once, when all tests have run.
    with config.compilation_cache_dir(folder), config.compilation_cache_max_size(-1):
        yield


def trim(folder: str, limit: int = LIMIT) -> None:
    """Remove what has not been used for longest, until the rest takes less than `limit` bytes."""
    if os.path.isdir(folder):
        disk.flush(30)
        storage.Folder(folder).trim(limit)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the folder small, when all processes that ran tests have ended."""
    if PLACE and not hasattr(session.config, "workerinput"):
        trim(PLACE)
