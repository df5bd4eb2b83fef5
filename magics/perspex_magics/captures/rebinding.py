"""Noticing inside a cell that it assigns a variable which some function captured.

The cell's own statements that do so get a call behind them, of a function that costs some 0.1 us
while nothing is stale, and so does each `:=`, inside its expression. Other statements, and all code
inside functions, stay as they are, so a cell that assigns nothing of interest is not changed at
all. The last statement of a cell never gets a call behind it: the end of the cell is looked at
anyway, and what is displayed goes by the last statement.
"""

from __future__ import annotations

import ast
import re
import types
import weakref
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any

import perspex
from perspex_magics.captures.touching import Function, touching, writing_words
from perspex_magics.notebook.kinds import is_a
from perspex_magics.notebook.names import (
    Changes,
    OfCell,
    blocks,
    find_changes,
    find_named,
    statements,
)
from perspex_magics.notebook.user_names import UserNames

# Built-in names while the extension is loaded; what the calls in a cell are of.
REBOUND = "__perspex_rebound__"
WRITTEN = "__perspex_written__"
TOUCHED = "__perspex_touched__"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_JITTED = type(perspex.jit(lambda: None))
_KINDS: tuple[type, ...] = (types.FunctionType, _JITTED, type)
_WORD = re.compile(r"\w+")
_NOTHING: Changes = ([], [])
# Statements that bind names before some of their blocks, and not before the first one alone.
_BINDS_IN_BLOCKS = {ast.Try, ast.TryStar, ast.Match}


