"""`print(f"{x:.3f}")` with a traced value: the device prints when the value is there."""

from __future__ import annotations

import ast
import re

from perspex.advice.code import Place
from perspex.advice.story import Remedy

_PERCENT = re.compile(r"%(%|[-+ 0]*\d*(?:\.\d+)?[sdifeEgGr])")


def printed(place: Place) -> Remedy | None:
    """The remedy where text is made of a traced value in order to print it."""
    call = next((n for n in place.file.ancestors(place.node) if _prints(place, n)), None)
    if not isinstance(call, ast.Call) or call.keywords or not call.args:
        return None
    if not isinstance(place.file.parents[call], ast.Expr):
        return None
    parts: list[str] = []
    values: list[ast.expr] = []
    for arg in call.args:
        found = _parts(place, arg)
        if found is None:
            return None
        parts.append(found[0])
        values += found[1]
    debug = place.module("perspex.debug", "debug")
    new = place.call(debug, "print", ast.Constant(" ".join(parts)), *values)
    return Remedy(f"`{debug}.print` prints when the value is there", place.edited(call, new))


def _prints(place: Place, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and place.is_builtin(node.func, "print")


def _parts(place: Place, node: ast.expr) -> tuple[str, list[ast.expr]] | None:
    """A format string and the values for it; `None` for what `debug.print` cannot write."""
    match node:
        case ast.Constant(value=str(text)):
            return _escaped(text), []
        case ast.JoinedStr(values=pieces):
            return _joined(place, pieces)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format"),
            args=args,
            keywords=[],
        ):
            return text, [unwrapped(place, arg) for arg in args]
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right):
            values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
            return _of_percent(text), [unwrapped(place, value) for value in values]
        case ast.Starred():
            return None
    return "{}", [unwrapped(place, node)]


def _joined(place: Place, pieces: list[ast.expr]) -> tuple[str, list[ast.expr]] | None:
    text, values = "", []
    for piece in pieces:
        match piece:
            case ast.Constant(value=str(constant)):
                text += _escaped(constant)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                text += "{}"
                values.append(unwrapped(place, value))
            case ast.FormattedValue(
                value=value,
                conversion=-1,
                format_spec=ast.JoinedStr(values=[ast.Constant(value=str(spec))]),
            ):
                text += "{:" + spec + "}"
                values.append(unwrapped(place, value))
            case _:
                return None
    return text, values


def _of_percent(text: str) -> str:
    def field(found: re.Match[str]) -> str:
        spec = found[1]
        if spec == "%":
            return "%"
        kind = {"i": "d", "s": "", "r": ""}.get(spec[-1], spec[-1])
        return "{:" + spec[:-1] + kind + "}" if spec[:-1] + kind else "{}"

    return _PERCENT.sub(field, _escaped(text))


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def unwrapped(place: Place, node: ast.expr) -> ast.expr:
    """`x` where `float(x)` or `x.item()` is printed."""
    if isinstance(node, ast.Call) and not node.keywords:
        if len(node.args) == 1 and place.is_builtin(node.func, "float"):
            return node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            return node.func.value
    return node
