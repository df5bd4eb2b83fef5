"""What has to run to see whether a remedy works: the user's code from the rewritten line on.

A remedy that is shown must run where the user pastes it. So the lines of its patch are put into the
file, and what follows them in the same function is compiled as a function of the names that it
would find there. Nothing is run here: `tracing.trials` runs it, and keeps its effects away.
"""

from __future__ import annotations

import ast
from types import CodeType, FrameType
from typing import Any, NamedTuple

from perspex.advice.code import File, Place, read_file
from perspex.advice.story import Patch, Story

NAME = "remedy"
"""What the function is called that runs in the place of the user's."""

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_BLOCKS = ("body", "orelse", "finalbody")


class Rest(NamedTuple):
    """The user's code from the rewritten line on.

    `code` is that of a module. If it is part of a function, the module defines `NAME`, a function
    of `names` inside of one of `outer`; else it is what is left of a cell. `frame` has the values.
    `until` is the last line of the remedy.
    """

    code: CodeType
    frame: FrameType
    names: tuple[str, ...]
    outer: tuple[str, ...]
    is_cell: bool
    until: int


def rest_of(place: Place, patch: Patch, begin: bool = False) -> Rest | None:
    """What runs after a patch; `None` where the patch is elsewhere or does not compile.

    From the function's `begin` on, where a loop around the line has changed its names by now.
    """
    frame = _own_frame(place.frame)
    if patch.file != place.file.name or frame is None:
        return None
    scope = place.file.scope(place.node)
    new = File(
        patch.file,
        [*place.file.lines[: patch.first - 1], *patch.after, *place.file.lines[patch.last :]],
    )
    same = _same_scope(new, scope)
    if same is None:
        return None
    last = patch.first + len(patch.after) - 1
    if isinstance(same, ast.Lambda):
        left: list[ast.stmt] = [ast.copy_location(ast.Return(same.body), same.body)]
    else:
        assert isinstance(same, (ast.FunctionDef, ast.Module))
        left = same.body if begin else _from(same.body, patch.first)
    imports = ast.parse("\n".join(patch.imports)).body
    is_cell = isinstance(same, ast.Module)
    names, outer = _given(frame, same, begin)
    module = ast.Module([*imports, *left] if is_cell else [], [])
    if not is_cell:
        declared = [n for n in ast.walk(same) if isinstance(n, ast.Global)]
        module.body = [_nested(names, outer, [*declared[:1], *imports, *left])]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in ast.walk(module)):
        return None
    code = compile(ast.fix_missing_locations(module), patch.file, "exec")
    return Rest(code, frame, names, outer, is_cell, last)


def cell_text(file: str) -> ast.Module | None:
    """The statements of a cell, without the magics above them."""
    return read_file(file).tree


def call_of(frame: FrameType | None, story: Story) -> tuple[Any, tuple[Any, ...], Any] | None:
    """What is being jitted, and the arguments that it was called with.

    `jit` traces a function while it handles a call, so the call is on the stack.
    """
    owner = story.jitted() if story.jitted is not None else None
    while frame is not None and owner is not None:
        if frame.f_code.co_name == "miss" and frame.f_locals.get("self") is owner:
            return owner, frame.f_locals["args"], frame.f_locals["kwargs"]
        frame = frame.f_back
    return None


def _own_frame(frame: FrameType) -> FrameType | None:
    """The frame of the function around a comprehension, which has one of its own before 3.12."""
    file, at = frame.f_code.co_filename, frame
    while at.f_code.co_name in _COMPREHENSIONS or at.f_code.co_filename != file:
        if at.f_back is None:
            return None
        at = at.f_back
    return at


def _same_scope(new: File, scope: ast.AST) -> ast.AST | None:
    if isinstance(scope, ast.Module):
        return new.tree
    where = getattr(scope, "lineno", 0), getattr(scope, "col_offset", 0)
    for node in new.nodes():
        is_alike = isinstance(node, (ast.FunctionDef, ast.Lambda)) and type(node) is type(scope)
        if is_alike and where == (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)):
            return node
    return None


def _from(block: list[ast.stmt], line: int) -> list[ast.stmt]:
    """The statements of a block from a line on; of a loop around it, the rest of one turn."""
    for i, statement in enumerate(block):
        if (statement.end_lineno or statement.lineno) < line:
            continue
        if statement.lineno >= line:
            return block[i:]
        for inner in _inner_blocks(statement):
            if inner[0].lineno <= line <= (inner[-1].end_lineno or 0):
                left = _from(inner, line)
                if isinstance(statement, (ast.For, ast.While)):
                    once = ast.Tuple([ast.Constant(0)], ast.Load())
                    left = [ast.For(ast.Name("_", ast.Store()), once, left, [], lineno=line)]
                return [*left, *block[i + 1 :]]
        return block[i:]
    return []


def _inner_blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(statement, name, []) for name in _BLOCKS]
    found += [handler.body for handler in getattr(statement, "handlers", [])]
    found += [case.body for case in getattr(statement, "cases", [])]
    return [block for block in found if block]


def _given(
    frame: FrameType, scope: ast.AST, begin: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that the function finds bound: its own, and those of functions around it."""
    if isinstance(scope, ast.Module):
        return (), ()
    code, bound = frame.f_code, frame.f_locals
    own = dict.fromkeys([*code.co_varnames, *code.co_cellvars])
    if begin and isinstance(scope, (ast.FunctionDef, ast.Lambda)):
        given = {n.arg for n in ast.walk(scope.args) if isinstance(n, ast.arg)}
        own = {name: None for name in own if name in given}
    outer = [name for name in code.co_freevars if name in bound]
    return tuple([n for n in own if n in bound and n.isidentifier()]), tuple(outer)


def _nested(names: tuple[str, ...], outer: tuple[str, ...], body: list[ast.stmt]) -> ast.stmt:
    """`def NAME(outer): def NAME(names): body`, so that `super()` and closures are as they were."""

    def function(names: tuple[str, ...], body: list[ast.stmt]) -> ast.FunctionDef:
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        return ast.FunctionDef(NAME, arguments, body, [], lineno=1)

    inner = function(names, body or [ast.Pass()])
    return function(outer, [inner, ast.Return(ast.Name(NAME, ast.Load()))])
