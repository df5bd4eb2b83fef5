"""`np.sin(x)`, `float(x)`, `table[i]`, `x[x > 0]` with a traced value, written for arrays."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import sys
from typing import Any

import numpy as np

from perspex.advice.code import UNKNOWN, Place
from perspex.advice.printing import printed
from perspex.advice.story import Remedy
from perspex.advice.straight import a_name, root_name

_OF_MATH = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "fabs": "abs",
    "pow": "power",
    "dist": "",
    "prod": "",
    "fmod": "fmod",
}
_OF_MATH |= {
    name: name
    for name in (
        "cbrt",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "degrees",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "hypot",
        "isfinite",
        "isinf",
        "isnan",
        "log10",
        "log1p",
        "log2",
        "radians",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    )
}
# Reductions that take `where=`: what they leave out is as if it were not there.
_REDUCTIONS = frozenset(["sum", "prod", "mean", "std", "var", "any", "all"])
_ROUNDED = ("ceil", "floor", "trunc")


def for_numpy(place: Place) -> Remedy | None:
    """The remedy where NumPy asked for the numbers: our function of the same name."""
    node = place.node
    if not isinstance(node, ast.Call):
        return None
    path = _numpy_path(place, node.func)
    if not path or not _takes(path, node):
        return None
    call = place.jnp(path, *node.args)
    call.keywords = node.keywords
    ours = ast.unparse(call.func)
    return Remedy(f"`{ours}` is the same for traced arrays", place.edited(node, call))


def for_store(place: Place) -> Remedy | None:
    """The remedy for `a[i] = x` with a NumPy array: an array of ours, updated."""
    node, statement = place.node, place.parent
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    if not isinstance(statement, ast.Assign) or statement.targets != [node]:
        return None
    array = node.value
    if not isinstance(place.value(array), np.ndarray) or not place.is_local(array.id):
        return None
    at = ast.Attribute(place.jnp("asarray", array), "at")
    update = ast.Attribute(ast.Subscript(at, node.slice, ast.Load()), "set")
    new = ast.Assign([array], ast.Call(update, [statement.value], []))
    patch = place.replaced(statement, statement, new)
    text = "a NumPy array cannot hold a traced value; update a Perspex array"
    return Remedy(text, patch) if patch else None


def _numpy_path(place: Place, function: ast.expr) -> str:
    """The name of one of NumPy's functions inside NumPy: `sin`, `linalg.norm`; or nothing."""
    found = place.value(function)
    if found is UNKNOWN or not callable(found) or isinstance(found, type):
        return ""
    if _is_variable(place, function):
        return ""
    name = getattr(found, "__name__", "")
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        if getattr(module, name, None) is found:
            return prefix + name
    return ""


def _is_variable(place: Place, function: ast.expr) -> bool:
    """Whether it is an argument, or the like, which may be another function next time."""
    return isinstance(function, ast.Name) and place.is_local(function.id)


def _takes(path: str, node: ast.Call) -> bool:
    """Whether our function of that name takes the arguments of a call."""
    function: Any = sys.modules["perspex.numpy"]
    for part in path.split("."):
        function = getattr(function, part, None)
    if any(isinstance(arg, ast.Starred) for arg in node.args) or function is None:
        return False
    if str(getattr(function, "__module__", "")).partition(".")[0] == "numpy":
        return False  # files and the like, which are NumPy's own
    try:
        inspect.signature(function).bind(*node.args, **{str(k.arg): k for k in node.keywords})
    except TypeError:
        return False
    except ValueError:  # no signature: at least there are no options that it might not know
        return not node.keywords
    return True


def for_leaving(place: Place) -> Remedy | None:
    """The remedy for a number that the function stores outside of itself: return it instead."""
    statement = place.file.statement(place.node)
    in_lambda = isinstance(place.file.scope(place.node), ast.Lambda)
    if in_lambda or not _leaves(place) or not isinstance(place.node, ast.Call):
        return None
    text = ast.unparse(statement)
    return Remedy(
        "return the array and store its value outside of the traced function: "
        f"while tracing, `{text}` would run once, and not in each call"
    )


def for_number(place: Place) -> Remedy | None:
    """The remedy where Python asked for a number."""
    node = place.node
    as_printed = printed(place)
    if as_printed is not None or _becomes_text(place) or _leaves(place):
        return as_printed
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "item" and not node.args:
        text = "leave it an array: one without axes computes like a number"
        return Remedy(text, place.edited(node, function.value))
    if len(node.args) == 1 and place.is_builtin(function, "float", "complex", "int"):
        value = node.args[0]
        method = ast.Attribute(value, "astype")
        kind = place.value(function).__name__
        same = _is_already(place, value, kind)
        new: ast.expr = value if same else ast.Call(method, [a_name(kind)], [])
        text = "leave it an array: one without axes computes like a number"
        return Remedy(text, place.edited(node, new))
    return _of_math(place, node)


def _becomes_text(place: Place) -> bool:
    """Whether the number is written into a string, for which an array without value will not do."""
    for node in (place.node, *place.file.ancestors(place.node)):
        if isinstance(node, (ast.JoinedStr, ast.stmt)):
            return isinstance(node, ast.JoinedStr)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return isinstance(node.left, ast.Constant)
        if isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if place.is_builtin(node.func, "str", "repr", "format", "print") or method == "format":
                return True
    return False


