"""`if`, `and`, `not`, `assert` on a traced value, written so that the device chooses."""

from __future__ import annotations

import ast

from perspex.advice.branches import NO_ARRAYS, in_expression, in_statement
from perspex.advice.code import UNKNOWN, Place
from perspex.advice.conditions import logical, traced_test
from perspex.advice.story import Remedy
from perspex.advice.straight import a_name

# Python's own functions that ask an array whether it is true, and what to call instead.
_ON_TWO = {"max": "maximum", "min": "minimum"}
_ON_ALL = {"max": "max", "min": "min", "any": "any", "all": "all", "sorted": "sort"}


def choose(place: Place, is_scalar: bool) -> Remedy | None:
    """The remedy where a truth value was asked for; `None` if the code is of another form.

    For an array with axes, only its elements can choose.
    """
    found = _choose(place, is_scalar)
    if is_scalar or found is None or found.patch is None:
        return found
    return None if any(".cond(" in line for line in found.patch.after) else found


def _choose(place: Place, is_scalar: bool) -> Remedy | None:
    node, parent = place.node, place.parent
    if isinstance(node, ast.Call):
        return _builtin(place, node)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return _membership(place, node)
    # The test may be a part of the condition: `if not x`, `if x and y`.
    test: ast.expr = node
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        test, parent = parent, place.file.parents[parent]
    if isinstance(parent, (ast.If, ast.IfExp, ast.Assert)) and parent.test is test:
        condition = traced_test(place, test)
        if condition is None:
            return None
        if isinstance(parent, ast.IfExp):
            return in_expression(place, parent, condition)
        if isinstance(parent, ast.Assert):
            return _assertion(
                place, parent, condition if is_scalar else place.jnp("all", condition)
            )
        return in_statement(place, parent, condition)
    if isinstance(parent, (ast.While, ast.comprehension)):
        return None
    found = logical(place, test)
    if found is None:
        return None
    return Remedy("combine truth values element by element", place.edited(test, found))


def _assertion(place: Place, node: ast.Assert, condition: ast.expr) -> Remedy | None:
    message = node.msg
    if message is not None and not isinstance(message, ast.Constant):
        return None
    (check,) = place.file.fresh("check")
    (holds,) = place.file.fresh("holds")
    arguments = ast.arguments([], [ast.arg(holds)], None, [], [], None, [])
    body = ast.Assert(a_name(holds), message)
    definition = ast.FunctionDef(check, arguments, [body], [], lineno=0)
    debug = place.module("perspex.debug", "debug")
    call = place.call(debug, "callback", a_name(check), condition)
    patch = place.replaced(node, node, definition, ast.Expr(call))
    return Remedy("let the device call the check when it has the value", patch) if patch else None


def _builtin(place: Place, node: ast.Call) -> Remedy | None:
    """`max(x, 0)`, `any(x > 0)` and the like: Python's functions compare one by one."""
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        return None
    for table, fits in ((_ON_TWO, len(node.args) == 2), (_ON_ALL, len(node.args) == 1)):
        for name, ours in table.items():
            if fits and place.is_builtin(node.func, name):
                if table is _ON_ALL and not _is_array_now(place, node.args[0]):
                    return None
                call = place.jnp(ours, *node.args)
                why = f"`{ast.unparse(call.func)}` is the same on arrays"
                return Remedy(why, place.edited(node, call))
    return None


def _is_array_now(place: Place, node: ast.expr) -> bool:
    """Whether an argument is one array, and not a list or generator of several."""
    if isinstance(node, NO_ARRAYS):
        return False
    known = place.value(node)
    return known is UNKNOWN or hasattr(known, "dtype")


def _membership(place: Place, node: ast.Compare) -> Remedy | None:
    if len(node.ops) != 1 or getattr(place.parent, "test", None) is node:
        return None
    items = node.comparators[0]
    if not _is_our_array(place, items):
        if not _holds_numbers(place, items):
            return None
        items = place.jnp("asarray", items)
    same = ast.Compare(items, [ast.Eq()], [node.left])
    found: ast.expr = place.jnp("any", same)
    if isinstance(node.ops[0], ast.NotIn):
        found = place.jnp("logical_not", found)
    return Remedy("compare with all elements at once", place.edited(node, found))


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
