"""Pages of the documentation as notebooks: their cells, and what they say that each shows."""

from __future__ import annotations

import math
import re
from pathlib import Path

from support.shells import Notebook

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
# What runs, what it shows, and what is only read: `py` needs a cluster or libraries of others.
KINDS = {"python", "text", "py", "sh", "typescript", "yaml"}


def examples(page: Path) -> list[tuple[str, str]]:
    """Each cell of a page, with what it shows; empty where the page does not say.

    Sessions with `>>>` are doctests, and no cells.
    """
    found: list[tuple[str, str]] = []
    for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        assert kind in KINDS, kind
        if kind == "python" and not text.startswith(">>>"):
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


def shown_by(notebook: Notebook, cell: str) -> tuple[str, bool]:
    """Run a cell.

    Returns:
      What it showed: an error in one line, else what was printed with the result, else what was
      displayed last; and whether it failed.
    """
    result = notebook.run(cell)
    raised = result.error_in_exec or result.error_before_exec
    if raised is not None:
        return f"{type(raised).__name__}: {raised}", True
    has_result = re.search(r"^Out\[\d+\]:", notebook.out, re.MULTILINE)
    if notebook.displayed and not has_result:
        return notebook.displayed[-1]["text/plain"], False
    return re.sub(r"^Out\[\d+\]:", "", notebook.out, flags=re.MULTILINE), False


def check(notebook: Notebook, page: Path) -> int:
    """Run the cells of a page from top to bottom; returns how many there are."""
    cells = examples(page)
    for cell, expected in cells:
        shown, failed = shown_by(notebook, cell)
        assert not failed or "Error: " in expected, f"{cell}\nfailed with\n{notebook.out}"
        if expected:
            assert agree(shown, expected), f"{cell}\nshows\n{shown}\nnot\n{expected}"
    return len(cells)
