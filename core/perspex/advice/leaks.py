"""Which statement put a traced value where it outlived its function."""

from __future__ import annotations

import ast

from perspex.advice.code import File, read_file
from perspex.advice.story import Story
from perspex.advice.straight import root_name
from perspex.base import source

_STORING = frozenset(
    ["append", "appendleft", "extend", "insert", "add", "update", "setdefault", "put"]
)


def stored_by(name: str, story: Story | None) -> str:
    """A sentence that names the statement which stored the value; empty if none is certain.

    Args:
      name: what the value is called where it was found, as in `kept[0]`, `model.w`.
      story: where it comes from.
    """
    if story is None or not name:
        return ""
    base = name.partition("[")[0].partition(".")[0]
    attribute = name.rpartition(".")[2]
    found = []
    for path in story.files:
        file = read_file(path)
        for node in file.nodes():
            if (
                isinstance(node, ast.stmt)
                and _stores(file, node, base, attribute)
                and _function(file, node) == story.function
            ):
                found.append((file, node))
    if len(found) != 1:
        return ""
    file, node = found[0]
    text = file.lines[node.lineno - 1].strip()
    return f"It was stored by `{text}` at {source.line_name(file.name, node.lineno)}."


def _function(file: File, node: ast.AST) -> str:
    scope = file.scope(node)
    return scope.name if isinstance(scope, ast.FunctionDef) else "<lambda>"


def _stores(file: File, node: ast.stmt, base: str, attribute: str) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr=method))):
            return method in _STORING and root_name(holder) in (base, "self")
        case ast.Assign(targets=[ast.Subscript(value=holder)]):
            return root_name(holder) in (base, "self")
        case ast.Assign(targets=[ast.Attribute(attr=attr)]):
            return attr == attribute
        case ast.Assign(targets=[ast.Name(id=target)]):
            return target == base and _is_outer(file, node, base)
    return False


def _is_outer(file: File, node: ast.stmt, name: str) -> bool:
    return any(
        isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names
        for n in ast.walk(file.scope(node))
    )
