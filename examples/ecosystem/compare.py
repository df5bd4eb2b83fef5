"""Run the examples on Perspex and on jax, each in a process of its own, and compare.

    python examples/ecosystem/compare.py [--jax PYTHON] [--perspex PYTHON] [NAME ...]

Each example prints figures as JSON. They must be equal within 2 %, or 0.02, as loops of training
amplify the last digit; a sampler says another tolerance. Times are those of whole processes.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(command, env):
    start = time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True, env=env)
    seconds = time.perf_counter() - start
    lines = out.stdout.strip().splitlines()
    if out.returncode or not lines:
        return None, seconds, out.stderr.strip()[-1500:]
    return json.loads(lines[-1]), seconds, ""


def differences(a, b, tolerance, path=""):
    """The places at which two figures differ, with both."""
    if isinstance(a, dict):
        return [d for k in a for d in differences(a[k], b.get(k), tolerance, f"{path}/{k}")]
    if isinstance(a, list):
        if not isinstance(b, list) or len(a) != len(b):
            return [(path, a, b)]
        return [d for i, x in enumerate(a) for d in differences(x, b[i], tolerance, f"{path}[{i}]")]
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        same = math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (a != a and b != b)
        return [] if same else [(path, a, b)]
    return [] if a == b else [(path, a, b)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jax", default=sys.executable, help="a Python with jax and the libraries")
    parser.add_argument("--perspex", default=sys.executable, help="one with Perspex and them")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    names = given.names or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "compare")
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ratios, failed = [], []
    for name in names:
        script = str(HERE / f"{name}.py")
        wanted, theirs, error = run([given.jax, script], plain)
        if wanted is None:
            print(f"{name:18} jax fails: {error.splitlines()[-1]}")
            continue
        found, ours, error = run([given.perspex, "-m", "perspex.as_jax", script], os.environ)
        if found is None:
            failed.append(name)
            print(f"{name:18} FAILS\n{error}")
            continue
        apart = differences(wanted, found, wanted.get("tolerance", 0.02))
        ratios.append(ours / theirs)
        verdict = "equal" if not apart else f"DIFFERS {apart[:3]}"
        print(f"{name:18} {ours:6.1f} s, jax {theirs:6.1f} s, {ours / theirs:5.2f}x  {verdict}")
        failed += [name] if apart else []
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} examples, {mean:.2f} times the time of jax (geometric mean)")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
