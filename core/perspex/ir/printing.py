"""Jaxprs as text, in JAX's notation.

A small document algebra after Wadler's "A prettier printer" (2003): text, line breaks, indentation
and groups that are laid out on one line where they fit. The printer gives variables their names,
`a b c ... z ba bb` (numbers in base 26), in the order in which it meets them. It knows programs
only by their fields, so that `jaxpr`, which prints itself with it, can stand above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

_WIDTH = 80


# ---- Documents ----------------------------------------------------------------------------------


class _Break(NamedTuple):
    flat: str  # what stands here when the group is on one line


class _Nest(NamedTuple):
    indent: int
    doc: Any


class _Group(NamedTuple):
    doc: Any


class _Fill(NamedTuple):
    words: list[str]  # as many on each line as fit


class _Equation(NamedTuple):
    """An equation in its parts, and its text on one line if it holds no program.

    Nearly all equations are short, so that the text is all that is needed of them.
    """

    eqn: Any
    outputs: list[str]
    params: list[tuple[str, Any]]
    operands: list[str]
    flat: str | None

    @property
    def doc(self) -> _Doc:
        outputs = _Nest(2, _Fill(self.outputs))
        operands = _Nest(2, _Fill(self.operands))
        params: _Doc = ""
        if self.params:
            shown = [[f"{key}=", value] for key, value in self.params]
            inner = ["[", _Break(""), *_join(_Break(" "), shown)]
            params = _Group([_Nest(2, inner), _Break(""), "]"])
        equals = " = " if self.outputs else ""
        return [outputs, equals, self.eqn.primitive.name, params, " ", operands]


class _End(NamedTuple):
    """Here ends the text of the innermost equation."""


_END = _End()


_Doc = Any  # str | _Break | _Nest | _Group | _Fill | _Equation | _End | list[_Doc]


def _join(separator: _Doc, docs: Iterable[_Doc]) -> list[_Doc]:
    out: list[_Doc] = []
    for doc in docs:
        if out:
            out.append(separator)
        out.append(doc)
    return out


def _fits(doc: _Doc, room: int) -> bool:
    """Whether `doc` on one line takes at most `room` columns."""
    todo = [doc]
    while todo and room >= 0:
        item = todo.pop()
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, _Break):
            room -= len(item.flat)
        elif isinstance(item, list):
            todo.extend(reversed(item))
        elif isinstance(item, _Fill):
            room -= len(" ".join(item.words))
        elif isinstance(item, _Equation) and item.flat is not None:
            room -= len(item.flat)
        elif isinstance(item, (_Nest, _Group, _Equation)):
            todo.append(item.doc)
    return room >= 0


def _layout(
    doc: _Doc, width: int, mark: Callable[[int, _Equation | _End], None] | None = None
) -> list[str]:
    """The pieces of the text.

    `mark(n, item)` is called at the begin and end of each equation before the n-th.
    """
    out: list[str] = []
    column = 0
    todo: list[tuple[int, bool, _Doc]] = [(0, False, doc)]
    while todo:
        indent, flat, item = todo.pop()
        if isinstance(item, str):
            out.append(item)
            column += len(item)
        elif isinstance(item, _Equation):
            if mark is not None:
                mark(len(out), item)
            if item.flat is not None and (flat or column + len(item.flat) <= width):
                out.append(item.flat)
                column += len(item.flat)
                if mark is not None:
                    mark(len(out), _END)
            else:
                todo += [(indent, flat, _END), (indent, flat, item.doc)]
        elif isinstance(item, list):
            todo.extend([(indent, flat, part) for part in reversed(item)])
        elif isinstance(item, _Fill):
            for i, word in enumerate(item.words):
                if i and not flat and column - indent + 1 + len(word) > width:
                    out.append("\n" + " " * indent)
                    column = indent
                elif i:
                    out.append(" ")
                    column += 1
                out.append(word)
                column += len(word)
        elif isinstance(item, _Nest):
            todo.append((indent + item.indent, flat, item.doc))
        elif isinstance(item, _Group):
            todo.append((indent, flat or _fits(item.doc, width - column), item.doc))
        elif isinstance(item, _End):
            if mark is not None:
                mark(len(out), item)
        elif flat:
            out.append(item.flat)
            column += len(item.flat)
        else:
            out.append("\n" + " " * indent)
            column = indent
    return out


# ---- Programs -----------------------------------------------------------------------------------


def _is_closed(value: Any) -> bool:
    return hasattr(value, "jaxpr") and hasattr(value, "consts")


def _is_literal(atom: Any) -> bool:
    return hasattr(atom, "val")


class _Printer:
    """Names variables and turns programs into documents."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.types: dict[Any, str] = {}
        self.count = 0
        self.shared: dict[int, str] = {}

    def name(self, var: Any) -> str:
        found = self.names.get(var)
        if found is None:
            n, found = self.count // 26, chr(ord("a") + self.count % 26)
            self.count += 1
            while n:
                n, digit = divmod(n, 26)
                found = chr(ord("a") + digit) + found
            self.names[var] = found
        return found

    def type(self, aval: Any) -> str:
        found = self.types.get(aval)
        if found is None:
            found = self.types[aval] = aval.str_short()
        return found

    def binder(self, var: Any) -> str:
        return f"{self.name(var)}:{self.type(var.aval)}"

    def atom(self, atom: Any) -> str:
        if not _is_literal(atom):
            return self.name(atom)
        value = np.asarray(atom.val)
        shown = repr(value.item()) if value.ndim == 0 else f"[{value.size} numbers]"
        return f"{shown}:{self.type(atom.aval)}"

    def variables(self, texts: Iterable[str]) -> _Doc:
        return _Nest(2, _Fill(list(texts)))

    def jaxpr(self, jaxpr: Any) -> _Doc:
        consts = self.variables([self.binder(v) for v in jaxpr.constvars])
        invars = self.variables([self.binder(v) for v in jaxpr.invars])
        used = {v for v in jaxpr.outvars if not _is_literal(v)}
        for eqn in jaxpr.eqns:
            used.update([v for v in eqn.invars if not _is_literal(v)])
        eqns = [self.equation(eqn, used) for eqn in jaxpr.eqns]
        outs = [self.atom(v) for v in jaxpr.outvars]
        results = f"({outs[0]},)" if len(outs) == 1 else f"({', '.join(outs)})"
        body = _Nest(2, [_Break(" "), *_join(_Break("; "), eqns)])
        inner = [body, _Break(" "), f"in {results} }}"]
        binders = _Nest(2, [consts, "; ", invars, ". let"])
        return _Group(["{ lambda ", binders, _Nest(2, inner)])

    def equation(self, eqn: Any, used: set[Any] | None = None) -> _Doc:
        left = [
            self.binder(v) if used is None or v in used else f"_:{self.type(v.aval)}"
            for v in eqn.outvars
        ]
        params = self.params(eqn)
        operands = [self.atom(v) for v in eqn.invars]
        notation = eqn.primitive.notation
        if notation is not None:
            is_read = used is None or any(v in used for v in eqn.outvars)
            return _Equation(eqn, left, params, operands, notation(eqn, left, operands, is_read))
        flat = None
        if all([isinstance(value, str) for _, value in params]):
            name = eqn.primitive.name
            if params:
                name += f"[{' '.join([f'{key}={value}' for key, value in params])}]"
            equals = " = " if left else ""
            flat = f"{' '.join(left)}{equals}{name} {' '.join(operands)}"
        return _Equation(eqn, left, params, operands, flat)

    def params(self, eqn: Any) -> list[tuple[str, _Doc]]:
        """The params that are printed, in order."""
        quiet = eqn.primitive.quiet
        params = {**eqn.primitive.printed, **eqn.params}
        if not params:
            return []
        return [
            (key, self.value(value, eqn))
            for key, value in sorted(params.items(), key=lambda kv: (kv[0] != "name", kv[0]))
            if not (key in quiet and (quiet[key] is ... or quiet[key] == value))
        ]

    def value(self, value: Any, eqn: Any) -> _Doc:
        if _is_closed(value):
            shared = self.shared.get(id(value))
            if shared is not None:
                return shared
            if eqn.primitive.same_variables:
                self.suggest(value.jaxpr, eqn)
            return self.jaxpr(value.jaxpr)
        if isinstance(value, tuple) and value and all(_is_closed(v) for v in value):
            inner = ["(", _Break(""), *_join(_Break(" "), [self.value(v, eqn) for v in value])]
            return _Group([_Nest(2, inner), _Break(""), ")"])
        if isinstance(value, np.dtype):
            return value.name
        if isinstance(value, type) or callable(value):
            return getattr(value, "__name__", repr(value))
        return str(value)

    def suggest(self, jaxpr: Any, eqn: Any) -> None:
        """Let the variables of a callee have the names of those it is called with."""
        for inner, outer in (
            *zip(jaxpr.invars, eqn.invars, strict=True),
            *zip(jaxpr.outvars, eqn.outvars, strict=True),
        ):
            if not _is_literal(inner) and not _is_literal(outer) and outer in self.names:
                self.names.setdefault(inner, self.names[outer])

    def share(self, jaxpr: Any) -> list[Any]:
        """Programs that are called more than once get a name, and are printed before."""
        seen: dict[int, list[Any]] = {}

        def visit(jaxpr: Any) -> None:
            for eqn in jaxpr.eqns:
                for value in eqn.params.values():
                    for item in value if isinstance(value, tuple) else (value,):
                        if _is_closed(item):
                            name = eqn.params.get("name", "jaxpr")
                            entry = seen.setdefault(id(item), [item, name, 0])
                            entry[2] += 1
                            if entry[2] == 1:
                                visit(item.jaxpr)

        visit(jaxpr)
        found, taken = [], set()
        for item, name, times in seen.values():
            if times > 1 and name:
                name = name.strip("<>")
                unique, n = name, 1
                while unique in taken:
                    unique, n = f"{name}{n}", n + 1
                taken.add(unique)
                found.append((item, unique))
        return found


