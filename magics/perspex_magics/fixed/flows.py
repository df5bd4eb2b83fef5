"""Whether the result of a call can reach the program of the function that makes it.

A clock that times a trace for a print is no mistake. The tree of the cell says what becomes of a
result: it is followed through expressions and variables to where it is printed, logged or dropped,
or to where it is an operand of something else, decides a branch, or is returned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

# Calls that show or keep what they are given.
_LOGS = {
    *("print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log"),
    *("write", "append", "add", "extend", "update", "setdefault", "put", "record", "set_postfix"),
    *("set_description", "add_scalar", "display", "insert", "appendleft", "seed", "sleep"),
}
# Calls whose result is their argument in another form.
_FORMS = {
    *("float", "int", "round", "abs", "min", "max", "sum", "str", "repr", "format", "divmod"),
    *("strftime", "isoformat", "total_seconds", "timestamp", "timedelta", "len", "list", "tuple"),
    *("dict", "sorted", "join", "item", "asarray", "array", "hex", "astimezone", "replace"),
}
# What `%` puts into a text without asking for a number.
_PLAIN = re.compile(r"%[-+ 0#]*\d*[sra]")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Nodes that pass on what they are made of.
_PASSING = (
    *(ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Tuple, ast.List, ast.Set, ast.Dict),
    *(ast.Starred, ast.Attribute, ast.FormattedValue, ast.JoinedStr, ast.keyword, ast.ListComp),
    *(ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Await),
)


class Flows:
    """The tree of one cell."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }

    def call_at(self, place: tuple[int, int, int, int]) -> ast.Call | None:
        """The call that stands from a line and column to another."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and place == (
                *(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset),
            ):
                return node
        return None

    def node_at(self, place: tuple[int, int, int, int]) -> ast.expr | None:
        """The largest expression that stands from a line and column to another."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr) and place == (
                *(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset),
            ):
                return node
        return None

    def text_around(self, node: ast.expr) -> ast.expr:
        """The f-string, or the `"..." % values`, that a value is put into; the value otherwise."""
        found, at = node, self.parents.get(node)
        while isinstance(at, ast.FormattedValue | ast.JoinedStr | ast.BinOp | ast.Tuple):
            if isinstance(at, ast.JoinedStr) or (isinstance(at, ast.BinOp) and is_text_of(at)):
                found = at
            at = self.parents.get(at)
        return found

    def is_raised(self, node: ast.AST) -> bool:
        """Whether an expression is made for an error, which ends the trace."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, _FUNCTIONS):
            if isinstance(at, ast.Raise | ast.Assert):
                return True
            at = self.parents.get(at)
        return False

    def function_of(self, node: ast.AST) -> ast.AST:
        """The function that a node is in, or the whole cell."""
        at = self.parents.get(node, self.tree)
        while at in self.parents and not isinstance(at, _FUNCTIONS):
            at = self.parents[at]
        return at

    def enters(self, node: ast.AST, is_clock: bool) -> bool:
        """Whether the value of an expression may be used in more than a message.

        A time that is only returned is followed to the calls of its function in the cell.
        """
        seen: set[ast.AST] = set()
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            uses = self._uses(at, is_clock)
            if uses is None:
                return True
            waiting += uses
        return False

    def _uses(self, node: ast.AST, is_clock: bool) -> list[ast.AST] | None:
        """What depends on a value, in turn; nothing if it ends there, `None` if it is used."""
        parent = self.parents.get(node)
        if isinstance(parent, _PASSING):
            return [parent]
        match parent:
            case ast.BinOp(left=left, right=right):
                other = right if node is left else left
                return None if self._is_traced(other) else [parent]
            case ast.Call(func=function):
                if node is function:
                    return [parent]
                name = getattr(function, "attr", getattr(function, "id", ""))
                return [] if name in _LOGS else [parent] if name in _FORMS else None
            case ast.Subscript(slice=key):
                return None if node is key else [parent]
            case ast.NamedExpr(target=target):
                return [parent, *self._loads(target, parent)]
            case ast.Assign() if self.function_of(parent) is self.tree and not is_clock:
                return None  # the result of a cell under a magic
            case ast.Assign(targets=targets):
                return [use for target in targets for use in self._loads(target, parent)]
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return list(self._loads(target, parent))
            case ast.If(test=test, body=body) if node is test:
                return [] if all(map(_is_message, body)) else None
            case ast.IfExp(test=test):
                return None if node is test else [parent]
            case ast.Return() | ast.Yield() | ast.Lambda():
                return list(self._calls(node)) if is_clock else None
            case ast.Expr() | ast.Assert() | ast.Raise() | ast.Delete() | ast.withitem():
                return []
            case ast.comprehension():
                return None
        return None

    def _is_traced(self, node: ast.expr) -> bool:
        """Whether an expression mentions an argument of its function, or what was made of one."""
        function = self.function_of(node)
        named = _names(node)
        if not isinstance(function, _FUNCTIONS):
            return False
        given = function.args
        traced = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        traced.discard("self")
        while True:
            made: set[str] = set()
            for each in ast.walk(function):
                if isinstance(each, ast.Assign) and not traced.isdisjoint(_names(each.value)):
                    made |= {name for target in each.targets for name in _names(target)}
            if made <= traced:
                return not traced.isdisjoint(named)
            traced |= made

    def _loads(self, target: ast.expr, where: ast.AST) -> Iterator[ast.AST]:
        """Where a variable is read that is assigned; what else is assigned is kept elsewhere."""
        function = self.function_of(where)
        names = _names(target)
        if not isinstance(target, (ast.Name, ast.Tuple, ast.List)):
            # A part of an object counts if the object was made here.
            names &= _assigned(function)
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or type(node.ctx) is not ast.Load:
                continue
            if node.id in names and not any(node is each for each in ast.walk(target)):
                yield node

    def _calls(self, node: ast.AST) -> Iterator[ast.AST]:
        function = self.function_of(node)
        name = getattr(function, "name", None)
        if name is None:
            parent = self.parents.get(function)
            if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
                name = parent.targets[0].id
        for each in ast.walk(self.tree):
            if isinstance(each, ast.Call) and getattr(each.func, "id", None) == name is not None:
                yield each


def is_text_of(node: ast.BinOp) -> bool:
    """Whether it is a text with values put in as they are, as in `"%s" % x`.

    >>> is_text_of(ast.parse("'%s' % x", mode="eval").body)
    True
    """
    match node:
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _PLAIN.search(text) is not None
    return False


def shown_values(node: ast.expr) -> list[ast.expr]:
    """The values in an expression that makes text: those of an f-string, `format`, `str` or `%`.

    >>> [ast.unparse(x) for x in shown_values(ast.parse("f'{i}: {y.sum():.2f}'", mode="eval").body)]
    ['i', 'y.sum()']
    """
    match node:
        case ast.Constant(value=str()):
            return []
        case ast.JoinedStr(values=pieces):
            return [piece.value for piece in pieces if isinstance(piece, ast.FormattedValue)]
        case ast.BinOp(right=right) if is_text_of(node):
            return list(right.elts) if isinstance(right, ast.Tuple) else [right]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
            return [*node.args, *[each.value for each in node.keywords]]
        case ast.Call(func=ast.Name(id="str" | "repr" | "format"), args=[value, *_]):
            return [value]
    return [node]


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _assigned(function: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and type(node.ctx) is ast.Store
    }


def _is_message(node: ast.stmt) -> bool:
    """Whether a statement only logs something."""
    match node:
        case ast.Pass():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return getattr(function, "attr", getattr(function, "id", "")) in _LOGS
    return False
