"""Run the tests that lie inside libraries on jax and on Perspex, and compare.

    python examples/ecosystem/suites.py [--limit SECONDS] [--again] [LIBRARY | FILE ...]
    python examples/ecosystem/suites.py --table             what is known so far

Each file of tests runs in a process of its own, one process at a time: first on Perspex and, if a
test does not pass there, on jax. The results are kept in `build/suites.json` after each file, so a
run that was stopped goes on; `--again` runs the files anew in which a test fails on Perspex alone.
A test counts if it passes on jax within the time limit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "build" / "suites.json"
OUTPUTS = HERE.parent.parent / "build" / "suites"
SITE = sysconfig.get_path("purelib")
LIBRARIES = ("chex", "flashbax", "optax", "rlax", "haiku", "distrax")

PYTEST = ["-m", "pytest", "-v", "-rN", "--tb=short", "-p", "no:cacheprovider", "--color=no"]
# Neither the settings of this repository's tests nor their conftest.py.
PYTEST += ["-c", os.devnull, "--rootdir", SITE, "--confcutdir", SITE]
SIDES = {
    "perspex": [sys.executable, "-m", "perspex.as_jax", *PYTEST],
    "jax": [sys.executable, *PYTEST],
}
_LINE = re.compile(r"^\S+?\.py::(\S.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.M)
# The tests ask what programs compute. On both sides XLA compiles them without most optimizations.
_QUICK = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1",
    "PYTHONWARNINGS": "ignore",
}


def folder(library: str) -> Path:
    """Where a library is installed."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{library} is not installed; make suites installs it")
    return Path(spec.origin).parent


def run(side: str, file: Path, limit: float, kept: Path) -> dict[str, Any]:
    """The outcome of each test of a file, and how the process ended."""
    started = time.monotonic()
    without = {"PYTHONDONTWRITEBYTECODE"} | ({"PYTHONPATH"} if side == "jax" else set())
    env = {k: v for k, v in os.environ.items() if k not in without}
    with open(kept, "w") as out:
        try:
            code: int | str = subprocess.run(
                [*SIDES[side], str(file)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=env | _QUICK,
                timeout=limit,
                cwd=kept.parent,
            ).returncode
        except subprocess.TimeoutExpired:
            code = "out of time"
    found = _LINE.findall(kept.read_text(errors="replace"))
    # The name of a test may have that of a type, `jax.numpy.float32`, of which ours has another.
    tests = {name.replace("'perspex.", "'jax."): said for name, said in found}
    return {"exit": code, "seconds": round(time.monotonic() - started, 1), "tests": tests}


def passed(side: dict[str, Any]) -> list[str]:
    """The tests of a file that pass on one side."""
    return [name for name, said in side["tests"].items() if said == "PASSED"]


def is_whole(side: dict[str, Any]) -> bool:
    """Whether all tests of a file ran and passed."""
    return side["exit"] == 0 and len(passed(side)) == len(side["tests"])


def is_known(sides: dict[str, Any]) -> bool:
    """Whether enough of a file has run to say which of its tests fail on Perspex alone."""
    return "perspex" in sides and ("jax" in sides or is_whole(sides["perspex"]))


def counted(sides: dict[str, Any]) -> list[str]:
    """The tests of a file that pass on jax; all of them, if jax was not asked."""
    return passed(sides.get("jax", sides["perspex"]))


def failures(sides: dict[str, Any]) -> list[str]:
    """The counted tests that do not pass on Perspex, also for want of time."""
    ours = set(passed(sides["perspex"]))
    return [name for name in counted(sides) if name not in ours]


def table(results: dict[str, Any]) -> bool:
    """Print what is known by library; returns whether 99.5 % of all tests pass."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, sides in results.items():
        if is_known(sides):
            rows.setdefault(name.split("/")[0], []).append(sides)
    print(f"{'library':10}{'files':>6}{'tests':>8}{'fail here':>11}{'pass here':>11}")
    good = bad = 0
    for library, files in rows.items():
        tests = sum(len(counted(sides)) for sides in files)
        fail = sum(len(failures(sides)) for sides in files)
        share = 100 * (tests - fail) / tests if tests else 0
        print(f"{library:10}{len(files):6}{tests:8,}{fail:11,}{share:10.2f}%")
        good, bad = good + tests, bad + fail
    for name, sides in results.items():
        for test in failures(sides) if is_known(sides) else ():
            said = sides["perspex"]["tests"].get(test, "not reached")
            print(f"{name}::{test} {said} (exit: {sides['perspex']['exit']})")
    print(f"{good - bad:,} of {good:,} tests that pass on jax pass on Perspex")
    return bad <= 0.005 * good


def ask(side: str, path: str, file: Path, limit: float) -> dict[str, Any]:
    """Run a file of tests on one side, and say how it went."""
    kept = OUTPUTS / f"{path.replace('/', '.')}.{side}.txt"
    found = run(side, file, limit, kept)
    tests = list(found["tests"].values())
    said = ", ".join(f"{tests.count(k)} {k.lower()}" for k in sorted(set(tests)))
    print(f"{path} {side} {found['seconds']} s: {said or found['exit']}", flush=True)
    return found


def known() -> dict[str, Any]:
    """The results of earlier runs, by file and side."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def main() -> None:
    """The command line; exits with 1 if too many tests fail."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--limit", type=float, default=900, help="seconds for a file of tests")
    parser.add_argument("--again", action="store_true", help="also run failing files anew")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("names", nargs="*", default=LIBRARIES, help="libraries, or parts of paths")
    given = parser.parse_args()
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    for name in () if given.table else given.names:
        home = folder(name.split("/")[0])
        for file in sorted(home.rglob("*_test.py")):
            path = file.relative_to(home.parent).as_posix()
            if not path.startswith(name):
                continue
            sides = known().get(path, {})
            if given.again and is_known(sides) and failures(sides):
                del sides["perspex"]
            for side in SIDES:
                if side not in sides and not is_known(sides):
                    sides[side] = ask(side, path, file, given.limit)
                    RESULTS.write_text(json.dumps(known() | {path: sides}, indent=1) + "\n")
    raise SystemExit(0 if table(known()) else 1)


if __name__ == "__main__":
    main()
