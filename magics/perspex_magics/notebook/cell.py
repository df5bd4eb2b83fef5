"""The text of a cell under magics, parsed with the file name and the line numbers of the cell.

Magics of ours may stand one above the other, as decorators do; the topmost is called with the rest
as its body, so the lines below it are taken off here.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import os
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple, NoReturn

import IPython
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.notebook.names import Names, find_names

_HEAD = re.compile(r"(?:[ \t]*\n)*%%(\w+)([^\n]*)(?:\n|$)")
# The file names under which IPython's magics that measure time compile code; `timed` gives that of
# `%time` another.
_TIMED = {"<timed exec>", "<timed eval>", "<magic-timeit>"}
_MAGICS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NOT_USERS = (os.path.dirname(IPython.__file__) + os.sep, _MAGICS)


class Head(NamedTuple):
    """A line `%%magic line` of a cell, and its number, counted from 1."""

    magic: str
    line: str
    row: int


@dataclass
class Cell:
    """A cell: its magics, its body, and the file name under which tracebacks find its text.

    It is parsed once; what else is known of it is worked out once, when it is asked for. `seen`
    gives the tree in which the names are looked for.
    """

    heads: list[Head]
    body: str
    tree: ast.Module
    filename: str
    seen: Callable[[ast.Module], ast.Module]
    _code: tuple[CodeType, CodeType | None] | None = None

    def names(self) -> Names:
        """What it does with the names of the notebook."""
        return find_names(self.seen(self.tree).body)

    def compile(self, shell: InteractiveShell) -> tuple[CodeType, CodeType | None]:
        """The body as code to execute, and its last expression, if it ends in one, to evaluate."""
        if self._code is None:
            self._code = self._compiled(shell)
        return self._code

    def _compiled(self, shell: InteractiveShell) -> tuple[CodeType, CodeType | None]:
        # Keeps the `__future__` imports of earlier cells. It declares `str` only, and takes trees.
        compile_: Any = shell.compile
        body = list(self.tree.body)
        last = body[-1] if body else None
        result = None
        if isinstance(last, ast.Expr):
            body.pop()
            result = compile_(ast.Expression(last.value), self.filename, "eval")
        return compile_(ast.Module(body, []), self.filename, "exec"), result

    def blame(self, error: BaseException, row: int | None = None) -> NoReturn:
        """Raise `error` from a line of the cell, by default from its last statement.

        What is wrong was found by a magic, but a line of the user's is where to mend it.
        """
        where = self.tree.body[-1] if row is None else ast.Pass()
        if row is not None:
            where.lineno = where.end_lineno = row
            where.col_offset = where.end_col_offset = 0
        statement = ast.parse("raise error")
        for node in ast.walk(statement):
            ast.copy_location(node, where)
        exec(compile(statement, self.filename, "exec", dont_inherit=True), {"error": error})
        raise error


def read_cell(
    shell: InteractiveShell,
    magic: str,
    line: str,
    body: str,
    stacked: Collection[str] = (),
    seen: Callable[[ast.Module], ast.Module] = lambda tree: tree,
) -> Cell:
    """Parse the body of a cell whose first line is `%%magic line`.

    Args:
      shell: where the cell runs.
      magic, line, body: what IPython calls the magic with.
      stacked: the magics that may stand below the first.
      seen: gives the tree in which the names of the cell are looked for.

    Raises:
      SyntaxError: with the line number counted from the top of the cell.
    """
    filename, row = body_place(shell, magic, line, body)
    heads = [Head(magic, line, row)]
    while (found := _HEAD.match(body)) and found[1] in stacked:
        row += found[0].rstrip().count("\n") + 1
        heads.append(Head(found[1], found[2].strip(), row))
        body = body[found.end() :]
    python = shell.transform_cell(body)
    tree = shell.compile.ast_parse("\n" * (row + dropped_rows(body)) + python, filename)
    return Cell(heads, body, shell.transform_ast(tree), filename, seen)


def body_place(shell: InteractiveShell, magic: str, line: str, body: str) -> tuple[str, int]:
    """The file name of the cell whose first line is `%%magic line`, and how many lines are above
    its body. From here on tracebacks show the cell as it was written."""
    text, number = _whole_text(shell, magic, line, body)
    # In ipykernel the name depends on the text as the user wrote it, which is how its debugger
    # finds the breakpoints of a cell. Our entry replaces IPython's, which is the call of the magic.
    filename: str = shell.compile.cache(text, number, raw_code=text)
    return filename, text.rstrip().count("\n") - body.rstrip().count("\n")


def dropped_rows(body: str) -> int:
    """How many empty lines IPython drops at the top of what it transforms."""
    return len(list(itertools.takewhile(lambda row: not row.strip(), body.split("\n"))))


def _whole_text(shell: InteractiveShell, magic: str, line: str, body: str) -> tuple[str, int]:
    """The cell as the user wrote it, and its number.

    The history has both, unless the cell runs without being stored there.
    """
    text, _ = _last_input(shell)
    if f"%%{magic}" in text and text.rstrip().endswith(body.rstrip()):
        # IPython has counted on already.
        return text, shell.execution_count - 1
    return f"%%{magic} {line}\n{body}", shell.execution_count


def _last_input(shell: InteractiveShell) -> tuple[str, str]:
    """The last cell in the history: as it was written, and as IPython understood it."""
    history = shell.history_manager
    raw: list[str] = getattr(history, "input_hist_raw", None) or [""]
    parsed: list[str] = getattr(history, "input_hist_parsed", None) or [""]
    return raw[-1], parsed[-1]


def calling_line(shell: InteractiveShell) -> tuple[str, int]:
    """The file and the line of the user's code that called a line magic.

    From here on tracebacks show the cell as it was written, with `%magic` for the call of it.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_USERS):
        frame = frame.f_back
    filename = frame.f_code.co_filename
    raw, parsed = _last_input(shell)
    shown = "\n".join(itertools.dropwhile(lambda row: not row.strip(), raw.split("\n")))
    is_as_long = shown.rstrip().count("\n") == parsed.rstrip().count("\n")
    if is_as_long and "".join(linecache.getlines(filename)).rstrip() == parsed.rstrip():
        lines = [f"{line}\n" for line in shown.split("\n")]
        linecache.cache[filename] = len(shown), None, lines, filename
    return filename, frame.f_lineno


def is_timed(filename: str) -> bool:
    """Whether code of that file name is of a cell or line under such a magic.

    Such code has no name of its own, and its lines are not counted from the top of the cell.
    """
    return filename in _TIMED


def cell_namer(shell: InteractiveShell) -> Callable[[str], str | None]:
    """What `perspex.source` asks for the name of a cell: `Cell In[3]`."""

    def name(filename: str) -> str | None:
        found = shell.compile.format_code_name(filename)
        return None if found is None else " ".join(found)

    return name
