"""Which names a cell reads and which it assigns, found without running it.

The compiler already knows the scoping rules of Python, so it is asked: each statement is compiled
by itself and the instructions that touch module-level names are read off. What is left to do here
is the order: a name that a cell certainly assigned before reading it is a temporary, not an input.

Always true: `reads` may name too much (a read on a path that is not taken) but never too little,
and `certain` never names what an execution without an error can leave unassigned.
"""

from __future__ import annotations

import ast
import dis
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

_GLOBAL_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_MODULE_STORES = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"}
_FUNCTION_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL"}
# What these read cannot be seen in the code that calls them.
READ_BY_NAME = {"eval", "exec", "globals", "locals", "vars", "get_ipython"}


@dataclass(frozen=True)
class Names:
    """What a cell does with the names of its notebook.

    `reads` may be read before the cell assigns them, `writes` may be assigned or deleted by it, and
    `certain` are assigned by every execution that reaches the end.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    certain: frozenset[str]


def find_names(body: list[ast.stmt]) -> Names:
    """The names that the statements of a cell read and assign.

    Errors: `SyntaxError` where the statements do not compile.

    >>> found = find_names(ast.parse("t = x + 1; y += t").body)
    >>> sorted(found.reads), sorted(found.writes)
    (['x', 'y'], ['t', 'y'])
    """
    flow = _Flow()
    certain = flow.block(body, frozenset())
    return Names(frozenset(flow.reads), frozenset(flow.writes), certain)


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
        if instruction.opname in _GLOBAL_LOADS:
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
                    bound = _pattern_names(case.pattern)
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
        module = ast.fix_missing_locations(ast.Module([node], []))
        code = compile(module, "<names>", "exec", dont_inherit=True)
        # The compiler's own names: the docstring, annotations, a class's module.
        touched = [(n, s) for n, s in _touched(code, inside=False) if not n.startswith("__")]
        self.reads |= {name for name, stored in touched if not stored} - done
        written = {name for name, stored in touched if stored}
        self.writes |= written
        if isinstance(node, ast.Delete):
            return done - written
        return done | _certainly_bound(node)


def _certainly_bound(node: ast.stmt) -> set[str]:
    """The names that a simple statement assigns whenever it succeeds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(alias.asname or alias.name).partition(".")[0] for alias in names} - {"*"}
        case ast.Assign(targets=targets):
            return set().union(*map(_target_names, targets))
        case ast.AugAssign(target=target):
            return _target_names(target)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            return _target_names(target)
    return set()


def _target_names(node: ast.expr) -> set[str]:
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return set().union(*map(_target_names, items))
        case ast.Starred(value=value):
            return _target_names(value)
    return set()


def _pattern_names(pattern: ast.pattern) -> set[str]:
    found = set()
    for node in ast.walk(pattern):
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name is not None:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            found.add(node.rest)
    return found
