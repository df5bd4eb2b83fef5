"""The example notebooks, executed in the Perspex kernel from beginning to end.

A cell says in its metadata, under `perspex`, what is expected of it: `prints` is what real JAX
showed for the same cell, `seed` what the text that the snippet comes from shows, `raises` and
`says` the kind of an error and words that its message must hold. Numbers may differ in the last
digits, because another compiler rounds otherwise; everything between them may not.

Those in `examples/ecosystem` need libraries: `make libraries` runs them, where these are installed.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from support import kept

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
EVERY_NOTEBOOK = [
    path for path in sorted(EXAMPLES.rglob("*.ipynb")) if path.parent.name != ".ipynb_checkpoints"
]
NOTEBOOKS = [path for path in EVERY_NOTEBOOK if path.parent.name != "ecosystem"]

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
# What the kernel tells of a cell, as the clock's line, and JAX does not.
_NOTICE = "application/vnd.perspex."
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def name_of(path: Path) -> str:
    return str(path.relative_to(EXAMPLES))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def shown(cell: Any) -> str:
    """What a cell shows as text: streams, results, and an error as `type: first line`."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}")
        elif any(kind.startswith(_NOTICE) for kind in output.data):
            continue
        elif "text/plain" in output.data:
            parts.append(output.data["text/plain"])
    return _COLOUR.sub("", "".join(parts)).strip("\n")


def agree(got: str, want: str) -> bool:
    """Whether two texts are equal but for spaces and the last digits of their numbers."""
    words = [" ".join(_NUMBER.sub("#", text).split()).replace("[ ", "[") for text in (got, want)]
    if words[0] != words[1]:
        return False
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (got, want)]
    return all(math.isclose(a, b, rel_tol=2e-5) for a, b in zip(*numbers, strict=True))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook_runs_and_shows_what_it_should(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kept.environment().items():
        monkeypatch.setenv(name, value)
    notebook = read(path)
    client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(EXAMPLES)}})
    client.execute()
    for cell in notebook.cells:
        expected = cell.metadata.get("perspex", {})
        text = shown(cell) if cell.cell_type == "code" else ""
        if "raises" in expected:
            names = [one.ename for one in cell.outputs if one.output_type == "error"]
            assert names == [expected["raises"]], f"{cell.source}\nshows\n{text}"
            for words in expected["says"]:
                assert words in text, f"{cell.source}\nshows\n{text}"
        elif "prints" in expected:
            message = f"{cell.source}\nshows\n{text}\nwhere JAX shows\n{expected['prints']}"
            assert agree(text, expected["prints"]), message


@pytest.mark.parametrize("path", EVERY_NOTEBOOK, ids=name_of)
def test_notebook_names_our_kernel_and_holds_no_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "perspex"
    assert notebook.metadata.kernelspec.display_name == "Perspex"
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_difference_to_the_seed_is_explained_in_the_next_cell(path: Path) -> None:
    cells = read(path).cells
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        expected = cell.metadata.get("perspex", {})
        differs = "prints" in expected and not agree(
            expected["prints"], expected.get("seed", expected["prints"])
        )
        if differs:
            assert following is not None and following.cell_type == "markdown", cell.source


def test_agree_sees_what_matters() -> None:
    assert agree("Array([1.0000001], dtype=float32)", "Array([1.], dtype=float32)")
    assert agree("[ 5 10]", "[5 10]")
    assert not agree("[1 2 3]", "[1 2 4]")
    assert not agree("Array(1., dtype=float32)", "Array(1., dtype=float64)")
    assert not agree("[1. 2.]", "[1. 2. 3.]")
