"""Record files: `records/NAME.json`, written under real JAX, one case a line so that they diff.

A record belongs to `cases/NAME.txt`, whose lines were evaluated one by one, or to
`recorders/NAME.py`, whose `record()` ran as a whole. Keys of the latter may have parts,
"section / rest".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

from support import kept, quick

from .cases import HERE, case_names, load
from .process import Oracle

Outcome = list[Any]
# What the process of a recorder finds in its environment.
DEVICES = [
    f"device_{what}" for what in ("collectives", "compositions", "explicit", "programs", "types")
]
_ON_MESHES = [*DEVICES, "explicit_axes", "meshes", "shard_maps", "shardings"]
VARIABLES = dict.fromkeys(_ON_MESHES, {"JAX_NUM_CPU_DEVICES": "8"})


def read(name: str) -> dict[str, Outcome]:
    """The recorded outcomes of `cases/<name>.txt` by case key; empty when nothing was recorded."""
    path = HERE / "records" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else {}


def section(name: str, first: str) -> dict[str, Any]:
    """The records of a recorder whose keys begin with `first / `, by the rest of the key."""
    prefix = f"{first} / "
    return {
        key.removeprefix(prefix): value
        for key, value in read(name).items()
        if key.startswith(prefix)
    }


def recorder_names() -> list[str]:
    """The names of all recorders, sorted."""
    return sorted(path.stem for path in (HERE / "recorders").glob("*.py"))


def run(python: str, recorder: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The versions of the `jax` of `python`, and what a recorder gives under it."""
    with Oracle(python, VARIABLES.get(recorder)) as oracle:
        return oracle.versions, oracle.run(recorder)


@cache
def ours(recorder: str) -> dict[str, Any]:
    """What a recorder gives under Perspex, which has the name `jax` in a process of its own."""
    root = HERE.parents[1]
    child = (
        "import json, perspex.as_jax\n"
        f"from oracle.recorders import {recorder}\n"
        f"print(json.dumps({recorder}.record()))\n"
    )
    path = os.pathsep.join(str(root / part) for part in ("core", "magics", "tests"))
    env = {**os.environ, **(VARIABLES.get(recorder) or {})}
    env |= {**kept.environment(), **quick.environment(), "PYTHONPATH": path}
    out = subprocess.run([sys.executable, "-c", child], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    found: dict[str, Any] = json.loads(out.stdout)
    return found


def write(name: str, versions: dict[str, str], outcomes: dict[str, Any]) -> None:
    """Write `records/<name>.json`."""
    lines = [f"{json.dumps(key)}: {json.dumps(outcome)}" for key, outcome in outcomes.items()]
    head, body = json.dumps(versions), ",\n".join(lines)
    text = f'{{"versions": {head},\n"cases": {{\n{body}\n}}}}\n'
    (HERE / "records" / f"{name}.json").write_text(text, encoding="utf-8")


def record(python: str, names: list[str]) -> None:
    """Evaluate the named case files and run recorders under the `jax` of `python`."""
    for name in [name for name in names if name in recorder_names()]:
        versions, found = run(python, name)
        write(name, versions, found)
        print(f"{name}: {len(found)} records of a recorder")
    with Oracle(python) as oracle:
        print("oracle:", ", ".join(f"{key} {value}" for key, value in oracle.versions.items()))
        for name in [name for name in names if name in case_names()]:
            table = load(name)
            outcomes = oracle.evaluate(table)
            write(name, oracle.versions, outcomes)
            errors = sum(outcome[0] == "error" for outcome in outcomes.values())
            print(f"{name}: {len(outcomes)} cases, of which {errors} errors")
