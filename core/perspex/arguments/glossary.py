"""Descriptions of the parameters that many functions share.

`axis`, `dtype`, `out` or `key` mean the same in all functions of a module. A docstring describes
what is particular to its function; `describe`, called at the end of a module, adds the rest, so
that `?` shows every parameter and the source has each sentence once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_SECTIONS = ("Args:", "Returns:", "Raises:", "References:")


def describe(
    functions: Iterable[Any], words: Mapping[str, str], raises: str = "", returns: str = ""
) -> None:
    """Complete the docstrings of `functions`.

    Args:
      functions: functions, possibly decorated; the innermost one has the parameters.
      words: the description of each shared parameter, by its name; one line, or several of which
        the later ones are indented below the first.
      raises: the body of the section `Raises` for docstrings without one, such as
        "TypeError: for an argument that is not an array or a number."; a line for each error.
      returns: the body of the section `Returns` for docstrings without one.

    The parameters are described in the order of the signature. One that neither the docstring nor
    `words` describes is left out: a test finds it.
    """
    for function in functions:
        if function.__doc__:
            function.__doc__ = _completed(function, words, raises, returns)


def _completed(function: Any, words: Mapping[str, str], raises: str, returns: str) -> str:
    # By lines, and with no regular expression: a thousand functions are described at import.
    lines: list[str] = function.__doc__.split("\n")
    sections: dict[str, list[str]] = {}
    head: list[str] = []
    indent, at = "", head
    for number, line in enumerate(lines):
        text = line.lstrip()
        if text in _SECTIONS:
            indent = line[: -len(text)]
            at = sections[text] = []
        elif text.startswith(">>>"):
            indent = line[: -len(text)]
            tail = lines[number:]
            break
        else:
            at.append(line)
    else:
        last = at.pop().strip()  # the line of the closing quotes, or of a docstring of one line
        if last:
            at.append(last)
        tail = [indent]
    entries = _entries(sections.get("Args:", []), indent + "  ")
    code = _innermost(function).__code__
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        if name in entries:
            entries[name] = entries.pop(name)  # to its place in the order
        elif name in words:
            entries[name] = [f"{indent}  {name}: {_indented(words[name], indent + '    ')}"]
    if entries:
        seen: dict[int, list[str]] = {id(entry): entry for entry in entries.values()}
        sections["Args:"] = [line for entry in seen.values() for line in entry]
    if raises:
        starts = [x if _names_an_error(x) else f"  {x}" for x in raises.split("\n")]
        sections.setdefault("Raises:", [f"{indent}  {x}" for x in starts])
    if returns:
        sections.setdefault("Returns:", [f"{indent}  {_indented(returns, indent + '  ')}"])
    while not head[-1].strip():
        head.pop()
    out = [*head, ""]
    for title in _SECTIONS:
        if title in sections:
            body = sections[title]
            while not body[-1].strip():
                body.pop()
            out += [indent + title, *body, ""]
    return "\n".join(out + tail)


def _entries(lines: list[str], indent: str) -> dict[str, list[str]]:
    """The lines of each parameter; parameters that are described together share a list."""
    found: dict[str, list[str]] = {}
    entry: list[str] = []
    for line in lines:
        if line.startswith(indent) and line[len(indent) : len(indent) + 1] not in ("", " "):
            names, colon, _ = line.strip().partition(":")
            entry = [line]
            for name in names.split(", ") if colon else ():
                found[name.lstrip("*")] = entry
        elif line.strip():
            entry.append(line)
    return found


def _names_an_error(line: str) -> bool:
    return line.partition(":")[0].isidentifier() and ": " in line


def _indented(words: str, indent: str) -> str:
    return words.replace("\n", "\n" + indent)


def _innermost(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
