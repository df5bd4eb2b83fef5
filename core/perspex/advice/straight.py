"""Names in the user's code; statements in a row that do no more than assign to them."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def a_name(name: str) -> ast.Name:
    """A name that is read. Before Python 3.13 its context has no default."""
    return ast.Name(name, ast.Load())


def only_assigns(statements: Sequence[ast.stmt]) -> bool:
    """Whether all statements give values to names, and do nothing else."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=targets):
                if not all(_is_names(target) for target in targets):
                    return False
            case (
                ast.AugAssign(target=ast.Name())
                | ast.AnnAssign(target=ast.Name(), value=ast.expr())
            ):
                pass
            case ast.Pass():
                pass
            case _:
                return False
        if any(isinstance(n, (ast.NamedExpr, ast.Yield, ast.Await)) for n in ast.walk(statement)):
            return False
    return True


def _is_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(isinstance(item, ast.Name) for item in target.elts)
    return isinstance(target, ast.Name)


def assigned(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that statements assign, in order."""
    found = [
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return list(dict.fromkeys(found))


def needed_from_outside(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements in a row read before they assign them."""
    needed: set[str] = set()
    known: set[str] = set()
    for statement in statements:
        needed |= loads(statement) - known
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            needed |= {statement.target.id} - known
        known |= set(assigned([statement]))
    return needed


def loads(node: ast.AST) -> set[str]:
    """The names that are read somewhere in a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def root_name(node: ast.expr) -> str:
    """The name at the beginning of `a.b[c]`; nothing where there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
