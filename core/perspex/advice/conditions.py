"""Conditions on traced values: `and`, `or`, `not` and chains of comparisons, written for arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perspex.advice.code import Place

# What a condition or a value must not hold to be written elsewhere.
TOO_MUCH = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
# What a test asks of Python objects, mostly to guard what stands behind it.
_PYTHONS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def traced_test(place: Place, test: ast.expr) -> ast.expr | None:
    """A condition without `and`, `or`, `not` and chains; `None` if it also guards Python."""
    if test in place.instead:
        return place.instead[test]
    inside = [node for part in place.instead for node in ast.walk(part)]
    for node in ast.walk(test):
        if node in inside:
            continue
        if isinstance(node, TOO_MUCH):
            return None
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], _PYTHONS):
            return None
        if isinstance(node, ast.Call) and place.is_builtin(
            node.func, "isinstance", "hasattr", "callable", "len", "any", "all"
        ):
            return None
    if _is_logical(test):
        return logical(place, test)
    return test


def _is_logical(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.BoolOp)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        or (isinstance(node, ast.Compare) and len(node.ops) > 1)
    )


def _is_boolean(node: ast.expr) -> bool:
    """Whether an expression written without `and` and `not` is certain to be of booleans."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return _is_boolean(node.left) and _is_boolean(node.right)
    return isinstance(node, ast.Compare)


def logical(place: Place, node: ast.expr) -> ast.expr | None:
    """The same for arrays; `None` where the value is not a truth value, as in `y = a or b`."""
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        left, parts = node.left, []
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(ast.Compare(left, [op], [right]))
            left = right
        if any(isinstance(n, ast.Call) for n in ast.walk(node)):
            return None  # what stands in the middle is computed once
        return _joined(place, ast.And(), parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _plain(place, node.operand)
        return None if inner is None else place.jnp("logical_not", inner)
    if isinstance(node, ast.BoolOp):
        values = [_plain(place, value) for value in node.values]
        if any(value is None for value in values):
            return None
        found = [value for value in values if value is not None]
        in_test = _is_test(place, node)
        if not in_test and not all(_is_boolean(value) for value in found):
            return None
        return _joined(place, node.op, found)
    return None


def _plain(place: Place, node: ast.expr) -> ast.expr | None:
    if node in place.instead:
        return place.instead[node]
    return logical(place, node) if _is_logical(node) else node


def membership(place: Place, node: ast.Compare) -> ast.expr | None:
    """`x in items` as a comparison with all items; `None` if they are not numbers."""
    if len(node.ops) != 1:
        return None
    items = node.comparators[0]
    if not _is_our_array(place, items):
        if not _holds_numbers(place, items):
            return None
        items = place.jnp("asarray", items)
    found: ast.expr = place.jnp("any", ast.Compare(items, [ast.Eq()], [node.left]))
    return place.jnp("logical_not", found) if isinstance(node.ops[0], ast.NotIn) else found


def _is_our_array(place: Place, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        origin = getattr(place.value(node.func), "__module__", None) or ""
        return origin.partition(".")[0] == "perspex"
    return hasattr(place.value(node), "dtype")


def _holds_numbers(place: Place, node: ast.expr) -> bool:
    """Whether an expression is a list or tuple of numbers."""
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [place.value(item) for item in node.elts]
    else:
        known = place.value(node)
        items = list(known) if isinstance(known, (list, tuple)) else []
    return bool(items) and all(isinstance(item, (bool, int, float, complex)) for item in items)


def _is_test(place: Place, node: ast.expr) -> bool:
    parent = place.file.parents[node]
    if isinstance(parent, (ast.BoolOp, ast.UnaryOp)):
        return isinstance(parent, ast.UnaryOp) or _is_test(place, parent)
    return getattr(parent, "test", None) is node


def _joined(place: Place, op: ast.boolop, values: Sequence[ast.expr]) -> ast.expr:
    both = isinstance(op, ast.And)
    joined = values[0]
    for value in values[1:]:
        if _is_boolean(joined) and _is_boolean(value):
            joined = ast.BinOp(joined, ast.BitAnd() if both else ast.BitOr(), value)
        else:
            joined = place.jnp("logical_and" if both else "logical_or", joined, value)
    return joined
