"""The texts of StableHLO and of optimized HLO, line by line, with the equations behind each line.

In both, locations hold numbers (`perspex.hlo.numbering`): those of equations in a module that is
written to be looked at, those of operations in what XLA made of the module that it was given.
Locations, metadata and tables of files are left out of the lines.

A long program has tens of thousands of lines. So a listing is few large values, one text and one
list of links, and not an object for each line, which Python makes, searches for garbage and writes
down more slowly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from perspex.hlo.numbering import PRODUCTS, Origin, number_in

# Of one line: the number of an equation, several of them in order, or none.
Links = int | list[int] | None
# Of a line of text, in characters; what is longer is cut.
_LONGEST = 2_000


def packed(texts: Iterable[str], links: list[Links]) -> dict[str, Any]:
    """The `Listing` of the panel's schema for some lines and, for each, its equations.

    >>> packed(["f(", "  x", ")"], [None, 0, [0, 1]])
    {'text': 'f(\\n  x\\n)', 'folds': [[0, 1]], 'links': [None, 0, [0, 1]]}
    """
    lines = [text if len(text) <= _LONGEST else _cut(text) for text in texts]
    return {"text": "\n".join(lines), "folds": _folds(lines), "links": links}


def links_of(numbers: Iterable[int]) -> Links:
    """Links as a listing has them.

    >>> links_of([]), links_of([7, 7]), links_of({3, 1})
    (None, 7, [1, 3])
    """
    found = sorted(set(numbers))
    return found if len(found) > 1 else found[0] if found else None


def _cut(text: str) -> str:
    return f"{text[:_LONGEST]} … {len(text) - _LONGEST} characters more"


def _folds(lines: Sequence[str]) -> list[list[int]]:
    """For each line that has some, how many of the following are indented deeper than it."""
    found: list[list[int]] = []
    open_lines: list[tuple[int, int]] = []  # indentation and number
    last = -1  # the last line that is not empty
    for i, text in enumerate(lines):
        bare = text.lstrip(" ")
        if not bare or bare.isspace():
            continue
        indent = len(text) - len(bare)
        while open_lines and open_lines[-1][0] >= indent:
            first = open_lines.pop()[1]
            if last > first:
                found.append([first, last - first])
        open_lines.append((indent, i))
        last = i
    found += [[first, last - first] for _, first in open_lines if last > first]
    return sorted(found)


# ---- StableHLO ----------------------------------------------------------------------------------

_ALIAS = re.compile(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"\(', re.MULTILINE)
_OF_ARGUMENT = re.compile(r" loc\((?:#loc\d*|unknown)\)(?=[,)])")


def stablehlo(text: str) -> dict[str, Any]:
    """A module's text with debug information, whose locations number equations, as a listing."""
    numbers = {name: number_in(at) for name, at in _ALIAS.findall(text)}
    lines: list[str] = []
    links: list[Links] = []
    # An operation with regions has its location behind them: by indentation, its earlier lines.
    waiting: dict[int, list[int]] = {}
    for row in text.splitlines():
        if row.startswith("#loc") or not row.strip():
            continue
        row, at = _without_location(row)
        if " loc(" in row:
            row = _OF_ARGUMENT.sub("", row)
        if at is None:
            waiting.setdefault(_indent(row), []).append(len(lines))
            links.append(None)
        else:
            number = numbers.get(at)
            links.append(number)
            if waiting:
                for same in waiting.pop(_indent(row), ()):
                    links[same] = number
        lines.append(row)
    return packed(lines, links)


def _without_location(row: str) -> tuple[str, str | None]:
    """What stands before the location that ends a line, and the location, if there is one."""
    start = row.rfind(" loc(")
    at = row[start + 5 : -1]
    if start >= 0 and row.endswith(")") and (at.startswith("#loc") or at == "unknown"):
        return row[:start], at
    return row, None


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


# ---- Optimized HLO ------------------------------------------------------------------------------

_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)$")
_METADATA = re.compile(
    r',? metadata=\{(?:op_name="((?:[^"\\]|\\.)*)")?(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}'
)
# What one of XLA's back ends notes for itself: braces in braces, up to the end of the line.
_SETTINGS = re.compile(
    r", (?:backend_config|frontend_attributes)="
    r'(?:\{.*\}(?=$|, \w+=)|"(?:[^"\\]|\\.)*")'
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_PRODUCT = re.compile(rf" ({'|'.join(PRODUCTS)})\(")
_HEAD = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_FUSED = re.compile(r" fusion\(.*calls=%?([\w.\-]+)")


def optimized(text: str, operations: Sequence[Origin]) -> dict[str, Any]:
    """Optimized HLO as a listing; `operations` are those of the module, by their numbers."""
    lines: list[str] = []
    links: list[Links] = []
    inside: dict[str, set[int]] = {}  # by computation, the equations of its instructions
    fusions: list[tuple[int, str]] = []
    current: set[int] = set()
    for row in _outside_of_tables(text):
        head = None if row.startswith(" ") else _HEAD.match(row)
        if head:
            current = inside.setdefault(head[1], set())
        found: Links = None
        metadata = _METADATA.search(row)
        if metadata is not None:
            found = _equations(row, metadata, operations)
            row = row[: metadata.start()] + row[metadata.end() :]
            if isinstance(found, int):
                current.add(found)
            elif found is not None:
                current.update(found)
        if " fusion(" in row and (fused := _FUSED.search(row)):
            fusions.append((len(lines), fused[1]))
        lines.append(row)
        links.append(found)
    for i, name in fusions:
        links[i] = _joined(links[i], inside.get(name, ()))
    return packed(lines, links)


def _outside_of_tables(text: str) -> Iterator[str]:
    """The lines of optimized HLO without the tables of files and functions, and no empty ones."""
    in_tables = False
    for row in text.splitlines():
        if row.startswith(" "):
            if in_tables:
                continue
        elif _TABLES.match(row):
            in_tables = True
            continue
        elif not row or (in_tables and not row.endswith("{")) or row[0].isdigit():
            continue
        else:
            in_tables = False
        yield row


def plain(text: str) -> str:
    """Optimized HLO without what does not compute: places in the source, layouts, settings.

    >>> head = "HloModule jit_f, is_scheduled=true"
    >>> print(plain(f"{head}\\n\\nFileNames\\n1 'f.py'\\n\\nENTRY f {{\\n}}"))
    HloModule jit_f
    ENTRY f {
    }
    """
    rows = []
    for row in _outside_of_tables(text):
        if row.startswith("HloModule "):
            row = row.partition(",")[0]
        elif row.startswith(" "):
            row = _SETTINGS.sub("", _METADATA.sub("", row))
        rows.append(row)
    return "\n".join(rows)


def _equations(row: str, metadata: re.Match[str], operations: Sequence[Origin]) -> Links:
    """The equations that an instruction comes from, by its metadata."""
    name = metadata[1]
    if name is None:
        found = _OP_NAME.search(metadata[0])
        if found is None:
            return None
        name = found[1]
    number = number_in(name)
    if number is None or number >= len(operations):
        return None
    origin = operations[number]
    if origin.product is None:
        return origin.number
    kind = _PRODUCT.search(row)
    product = origin.of(kind[1]) if kind else None
    return links_of([one for one in (origin.number, product) if one is not None])


def _joined(links: Links, more: Iterable[int]) -> Links:
    own = [] if links is None else [links] if isinstance(links, int) else links
    return links_of([*own, *more])
