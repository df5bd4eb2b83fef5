"""Case files: how the lines of `cases/NAME.txt` become `Case` objects.

A file is read from top to bottom:

* `# text`: a comment;
* `> statement`: set-up, executed once for the whole file before its first case;
* `#! options`: options for every line below, until the next `#!`;
* an expression, with its own options after ` #@ `; a line that starts with a blank continues it;
* `{{a | b | c}}` stands for three cases, several of them for all combinations; a case that
  an earlier line holds already is not taken twice.

Options: `exact` (bit for bit), `tol=1e-5` (relative), `raises` (where JAX raises by accident: any
error that refuses the arguments will do), `optimized` (compiled as users' programs are; what is
`exact` is that anyway, unless `optimized=False`), and any context manager of `jax`, by name, such
as `enable_x64` or `threefry_partitionable=False`, entered around the evaluation.
"""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COMPARISON_OPTIONS = frozenset({"exact", "tol", "raises"})

_CHOICE = re.compile(r"\{\{(.*?)\}\}")


@dataclass(frozen=True)
class Case:
    """One expression: where it stands, its text, and how it is evaluated and compared."""

    table: str
    line: int
    source: str
    flags: tuple[tuple[str, Any], ...] = ()
    compare: dict[str, Any] = field(default_factory=dict, hash=False)
    optimized: bool = False

    @property
    def key(self) -> str:
        """The text under which the outcome is recorded: the expression and its flags."""
        flags = " ".join(f"{name}={value!r}" for name, value in self.flags)
        return f"{self.source} #@ {flags}" if flags else self.source

    def __str__(self) -> str:
        return f"{self.table}:{self.line}: {self.key}"


@dataclass(frozen=True)
class Table:
    """All cases of a file and the set-up that they share."""

    name: str
    setup: str
    cases: tuple[Case, ...]


def case_names() -> list[str]:
    """The names of all case files, sorted."""
    return sorted(path.stem for path in (HERE / "cases").glob("*.txt"))


@cache
def load(name: str) -> Table:
    """Read `cases/<name>.txt`; a malformed case raises `ValueError` with its line."""
    text = (HERE / "cases" / f"{name}.txt").read_text(encoding="utf-8")
    return parse(name, text)


def case_table(name: str) -> list[Case]:
    """The cases of one file, to be parametrized over with `ids=str`."""
    return list(load(name).cases)


def parse(name: str, text: str) -> Table:
    """Parse the text of a case file named `name`."""
    setup: list[str] = []
    section: dict[str, Any] = {}
    lines: list[tuple[int, str, dict[str, Any]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if line.startswith("#!"):
            section = _options(line[2:])
        elif line.startswith(">"):
            setup.append(line[2:])
        elif line[0].isspace() and lines:
            first, source, options = lines[-1]
            lines[-1] = (first, source + " " + line.strip(), options)
        elif not line.startswith("#"):
            lines.append((number, line.strip(), section))
    cases: dict[str, Case] = {}
    for number, line, options in lines:
        body, _, own = line.partition(" #@ ")
        options = options | _options(own)
        compare = {key: options[key] for key in options.keys() & COMPARISON_OPTIONS}
        optimized = options.get("optimized", options.get("exact", False))
        others = options.keys() - COMPARISON_OPTIONS - {"optimized"}
        flags = tuple(sorted((key, options[key]) for key in others))
        for source in _expand(body.strip()):
            case = Case(name, number, source, flags, compare, optimized)
            try:
                ast.parse(source, mode="eval")
            except SyntaxError as error:
                raise ValueError(f"{case}: not an expression: {error.msg}") from None
            cases.setdefault(case.key, case)
    return Table(name, "\n".join(setup), tuple(cases.values()))


def _options(text: str) -> dict[str, Any]:
    options = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not name.isidentifier():
            raise ValueError(f"`{word}` is no option; write `name` or `name=value`")
        options[name] = ast.literal_eval(value) if equals else True
    return options


def _expand(source: str) -> list[str]:
    pieces = _CHOICE.split(source)
    choices = [
        [choice.strip() for choice in piece.split(" | ")] if position % 2 else [piece]
        for position, piece in enumerate(pieces)
    ]
    return ["".join(parts) for parts in itertools.product(*choices)]
