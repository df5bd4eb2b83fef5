"""Names and lines in XLA's text, as the program has them that you look at.

Programs that compute the same share an executable, which carries the names and lines of the one
that was compiled. Their modules agree operation by operation, so the numbers in the names
(`perspex.hlo.numbering`) say what to write instead.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from perspex.base.xla import ir
from perspex.hlo.numbering import named, number_in, walk

# Compiled when they are needed, which importing Perspex need not wait for.
_OP_NAME = r'(?<=op_name=")(?:[^"\\]|\\.)*'
_NUMBER = r"#(\d+)(?=/|$)"
_FUNCTION = r'(?m)^(\d+) "((?:[^"\\]|\\.)*)"$'
_LOCATION = r"(?m)^(\d+) \{file_name_id=\d+ function_name_id=(\d+) .*\}$"
_TABLES = (
    r"(?m)^FileNames\n(?:.+\n)*\nFunctionNames\n(?P<functions>(?:.+\n)*)\n"
    r"FileLocations\n(?P<locations>(?:.+\n)*)"
)


class _Own(NamedTuple):
    """An operation's name and file as XLA writes them, and its first and last line and column.

    With `holds`, it is a call or holds other operations, whose names XLA puts behind its own.
    """

    name: str
    holds: bool
    file: str = ""
    line: int = 0
    end_line: int = 0
    column: int = 0
    end_column: int = 0


def located(text: str, module: Any) -> str:
    """The optimized HLO of a module, with this module's names and lines instead of another's."""
    own = dict(enumerate(_operations(module)))
    text = re.sub(_OP_NAME, lambda found: _renamed(found[0], own), text)
    tables = re.search(_TABLES, text)
    if tables is None:
        return text
    functions = dict(re.findall(_FUNCTION, tables["functions"]))
    files: dict[str, int] = {}

    def moved(found: re.Match[str]) -> str:
        number = number_in(functions.get(found[2], ""))
        one = own.get(-1 if number is None else number, _Own("", False))
        return (
            f"{found[1]} {{file_name_id={files.setdefault(one.file, len(files) + 1)} "
            f"function_name_id={found[2]} line={one.line} end_line={one.end_line} "
            f"column={one.column} end_column={one.end_column}}}"
        )

    locations = re.sub(_LOCATION, moved, tables["locations"])
    names = "".join([f'{i} "{file}"\n' for file, i in files.items()])
    functions_here = re.sub(
        _FUNCTION, lambda found: f'{found[1]} "{_renamed(found[2], own)}"', tables["functions"]
    )
    head = f"FileNames\n{names}\nFunctionNames\n{functions_here}\nFileLocations\n{locations}"
    return text[: tables.start()] + head + text[tables.end() :]


def _renamed(name: str, own: dict[int, _Own]) -> str:
    """The name that XLA made from the names of calls, loops and an operation, in that order."""
    names, rest = [], name
    for found in re.finditer(_NUMBER, name):
        one = own.get(int(found[1]))
        is_last = found.end() == len(name)
        # A user's scope may end in a number, too.
        if one is not None and (one.holds or is_last):
            names.append(named(one.name, int(found[1])))
            rest = name[found.end() + 1 :]
    return "/".join([*names, rest] if rest else names)


def _operations(module: Any) -> list[_Own]:
    """All operations of a module, by their numbers."""
    found: list[_Own] = []

    def read(operation: Any) -> Any:
        at = operation.location
        is_named = isinstance(at, ir.NameLoc)
        own = _Own(
            _escaped(at.name_str) if is_named else "",
            operation.name == "func.call" or bool(list(operation.regions)),
        )
        line = at.child_loc if is_named else at
        if isinstance(line, ir.FileLineColLoc):
            lines = line.start_line, line.end_line, line.start_col, line.end_col
            own = _Own(*own[:2], _escaped(line.filename), *lines)
        found.append(own)
        return ir.WalkResult.ADVANCE

    walk(module.operation, read)
    return found


def _escaped(text: str) -> str:
    """A text as XLA writes it between quotes."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return "".join([chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in text.encode()])
