"""Options under which XLA compiles fast instead of writing fast code.

Most of the time of the tests is XLA's, which looks for the best code for programs that run once.
The folders in `FOLDERS`, where nearly all the tests are, and all doctests do without: single
programs compile in half of the time, large ones in a quarter. Tests with the fixture `optimized`
and all other folders have the options that users have, and with `PERSPEX_OPTIMIZED=1` all tests
have. So has a process that a test starts, unless it has `environment()`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from perspex.base.xla import jaxlib_version

TESTS = Path(__file__).resolve().parents[1]
FOLDERS = {"api", "control", "experimental", "export", "fuzz", "jitted", "lax", "magics", "nn"}
FOLDERS |= {"numpy", "ops", "oracle", "random", "rules", "scipy", "tracing", "transforms"}
OPTIONS: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    # One module of LLVM instead of many: each needs its own description of the processor.
    "xla_cpu_parallel_codegen_split_count": 1,
}
if jaxlib_version < (0, 12):  # there is no other way of writing code from 0.12 on
    OPTIONS["xla_cpu_use_fusion_emitters"] = False


def environment() -> dict[str, str]:
    """Variables with which another process has these options, too."""
    if os.environ.get("PERSPEX_OPTIMIZED"):
        return {}
    flags = [f"--{name}={str(value).lower()}" for name, value in OPTIONS.items()]
    return {"XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()}


def lies_in(path: Path, folders: set[str]) -> bool:
    """Whether a file of tests lies in one of the folders, however deep."""
    inside = path.is_relative_to(TESTS)
    return inside and bool(folders.intersection(path.relative_to(TESTS).parts[:-1]))


def is_doctest(path: Path) -> bool:
    """Whether a file has its tests in its documentation."""
    return not path.is_relative_to(TESTS)


def options(path: Path) -> dict[str, Any]:
    """The options for the tests in a file."""
    quick = is_doctest(path) or lies_in(path, FOLDERS)
    return OPTIONS if quick and not os.environ.get("PERSPEX_OPTIMIZED") else {}
