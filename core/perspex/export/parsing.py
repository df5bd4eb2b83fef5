"""Symbolic dimensions as text: `a, 2*b + 1, floordiv(c, 2), ...`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from perspex.export.expressions import OPERATIONS, Size, operation, variable


def parse(text: str, scope: Any, like: Sequence[Size] | None) -> tuple[Size, ...]:
    """The sizes in a text; `_` and `...` stand for those in `like`. Raises `ValueError`."""
    inner = text.strip()
    try:
        body = ast.parse(f"({inner.replace('^', '**')})", mode="eval").body if inner else None
    except SyntaxError:
        raise _syntax_error(text, "it is no list of expressions") from None
    if body is None or (isinstance(body, ast.Tuple) and not body.elts):
        nodes: list[ast.expr] = []
    else:
        nodes = body.elts if isinstance(body, ast.Tuple) else [body]
    is_rest = [isinstance(n, ast.Constant) and n.value is ... for n in nodes]
    if any(is_rest):
        if is_rest.index(True) != len(nodes) - 1:
            raise _syntax_error(text, "'...' must be at the end")
        if like is None:
            raise _like_missing(text, "...")
        rest = list(like[len(nodes) - 1 :])
        nodes = nodes[:-1]
    else:
        rest = []
        if like is not None and len(like) != len(nodes):
            raise ValueError(
                f"polymorphic shape {text!r} of rank {len(nodes)} must match the rank {len(like)} "
                f"of the argument shape {tuple(like)}"
            )
    sizes = []
    for i, node in enumerate(nodes):
        if isinstance(node, ast.Name) and node.id == "_":
            if like is None:
                raise _like_missing(text, "_")
            if i >= len(like):
                raise ValueError(
                    f"polymorphic shape {text!r} has more dimensions than the argument shape "
                    f"{tuple(like)}"
                )
            sizes.append(like[i])
            continue
        size = _value(node, scope, text)
        if like is not None and isinstance(size, int) and i < len(like) and like[i] != size:
            raise ValueError(
                f"polymorphic shape {text!r} in axis {i} has the size {size}, which does not match "
                f"the argument shape {tuple(like)}"
            )
        sizes.append(size)
    return tuple(sizes) + tuple(rest)


def _like_missing(text: str, placeholder: str) -> ValueError:
    return ValueError(
        f"polymorphic shape {text!r} has the placeholder {placeholder!r}; pass `like` with the "
        "shape that it stands for"
    )


def _syntax_error(text: str, detail: str) -> ValueError:
    return ValueError(
        f"syntax error in symbolic shape {text!r}: {detail}. A dimension is a number, a name, or "
        "made of these by +, -, *, floordiv(e1, e2), mod(e1, e2), max(e1, e2) and min(e1, e2)"
    )


def _value(node: ast.expr, scope: Any, text: str) -> Size:
    def value(inner: ast.expr) -> Size:
        return _value(inner, scope, text)

    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and re.fullmatch(r"[^\W\d_]\w*", node.id):
        if node.id in OPERATIONS:
            raise _syntax_error(text, f"{node.id} takes two operands")
        return variable(node.id, scope)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand)
    if isinstance(node, ast.BinOp):
        one, two = value(node.left), value(node.right)
        if isinstance(node.op, ast.Add):
            return one + two
        if isinstance(node.op, ast.Sub):
            return one - two
        if isinstance(node.op, ast.Mult):
            return one * two
        if isinstance(node.op, ast.Pow) and isinstance(two, int) and two >= 0:
            return one**two
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        name = ast.unparse(node.func)
        if name in OPERATIONS:
            return operation(name, value(node.args[0]), value(node.args[1]), scope)
    raise _syntax_error(text, f"{ast.unparse(node)!r} is no dimension")
