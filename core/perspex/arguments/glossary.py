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
_ERROR = re.compile(r"\w+: ")
_ENTRY = re.compile(r"^ +(\**\w+(?:, \**\w+)*):", re.MULTILINE)


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

    A parameter that neither the docstring nor `words` describes is left out: a test finds it.
    """
    for function in functions:
        if function.__doc__:
            function.__doc__ = _completed(function, words, raises, returns)


def _completed(function: Any, words: Mapping[str, str], raises: str, returns: str) -> str:
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
        lines = [f"{'' if _ERROR.match(x) else '  '}{x}" for x in raises.split("\n")]
        body = _indented("\n".join(lines), indent + "  ")
        text = _with_section(text, indent, "Raises", body, "References:$|>>>")
    if returns and "Returns" not in found:
        body = _indented(returns, indent + "  ")
        text = _with_section(text, indent, "Returns", body, "Raises:$|References:$|>>>")
    return text


def _with_section(text: str, indent: str, title: str, body: str, later: str) -> str:
    match = re.search(f"^ *({later})", text, re.MULTILINE)
    at = match.start() if match else len(text)
    return f"{text[:at].rstrip()}\n\n{indent}{title}:\n{indent}  {body}\n\n{text[at:]}"


def _indented(words: str, indent: str) -> str:
    return words.replace("\n", "\n" + indent)


def _innermost(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
