"""The texts of StableHLO and of optimized HLO, line by line, with the equations behind each line.

In both, locations hold numbers (`perspex.hlo.numbering`): those of equations in a module that is
written to be looked at, those of operations in what XLA made of the module that it was given.
Locations, metadata and tables of files are left out of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perspex.hlo.numbering import PRODUCTS, Origin, number_in

Line = dict[str, Any]
# Of a line of text, in characters; what is longer is cut.
_LONGEST = 2_000


def line(text: str, links: Iterable[int] = ()) -> Line:
    """One line of a listing; `fold` is found by `folded`."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} … {len(text) - _LONGEST} characters more"
    return {"text": text, "fold": 0, "links": sorted(set(links))}


def folded(lines: list[Line]) -> list[Line]:
    """The lines with, in each, how many of the following are indented deeper than it."""
    open_lines: list[tuple[int, Line, int]] = []  # indentation, line and number
    last = -1  # the last line that is not empty
    for i, one in enumerate([*lines, line("end")]):
        text = one["text"]
        indent = len(text) - len(text.lstrip(" "))
        if not text.strip():
            continue
        while open_lines and open_lines[-1][0] >= indent:
            _, head, first = open_lines.pop()
            head["fold"] = last - first
        open_lines.append((indent, one, i))
        last = i
    return lines


# ---- StableHLO ----------------------------------------------------------------------------------

_ALIAS = re.compile(r'(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"\(')
_AT_END = re.compile(r" loc\((#loc\d*|unknown)\)$")
_OF_ARGUMENT = re.compile(r" loc\((?:#loc\d*|unknown)\)(?=[,)])")


def stablehlo(text: str) -> list[Line]:
    """The lines of a module's text with debug information, whose locations number equations."""
    rows = text.splitlines()
    numbers = {}
    for row in rows:
        if row.startswith("#loc"):
            found = _ALIAS.match(row)
            if found:
                numbers[found[1]] = number_in(found[2])
    lines: list[Line] = []
    # An operation with regions has its location behind them: by indentation, its earlier lines.
    waiting: dict[int, list[Line]] = {}
    for row in rows:
        if row.startswith("#loc") or not row.strip():
            continue
        at = _AT_END.search(row)
        if at is not None:
            row = row[: at.start()]
        if " loc(" in row:
            row = _OF_ARGUMENT.sub("", row)
        indent = len(row) - len(row.lstrip(" "))
        one = line(row)
        lines.append(one)
        if at is None:
            waiting.setdefault(indent, []).append(one)
            continue
        number = numbers.get(at[1])
        for same in (*waiting.pop(indent, ()), one):
            same["links"] = [] if number is None else [number]
    return folded(lines)


# ---- Optimized HLO ------------------------------------------------------------------------------

_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)$")
_METADATA = re.compile(r',? metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_PRODUCT = re.compile(rf" ({'|'.join(PRODUCTS)})\(")
_HEAD = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_FUSED = re.compile(r" fusion\(.*calls=%?([\w.\-]+)")


def optimized(text: str, operations: Sequence[Origin]) -> list[Line]:
    """The lines of optimized HLO; `operations` are those of the module, by their numbers."""
    lines: list[Line] = []
    inside: dict[str, set[int]] = {}  # by computation, the equations of its instructions
    fusions: list[tuple[Line, str]] = []
    current: set[int] = set()
    in_tables = False
    for row in text.splitlines():
        if _TABLES.match(row):
            in_tables = True
        if not row.strip() or (in_tables and not row.endswith("{")) or row[0].isdigit():
            continue
        in_tables = in_tables and row[0].isdigit()
        head = _HEAD.match(row) if not row.startswith(" ") else None
        if head:
            current = inside.setdefault(head[1], set())
        one = line(_METADATA.sub("", row), _equations(row, operations))
        lines.append(one)
        current.update(one["links"])
        fused = _FUSED.search(row)
        if fused:
            fusions.append((one, fused[1]))
    _link_fusions(fusions, inside)
    return folded(lines)


def _equations(row: str, operations: Sequence[Origin]) -> list[int]:
    """The equations that an instruction comes from, by its metadata."""
    found = _OP_NAME.search(row)
    number = number_in(found[1]) if found else None
    if number is None or number >= len(operations):
        return []
    origin = operations[number]
    kind = _PRODUCT.search(row)
    product = origin.of(kind[1]) if kind else None
    return [equation for equation in (origin.number, product) if equation is not None]


def _link_fusions(fusions: Iterable[tuple[Line, str]], inside: Mapping[str, set[int]]) -> None:
    for one, name in fusions:
        one["links"] = sorted({*one["links"], *inside.get(name, ())})
