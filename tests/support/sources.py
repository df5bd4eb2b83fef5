"""All of our sources as syntax trees: a process reads them once, when a test asks first."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("core", "magics", "kernel")
FILES = {root: sorted((ROOT / root).rglob("*.py")) for root in ROOTS}


@cache
def trees() -> dict[Path, ast.Module]:
    """The tree of each file."""
    paths = (path for found in FILES.values() for path in found)
    return {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths}