def _documents(printer: _Printer, jaxpr: Any) -> list[_Doc]:
    """The programs that are called more than once, and the program itself."""
    bindings: list[_Doc] = []
    # Innermost first: a shared program may use another.
    for item, name in reversed(printer.share(jaxpr)):
        bindings.append([f"let {name} = ", printer.jaxpr(item.jaxpr), " in"])
        printer.shared[id(item)] = name
    return [*bindings, printer.jaxpr(jaxpr)]


def program(jaxpr: Any, width: int = _WIDTH) -> str:
    """A jaxpr in JAX's notation, on lines of at most `width` columns where that is possible.

    >>> import perspex, perspex.numpy as pnp
    >>> print(perspex.make_jaxpr(lambda x: pnp.sin(x) * 2)(pnp.zeros(3)))
    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }
    """
    docs = _documents(_Printer(), jaxpr)
    return "\n".join(["".join(_layout(doc, width)) for doc in docs])


def equation(eqn: Any, width: int = _WIDTH) -> str:
    """One equation in JAX's notation."""
    return "".join(_layout(_Printer().equation(eqn), width))


# ---- Listings -----------------------------------------------------------------------------------


class Entry(NamedTuple):
    """An equation of a listing: in whose program it stands (-1: in none's), what it binds."""

    eqn: Any
    parent: int
    outputs: list[str]


