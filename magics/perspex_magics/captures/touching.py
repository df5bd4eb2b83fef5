"""Which statements of a cell may change something that their form does not show.

`set_rate(0.1)` assigns a global inside of a function, `exec(text)` anything. What a notebook's
functions do is known from their code; a statement that names one that writes is followed by a look
at all that is watched. Such a statement is recognized by the words in its lines. A cell without
such words costs next to nothing.
"""

from __future__ import annotations

import ast
import dis
import re
import types
from collections.abc import Collection, Iterable, Mapping

from perspex_magics.captures.codes import WRITING, known_code
from perspex_magics.notebook.kinds import is_a
from perspex_magics.notebook.names import blocks, statements

# By these names code changes variables and attributes that are not named in it.
BY_NAME = frozenset({"exec", "globals", "setattr", "delattr", "patch", "vars", "__dict__"})
# Methods that change their object. A statement that does nothing else is known by its form.
_METHODS = (WRITING - {"write"}) | {"remove", "discard", "clear"}
_WORDS = BY_NAME | _METHODS
_WORD = re.compile(r"\w+")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR"}
# What the lines of a function show that assigns something which is not its own.
_WRITES = re.compile(
    r"\b(?:global|nonlocal|exec|globals|setattr)\b|(?:\]|\.\w+)\s*[-+*/|&@]?=[^=]"
    r"|\.(?:append|add|extend|insert|update|clear)\("
)


def is_writing(code: types.CodeType) -> bool:
    """Whether code may change something other than its own variables.

    >>> is_writing((lambda x: x + 1).__code__), is_writing((lambda s: s.append(1)).__code__)
    (False, True)
    """
    if known_code(code).stored or not _WORDS.isdisjoint(code.co_names):
        return True
    if any(each.opname in _STORES for each in dis.get_instructions(code)):
        return True
    return any(is_writing(part) for part in code.co_consts if is_a(part, types.CodeType))


class Function:
    """A function or a class of the notebook: what it reads, and which words in a cell call it."""

    __slots__ = ("reads", "words")

    def __init__(self, name: str, codes: Mapping[str, types.CodeType], is_class: bool) -> None:
        self.reads = frozenset[str]().union(*[known_code(code).reads for code in codes.values()])
        called = {
            member if is_class and not member.startswith("__") else name
            for member, code in codes.items()
            if member != "__init__" and is_writing(code)
        }
        self.words = frozenset(called)


def writing_words(functions: Mapping[str, Function]) -> frozenset[str]:
    """The words of all that write, also of those that call others that do."""
    words = frozenset[str]().union(*[each.words for each in functions.values()])
    while True:
        more = {name for name, each in functions.items() if not words.isdisjoint(each.reads)}
        if more <= words:
            return words
        words |= more


def touching(body: list[ast.stmt], text: str, words: Collection[str]) -> set[ast.stmt]:
    """The statements of a cell that may change something which their form does not show.

    Args:
      body: the cell's tree.
      text: its text.
      words: those of `writing_words`.
    """
    hot = {word for word in (*_WORDS, *words) if word in text}
    if "def " in text:
        hot |= _defined(body, text)
    if not hot:
        return set()
    lines = text.split("\n")
    found = set()
    for node in statements(body):
        if isinstance(node, _DEFINITIONS):
            continue
        inside = blocks(node)
        end = max(inside[0][0].lineno - 1, node.lineno) if inside else node.end_lineno
        here = hot.intersection(_WORD.findall("\n".join(lines[node.lineno - 1 : end])))
        if here and not (here <= _METHODS and _is_call_of_method(node)):
            found.add(node)
    return found


def _defined(body: Iterable[ast.stmt], text: str) -> set[str]:
    """The functions and classes that the cell defines and that write, as their lines look."""
    lines = text.split("\n")
    found: set[str] = set()
    for node in body:
        if isinstance(node, _DEFINITIONS) and _WRITES.search(
            "\n".join(lines[node.lineno - 1 : node.end_lineno])
        ):
            found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def _is_call_of_method(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    )
