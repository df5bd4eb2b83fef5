"""`while` and `for i in range(n)` with a traced value, written as loops of the device."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

import numpy as np

from perspex.advice.code import UNKNOWN, Place
from perspex.advice.conditions import traced_test
from perspex.advice.story import Remedy
from perspex.advice.straight import a_name, assigned, loads, needed_from_outside, only_assigns

# Functions of one or two arrays whose results have the dtype of floating arguments.
_ELEMENTWISE = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "cbrt",
        "reciprocal",
        "square",
        "abs",
        "absolute",
        "negative",
        "maximum",
        "minimum",
        "add",
        "subtract",
        "multiply",
        "divide",
    ]
)
_ORDER = "biufc"


class Kind(NamedTuple):
    """What a loop must keep of a value. `dtype` is empty for a Python number, which is weak."""

    category: str
    dtype: str
    shape: tuple[int, ...]


def while_loop(place: Place) -> Remedy | None:
    """The remedy for a `while` on a traced value; `None` if its code is of another form."""
    test: ast.AST = place.node
    while not isinstance(test, ast.stmt) and not isinstance(place.file.parents[test], ast.While):
        test = place.file.parents[test]
    loop = place.file.parents.get(test)
    if not isinstance(loop, ast.While) or loop.test is not test or loop.orelse:
        return None
    condition = traced_test(place, loop.test)
    if condition is None or not only_assigns(loop.body):
        return None
    carried = _carried(place, loop, loads(loop.test))
    if carried is None:
        return None
    starts = _starts(place, loop, carried)
    if starts is None:
        return None
    single = len(carried) == 1 and len(loop.body) == 1
    names = _tuple(carried)
    result: ast.expr
    new: list[ast.stmt] = []
    if single and (step := _step(loop.body[0])) is not None:
        cond = _lambda(carried, condition)
        body = _lambda(carried, step)
        result = place.lax("while_loop", cond, body, starts[0])
    else:
        goes_on, turn, carry = place.file.fresh("goes_on", "turn", "carry")
        unpack = ast.Assign([names], a_name(carry))
        new = [
            _function(goes_on, [carry], [unpack, ast.Return(condition)]),
            _function(turn, [carry], [unpack, *loop.body, ast.Return(names)]),
        ]
        start = starts[0] if len(carried) == 1 else ast.Tuple(starts, ast.Load())
        result = place.lax("while_loop", a_name(goes_on), a_name(turn), start)
    patch = place.replaced(loop, loop, *new, ast.Assign([names], result))
    text = f"`{ast.unparse(result.func)}` repeats on the device"
    return Remedy(text, patch, is_loop=True) if patch else None


def fori_loop(place: Place) -> Remedy | None:
    """The remedy for `for i in range(n)` with a traced `n`."""
    loop = place.parent
    call = place.node
    if not isinstance(loop, ast.For) or loop.iter is not call or not isinstance(call, ast.Call):
        return None
    if not isinstance(loop.target, ast.Name) or loop.orelse or not only_assigns(loop.body):
        return None
    if call.keywords or not 1 <= len(call.args) <= 2:
        return None
    index = loop.target.id
    carried = _carried(place, loop, set())
    if carried is None or index in carried or index in assigned(loop.body):
        return None
    starts = _starts(place, loop, carried, {index: Kind("i", "", ())})
    if starts is None or not carried:
        return None
    begin = call.args[0] if len(call.args) == 2 else ast.Constant(0)
    names = _tuple(carried)
    new: list[ast.stmt] = []
    step = _step(loop.body[0]) if len(loop.body) == len(carried) == 1 else None
    body: ast.expr
    if step is not None:
        body = _lambda([index, *carried], step)
    else:
        turn, carry = place.file.fresh("turn", "carry")
        unpack = ast.Assign([names], a_name(carry))
        new = [_function(turn, [index, carry], [unpack, *loop.body, ast.Return(names)])]
        body = a_name(turn)
    start = starts[0] if len(carried) == 1 else ast.Tuple(starts, ast.Load())
    result = place.lax("fori_loop", begin, call.args[-1], body, start)
    patch = place.replaced(loop, loop, *new, ast.Assign([names], result))
    text = f"`{ast.unparse(result.func)}` repeats on the device"
    return Remedy(text, patch, is_loop=True) if patch else None


def _step(statement: ast.stmt) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value):
            return value
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            return ast.BinOp(a_name(name), op, value)
    return None


def _lambda(names: list[str], value: ast.expr) -> ast.Lambda:
    return ast.Lambda(_arguments(names), value)


def _function(name: str, names: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    return ast.FunctionDef(name, _arguments(names), body, [], lineno=0)


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _tuple(names: list[str]) -> ast.expr:
    if len(names) == 1:
        return a_name(names[0])
    return ast.Tuple([a_name(name) for name in names], ast.Load())


# ---- What a loop carries ------------------------------------------------------------------------


def _carried(place: Place, loop: ast.While | ast.For, asked: set[str]) -> list[str] | None:
    """The names that one turn passes to the next, or to the code after the loop.

    `None` if one of them has no value before the loop.
    """
    if not all(place.is_local(name) for name in assigned([loop])):
        return None
    scope = place.file.scope(loop)
    inside = {id(n) for n in ast.walk(loop)}
    after = {
        n.id
        for n in ast.walk(scope)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in inside
        # In a loop around this one, what stands before it may run after it.
        if n.lineno > loop.lineno or _in_loop(place, loop)
    }
    wanted = asked | needed_from_outside(loop.body) | after
    carried = [name for name in assigned(loop.body) if name in wanted]
    before = {
        n.id
        for n in ast.walk(scope)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.lineno < loop.lineno
    }
    if isinstance(scope, (ast.FunctionDef, ast.Lambda)):
        before |= {n.arg for n in ast.walk(scope.args) if isinstance(n, ast.arg)}
    else:
        before |= set(place.frame.f_globals) - set(assigned(loop.body))
        before |= {name for name in carried if name in needed_from_outside(loop.body) | asked}
    return carried if set(carried) <= before else None


def _in_loop(place: Place, loop: ast.stmt) -> bool:
    return any(isinstance(n, (ast.While, ast.For)) for n in place.file.ancestors(loop))


def _starts(
    place: Place, loop: ast.While | ast.For, carried: list[str], also: dict[str, Kind] | None = None
) -> list[ast.expr] | None:
    """What each carried name begins with; `None` unless its type is certain to stay the same."""
    kinds = {**_kinds(place), **(also or {})}
    for name in carried:
        constant = _constant_before(place, loop, name)
        if constant is not None:
            kinds[name] = constant
    if any(name not in kinds for name in carried):
        return None
    first = {name: kinds[name] for name in carried}
    widened: set[str] = set()
    # A Python number that becomes floating in a turn begins as a floating number instead.
    for _ in range(len(carried) + 1):
        after = _after(place, loop.body, kinds)
        if after is None:
            return None
        changed = False
        for name in carried:
            was, now = kinds[name], after.get(name)
            if now is None or now.shape != was.shape:
                return None
            if now.category != was.category:
                if first[name].dtype or was.category not in "bi" or now.category != "f":
                    return None
                kinds[name] = Kind("f", now.dtype, ())
                widened.add(name)
                changed = True
            elif was.dtype and now.dtype != was.dtype:
                return None
        if not changed:
            break
    return [
        ast.Call(a_name("float"), [a_name(name)], []) if name in widened else a_name(name)
        for name in carried
    ]


def _constant_before(place: Place, loop: ast.stmt, name: str) -> Kind | None:
    """The kind of a number that a name is given in a statement before the loop, if it is."""
    block = place.file.block(loop)
    for statement in reversed(block[: block.index(loop)]):
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=ast.Constant(value=value)):
                if found == name:
                    return _kind_of(value)
        if name in assigned([statement]):
            return None
    return None


def _kinds(place: Place) -> dict[str, Kind]:
    values = {**place.frame.f_globals, **place.frame.f_locals}
    found = {name: _kind_of(value) for name, value in values.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _kind_of(value: Any) -> Kind | None:
    if isinstance(value, (bool, int, float, complex)):
        return Kind(np.dtype(type(value)).kind, "", ())
    # Attributes of the user's own objects may be code.
    if not type(value).__module__.startswith(("perspex", "jaxlib")):
        return None
    aval: Any = getattr(value, "aval", None)
    if isinstance(getattr(aval, "dtype", None), np.dtype):
        return Kind(aval.dtype.kind, "" if aval.weak_type else aval.dtype.name, aval.shape)
    return None


def _after(place: Place, body: list[ast.stmt], before: dict[str, Kind]) -> dict[str, Kind] | None:
    kinds = dict(before)
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = _kind(place, value, kinds)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                kind = _kind(place, ast.BinOp(a_name(name), op, value), kinds)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(
                names
            ) == len(values):
                found = [_kind(place, value, kinds) for value in values]
                for target, kind in zip(names, found, strict=True):
                    if kind is None or not isinstance(target, ast.Name):
                        return None
                    kinds[target.id] = kind
                continue
            case ast.Pass():
                continue
            case _:
                return None
        if kind is None:
            return None
        kinds[name] = kind
    return kinds


def _kind(place: Place, node: ast.expr, kinds: dict[str, Kind]) -> Kind | None:
    """The kind of an expression; `None` where it is not certain."""
    match node:
        case ast.Constant(value=value):
            return _kind_of(value)
        case ast.Name(id=name):
            return kinds.get(name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _kind(place, operand, kinds)
        case ast.BinOp(left=left, op=op, right=right):
            both = _kind(place, left, kinds), _kind(place, right, kinds)
            if both[0] is None or both[1] is None:
                return None
            if isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
                return _common(both[0], both[1])
            if isinstance(op, ast.Div):
                return _floating(_common(both[0], both[1]))
            if isinstance(op, ast.Pow) and isinstance(right, ast.Constant):
                positive = isinstance(right.value, int) and right.value > 0
                return both[0] if positive else None
        case ast.Call(func=function, args=args, keywords=[]) if 1 <= len(args) <= 2:
            name = getattr(place.value(function), "__name__", "")
            known = place.value(function) is not UNKNOWN and name in _ELEMENTWISE
            given = [_kind(place, arg, kinds) for arg in args]
            if known and given[0] is not None and given[-1] is not None:
                common = _common(given[0], given[-1])
                return common if common and common.category == "f" else None
        case ast.Compare() | ast.Subscript() | ast.Attribute():
            return None
    return None


def _common(a: Kind, b: Kind) -> Kind | None:
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None
    strong = [kind for kind in (a, b) if kind.dtype]
    category = max(a.category, b.category, key=_ORDER.index)
    if category == "b" or len({kind.dtype for kind in strong}) > 1:
        return None
    if strong and strong[0].category != category:
        return None
    return Kind(category, strong[0].dtype if strong else "", shape)


def _floating(kind: Kind | None) -> Kind | None:
    if kind is None or kind.category == "f":
        return kind
    return None if kind.dtype else Kind("f", "", kind.shape)
