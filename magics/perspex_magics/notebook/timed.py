"""`%time` and `%%time` in place: what they time has the file name and the lines of its cell.

IPython compiles it as `<timed exec>`, with lines counted from the top of the body and no text. So a
traceback could show no line, and nobody could say which line of the notebook an equation, a
recompilation or a changed capture comes from. The magics themselves stay IPython's.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.notebook.cell import body_place, calling_line, dropped_rows

_NAMES = ("<timed exec>", "<timed eval>")


class _InPlace:
    """The notebook's compiler; the first program that it parses begins at a place in a cell."""

    def __init__(self, compiler: Any, filename: str, rows: int, text: str = "") -> None:
        self._compiler, self._filename = compiler, filename
        self._rows: int | None = rows
        # How far to the right the program begins in its first line.
        self._column = max(linecache.getline(filename, rows + 1).find(text), 0) if text else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiler, name)

    def __call__(self, program: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        filename = self._filename if filename in _NAMES else filename
        return self._compiler(program, filename, *args, **kwargs)

    def ast_parse(self, program: str, *args: Any, **kwargs: Any) -> Any:
        rows, self._rows = self._rows, None
        if rows is None:
            return self._compiler.ast_parse(program, *args, **kwargs)
        tree = self._compiler.ast_parse("\n" * rows + program, self._filename)
        for node in ast.walk(tree):
            if isinstance(node, ast.expr | ast.stmt):
                node.col_offset += self._column * (node.lineno == rows + 1)
                end = (node.end_col_offset or 0) + self._column * (node.end_lineno == rows + 1)
                node.end_col_offset = end
        return tree


def _in_place(shell: InteractiveShell, magic: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(magic)
    def timed(line: str = "", cell: str | None = None, **given: Any) -> Any:
        compiler: Any = shell.compile
        if cell is None:
            filename, row = calling_line(shell)
            place = _InPlace(compiler, filename, row - 1, line.strip())
        else:
            filename, above = body_place(shell, "time", line, cell)
            place = _InPlace(compiler, filename, above + dropped_rows(cell))
        shell.compile = place  # type: ignore[assignment]
        try:
            return magic(line, cell, **given)
        finally:
            shell.compile = compiler

    return timed


def time_in_place(shell: InteractiveShell) -> Callable[[], object]:
    """Give `%time` and `%%time` their places; returns a function that takes that back.

    IPython imports its magics when they are first used, and so this waits for a cell with one.
    """
    known = shell.magics_manager.magics
    before: dict[str, Callable[..., Any]] = {}
    ours: dict[str, Callable[..., Any]] = {}

    def begin(info: Any) -> None:
        if "%time" in (getattr(info, "raw_cell", None) or ""):
            for kind in ("line", "cell"):
                magic = shell.find_magic("time", kind)
                if magic is not None and magic is not ours.get(kind):
                    before[kind], ours[kind] = magic, _in_place(shell, magic)
                    known[kind]["time"] = ours[kind]

    shell.events.register("pre_run_cell", begin)

    def undo() -> None:
        shell.events.unregister("pre_run_cell", begin)
        for kind, magic in ours.items():
            if known[kind].get("time") is magic:
                known[kind]["time"] = before[kind]

    return undo
