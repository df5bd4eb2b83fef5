"""What a cell does with the names of its notebook, found without running it.

`find_names` says which names the whole cell reads and which it assigns. The compiler already knows
the scoping rules of Python, so it is asked: each statement is compiled by itself, and the
instructions that touch module-level names are read off. What is left to do here is the order: a
name that a cell certainly assigned before reading it is a temporary, not an input.

`find_changes` says which statement binds a name, or may change the object that it holds. That goes
by the form of the statement alone, as every cell that runs is looked through.

Always true: `reads` may name too much (a read on a path that is not taken) but never too little,
and `certain` never names what an execution without an error can leave unassigned.
"""

from __future__ import annotations

import ast
import dis
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

# Built-in names while the extension is loaded; cells call them where they do something that a trace
# would do once (`fixed.calls`).
CALLED, READ, SHOWN = "__perspex_called__", "__perspex_read__", "__perspex_shown__"
GLOBAL_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_MODULE_STORES = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"}
_FUNCTION_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL"}
_COMPOUND = {
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith),
    *(ast.Try, ast.TryStar, ast.Match),
}
# Methods that return something, and change the object in place.
_TAKES_OUT = {"pop", "popitem", "popleft", "setdefault"}
# Statements that bind all their names whenever they succeed.
_SIMPLE = {
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign),
}
# What these read cannot be seen in the code that calls them.
READ_BY_NAME = {"eval", "exec", "globals", "locals", "vars", "get_ipython"}

# The names that a statement binds, and those whose objects it may change in place.
Changes = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Names:
    """What a cell does with the names of its notebook.

    `reads` may be read before the cell assigns them, `writes` may be assigned or deleted by it, and
    `certain` are assigned by every execution that reaches the end. `code` is the cell as a whole.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    certain: frozenset[str]
    code: CodeType


def find_names(body: list[ast.stmt]) -> Names:
    """The names that the statements of a cell read and assign.

    Raises:
      SyntaxError: where the statements do not compile.

    >>> found = find_names(ast.parse("t = x + 1; y += t").body)
    >>> sorted(found.reads), sorted(found.writes)
    (['x', 'y'], ['t', 'y'])
    """
    flow = _Flow()
    certain = flow.block(body, frozenset())
    return Names(frozenset(flow.reads), frozenset(flow.writes), certain, _compiled(body))


def _compiled(body: list[ast.stmt]) -> CodeType:
    module = ast.fix_missing_locations(ast.Module(body, []))
    code: CodeType = compile(module, "<names>", "exec", dont_inherit=True)
    return code


@functools.lru_cache(maxsize=1024)
def global_reads(code: CodeType) -> frozenset[str]:
    """The global names that a function reads, in functions inside it as well.

    >>> sorted(global_reads((lambda x: [len(y) for y in x]).__code__))
    ['len']
    """
    return frozenset(name for name, stored in _touched(code, inside=True) if not stored)


def _touched(code: CodeType, inside: bool) -> Iterator[tuple[str, bool]]:
    """Each module-level name that `code` touches, and whether that assigns or deletes it."""
    stores = _FUNCTION_STORES if inside else _MODULE_STORES
    for instruction in dis.get_instructions(code):
        if instruction.opname in GLOBAL_LOADS:
            yield instruction.argval, False
        elif instruction.opname in stores:
            yield instruction.argval, True
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _touched(constant, inside=True)


class _Flow:
    """Walks statements in the order of execution; `done` is what has certainly been assigned."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()

    def block(self, body: Iterable[ast.stmt], done: frozenset[str]) -> frozenset[str]:
        for node in body:
            done = self.statement(node, done)
        return done

    def statement(self, node: ast.stmt, done: frozenset[str]) -> frozenset[str]:
        match node:
            case ast.Break() | ast.Continue():
                return done
            case ast.If():
                done = self.expression(node.test, done)
                return self.block(node.body, done) & self.block(node.orelse, done)
            case ast.While():
                done = self.expression(node.test, done)
                self.block(node.body, done)
                self.block(node.orelse, done)
                return done
            case ast.For():
                done = self.expression(node.iter, done)
                self.block(node.body, self.target(node.target, done))
                self.block(node.orelse, done)
                return done
            case ast.With():
                for item in node.items:
                    done = self.expression(item.context_expr, done)
                    if item.optional_vars is not None:
                        done = self.target(item.optional_vars, done)
                # A context manager may swallow an exception, and with it the rest of the block.
                self.block(node.body, done)
                return done
            case ast.Try() | ast.TryStar():
                finished = self.block(node.orelse, self.block(node.body, done))
                for handler in node.handlers:
                    if handler.type is not None:
                        self.expression(handler.type, done)
                    name = {handler.name} if handler.name else set()
                    self.writes |= name
                    # The handler's name is deleted where the handler ends.
                    finished &= self.block(handler.body, done | name) - name
                return finished | self.block(node.finalbody, done)
            case ast.Match():
                done = self.expression(node.subject, done)
                for case in node.cases:
                    bound = set(_pattern_names(case.pattern))
                    self.writes |= bound
                    for expression in ast.walk(case.pattern):
                        if isinstance(expression, ast.expr):
                            self.expression(expression, done)
                    matched = done | bound
                    if case.guard is not None:
                        matched = self.expression(case.guard, matched)
                    self.block(case.body, matched)
                return done
        return self.compiled(node, done)

    def expression(self, node: ast.expr, done: frozenset[str]) -> frozenset[str]:
        self.compiled(ast.copy_location(ast.Expr(node), node), done)
        # A walrus may stand behind an `and`, so an expression assigns nothing for certain.
        return done

    def target(self, node: ast.expr, done: frozenset[str]) -> frozenset[str]:
        value = ast.copy_location(ast.Constant(None), node)
        return self.compiled(ast.copy_location(ast.Assign([node], value), node), done)

    def compiled(self, node: ast.stmt, done: frozenset[str]) -> frozenset[str]:
        code = _compiled([node])
        # The compiler's own names: the docstring, annotations, a class's module.
        touched = [(n, s) for n, s in _touched(code, inside=False) if not n.startswith("__")]
        self.reads |= {name for name, stored in touched if not stored} - done
        written = {name for name, stored in touched if stored}
        self.writes |= written
        if isinstance(node, ast.Delete):
            return done - written
        return done.union(_certainly_bound(node))


