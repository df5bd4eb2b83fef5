"""What mypy and pyright say of code that uses Perspex, and what an editor completes."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jedi
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = sorted(set(HERE.glob("*.py")) - {HERE / "conftest.py", Path(__file__)})
WRONG = {
    (path.name, number)
    for path in EXAMPLES
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if line.endswith("# wrong")
}


def mypy() -> set[tuple[str, int]]:
    """The lines that mypy reports, with the settings and the cache of `make types`."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, EXAMPLES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error", done.stdout, re.MULTILINE)
    return {(name, int(line)) for name, line in found}


def pyright() -> set[tuple[str, int]]:
    """The lines that pyright reports; basedpyright is the one that pip installs with its Node."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(HERE)]
    done = subprocess.run(
        [*command, "--pythonpath", sys.executable], cwd=HERE, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    reports = json.loads(done.stdout)["generalDiagnostics"]
    return {(Path(r["file"]).name, r["range"]["start"]["line"] + 1) for r in reports}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checkers_report_what_is_wrong_and_nothing_else(checker) -> None:
    assert checker() == WRONG


@pytest.mark.parametrize(
    "path", [p for p in EXAMPLES if p.name != "errors.py"], ids=lambda p: p.stem
)
def test_examples_run(path: Path) -> None:
    runpy.run_path(str(path))


ARRAY = {"shape", "dtype", "at", "astype", "block_until_ready"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x", ARRAY),
        ("x.sum()", ARRAY),
        ("jnp.sin(x)", ARRAY),
        ("jnp.zeros(3)", ARRAY),
        ("lax.add(x, x)", ARRAY),
        ("random.normal(key)", ARRAY),
        ("perspex.grad(f)(x, key)", ARRAY),
        ("x.at[0]", {"set", "add", "get"}),
        ("perspex.jit(f)", {"lower", "trace", "retrace"}),
    ],
)
def test_an_editor_completes(expression: str, expected: set[str]) -> None:
    lines = [
        "import perspex",
        "import perspex.numpy as jnp",
        "from perspex import Array, lax, random",
        "def f(x: Array, key: Array) -> Array:",
        f"    {expression}.",
    ]
    project = jedi.Project(ROOT, added_sys_path=[str(ROOT / "core")])
    found = jedi.Script("\n".join(lines), project=project).complete(len(lines), len(lines[-1]))
    assert expected <= {completion.name for completion in found}