class Rebinding:
    """Looks through the tree of each cell, and puts the calls into it.

    Args:
      namespace: the notebook's.
      names: the user's in it.
      captures: whether a function has captured what a name holds.
      ours: the cell magics that trace their cell, whose body is none of our business.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        names: UserNames,
        captures: Callable[[str], bool],
        ours: Collection[str],
    ) -> None:
        self.namespace, self.captures, self.ours = namespace, captures, ours
        self.names = names
        self.inside_ours = False
        self.text: str | None = None
        # The last line of the cell that changes each name, for messages.
        self.lines: dict[str, int] = {}
        # The names whose objects the cell may change in place.
        self.written: set[str] = set()
        # Functions of the notebook by name, with what they read.
        self.functions: dict[str, tuple[weakref.ref[Any], Function] | None] = {}
        # All that they read, traced or not.
        self.reads: frozenset[str] = frozenset()
        # The words in a cell that call those which write.
        self.words: frozenset[str] = frozenset()
        self.listed: list[str] | None = None
        self.is_magic = False
        self.learn()

    def begin(self, text: str) -> None:
        """Forget the last cell."""
        self.inside_ours = self.is_magic = False
        self.text = text
        self.lines = {}
        self.written = set()

    def visit(self, tree: Any) -> Any:
        """The tree, with the calls in it."""
        # A second tree in the same cell is that of a magic, with lines of its own.
        text, self.text = self.text, None
        if not isinstance(tree, ast.Module) or not tree.body:
            return tree
        magic = _cell_magic(tree)
        if magic is not None:
            self.inside_ours, self.is_magic = magic in self.ours, True
            return tree
        changes: dict[ast.stmt, Changes] = {}
        find_changes(tree.body, changes)
        changed: dict[str, int] = {}
        for node, (bound, written) in changes.items():
            for name in bound:
                changed[name] = node.lineno
            for name in written:
                changed[name] = node.lineno
                self.written.add(name)
        named = find_named(tree) if text is None or ":=" in text else []
        for expression in named:
            name = expression.target.id
            changed[name] = max(changed.get(name, 0), expression.lineno)
        touched: set[ast.stmt] = set()
        if text is not None and not self.inside_ours:
            touched = touching(tree.body, text, self.words)
        if not changed and not touched:
            return tree
        self.lines.update(changed)
        if not self.inside_ours:
            wanted = changed.keys() & self.interesting(tree, changed.keys(), text)
            wanted |= self.aliases(tree, changes, wanted, text)
            if wanted or touched:
                if named:
                    _Checked(wanted).visit(tree)
                tree.body = _with_calls(tree.body, wanted, changes, touched, tree.body[-1])
        return tree

    def interesting(self, tree: ast.Module, changed: Set[str], text: str | None) -> Set[str]:
        """Those of the names that a function has captured, or may capture in this very cell."""
        found = set(filter(self.captures, changed))
        if len(found) < len(changed):
            found |= changed & self.reads
        if not changed <= found:
            found |= _words(tree, text)
        return found

    def aliases(
        self, tree: ast.Module, changes: dict[ast.stmt, Changes], wanted: Set[str], text: str | None
    ) -> Set[str]:
        """Names that the cell gives to parts of captured objects, and writes to: `row = w[0]`."""
        written = {name for _, names in changes.values() for name in names} - wanted
        made = [
            (bound, _named(source))
            for node, (bound, _) in changes.items()
            if written and bound and (source := _source(node)) is not None
        ]
        mentioned = {name for _, names in made for name in names}
        if not mentioned:
            return mentioned
        known = wanted | mentioned & self.interesting(tree, mentioned, text)
        for names, others in made:
            if not known.isdisjoint(others):
                known |= set(names)
        return known & written

    def learn(self) -> None:
        """Find what the functions and classes of the notebook read, as a cell has ended.

        Those that the next cell defines are read in its text.
        """
        listed, get = self.names.listed(), self.namespace.get
        is_same = listed is self.listed and not self.is_magic
        if is_same and not any(type(get(name)) in _KINDS for name in self.lines):
            return
        self.listed, known = listed, self.functions
        look = self.names.look()
        values = [item for kind in _KINDS for item in look.named(kind)]
        found = {name: known.get(name) for name, _ in values}
        new = [(n, v) for n, v in values if (entry := found[n]) is None or entry[0]() is not v]
        if new or len(found) != len(known):
            for name, value in new:
                found[name] = weakref.ref(value), _function(name, value, self.namespace)
            self.functions = found
            functions = {name: entry[1] for name, entry in found.items() if entry}
            self.reads = frozenset().union(*[each.reads for each in functions.values()])
            self.words = writing_words(functions)


def _function(name: str, value: Any, namespace: Mapping[str, Any]) -> Function:
    """What a function of the notebook does with globals, or a class."""
    codes: dict[str, types.CodeType] = {}
    is_class = is_a(value, type)
    if not is_class:
        members = [(name, value)]
    elif value.__module__ == namespace.get("__name__"):
        members = list(value.__dict__.items())
    else:
        members = []
    for member, each in members:
        code = _code(each, namespace)
        if code is not None:
            codes[member] = code
    return Function(name, codes, is_class)


def _code(value: Any, namespace: Mapping[str, Any]) -> types.CodeType | None:
    """The code of a function of the notebook, jitted or otherwise decorated."""
    while type(value) is _JITTED or (
        is_a(value, types.FunctionType) and "__wrapped__" in value.__dict__
    ):
        value = value.__wrapped__
    if is_a(value, types.FunctionType) and value.__globals__ is namespace:
        return value.__code__
    return None


def _words(tree: ast.Module, text: str | None) -> set[str]:
    """What may be a name in the functions that the cell defines, lambdas among them."""
    if text is not None and "def" not in text and "class" not in text and "lambda" not in text:
        return set()
    if text is None:
        text = ast.unparse(tree)
        tree = ast.parse(text)
    lines = text.split("\n")
    inside = [line for line in lines if "lambda" in line] if "lambda" in text else []
    for node in statements(tree.body):
        if isinstance(node, _FUNCTIONS):
            inside += lines[node.lineno - 1 : node.end_lineno]
    return set(_WORD.findall("\n".join(inside)))


def _source(node: ast.stmt) -> ast.expr | None:
    """What a statement takes the object from that it binds, if that may be part of another."""
    if type(node) in (ast.For, ast.AsyncFor):
        return node.iter  # type: ignore[attr-defined]
    if type(node) in (ast.Assign, ast.AnnAssign):
        return node.value  # type: ignore[attr-defined]
    return None


def _named(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if type(node) is ast.Name}


def _cell_magic(tree: ast.Module) -> str | None:
    """The magic of a cell that begins with `%%magic`, as IPython writes it."""
    if type(tree.body[0]) is not ast.Expr:
        return None
    match tree.body[0]:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="run_cell_magic"), args=[ast.Constant(value=str(name)), *_]
            )
        ):
            return name
    return None


def _with_calls(
    body: list[ast.stmt],
    wanted: Set[str],
    changes: dict[ast.stmt, Changes],
    touched: Set[ast.stmt],
    last: ast.stmt | None,
) -> list[ast.stmt]:
    new: list[ast.stmt] = []
    for node in body:
        new.append(node)
        calls = [
            _call(function, name, node)
            for function, names in zip((REBOUND, WRITTEN), changes.get(node, _NOTHING), strict=True)
            for name in dict.fromkeys(names)
            if name in wanted
        ]
        if node in touched:
            calls.append(_call(TOUCHED, "", node))
        inside = blocks(node)
        for block in inside:
            block[:] = _with_calls(block, wanted, changes, touched, None)
        if type(node) is ast.Match and calls:
            _in_guards(node, calls)
        if inside:
            # The target of a loop or of `with` is bound before its block, and that of a handler or
            # a pattern before the block there.
            for block in inside if type(node) in _BINDS_IN_BLOCKS else inside[:1]:
                block[:0] = calls
            if node in touched and node is not last:
                new.append(_call(TOUCHED, "", node))
        elif node is not last:
            new += calls
    return new


def _in_guards(node: ast.Match, calls: list[ast.stmt]) -> None:
    """What a pattern has bound stays so if its guard says no: the guard is preceded by the calls.

    These return nothing, so `call or guard` is the guard.
    """
    for case in node.cases:
        if case.guard is not None:
            parts = [call.value for call in calls if isinstance(call, ast.Expr)]
            guard = ast.BoolOp(ast.Or(), [*parts, case.guard])
            case.guard = ast.copy_location(guard, case.guard)


class _Checked(OfCell, ast.NodeTransformer):
    """Makes `(name := value, call)[0]` of each `name := value`, for the names that are wanted."""

    def __init__(self, wanted: Set[str]) -> None:
        self.wanted = wanted

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        self.generic_visit(node)
        name = node.target.id
        if name not in self.wanted:
            return node
        both = ast.Tuple([node, _check(REBOUND, name, node)], ast.Load())
        made = ast.Subscript(both, ast.Constant(0), ast.Load())
        for new in (both, made, made.slice):
            ast.copy_location(new, node)
        return made


def _call(function: str, name: str, where: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(_check(function, name, where)), where)


def _check(function: str, name: str, where: ast.AST) -> ast.expr:
    call = ast.Call(ast.Name(function, ast.Load()), [ast.Constant(name)], [])
    for node in ast.walk(call):
        ast.copy_location(node, where)
    return call
