"""Descriptions of the parameters that many functions share.

`axis`, `dtype`, `out` or `key` mean the same in all functions of a module. A docstring describes
what is particular to its function; `describe`, called at the end of a module, adds the rest, so
that `?` shows every parameter and the source has each sentence once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SECTION = re.compile(r"^( *)(Args|Returns|Raises|References):$|^( *)>>>", re.MULTILINE)
_ENTRY = re.compile(r"^ +(\**\w+(?:, \**\w+)*):", re.MULTILINE)


def describe(functions: Iterable[Any], words: Mapping[str, str], raises: str = "") -> None:
    """Complete the docstrings of `functions`.

    Args:
      functions: functions, possibly decorated; the innermost one has the parameters.
      words: the description of each shared parameter, by its name; one line, or several of which
        the later ones are indented below the first.
      raises: the body of the section `Raises` for docstrings without one, such as
        "TypeError: for an argument that is not an array or a number."

    A parameter that neither the docstring nor `words` describes is left out: a test finds it.
    """
    for function in functions:
        if function.__doc__:
            function.__doc__ = _completed(function, words, raises)


def _completed(function: Any, words: Mapping[str, str], raises: str) -> str:
    text: str = function.__doc__
    found = {match[2] or ">>>": match for match in reversed(list(_SECTION.finditer(text)))}
    first = min((match.start() for match in found.values()), default=len(text))
    indent = next((match[1] or match[3] or "" for match in found.values()), "")
    given: set[str] = set()
    end = first  # of the section `Args`, where missing entries go
    if "Args" in found:
        start = found["Args"].end()
        end = min([m.start() for m in found.values() if m.start() > start], default=len(text))
        for match in _ENTRY.finditer(text, start, end):
            given.update(name.lstrip("*") for name in match[1].split(", "))
    code = _innermost(function).__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    entries = "".join(
        f"{indent}  {name}: {_indented(words[name], indent + '    ')}\n"
        for name in parameters
        if name in words and name not in given
    )
    if entries and "Args" in found:
        text = f"{text[:end].rstrip()}\n{entries}\n{text[end:]}"
    elif entries:
        text = f"{text[:first].rstrip()}\n\n{indent}Args:\n{entries}\n{text[first:]}"
    if raises and "Raises" not in found:
        below = re.search(r"^ *(References:$|>>>)", text, re.MULTILINE)
        at = below.start() if below else len(text)
        body = _indented(raises, indent + "    ")
        text = f"{text[:at].rstrip()}\n\n{indent}Raises:\n{indent}  {body}\n\n{text[at:]}"
    return text


def _indented(words: str, indent: str) -> str:
    return words.replace("\n", "\n" + indent)


def _innermost(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
