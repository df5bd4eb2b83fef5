"""Run the tests of the array API standard on Perspex and on jax, and compare.

PYTHONPATH=tests PYTHON_WITH_BOTH -m standard SUITE [--seeds 1 2] [--files test_linalg.py]

The interpreter has Perspex and jax; one process holds one of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from standard.results import read, report

ROOT = Path(__file__).resolve().parents[2]
SIDES: dict[str, list[str]] = {"jax": [], "perspex": ["-m", "perspex.as_jax"]}


def run(side: str, given: argparse.Namespace, seed: int) -> Path:
    """Run the suite on one side; returns the file of outcomes, which is none if pytest broke."""
    kept = given.out / f"{side}-{seed}.xml"
    kept.unlink(missing_ok=True)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env |= {"ARRAY_API_TESTS_MODULE": "jax.numpy", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, *SIDES[side], "-m", "pytest", "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "-o", "junit_family=xunit2"]
    command += [
        f"--junitxml={kept}",
        f"--hypothesis-seed={seed}",
        f"--max-examples={given.examples}",
    ]
    command += [
        "--hypothesis-disable-deadline",
        *(f"array_api_tests/{name}" for name in given.files),
    ]
    print(f"{side}, seed {seed}: {' '.join(command)}", flush=True)
    log = given.out / f"{side}-{seed}.txt"
    with open(log, "w") as said:
        subprocess.run(command, cwd=given.suite, env=env, stdout=said, stderr=subprocess.STDOUT)
    if not kept.exists():
        raise SystemExit(f"{side}: pytest did not end; see {log}")
    return kept


def main() -> int:
    """The command line; 1 if a test that passes on jax fails on Perspex."""
    parser = argparse.ArgumentParser(prog="standard", description=__doc__.split("\n", 1)[0])
    parser.add_argument("suite", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--examples", type=int, default=100, help="arrays for each test")
    parser.add_argument("--files", nargs="+", default=[""], help="of the folder array_api_tests")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "array-api")
    parser.add_argument("--again", action="store_true", help="only compare what was run")
    given = parser.parse_args()
    given.out = given.out.resolve()
    given.out.mkdir(parents=True, exist_ok=True)
    good = True
    for seed in given.seeds:
        files = {side: given.out / f"{side}-{seed}.xml" for side in SIDES}
        if not given.again:
            files = {side: run(side, given, seed) for side in SIDES}
        text, equal = report(seed, read(files["jax"]), read(files["perspex"]))
        print(text, flush=True)
        good = good and equal
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
