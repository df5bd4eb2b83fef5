"""`if` on a traced value, as a statement or in an expression: both values, and a choice."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType
from typing import Any

from perspex.advice.code import UNKNOWN, Place
from perspex.advice.conditions import TOO_MUCH, traced_test
from perspex.advice.guards import GUARDED, guarded, is_guard
from perspex.advice.story import Remedy
from perspex.advice.straight import a_name, assigned, needed_from_outside, only_assigns

_WHERE = (
    "`{}.where` chooses element by element and computes both values; `lax.cond` would run only "
    "one of two functions"
)
_COND = "`{}.cond` runs one of two functions; both must return the same shapes and dtypes"
NO_ARRAYS = (
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Lambda,
    ast.JoinedStr,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
    ast.GeneratorExp,
    ast.Starred,
)


def in_expression(place: Place, node: ast.IfExp, condition: ast.expr) -> list[Remedy | None]:
    """The remedies for `a if condition else b`."""
    found = [
        choose(place, condition, node.body, node.orelse) for choose in (_chosen, _as_functions)
    ]
    return [
        Remedy(_why(place, chosen), place.edited(node, chosen))
        for chosen in found
        if chosen is not None
    ]


Choice = Callable[[Place, ast.expr, ast.expr, ast.expr], ast.Call | None]


def _chosen(place: Place, condition: ast.expr, yes: ast.expr, no: ast.expr) -> ast.Call | None:
    """The call that chooses between two values; `None` if they may not be computed both."""
    if any(not _can_move(place, value) for value in (yes, no)):
        return None
    if all(_is_array(place, value) for value in (yes, no)):
        if not all(_calls_user(place, value) for value in (yes, no)):
            opposite = place.jnp("logical_not", condition)
            return place.jnp(
                "where", condition, guarded(place, yes, condition), guarded(place, no, opposite)
            )
    elif not all(_is_container(place, value) for value in (yes, no)):
        return None
    return _as_functions(place, condition, yes, no)


def _as_functions(
    place: Place, condition: ast.expr, yes: ast.expr, no: ast.expr
) -> ast.Call | None:
    """The call that runs one of two functions."""
    if any(not _can_move(place, value) for value in (yes, no)):
        return None
    nothing = ast.arguments([], [], None, [], [], None, [])
    return place.lax("cond", condition, ast.Lambda(nothing, yes), ast.Lambda(nothing, no))


def _can_move(place: Place, value: ast.expr) -> bool:
    return not any(isinstance(n, TOO_MUCH) for n in ast.walk(value)) and not _recurs(place, value)


def _why(place: Place, chosen: ast.Call) -> str:
    function = chosen.func
    assert isinstance(function, ast.Attribute)
    if function.attr == "cond":
        return _COND.format(ast.unparse(function.value))
    text = _WHERE.format(ast.unparse(function.value))
    inner = [n for arg in chosen.args[1:] for n in ast.walk(arg) if is_guard(n)]
    return f"{text}. {GUARDED}" if inner else text


def _is_array(place: Place, value: ast.expr) -> bool:
    """Whether nothing says that an expression is not an array or a number."""
    if isinstance(value, NO_ARRAYS):
        return False
    known = place.value(value)
    is_number = isinstance(known, (bool, int, float, complex))
    return known is UNKNOWN or is_number or hasattr(known, "dtype")


def _is_container(place: Place, value: ast.expr) -> bool:
    """Whether an expression is certain to be a container of arrays."""
    if isinstance(value, ast.Tuple):
        return all(_is_array(place, item) for item in value.elts)
    return _holds_arrays(place.value(value))


def _holds_arrays(known: Any) -> bool:
    if type(known) is dict:
        known = list(known.values())
    if type(known) not in (list, tuple) or not known:
        return False
    return all(
        hasattr(x, "dtype") or isinstance(x, (bool, int, float, complex)) or _holds_arrays(x)
        for x in known
    )


def _calls(place: Place, value: ast.expr) -> list[Any]:
    return [place.value(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)]


def _calls_user(place: Place, value: ast.expr) -> bool:
    """Whether an expression is itself a call of a function of the user's."""
    if not isinstance(value, ast.Call):
        return False
    function = value.func
    if isinstance(function, ast.Attribute):
        holder = place.value(function.value)
        if holder is not UNKNOWN and not isinstance(holder, ModuleType):
            return not hasattr(holder, "dtype")
    known = place.value(function)
    origin = getattr(known, "__module__", None) or ""
    return known is not UNKNOWN and origin.partition(".")[0] not in ("perspex", "builtins")


