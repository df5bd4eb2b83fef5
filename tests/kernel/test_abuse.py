"""A kernel that nothing kills: it answers after every cell of `tests/data/abuse.txt`.

By default a few cells in a few environments; with PERSPEX_SOAK all cells in all environments. Where
a cell ends the kernel, a test shows that it ends ipykernel's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.abuse import CHECK, Abuse, Abused, Outcome, read_table

IS_SOAK = "PERSPEX_SOAK" in os.environ
DEFINITIONS, CELLS = read_table()
ENDING = [cell for cell in CELLS if "ends" in cell.marks]
STAYING = [cell for cell in CELLS if "ends" not in cell.marks]
# What a cell must be followed by where it is not run with all others.
FEW = [
    cell
    for cell in STAYING
    if cell.name
    in (
        "__getattribute__ raises",
        "what was captured with __getattribute__ changes",
        "exit in a cell",
        "jit of a syntax error",
        "endless recursion of jitted functions",
        "print while stdout is None",
        "await",
        "buffers",
    )
]
# The environments in which a kernel that does not look out would not even start.
QUICK = {"plain", "modules of the standard library's names", "bad values", "no streams"}
QUICK |= {"unknown flags of XLA", "a folder that is gone"}


@dataclass
class Environment:
    """Where a kernel runs: `make` gets an empty folder and returns options of the start."""

    make: Callable[[Path], dict[str, Any]]
    # What the first cell has to say.
    said: str = ""


def variables(**given: str | None) -> Callable[[Path], dict[str, Any]]:
    """An environment of other variables; `None` unsets one."""

    def make(folder: Path) -> dict[str, Any]:
        merged = {**os.environ, **given}
        return {"cwd": str(folder), "env": {k: v for k, v in merged.items() if v is not None}}

    return make


SHADOWS = ("types", "random", "json", "numpy", "os", "enum", "queue", "token", "jax", "perspex")


def shadowed(folder: Path) -> dict[str, Any]:
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"raise RuntimeError('the wrong {name}')\n")
    (folder / "mine.py").write_text("value = 42\n")
    return {"cwd": str(folder)}


def limited(which: int, value: int) -> Callable[[Path], dict[str, Any]]:
    def limit() -> None:
        resource.setrlimit(which, (value, resource.getrlimit(which)[1]))

    return lambda folder: {"cwd": str(folder), "preexec_fn": limit}


def without_streams(folder: Path) -> dict[str, Any]:
    def close() -> None:
        for number in (0, 1, 2):
            os.close(number)

    return {"cwd": str(folder), "preexec_fn": close}


def removed(folder: Path) -> dict[str, Any]:
    gone = folder / "gone"
    gone.mkdir()
    return {"cwd": str(gone), "preexec_fn": lambda: os.rmdir(gone)}


def started(text: str) -> Callable[[Path], dict[str, Any]]:
    """A startup file of IPython's that runs before the first cell."""

    def make(folder: Path) -> dict[str, Any]:
        home = folder / "ipython" / "profile_default" / "startup"
        home.mkdir(parents=True)
        (home / "00.py").write_text(text)
        return variables(IPYTHONDIR=str(folder / "ipython"))(folder)

    return make


def in_file(folder: Path) -> dict[str, Any]:
    """The folder for compiled programs is a file."""
    (folder / "cache").write_text("no folder")
    return variables(XDG_CACHE_HOME=str(folder / "cache"))(folder)


def written(kept: Callable[[bytes], bytes]) -> Callable[[Path], dict[str, Any]]:
    """A cache that another process has filled, each file of it changed by `kept`."""

    def make(folder: Path) -> dict[str, Any]:
        cache = folder / "perspex" / "compiled"
        options = variables(XDG_CACHE_HOME=str(folder))(folder)
        filled = {**options["env"], "PERSPEX_COMPILATION_CACHE_DIR": str(cache)}
        subprocess.run([sys.executable, "-c", f"x = {CHECK.strip()}"], env=filled, check=True)
        files = [path for path in cache.rglob("*") if path.is_file()]
        assert files, "nothing was cached"
        for path in files:
            path.write_bytes(kept(path.read_bytes()))
        return options

    return make


def refused(folder: Path) -> dict[str, Any]:
    """No process of this kernel can read /proc, as where there is none."""
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(
        "import sys\n"
        "def refuse(event, details):\n"
        "    path = str(details[0]) if details else ''\n"
        "    if event in ('open', 'os.listdir', 'os.scandir') and path.startswith('/proc'):\n"
        "        raise FileNotFoundError(2, 'No such file or directory', path)\n"
        "sys.addaudithook(refuse)\n"
    )
    path = os.pathsep.join([str(folder / "hook"), os.environ.get("PYTHONPATH", "")])
    return variables(PYTHONPATH=path)(folder)


