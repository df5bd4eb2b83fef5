"""`if`, `and`, `not`, `assert` on a traced value, written so that the device chooses."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perspex.advice.branches import NO_ARRAYS, in_expression, in_statement
from perspex.advice.code import UNKNOWN, Place
from perspex.advice.conditions import logical, membership, traced_test
from perspex.advice.story import Remedy
from perspex.advice.straight import a_name

# Python's own functions that ask an array whether it is true, and what to call instead.
_ON_TWO = {"max": "maximum", "min": "minimum"}
_ON_ALL = {"max": "max", "min": "min", "any": "any", "all": "all", "sorted": "sort"}


def choose(place: Place, is_scalar: bool) -> list[Remedy]:
    """The remedies where a truth value was asked for, the best one first.

    For an array with axes, only its elements can choose.
    """
    found = [remedy for remedy in _choose(place, is_scalar) if remedy is not None]
    if is_scalar:
        return found
    return [
        remedy
        for remedy in found
        if remedy.patch and not any(".cond(" in line for line in remedy.patch.after)
    ]


def _choose(place: Place, is_scalar: bool) -> list[Remedy | None]:
    node, parent = place.node, place.parent
    # The test may be a part of the condition: `if not x`, `if x and y`.
    test: ast.expr = node
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        test, parent = parent, place.file.parents[parent]
    is_test = isinstance(parent, (ast.If, ast.IfExp, ast.Assert)) and parent.test is test
    calls: list[ast.Call] = []
    if isinstance(node, ast.Call):
        calls = [call for call in _builtin(place, node) if call is not None]
        if not is_test or isinstance(node.func, ast.Name) and node.func.id == "sorted":
            return [_same(place, node, call) for call in calls]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        found = membership(place, node)
        if found is None or not is_test:
            text = "compare with all elements at once"
            return [Remedy(text, place.edited(node, found))] if found else []
        calls = [found] if isinstance(found, ast.Call) else []
        is_scalar = True
    if is_test:
        remedies: list[Remedy | None] = []
        replaced: list[ast.Call | None] = [*calls] or [None]
        for call in replaced:
            place.instead = {} if call is None else {node: call}
            remedies += _under(place, parent, test, is_scalar or call is not None)
        return remedies
    if isinstance(parent, (ast.While, ast.comprehension)):
        return []
    combined = logical(place, test)
    if combined is None:
        return []
    return [
        Remedy("combine truth values element by element", place.edited(test, combined)),
    ]


def _under(
    place: Place, parent: ast.AST, test: ast.expr, is_scalar: bool
) -> Sequence[Remedy | None]:
    """The remedies for what stands under a test."""
    condition = traced_test(place, test)
    if condition is None:
        return []
    if isinstance(parent, ast.IfExp):
        return in_expression(place, parent, condition)
    if isinstance(parent, ast.If):
        return in_statement(place, parent, condition)
    assert isinstance(parent, ast.Assert)
    return [_assertion(place, parent, condition if is_scalar else place.jnp("all", condition))]


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


def _builtin(place: Place, node: ast.Call) -> Sequence[ast.Call | None]:
    """`max(x, 0)`, `any(x > 0)` and the like: Python's functions compare one by one."""
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return []
    name = next((n for n in _ON_ALL if place.is_builtin(node.func, n)), "")
    if name == "sorted" and len(node.args) == 1:
        return [_sorted(place, node)]
    if not name or node.keywords:
        return []
    if len(node.args) >= 2:
        return [_folded(place, name, node.args)]
    if len(node.args) != 1:
        return []
    (given,) = node.args
    if _is_array_now(place, given):
        return [place.jnp(_ON_ALL[name], given)]
    return _of_several(place, name, given)


def _same(place: Place, node: ast.Call, call: ast.Call | None) -> Remedy | None:
    if call is None:
        return None
    why = f"`{ast.unparse(call.func)}` is the same on arrays"
    return Remedy(why, place.edited(node, call))


def _sorted(place: Place, node: ast.Call) -> ast.Call | None:
    match node.keywords:
        case []:
            return place.jnp("sort", *node.args)
        case [ast.keyword(arg="reverse", value=ast.Constant(value=value))]:
            return place.jnp("sort", *node.args, descending=ast.Constant(bool(value)))
    return None


def _folded(place: Place, name: str, values: Sequence[ast.expr]) -> ast.Call | None:
    """`max(a, b, c)`, as calls of the function of two arrays."""
    if name not in _ON_TWO or len(values) < 2:
        return None
    found = place.jnp(_ON_TWO[name], values[0], values[1])
    for value in values[2:]:
        found = place.jnp(_ON_TWO[name], found, value)
    return found


def _of_several(place: Place, name: str, given: ast.expr) -> list[ast.Call | None]:
    """Of a list or generator: the elements of one array, or several values in one array."""
    match given:
        case ast.List(elts=values) | ast.Tuple(elts=values):
            found = _folded(place, name, values)
            return [found or place.jnp(_ON_ALL[name], place.jnp("stack", given))]
        case (
            ast.GeneratorExp(elt=value, generators=loops)
            | ast.ListComp(elt=value, generators=loops)
        ):
            inside = _substituted(place, value, loops)
            every = place.jnp("stack", ast.ListComp(value, loops))
            calls = [place.jnp(_ON_ALL[name], every)]
            return [*([place.jnp(_ON_ALL[name], inside)] if inside else []), *calls]
    return []


class _Substitution(ast.NodeTransformer):
    def __init__(self, name: str, new: ast.expr) -> None:
        self.name, self.new = name, new

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.new if node.id == self.name else node


# What computes an array from arrays, element by element.
_ELEMENTWISE = (ast.Compare, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant)


def _substituted(
    place: Place, value: ast.expr, loops: Sequence[ast.comprehension]
) -> ast.expr | None:
    """`v > 2 for v in x` as `x > 2`, if `x` is an array of one axis."""
    match loops:
        case [ast.comprehension(target=ast.Name(id=name), iter=array, ifs=[])]:
            pass
        case _:
            return None
    nodes = [n for n in ast.walk(value) if isinstance(n, ast.expr)]
    if len(getattr(place.value(array), "shape", ())) != 1:
        return None
    if not all(isinstance(n, _ELEMENTWISE) for n in nodes) or any(
        isinstance(n, ast.Compare) and len(n.ops) != 1 for n in nodes
    ):
        return None
    copied: ast.expr = ast.parse(ast.unparse(value), mode="eval").body
    found: ast.expr = _Substitution(name, array).visit(copied)
    return found


def _is_array_now(place: Place, node: ast.expr) -> bool:
    """Whether an argument is one array, and not a list or generator of several."""
    if isinstance(node, NO_ARRAYS):
        return False
    known = place.value(node)
    return known is UNKNOWN or hasattr(known, "dtype")