def _recurs(place: Place, value: ast.expr) -> bool:
    """Whether a value calls the very function that chooses, which would then never end."""
    own = place.frame.f_code
    return any(
        getattr(function, "__code__", None) is own
        or getattr(getattr(function, "__wrapped__", None), "__code__", None) is own
        for function in _calls(place, value)
    )


# ---- `if` statements ----------------------------------------------------------------------------


def in_statement(place: Place, node: ast.If, condition: ast.expr) -> list[Remedy | None]:
    """The remedies for an `if` whose branches assign or return; none if they do something else."""
    last, no = _otherwise(place, node)
    if not all(place.is_local(name) for name in assigned([node])):
        return []
    for branch in (node.body, no):
        if any(_recurs(place, n) for s in branch for n in ast.walk(s) if isinstance(n, ast.expr)):
            return []
    statements: list[ast.stmt] = [node, *no] if not node.orelse else [node]
    values = [_value_of(place, statements, choice) for choice in (_chosen, _as_functions)]
    found: list[Remedy | None] = []
    for statement, chosen in [value for value in values if value is not None]:
        patch = place.replaced(node, last, statement)
        found.append(Remedy(_why(place, chosen), patch) if patch else None)
    return [
        *found[:1],
        _at_once(place, node, condition),
        *found[1:],
        _functions(place, node, condition, no, last),
    ]


def _otherwise(place: Place, node: ast.If) -> tuple[ast.stmt, list[ast.stmt]]:
    """What runs if the condition is false, and the last statement of it all."""
    if node.orelse:
        return node, node.orelse
    block = place.file.block(node)
    after = block[block.index(node) + 1 :]
    if isinstance(node.body[-1], ast.Return) and after:
        if isinstance(after[0], ast.If):
            last, rest = _otherwise(place, after[0])
            if isinstance(after[0].body[-1], ast.Return):
                return last, [after[0], *([] if after[0].orelse else rest)]
        ends = next((i for i, s in enumerate(after) if isinstance(s, ast.Return)), None)
        if ends is not None:
            return after[ends], after[: ends + 1]
    return node, []


def _value_of(
    place: Place, statements: list[ast.stmt], choice: Choice
) -> tuple[ast.stmt, ast.Call] | None:
    """A choice among several values for one name or result, as one statement and its call."""
    found = _single(place, statements, choice)
    if found is None:
        return None
    target, call = found
    if not isinstance(call, ast.Call):
        return None
    return (ast.Return(call) if target is None else ast.Assign([target], call)), call


def _single(
    place: Place, statements: list[ast.stmt], choice: Choice
) -> tuple[ast.Name | None, ast.expr] | None:
    """What statements return, or assign to one name, as one expression; the name is `None` for a
    return."""
    match statements:
        case [ast.Return(value=ast.expr() as value)]:
            return None, value
        case [ast.Assign(targets=[ast.Name() as target], value=value)]:
            return target, value
        case [ast.AugAssign(target=ast.Name() as changed, op=op, value=value)]:
            return changed, ast.BinOp(a_name(changed.id), op, value)
        case [ast.If(test=test, body=body, orelse=orelse), *after] if not (orelse and after):
            condition = traced_test(place, test)
            yes = _single(place, body, choice)
            if condition is None or yes is None:
                return None
            name, value = yes
            no = _single(place, orelse or after, choice)
            if not orelse and not after and name is not None and _is_bound(place, name.id):
                no = name, a_name(name.id)
            if no is None or _name(no[0]) != _name(name):
                return None
            chosen = choice(place, condition, value, no[1])
            return None if chosen is None else (name, chosen)
    return None


