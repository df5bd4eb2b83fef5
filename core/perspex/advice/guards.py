"""Operands that must be chosen before an operation, so that the gradient of a choice is not NaN.

`jnp.where(x > 0, jnp.sqrt(x), 0)` has the right values. Its gradient at 0 is NaN: the derivative of
the root there is infinite, and infinity times the zero of the value not chosen is NaN. The remedy
is to choose the operand first: `jnp.sqrt(jnp.where(x > 0, x, 1))`.
"""

from __future__ import annotations

import ast
import copy

from perspex.advice.code import Place
from perspex.advice.straight import loads

GUARDED = (
    "The inner one chooses the operand first: where the outer one does not choose the value, its "
    "gradient would be NaN"
)
# At these numbers the functions have a derivative.
_SAFE = {
    "sqrt": 1,
    "log": 1,
    "log2": 1,
    "log10": 1,
    "reciprocal": 1,
    "power": 1,
    "rsqrt": 1,
    "log1p": 0,
    "arcsin": 0,
    "arccos": 0,
    "arctanh": 0,
    "arccosh": 2,
    "divide": 1,
    "true_divide": 1,
}
_OF_SECOND = ("divide", "true_divide")


def guarded(place: Place, value: ast.expr, condition: ast.expr) -> ast.expr:
    """A value whose operations have operands with a derivative wherever it is not chosen."""
    parts = [node for node in ast.walk(value) if isinstance(node, ast.expr)]
    found = [i for i, node in enumerate(parts) if _operand(place, node) is not None]
    if not found:
        return value
    # Names inside of functions are others than those outside.
    if any(isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp)) for node in parts):
        return value
    # The innermost first: what they are part of is then found in the copy.
    new = copy.deepcopy(value)
    copied = [node for node in ast.walk(new) if isinstance(node, ast.expr)]
    for i in reversed(found):
        operand = _operand(place, parts[i])
        if operand is None:
            continue
        safe, number = operand
        inner = copied[parts.index(safe)]
        guard = place.jnp("where", condition, inner, ast.Constant(number))
        for name, field in ast.iter_fields(copied[i]):
            if field is inner:
                setattr(copied[i], name, guard)
            elif isinstance(field, list):
                setattr(copied[i], name, [guard if item is inner else item for item in field])
    return new


def is_guard(node: ast.AST) -> bool:
    """Whether a node is a choice of an operand."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "where"
        and isinstance(node.args[-1], ast.Constant)
        and node.args[-1].value in (0, 1, 2)
        and type(node.args[-1].value) is int
    )


def _operand(place: Place, node: ast.expr) -> tuple[ast.expr, int] | None:
    """The operand of an operation without a derivative everywhere, and a number that has one."""
    match node:
        case ast.BinOp(op=ast.Div(), right=operand):
            found = operand, 1
        case ast.BinOp(left=operand, op=ast.Pow(), right=power):
            if isinstance(power, ast.Constant) and power.value in (1, 2, 3, 4):
                return None
            found = operand, 1
        case ast.Call(func=function, args=[first, *rest]):
            known = place.value(function)
            name = getattr(known, "__name__", "")
            home = str(getattr(known, "__module__", "")).partition(".")[0]
            if name not in _SAFE or home not in ("perspex", "numpy", "math"):
                return None
            if name in _OF_SECOND and not rest:
                return None
            found = rest[0] if name in _OF_SECOND else first, _SAFE[name]
        case _:
            return None
    return found if loads(found[0]) else None
