"""The user's code around a line that failed: its syntax, its names, and lines to replace."""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

from perspex.advice.story import Patch
from perspex.base import source

# A line of a notebook that is not Python.
_MAGIC = re.compile(r"^\s*(%|!)")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)

UNKNOWN = object()
"""What `Place.value` returns for an expression that would have to run."""


class File:
    """The text of a file or cell, and its syntax tree; `tree` is `None` if it is not Python.

    Nodes are shared with patches, and never changed.
    """

    def __init__(self, name: str, lines: Sequence[str]) -> None:
        self.name = name
        self.lines = [line.rstrip("\n") for line in lines]
        self.tree = _parsed(self.lines)
        self.parents: dict[ast.AST, ast.AST] = {}
        if self.tree is not None:
            for node in ast.walk(self.tree):
                self.parents.update((child, node) for child in ast.iter_child_nodes(node))

    def nodes(self) -> Iterator[ast.AST]:
        """All nodes, outer ones first."""
        return ast.walk(self.tree) if self.tree is not None else iter(())

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or module in which a node stands."""
        return next(n for n in self.ancestors(node) if isinstance(n, _SCOPES))

    def block(self, statement: ast.AST) -> list[ast.stmt]:
        """The list of statements in which one stands."""
        parent = self.parents[statement]
        for _, value in ast.iter_fields(parent):
            if isinstance(value, list) and any(item is statement for item in value):
                return value
        return []

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(n for n in self.ancestors(node) if isinstance(n, ast.stmt))

    def replaced(
        self, first: ast.stmt, last: ast.stmt, new: list[ast.stmt], imports: tuple[str, ...] = ()
    ) -> Patch | None:
        """The patch that replaces statements, whole lines each."""
        start, end = first.lineno, last.end_lineno or last.lineno
        head = self.lines[start - 1]
        indent = head[: len(head) - len(head.lstrip())]
        own_lines = _before(head, first.col_offset).strip() == ""
        in_elif = isinstance(first, ast.If) and head.lstrip().startswith("elif")
        if not own_lines and not in_elif:
            return None
        deeper = indent + "    " if in_elif else indent
        after = [indent + "else:"] if in_elif else []
        for i, statement in enumerate(new):
            if i and any(isinstance(s, ast.FunctionDef) for s in new[i - 1 : i + 1]):
                after.append("")
            text = ast.unparse(ast.fix_missing_locations(statement))
            after += [deeper + line for line in text.splitlines()]
        return self._patch(start, end, after, imports)

    def edited(self, node: ast.expr, text: str, imports: tuple[str, ...] = ()) -> Patch | None:
        """The patch that replaces an expression and keeps the rest of its lines.

        `text` must be an expression that needs no parentheses wherever it stands.
        """
        first, last = node.lineno, node.end_lineno
        if last is None or node.end_col_offset is None:
            return None
        head = _before(self.lines[first - 1], node.col_offset)
        tail = self.lines[last - 1].encode()[node.end_col_offset :].decode()
        return self._patch(first, last, [head + text + tail], imports)

    def _patch(self, first: int, last: int, after: list[str], imports: tuple[str, ...]) -> Patch:
        return Patch(
            self.name, first, last, tuple(self.lines[first - 1 : last]), tuple(after), imports
        )

    def names(self) -> set[str]:
        """Every identifier in the file."""
        found = {n.id for n in self.nodes() if isinstance(n, ast.Name)}
        found |= {n.arg for n in self.nodes() if isinstance(n, ast.arg)}
        return found | {
            n.name for n in self.nodes() if isinstance(n, (ast.FunctionDef, ast.ClassDef))
        }

    def fresh(self, *wanted: str) -> list[str]:
        """Names like those wanted that nothing in the file has."""
        taken = self.names()
        found = []
        for name in wanted:
            while name in taken:
                name += "_"
            taken.add(name)
            found.append(name)
        return found


def read_file(name: str, namespace: dict[str, Any] | None = None) -> File:
    """The file or cell of that name; `namespace` is that of its module, which may load the text."""
    return _read(name, tuple(linecache.getlines(name, namespace)))


@functools.lru_cache(maxsize=8)
def _read(name: str, lines: tuple[str, ...]) -> File:
    return File(name, lines)


def _before(line: str, column: int) -> str:
    """What stands before a column, which counts bytes of UTF-8."""
    return line.encode()[:column].decode()


def _parsed(lines: list[str]) -> ast.Module | None:
    python = [line if not _MAGIC.match(line) else "" for line in lines]
    for text in (lines, python, python):
        try:
            return ast.parse("\n".join(text))
        except (SyntaxError, ValueError, SystemError):  # of threads that parse at once, in 3.11
            continue
    return None


class Place:
    """Where the user's code failed: the innermost frame that is not ours, and the node it ran."""

    def __init__(self, frame: FrameType, node: ast.expr, file: File) -> None:
        self.frame, self.node, self.file = frame, node, file
        self.imports: list[str] = []
        # What parts of a condition are to be replaced with.
        self.instead: dict[ast.expr, ast.expr] = {}

    @property
    def parent(self) -> ast.AST:
        return self.file.parents[self.node]

    @property
    def line(self) -> str:
        """The place as messages show it."""
        return source.line_name(self.file.name, self.frame.f_lineno)

    def value(self, node: ast.AST) -> Any:
        """The value of an expression, if looking is enough; `UNKNOWN` if it would have to run.

        Looks up names, attributes of modules and of instances, and items of containers.
        """
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                for names in (self.frame.f_locals, self.frame.f_globals, vars(builtins)):
                    if name in names:
                        return names[name]
            case ast.Attribute(value=inner, attr=name):
                holder = self.value(inner)
                if isinstance(holder, ModuleType):
                    return getattr(holder, name, UNKNOWN)
                return getattr(holder, "__dict__", {}).get(name, UNKNOWN)
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                holder = self.value(inner)
                if type(holder) in (dict, list, tuple):
                    try:
                        return holder[key]
                    except (LookupError, TypeError):
                        return UNKNOWN
        return UNKNOWN

    def is_local(self, name: str) -> bool:
        """Whether assigning to a name has no effect outside the function.

        In a cell that is traced, what it assigns is returned.
        """
        code = self.frame.f_code
        return code.co_name == "<module>" or name in (*code.co_varnames, *code.co_cellvars)

    def is_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether an expression is one of Python's own functions."""
        found = self.value(node)
        return any(found is getattr(builtins, name) for name in names)

    def module(self, name: str, alias: str) -> str:
        """What the user's code calls one of our modules; imported as `alias` if it has no name.

        `name` is the full name of the module, as in `perspex.numpy`.
        """
        wanted = sys.modules[name]
        known = {**self.frame.f_globals, **self.frame.f_locals}
        for key, value in known.items():
            if isinstance(value, ModuleType):
                # A module of jax's may be one of ours in disguise (`perspex.as_jax`).
                found = vars(value).get("__perspex__", value)
                if found is wanted and not key.startswith("_"):
                    return key
        package, _, last = name.rpartition(".")
        line = f"import {name} as {alias}" if alias != last else f"from {package} import {last}"
        if alias in known:
            # The user means something else by it.
            line, alias = f"import {name}", name
        if line not in self.imports:
            self.imports.append(line)
        return alias

    def numpy(self) -> str:
        """What the user's code calls `perspex.numpy`."""
        return self.module("perspex.numpy", "jnp")

    def call(self, module: str, name: str, *args: ast.expr, **kwargs: ast.expr) -> ast.Call:
        """A call of one of our functions; `module` is what the user's code calls the module."""
        function = ast.parse(f"{module}.{name}", mode="eval").body
        keywords = [ast.keyword(key, value) for key, value in kwargs.items()]
        return ast.Call(function, list(args), keywords)

    def jnp(self, name: str, *args: ast.expr, **kwargs: ast.expr) -> ast.Call:
        """A call of a function of `perspex.numpy`."""
        return self.call(self.numpy(), name, *args, **kwargs)

    def lax(self, name: str, *args: ast.expr) -> ast.Call:
        """A call of a function of `perspex.lax`."""
        return self.call(self.module("perspex.lax", "lax"), name, *args)

    def edited(self, node: ast.expr, new: ast.expr) -> Patch | None:
        """The patch that replaces `node` with `new`."""
        text = ast.unparse(ast.fix_missing_locations(new))
        parent = self.file.parents[node]
        alone = isinstance(parent, (ast.Return, ast.Assign, ast.Expr, ast.AnnAssign))
        atom = isinstance(new, (ast.Call, ast.Name, ast.Attribute, ast.Subscript))
        text = text if atom or alone else f"({text})"
        return self.file.edited(node, text, self._imports(text))

    def replaced(self, first: ast.stmt, last: ast.stmt, *new: ast.stmt) -> Patch | None:
        """The patch that replaces statements with others."""
        text = "\n".join([ast.unparse(ast.fix_missing_locations(statement)) for statement in new])
        return self.file.replaced(first, last, list(new), self._imports(text))

    def _imports(self, text: str) -> tuple[str, ...]:
        return tuple([line for line in self.imports if f"{line.split()[-1]}." in text])


def find_place() -> Place | None:
    """The place that runs now; `None` where its text or its node cannot be found."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and source.is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else place_of(frame, frame.f_lasti)


def place_of(frame: FrameType, lasti: int) -> Place | None:
    """The place of an instruction in a frame."""
    code = frame.f_code
    positions = list(code.co_positions())
    at = positions[lasti // 2] if 0 <= lasti // 2 < len(positions) else None
    if at is None or None in at:
        return None
    file = read_file(code.co_filename, frame.f_globals)
    line, end_line, column, end_column = at
    for node in file.nodes():
        # Python 3.11 gives the jump after `if x:` the place of the whole statement.
        if (
            isinstance(node, (ast.expr, ast.If, ast.While))
            and (node.lineno, node.end_lineno) == (line, end_line)
            and (node.col_offset, node.end_col_offset) == (column, end_column)
        ):
            return Place(frame, node if isinstance(node, ast.expr) else _tested(node), file)
    return None


def _tested(statement: ast.If | ast.While) -> ast.expr:
    """What a statement asks whether it is true."""
    test = statement.test
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return test
