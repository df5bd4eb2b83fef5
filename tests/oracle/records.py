"""Record files: `records/NAME.json`, written under real JAX, one case a line so that they diff."""

from __future__ import annotations

import json
from typing import Any

from .cases import HERE, load
from .process import Oracle

Outcome = list[Any]


def read(name: str) -> dict[str, Outcome]:
    """The recorded outcomes of `cases/<name>.txt` by case key; empty when nothing was recorded."""
    path = HERE / "records" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else {}


def write(name: str, versions: dict[str, str], outcomes: dict[str, Outcome]) -> None:
    """Write `records/<name>.json`."""
    lines = [f"{json.dumps(key)}: {json.dumps(outcome)}" for key, outcome in outcomes.items()]
    head, body = json.dumps(versions), ",\n".join(lines)
    text = f'{{"versions": {head},\n"cases": {{\n{body}\n}}}}\n'
    (HERE / "records" / f"{name}.json").write_text(text, encoding="utf-8")


def record(python: str, names: list[str]) -> None:
    """Evaluate the named case files under the `jax` of `python` and write their records."""
    with Oracle(python) as oracle:
        print("oracle:", ", ".join(f"{key} {value}" for key, value in oracle.versions.items()))
        for name in names:
            table = load(name)
            outcomes = oracle.evaluate(table)
            write(name, oracle.versions, outcomes)
            errors = sum(outcome[0] == "error" for outcome in outcomes.values())
            print(f"{name}: {len(outcomes)} cases, of which {errors} errors")
