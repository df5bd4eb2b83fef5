"""The templates of `table.txt`, which says how they are written."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

# Not an index: that has no `|` in it, and stands behind a word or a bracket.
_OPTIONS = r"\[([^\[\]{}(),]+\|[^\[\]{}()]*)\]"
_CHOICE = re.compile(rf"(?<![\w\)\]\}}]){_OPTIONS}|(?<=[\w.]){_OPTIONS}")
_SPELLED = {"ampersand": "|", "xor": "^"}


@dataclass(frozen=True)
class Entry:
    """One template; `concrete` where it needs the numbers of its operands."""

    text: str
    concrete: bool = False


def expand(line: str) -> list[str]:
    """The templates that a line stands for."""
    pieces: list[list[str]] = []
    last = 0
    for match in _CHOICE.finditer(line):
        pieces.append([line[last : match.start()]])
        choices = (match.group(1) or match.group(2)).split("|")
        pieces.append([_SPELLED.get(choice, choice) for choice in choices])
        last = match.end()
    pieces.append([line[last:]])
    return ["".join(parts) for parts in itertools.product(*pieces)]


def entries() -> list[Entry]:
    """All templates of the table."""
    found, concrete = [], False
    text = (Path(__file__).parent / "table.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line == "concrete:":
            concrete = True
        elif line and not line.startswith("#"):
            found += [Entry(text, concrete) for text in expand(line)]
    return found