def _leaves(place: Place) -> bool:
    """Whether the number is stored outside of the function, where a traced value must not go."""
    match place.file.statement(place.node):
        case ast.Assign(targets=[ast.Tuple(elts=targets)]) | ast.Assign(targets=targets):
            return not all(place.is_local(root_name(target)) for target in targets)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder))):
            return not place.is_local(root_name(holder))
    return False


def _is_already(place: Place, value: ast.expr, kind: str) -> bool:
    known = place.value(value)
    dtype = getattr(known, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == {"float": "f", "complex": "c"}.get(kind)


def _of_math(place: Place, node: ast.Call) -> Remedy | None:
    found = place.value(node.func)
    name = getattr(found, "__name__", "")
    if found is UNKNOWN or getattr(math, name, None) is not found:
        return None
    if _is_variable(place, node.func):
        return None
    ours = _OF_MATH.get(name, "log" if name == "log" and len(node.args) == 1 else "")
    if not ours:
        return None
    call = place.jnp(ours, *node.args)
    # Python's `floor` and its kin give integers, those of arrays do not.
    new = ast.Call(ast.Attribute(call, "astype"), [a_name("int")], [])
    function = ast.unparse(call.func)
    text = f"`{function}` is the same for traced arrays"
    return Remedy(text, place.edited(node, new if name in _ROUNDED else call))


# ---- Indices ------------------------------------------------------------------------------------


def for_index(place: Place) -> Remedy | None:
    """The remedy for a traced index into a list or tuple."""
    node = place.node
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
        return None
    items = _items(place, node.value)
    if items and all(isinstance(item, (bool, int, float, complex)) for item in items):
        array = place.jnp("array", node.value)
        text = "index an array: a list needs a Python integer"
        return Remedy(text, place.edited(node, ast.Subscript(array, node.slice, ast.Load())))
    if _alike(items):
        array = place.jnp("stack", node.value)
        text = "index one array: a list needs a Python integer"
        return Remedy(text, place.edited(node, ast.Subscript(array, node.slice, ast.Load())))
    call = place.parent
    if (
        isinstance(call, ast.Call)
        and (call.func is node and not call.keywords)
        and (items and all(callable(item) for item in items))
    ):
        new = place.lax("switch", node.slice, node.value, *call.args)
        text = f"`{ast.unparse(new.func)}` runs one of several functions"
        return Remedy(text, place.edited(call, new))
    return None


def _alike(items: list[Any]) -> bool:
    """Whether all items are arrays, of one shape and dtype."""
    if not items or not all(hasattr(item, "dtype") for item in items):
        return False
    return len({(item.shape, item.dtype) for item in items}) == 1


def _items(place: Place, node: ast.expr) -> list[Any]:
    """What is in a list or tuple; nothing where that is not certain."""
    if isinstance(node, (ast.List, ast.Tuple)):
        found = [_constant(place, item) for item in node.elts]
        return [] if UNKNOWN in map(_marked, found) else found
    known = place.value(node)
    return list(known) if isinstance(known, (list, tuple)) else []


def _marked(value: Any) -> Any:
    # Arrays compare elementwise.
    return UNKNOWN if value is UNKNOWN else None


def _constant(place: Place, node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else place.value(node)


def for_mask(place: Place) -> Remedy | None:
    """The remedy for `x[mask]` under a reduction, which can leave elements out itself."""
    node, parent = place.node, place.parent
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(node.slice, (ast.Tuple, ast.Slice)):
        return None
    call: ast.AST = parent
    where = ast.keyword("where", node.slice)
    if isinstance(parent, ast.Attribute) and parent.attr in _REDUCTIONS:
        call = place.file.parents[parent]
        if not isinstance(call, ast.Call) or call.func is not parent or call.args or call.keywords:
            return None
        new = ast.Call(ast.Attribute(node.value, parent.attr), [], [where])
    elif isinstance(call, ast.Call) and call.args == [node] and not call.keywords:
        function = place.value(call.func)
        name = getattr(function, "__name__", "")
        ours = getattr(sys.modules["perspex.numpy"], name, None)
        pythons = function is getattr(builtins, name, None) and name == "sum"
        if name not in _REDUCTIONS or not (function is ours or pythons):
            return None
        new = place.jnp(name, node.value)
        new.keywords = [where]
    else:
        return None
    if not _same_shape(place, node):
        return None
    text = "leave elements out with `where=`, which keeps the shape"
    return Remedy(text, place.edited(call, new))


def _same_shape(place: Place, node: ast.Subscript) -> bool:
    """Whether a mask can be seen to have as many axes as the array: else it picks whole rows."""
    array, mask = place.value(node.value), place.value(node.slice)
    shape = getattr(array, "shape", None)
    if isinstance(node.slice, ast.Compare):
        sides = [node.slice.left, *node.slice.comparators]
        return any(ast.dump(side) == ast.dump(node.value) for side in sides)
    return shape is not None and shape == getattr(mask, "shape", None)
