"""The examples of docs/magics.md, run from top to bottom, show what the page says."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from support.shells import Notebook

PAGE = Path(__file__).resolve().parents[2] / "docs" / "magics.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def examples() -> list[tuple[str, str]]:
    """Each cell of the page, with what it shows; empty where the page does not say."""
    found: list[tuple[str, str]] = []
    for kind, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        # What needs a cluster is like what tests/kernel/test_cluster.py runs.
        assert kind in ("python", "text", "py"), kind
        if kind == "python":
            found.append((text, ""))
        elif kind == "text":
            found[-1] = (found[-1][0], text)
    return found


def agree(got: str, want: str) -> bool:
    """Whether two texts are equal but for spaces and the last digits of their numbers."""
    texts = ["".join(_NUMBER.sub("#", text).replace(";", "").split()) for text in (got, want)]
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (got, want)]
    return texts[0] == texts[1] and all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(*numbers, strict=True)
    )


def test_the_page_shows_what_happens(notebook: Notebook) -> None:
    cells = examples()
    assert len(cells) > 25
    for cell, expected in cells:
        result = notebook.run(cell)
        raised = result.error_in_exec or result.error_before_exec
        if raised is not None:
            assert "Error: " in expected, f"{cell}\nfailed with\n{notebook.out}"
            shown = f"{type(raised).__name__}: {raised}"
        elif notebook.displayed:
            shown = notebook.displayed[-1]["text/plain"]
        else:
            shown = "" if result.result is None else re.sub(r"^Out\[\d+\]:", "", notebook.out)
        if expected:
            assert agree(shown, expected), f"{cell}\nshows\n{shown}\nnot\n{expected}"


@pytest.mark.parametrize("magic", ["%%jit", "%%grad", "%%vmap", "%%jaxpr", "%%spmd"])
def test_all_magics_are_on_the_page(notebook: Notebook, magic: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert magic in text
    notebook.ok(f"{magic} --help")
    flags = set(re.findall(r"--[a-z]+", notebook.out)) - {"--help"}
    assert {flag for flag in flags if flag not in text} == set()
    assert set(notebook.shell.magics_manager.magics["cell"]) >= {"jit", "grad", "vmap", "jaxpr"}
