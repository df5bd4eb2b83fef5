"""Makes one JavaScript module of several, because a widget takes one text.

The views in `static/` are plain ES modules, which the panel's TypeScript imports as they are. A
widget's entry file imports them, too; here the files that it needs are written one after another,
each once and before those that need it, with their imports and exports taken off. So the files keep
to what makes that sound: `import { a, b } from "./file.js";` is the only import, `export function`,
`export class` and `export const` the only exports of a file that others import, and no two files
define one name.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

STATIC = Path(__file__).parent / "static"

_IMPORT = re.compile(r'^import \{\s*([\w\s,]+?),?\s*\} from "\./([\w.-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_DEFINED = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let|var) (\w+)", re.M)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class ModuleError(Exception):
    """A file in `static/` does not keep to what makes joining the files sound."""


@functools.cache
def module(entry: str) -> str:
    """The text of one module which does what the file `entry` in `static/` does.

    Args:
      entry: the file's name; what it exports, the module exports.

    Raises:
      ModuleError: for another form of import or export, a name that is not exported where it is
        imported from, one that two files define, and for files that import each other in a circle.
    """
    files: dict[str, str] = {}
    _gather(entry, files, ())
    owners: dict[str, str] = {}
    parts = []
    for file, text in files.items():
        for name in _DEFINED.findall(text):
            if name in owners:
                raise ModuleError(f"`{name}` is defined by both {owners[name]} and {file}")
            owners[name] = file
        inside = _IMPORT.sub("", text)
        if file != entry:
            inside = _EXPORT.sub("", inside)
            if left := _LEFT.search(inside):
                raise ModuleError(f"{file}: cannot be joined to others: `{left[0]}`")
        elif (left := _LEFT.search(inside)) and left[0].startswith("import"):
            raise ModuleError(f"{file}: cannot be followed: `{left[0]}`")
        parts.append(f"// {file}\n{inside.strip()}\n")
    return "\n".join(parts)


def _gather(file: str, files: dict[str, str], above: tuple[str, ...]) -> None:
    """Put into `files` what `file` imports, and then itself."""
    if file in above:
        raise ModuleError("files import each other: " + " -> ".join([*above, file]))
    if file in files:
        return
    text = (STATIC / file).read_text(encoding="utf-8")
    for names, other in _IMPORT.findall(text):
        _gather(other, files, (*above, file))
        exported = set(_EXPORT.findall(files[other]))
        for name in re.split(r"[\s,]+", names):
            if name not in exported:
                raise ModuleError(f"{file}: {other} does not export `{name}`")
    files[file] = text
