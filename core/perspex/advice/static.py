"""Arguments on which Python depends, marked static where their function is jitted."""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

from perspex.advice.code import UNKNOWN, File, Place, read_file
from perspex.advice.story import Patch, Remedy, Story
from perspex.base import source

Speller = Callable[[str, Sequence[str], bool], Patch | None]
"""How a notebook spells it; see `register_static_speller`."""

_spellers: list[Speller] = []
# Where Python's own modules are, and those that were installed.
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def register_static_speller(speller: Speller) -> Callable[[], None]:
    """Register how a notebook marks arguments static where it jits code itself.

    Args:
      speller: takes the file name of a cell, the names, and whether the names are those of a
        function defined there (and not what the cell itself reads). Returns the line to write
        instead of one of the cell's, or `None` where the cell is not jitted as a whole.

    Returns:
      A function that takes the speller away again.
    """
    _spellers.append(speller)
    return lambda: _spellers.remove(speller)


def mark_static(place: Place, story: Story | None) -> Remedy | None:
    """The remedy that lets Python know the value; `None` if its arguments cannot be static."""
    if story is None or not story.can_be_static or story.jitted is None:
        return None
    owner = story.jitted()
    if owner is None:
        return None
    names = [argument.name for argument in story.arguments]
    listed = " and ".join(f"`{name}`" for name in names)
    text = f"mark {listed} static: Python then knows the value, and each new value recompiles"
    fun = inspect.unwrap(owner.fun)
    code = getattr(fun, "__code__", None)
    patch = None
    if isinstance(code, CodeType):
        internal = source.is_internal(code.co_filename)
        patch = (None if internal else _in_code(place, fun, names)) or _spelled(place, code, names)
    if patch is None:
        value = ast.unparse(_keyword("static_argnames", names))
        text = f"mark {listed} static: pass `{value}` where `{owner.name}` is jitted"
    return Remedy(text, patch, static=tuple(names))


def _spelled(place: Place, code: CodeType, names: list[str]) -> Patch | None:
    if source.is_internal(code.co_filename):
        # A cell of statements, which a magic traces: the outermost of the user's files.
        files, is_function = list(_files(place.frame))[::-1], False
    else:
        files, is_function = [code.co_filename], True
    for file in files:
        for speller in _spellers:
            found = speller(file, names, is_function)
            if found is not None:
                return found
    return None


def _files(frame: FrameType) -> Iterator[str]:
    """The user's files that are running, innermost first, without those that run the user's."""
    at: FrameType | None = frame
    while at is not None:
        file = at.f_code.co_filename
        if not source.is_internal(file) and not file.startswith(INSTALLED):
            yield file
        at = at.f_back


def _in_code(place: Place, fun: Any, names: list[str]) -> Patch | None:
    """The decorator, or the call of `jit`, with the names added."""
    code = fun.__code__
    file = read_file(code.co_filename, fun.__globals__)
    definition = _definition(file, code)
    if definition is None:
        return None
    there = _Scope(fun.__globals__)
    if isinstance(definition, ast.FunctionDef):
        for decorator in definition.decorator_list:
            new = _with_names(there, decorator, names, fun)
            if new is not None:
                return file.edited(decorator, ast.unparse(ast.fix_missing_locations(new)))
    found = []
    for name in dict.fromkeys([code.co_filename, *_files(place.frame)]):
        at = file if name == code.co_filename else read_file(name)
        for node in at.nodes():
            if isinstance(node, ast.Call) and node.args and there.is_jit(node.func):
                inner = node.args[0]
                if inner is definition or (
                    isinstance(inner, ast.Name)
                    and isinstance(definition, ast.FunctionDef)
                    and inner.id == definition.name
                ):
                    found.append((at, node))
    if len(found) != 1:
        return None
    at, node = found[0]
    new = _with_names(there, node, names, fun)
    return at.edited(node, ast.unparse(ast.fix_missing_locations(new))) if new else None


def _definition(file: File, code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    arguments = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    found: list[ast.FunctionDef | ast.Lambda] = []
    for node in file.nodes():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            first = node.lineno
        else:
            continue
        spec = node.args
        given = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
        if first == code.co_firstlineno and given == arguments:
            found.append(node)
    return found[0] if len(found) == 1 else None


class _Scope:
    """The names where a function was written."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self.names.get(node.id, UNKNOWN)
        if isinstance(node, ast.Attribute):
            return getattr(self.value(node.value), node.attr, UNKNOWN)
        return UNKNOWN

    def is_jit(self, node: ast.expr) -> bool:
        """Whether an expression is our `jit`; by its name where nothing of that name is known."""
        found = self.value(node)
        if found is UNKNOWN:
            return isinstance(node, ast.Name) and node.id == "jit"
        return found is sys.modules["perspex.api.jit"].jit

    def is_partial(self, node: ast.expr) -> bool:
        found = self.value(node)
        return getattr(found, "__module__", "") == "functools" and found.__name__ == "partial"


def _with_names(there: _Scope, node: ast.expr, names: list[str], fun: Any) -> ast.expr | None:
    """`jit`, `jit(f, ...)` or `partial(jit, ...)` with the names static; `None` for all else."""
    if there.is_jit(node):
        return ast.Call(node, [], [_keyword("static_argnames", names)])
    if not isinstance(node, ast.Call):
        return None
    jits = there.is_jit(node.func) or (
        there.is_partial(node.func) and node.args and there.is_jit(node.args[0])
    )
    if not jits:
        return None
    keywords = []
    pending: Any = ("static_argnames", names)
    for keyword in node.keywords:
        if keyword.arg == "static_argnums":
            positions = list(inspect.signature(fun).parameters)
            numbers = [positions.index(name) for name in names]
            pending = ("static_argnums", numbers)
        if keyword.arg in ("static_argnums", "static_argnames"):
            try:
                known = ast.literal_eval(keyword.value)
            except ValueError:
                return None
            known = list(known) if isinstance(known, (list, tuple)) else [known]
            pending = (keyword.arg, known + [x for x in pending[1] if x not in known])
        else:
            keywords.append(keyword)
    if sum(k.arg in ("static_argnums", "static_argnames") for k in node.keywords) > 1:
        return None
    return ast.Call(node.func, node.args, [*keywords, _keyword(*pending)])


def _keyword(name: str, values: Sequence[Any]) -> ast.keyword:
    items: list[ast.expr] = [ast.Constant(value) for value in values]
    return ast.keyword(name, items[0] if len(items) == 1 else ast.Tuple(items, ast.Load()))
