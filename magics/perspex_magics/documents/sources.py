"""The lines of the user's code that a program comes from, with a few lines around them."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from perspex.base import source
from perspex_magics.documents.listings import links_of, packed

# Lines that are shown around one that has equations, and of a cell as a whole.
_AROUND = 4
_WHOLE = 200


def excerpts(
    equations: Mapping[int, source.Source], cell_of: Callable[[str], str]
) -> list[dict[str, Any]]:
    """The excerpts of files and cells, in the order in which the program meets them.

    Args:
      equations: where each of them, by number, was written.
      cell_of: the id of the notebook's cell that a file name stands for, or nothing.
    """
    by_file: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, at in equations.items():
        frame = at.frame
        by_file[frame.file][frame.line].append(number)
    found = []
    for file, links in by_file.items():
        text = linecache.getlines(file)
        name = source.cell_name(file)
        for first, last in _ranges(sorted(links), len(text), whole=name is not None):
            rows = [text[n - 1].rstrip("\n") if n <= len(text) else "" for n in range(first, last)]
            behind = [links_of(links.get(n, ())) for n in range(first, last)]
            found.append(
                {
                    "name": name or file,
                    "cell": cell_of(file),
                    "first": first,
                    "lines": packed(rows, behind),
                }
            )
    return found


def _ranges(wanted: list[int], length: int, whole: bool) -> list[tuple[int, int]]:
    """The ranges of lines to show, each as its first line and the one after its last."""
    if whole and length <= _WHOLE:
        return [(1, max(length, wanted[-1]) + 1)]
    found: list[tuple[int, int]] = []
    for n in wanted:
        first, end = max(1, n - _AROUND), max(n, min(length, n + _AROUND)) + 1
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((first, end))
    return found