def _name(target: ast.Name | None) -> str:
    return "" if target is None else target.id


def _is_bound(place: Place, name: str) -> bool:
    return name in place.frame.f_locals


def _at_once(place: Place, node: ast.If, condition: ast.expr) -> Remedy | None:
    """Several names, each given one value that does not depend on the others."""
    sides = [_independent(node.body), _independent(node.orelse)]
    if None in sides:
        return None
    yes, no = [side for side in sides if side is not None]
    names = list(dict.fromkeys([*yes, *no]))
    if any(not _is_bound(place, name) for name in names if name not in yes or name not in no):
        return None
    chosen = []
    for name in names:
        here: ast.expr = a_name(name)
        call = _chosen(place, condition, yes.get(name, here), no.get(name, here))
        if call is None or not ast.unparse(call.func).endswith(".where"):
            return None
        chosen.append(call)
    target = ast.Tuple([a_name(name) for name in names], ast.Store())
    patch = place.replaced(node, node, ast.Assign([target], ast.Tuple(list(chosen), ast.Load())))
    return Remedy(_why(place, chosen[0]), patch) if patch else None


def _independent(statements: list[ast.stmt]) -> dict[str, ast.expr] | None:
    """Values by name, if none of the statements reads what another assigns."""
    values: dict[str, ast.expr] = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=operand):
                value = ast.BinOp(a_name(name), op, operand)
            case _:
                return None
        read = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        if name in values or read & values.keys():
            return None
        values[name] = value
    return values


def _functions(
    place: Place, node: ast.If, condition: ast.expr, no: list[ast.stmt], last: ast.stmt
) -> Remedy | None:
    """Branches of several statements, as functions for `lax.cond`."""
    returns = [bool(b) and isinstance(b[-1], ast.Return) for b in (node.body, no)]
    if not no or any(returns) != all(returns):
        return None
    bodies = [branch[:-1] if any(returns) else branch for branch in (node.body, no)]
    if not all(only_assigns(body) for body in bodies):
        return None
    names = [assigned(body) for body in bodies]
    if any(returns):
        results = [branch[-1] for branch in (node.body, no)]
        outs: list[str] = []
    else:
        outs = list(dict.fromkeys([*names[0], *names[1]]))
        one_sided = set(names[0]) ^ set(names[1])
        if any(not hasattr(place.frame.f_locals.get(name), "dtype") for name in one_sided):
            return None
        value = _names(outs)
        results = [ast.Return(value), ast.Return(value)]
    inputs = sorted(
        {
            n
            for body, r in zip(bodies, results, strict=True)
            for n in needed_from_outside([*body, r])
        }
        & {*names[0], *names[1]}
    )
    if any(not _is_bound(place, name) for name in inputs):
        return None
    functions = place.file.fresh("if_true", "if_false")
    arguments = ast.arguments([], [ast.arg(name) for name in inputs], None, [], [], None, [])
    definitions = [
        ast.FunctionDef(name, arguments, [*body, result], [], lineno=0)
        for name, body, result in zip(functions, bodies, results, strict=True)
    ]
    operands = [a_name(name) for name in (*functions, *inputs)]
    call = place.lax("cond", condition, *operands)
    final = ast.Assign([_names(outs)], call) if outs else ast.Return(call)
    patch = place.replaced(node, last, *definitions, final)
    return Remedy(_why(place, call), patch) if patch else None


def _names(names: list[str]) -> ast.expr:
    if len(names) == 1:
        return a_name(names[0])
    return ast.Tuple([a_name(name) for name in names], ast.Load())