def _certainly_bound(node: ast.stmt) -> list[str]:
    """The names that a simple statement assigns whenever it succeeds."""
    if type(node) not in _SIMPLE or (type(node) is ast.AnnAssign and node.value is None):
        return []
    bound: list[str] = []
    _RULES[type(node)](node, bound, [])
    return bound


# ---- what statements change -------------------------------------------------------------------


def statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that run in the cell itself, those in blocks too, in their order."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if type(node) in _COMPOUND:
            for block in blocks(node):
                found += statements(block)
    return found


def find_changes(body: list[ast.stmt], changes: dict[ast.stmt, Changes]) -> None:
    """Find what statements change, and those in their blocks; no others are written down."""
    for node in body:
        kind = type(node)
        rule = _RULES.get(kind)
        if rule is not None:
            bound: list[str] = []
            written: list[str] = []
            rule(node, bound, written)
            if bound or written:
                changes[node] = bound, written
        if kind in _COMPOUND:
            for block in blocks(node):
                find_changes(block, changes)


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement, in their order."""
    if type(node) not in _COMPOUND:
        return []
    blocks = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
    parts = (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))
    return [block for block in (*blocks, *[part.body for part in parts]) if block]


# Rules add the names that a statement binds, and those whose objects it may write to. Of a
# statement with blocks: what it binds before they run.


def _assign(node: Any, bound: list[str], written: list[str]) -> None:
    for target in node.targets:
        _target(target, bound, written)
    _taken(getattr(node, "value", None), written)


def _one_target(node: Any, bound: list[str], written: list[str]) -> None:
    _target(node.target, bound, written)
    _taken(getattr(node, "value", None), written)


def _taken(value: Any, written: list[str]) -> None:
    """For `item = items.pop()`; other methods whose result is wanted are thought to read only."""
    if type(value) is ast.Call and getattr(value.func, "attr", None) in _TAKES_OUT:
        _root(value.func, written)


def _augmented(node: Any, bound: list[str], written: list[str]) -> None:
    _target(node.target, bound, written)
    # In place for a list or a NumPy array, and another object for a number.
    written += bound


def _with(node: Any, bound: list[str], written: list[str]) -> None:
    for item in node.items:
        if item.optional_vars is not None:
            _target(item.optional_vars, bound, written)


def _handlers(node: Any, bound: list[str], written: list[str]) -> None:
    bound += [handler.name for handler in node.handlers if handler.name]


def _patterns(node: Any, bound: list[str], written: list[str]) -> None:
    for case in node.cases:
        bound += _pattern_names(case.pattern)


def _pattern_names(pattern: ast.pattern) -> list[str]:
    found = []
    for part in ast.walk(pattern):
        name = part.rest if type(part) is ast.MatchMapping else getattr(part, "name", None)
        if name:
            found.append(name)
    return found


def _definition(node: Any, bound: list[str], written: list[str]) -> None:
    bound.append(node.name)


def _import(node: Any, bound: list[str], written: list[str]) -> None:
    if getattr(node, "module", "") != "__future__":
        names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        bound += [name for name in names if name != "*"]


def _effect(node: Any, bound: list[str], written: list[str]) -> None:
    call = node.value.value if isinstance(node.value, ast.Await) else node.value
    if isinstance(call, ast.Call):
        # For its effect: on the object whose method it is, or on an argument.
        _root(call.func, written)
        for argument in (*call.args, *[keyword.value for keyword in call.keywords]):
            if isinstance(argument, ast.Name):
                written.append(argument.id)
            else:
                _root(argument, written)


_RULES: dict[type[ast.stmt], Callable[[Any, list[str], list[str]], None]] = {
    ast.Assign: _assign,
    ast.Delete: _assign,
    ast.AugAssign: _augmented,
    ast.AnnAssign: _one_target,
    ast.For: _one_target,
    ast.AsyncFor: _one_target,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _handlers,
    ast.TryStar: _handlers,
    ast.Match: _patterns,
    ast.FunctionDef: _definition,
    ast.AsyncFunctionDef: _definition,
    ast.ClassDef: _definition,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Expr: _effect,
}


def _target(target: Any, bound: list[str], written: list[str]) -> None:
    kind = type(target)
    if kind is ast.Name:
        bound.append(target.id)
    elif kind is ast.Tuple or kind is ast.List:
        for item in target.elts:
            _target(item, bound, written)
    elif kind is ast.Starred:
        _target(target.value, bound, written)
    else:
        _root(target, written)


def _root(node: ast.expr, written: list[str]) -> None:
    """The name that an expression like `model.layers[0].w` begins with, if it has such parts."""
    has_parts = False
    while isinstance(node, ast.Attribute | ast.Subscript):
        node, has_parts = node.value, True
    if has_parts and isinstance(node, ast.Name):
        written.append(node.id)


# ---- what expressions bind --------------------------------------------------------------------


class OfCell(ast.NodeVisitor):
    """Goes through what runs in the cell itself: not into the bodies of functions and classes."""

    def visit_FunctionDef(self, node: Any) -> Any:
        self._visit_all(node.decorator_list)
        self._visit_defaults(node.args)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: Any) -> Any:
        self._visit_all(node.decorator_list)
        self._visit_all(node.bases)
        self._visit_all(node.keywords)
        return node

    def visit_Lambda(self, node: Any) -> Any:
        self._visit_defaults(node.args)
        return node

    def _visit_defaults(self, arguments: ast.arguments) -> None:
        self._visit_all(arguments.defaults)
        self._visit_all(arguments.kw_defaults)

    def _visit_all(self, nodes: list[Any]) -> None:
        # A visitor returns nothing, a transformer what is to stand there.
        nodes[:] = [node and (self.visit(node) or node) for node in nodes]


class _Named(OfCell):
    def __init__(self) -> None:
        self.found: list[ast.NamedExpr] = []

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.found.append(node)
        self.generic_visit(node)


def find_named(tree: ast.Module) -> list[ast.NamedExpr]:
    """Each `name := value` of the cell."""
    visitor = _Named()
    visitor.visit(tree)
    return visitor.found