BAD = {
    "JAX_ENABLE_X64": "yess",
    "PERSPEX_DEFAULT_PRNG_IMPL": "dice",
    "JAX_NUM_CPU_DEVICES": "-3",
    "PERSPEX_COMPILER_OPTIONS": "{",
    "JAX_DEFAULT_MATMUL_PRECISION": "banana",
    "PERSPEX_AS_JAX": "perhaps",
    "PERSPEX_CLOCK": "noon",
}

ENVIRONMENTS = {
    "plain": Environment(variables()),
    "warnings are errors": Environment(variables(PYTHONWARNINGS="error")),
    "modules of the standard library's names": Environment(shadowed),
    "bad values": Environment(variables(**BAD), said="yess"),
    "unknown flags of XLA": Environment(
        variables(XLA_FLAGS="--xla_nothing=1 --xla_cpu_enable_fast_math=maybe"),
        said="does not take --xla_nothing=1, --xla_cpu_enable_fast_math=maybe,",
    ),
    "no home": Environment(variables(HOME=None, XDG_CACHE_HOME=None, USER=None)),
    "the cache's folder is a file": Environment(in_file),
    "the disk is full": Environment(limited(resource.RLIMIT_FSIZE, 1_000)),
    "few files": Environment(limited(resource.RLIMIT_NOFILE, 96)),
    "no streams": Environment(without_streams),
    "without assertions": Environment(variables(PYTHONOPTIMIZE="2")),
    "an ASCII locale": Environment(
        variables(LC_ALL="C", LANG="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    ),
    "eight devices and 64 bits": Environment(
        variables(XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_ENABLE_X64="1")
    ),
    "a startup file that abuses": Environment(
        started(
            "import warnings, gc, sys\nwarnings.simplefilter('error')\ngc.disable()\n"
            "list = 3\nsys.setrecursionlimit(400)\n"
        )
    ),
    "a folder that is gone": Environment(removed),
    "stdout and stderr are None": Environment(
        started("import sys\nsys.stdout = sys.stderr = None\n")
    ),
    "little memory": Environment(limited(resource.RLIMIT_AS, 12 << 30)),
    "half of each file of the cache": Environment(written(lambda data: data[: len(data) // 2])),
    "a cache of another version": Environment(
        written(lambda data: b"0" * 16 + data[16:] + b"version 0")
    ),
    "no /proc": Environment(refused),
    "Python's development mode": Environment(
        variables(PYTHONDEVMODE="1", PYTHONHASHSEED="0", PYTHONASYNCIODEBUG="1")
    ),
    "compiled in another process": Environment(variables(PERSPEX_COMPILER_PROCESS="1")),
    "as_jax is off": Environment(variables(PERSPEX_AS_JAX="0")),
}


def run(cells: list[Abuse], options: dict[str, Any], said: str = "") -> list[Outcome]:
    """What the cells did to one kernel after the other."""
    abused = Abused(DEFINITIONS, **options)
    try:
        abused.start()
        assert said in abused.first.stderr
        return [abused.run(cell) for cell in cells]
    finally:
        abused.stop()


def wrong(outcomes: list[Outcome]) -> list[str]:
    return [f"{o.cell.name}: {o.what}: {o.told}" for o in outcomes if o.what != "answered"]


@pytest.mark.timeout(1800 if IS_SOAK else 120)
@pytest.mark.parametrize("name", [name for name in ENVIRONMENTS if IS_SOAK or name in QUICK])
def test_it_answers_after_each_cell(name: str, tmp_path: Path) -> None:
    environment = ENVIRONMENTS[name]
    outcomes = run(STAYING if IS_SOAK else FEW, environment.make(tmp_path), environment.said)
    print(f"{len(outcomes)} cells in the environment `{name}`")
    assert not wrong(outcomes)


@pytest.mark.parametrize("cell", ENDING, ids=lambda cell: cell.name)
@pytest.mark.skipif(not IS_SOAK, reason="two kernels for each cell: for PERSPEX_SOAK")
def test_what_ends_it_ends_ipykernel_as_well(cell: Abuse, tmp_path: Path) -> None:
    for kernel in ("perspex", "python3"):
        abused = Abused(DEFINITIONS, kernel, cwd=str(tmp_path))
        try:
            assert abused.run(cell, timeout=20).what in ("ended", "silent"), kernel
        finally:
            abused.stop()