class Listing(NamedTuple):
    """A program line by line, with the equations that have text of their own on each.

    Equations are numbered in the order in which they are printed.
    """

    lines: list[tuple[str, list[int]]]
    entries: list[Entry]


def listing(jaxpr: Any, width: int = _WIDTH) -> Listing:
    """`program`, with the numbers of its equations.

    >>> import perspex, perspex.numpy as pnp
    >>> closed = perspex.make_jaxpr(lambda x: pnp.sin(x) * 2)(pnp.zeros(3))
    >>> for line in listing(closed.jaxpr, width=40).lines:
    ...     print(line)
    ('{ lambda ; a:f32[3]. let', [])
    ('    b:f32[3] = sin a', [0])
    ('    c:f32[3] = mul b 2.0:f32[]', [1])
    ('  in (c,) }', [])
    """
    printer = _Printer()
    found = Listing([], [])
    for doc in _documents(printer, jaxpr):
        _add_lines(found, doc, width)
    return found


def _add_lines(found: Listing, doc: _Doc, width: int) -> None:
    lines, entries = found
    inside = [-1]
    begins: dict[int, int] = {}  # from which piece on the text is whose

    def mark(piece: int, item: _Equation | _End) -> None:
        if isinstance(item, _End):
            inside.pop()
        else:
            entries.append(Entry(item.eqn, inside[-1], item.outputs))
            inside.append(len(entries) - 1)
        begins[piece] = inside[-1]

    pieces = _layout(doc, width, mark)
    line: list[str] = []
    links: list[int] = []
    current = -1
    for i, piece in enumerate(pieces):
        current = begins.get(i, current)
        for n, text in enumerate(piece.split("\n")):
            if n:
                lines.append(("".join(line), links))
                line, links = [], []
            line.append(text)
            # Indentation is nobody's.
            if current >= 0 and current not in links and text.strip():
                links.append(current)
    lines.append(("".join(line), links))
