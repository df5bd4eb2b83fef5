"""What docs/names.md calls missing is missing, and what it recommends is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
_HEADING = re.compile(r"^## `(jax[\w.]*)`: (\d+) of (\d+)$")
_MODULE = re.compile(r"`(jax[\w.]*)` \((\d+)\)")
_NAME = re.compile(r"`(\w+)`")
# A name in the last column, with what it is called on or with.
_INSTEAD = re.compile(r"`((?:jax|perspex)(?:\.\w+)+)`")

CHILD = """
import importlib, json, pkgutil, sys
import perspex.as_jax
names, modules, instead = json.loads(sys.argv[1])
from perspex.as_jax.absent import is_absent
def there(name):
    try:
        found = pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return not is_absent(found)
def is_module(name):
    try:
        found = importlib.import_module(name)
    except ImportError:
        return False
    return not is_absent(found)
def says_why(name):
    try:
        module, _, last = name.rpartition(".")
        used = {}
        exec(f"from {module} import {last} as it", used)
        getattr(used["it"], "anything", used["it"])()
    except NotImplementedError as error:
        return f"`{name}" in str(error) and "docs/names.md" in str(error)
    return False
print(json.dumps([
    [name for name in names if there(name)],
    [name for name in modules if is_module(name)],
    [name for name in instead if not there(name)],
    [name for name in names if not says_why(name)],
]))
"""


def rows(text: str) -> list[list[str]]:
    """The cells of the tables' rows, without heads."""
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert all(len(line) == 3 for line in lines), lines
    cells = [[cell.strip() for cell in line] for line in lines]
    return [row for row in cells if row[2] != "instead"]


@cache
def page() -> tuple[dict[str, tuple[int, list[str]]], dict[str, int], list[str]]:
    """Missing names by module with the number that is claimed, missing modules, and what is
    recommended."""
    names: dict[str, tuple[int, list[str]]] = {}
    modules: dict[str, int] = {}
    for part in re.split(r"^(?=## )", PAGE, flags=re.MULTILINE)[1:]:
        heading = _HEADING.match(part.splitlines()[0])
        table = rows(part)
        if heading:
            found = [name for row in table for name in _NAME.findall(row[0])]
            assert int(heading[2]) <= int(heading[3])
            names[heading[1]] = (int(heading[2]), found)
        else:
            modules |= {name: int(n) for row in table for name, n in _MODULE.findall(row[0])}
    return names, modules, [name for row in rows(PAGE) for name in _INSTEAD.findall(row[2])]


@cache
def told() -> list[list[str]]:
    names, modules, instead = page()
    asked = [f"{module}.{name}" for module, (_, found) in names.items() for name in found]
    given: list[Any] = [asked, list(modules), instead]
    out = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(given)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "core"), str(ROOT / "magics")]),
        },
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def test_what_the_page_calls_missing_is_missing() -> None:
    names, _, _ = page()
    assert len(names) > 5
    is_there, can_be_imported, _, without_reason = told()
    assert is_there == [] and can_be_imported == []
    # Each can be imported, and its use names the name and this page.
    assert without_reason == []


def test_the_page_counts_right() -> None:
    names, modules, _ = page()
    for module, (count, found) in names.items():
        assert count == len(found) == len(set(found)), module
    whole, rest = sum(modules.values()), sum(count for count, _ in names.values())
    claimed = re.search(
        r"\*\*(\d+) of them are missing\*\*: (\d+) because .*?, and (\d+) in modules", PAGE
    )
    assert claimed is not None
    assert [int(n) for n in claimed.groups()] == [whole + rest, whole, rest]


def test_what_the_page_recommends_is_there() -> None:
    pytest.importorskip("IPython", reason="views of the notebook are among it, which need IPython")
    _, _, instead = page()
    recommending = [row for row in rows(PAGE) if "`jax." in row[2] or "`perspex." in row[2]]
    assert recommending and len(instead) >= len(recommending)
    assert told()[2] == []
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert links and all((ROOT / "docs" / link).exists() for link in links)
