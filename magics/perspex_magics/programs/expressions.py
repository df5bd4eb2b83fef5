"""The expression on the line of `%grad`, `%vmap` or `%jaxpr`, and the call that it may be.

An expression is evaluated as if it stood on the line of its magic: its names are those of the
notebook or of the function around it, and errors and equations name that line.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.captures.homes import Globals
from perspex_magics.notebook.cell import calling_line
from perspex_magics.notebook.names import READ_BY_NAME, Names, find_names, global_reads
from perspex_magics.notebook.options import LineParser

# Stands for the function of a call that is taken apart; no identifier, so it hides no name.
_TAKE_APART = "<take apart>"


@dataclass
class Call:
    """A function and its arguments, evaluated, with a place for each: an index or a name.

    `positional` arguments were given by position. `parameters` says where each parameter's argument
    is, `variables` where the names stand that are arguments themselves, `texts` how arguments were
    written. `defaults` are those of parameters that were given no argument, by their places.
    """

    function: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    positional: int
    parameters: dict[str, int | str]
    variables: dict[str, list[int | str]]
    texts: dict[int | str, str]
    defaults: dict[int | str, Any]

    def __getitem__(self, place: int | str) -> Any:
        if place in self.defaults:
            return self.defaults[place]
        return self.args[place] if isinstance(place, int) else self.kwargs[place]

    def shown(self, place: int | str) -> str:
        """What the function calls its argument in a place."""
        known = {there: name for name, there in self.parameters.items()}
        return known.get(place, f"argument {place}" if isinstance(place, int) else place)

    @property
    def places(self) -> list[int | str]:
        """The places of the arguments that it was given."""
        return [*range(len(self.args)), *self.kwargs]

    @property
    def is_of_ours(self) -> bool:
        """Whether the function is one of Perspex, whose numbers are mostly axes and sizes."""
        return str(getattr(self.function, "__module__", "")).startswith("perspex")

    def changed(self, chosen: Mapping[int | str, Any]) -> Call:
        """The call with other arguments in some places."""
        given = dict[int | str, Any](enumerate(self.args))
        given.update(self.kwargs)
        given.update(chosen)
        count = 1 + max([place for place in given if isinstance(place, int)], default=-1)
        # Those by position have all before them.
        args = [given.pop(i) if i in given else self.defaults[i] for i in range(count)]
        kwargs = {str(name): x for name, x in given.items()}
        return replace(self, args=args, kwargs=kwargs)

    def run(self, chosen: Mapping[int | str, Any]) -> Any:
        """Call the function, with other arguments in some places."""
        call = self.changed(chosen)
        return call.function(*call.args, **call.kwargs)


class Expression:
    """A Python expression in a namespace.

    Raises:
      UsageError: if the text is not an expression.
    """

    def __init__(
        self, shell: InteractiveShell, magic: str, text: str, local: Mapping[str, Any] | None
    ) -> None:
        self.magic, self.text = magic, text
        self.node = parse_expression(magic, text)
        self.filename, row = calling_line(shell)
        # The line holds the expression as it was written, so places in it can be pointed at.
        column = max(linecache.getline(self.filename, row).find(text), 0)
        for node in ast.walk(self.node):
            if isinstance(node, ast.expr | ast.keyword):
                node.lineno = node.end_lineno = row
                node.col_offset += column
                node.end_col_offset = (node.end_col_offset or 0) + column
        self.namespace = {**shell.user_ns, **(local or {})}

    @property
    def names(self) -> Names:
        """What the expression reads."""
        return find_names([ast.copy_location(ast.Expr(self.node), self.node)])

    @property
    def reads(self) -> list[str]:
        """The names that it reads, in the order in which they stand."""
        found = [node for node in ast.walk(self.node) if isinstance(node, ast.Name)]
        found.sort(key=lambda node: node.col_offset)
        reads = self.names.reads
        return [name for name in dict.fromkeys(node.id for node in found) if name in reads]

    def evaluate(self, changes: Mapping[str, Any] | None = None) -> Any:
        """Its value, where some names hold something else."""
        return self._evaluated(self.node, changes or {})

    def _evaluated(self, node: ast.expr, changes: Mapping[str, Any]) -> Any:
        code = compile(ast.Expression(node), self.filename, "eval", dont_inherit=True)
        # No more than it reads, since a function that it makes keeps that for as long as it lives.
        names, everything = global_reads(code), {**self.namespace, **changes}
        if not names & READ_BY_NAME:
            names |= {"__name__", "__builtins__"}
            everything = {name: x for name, x in everything.items() if name in names}
        return eval(code, Globals(everything))

    @property
    def is_call(self) -> bool:
        return isinstance(self.node, ast.Call)

    def call(self, changes: Mapping[str, Any] | None = None) -> Call:
        """The call that the expression is, with its function and arguments evaluated."""
        node = self.node
        assert isinstance(node, ast.Call)
        take_apart = ast.copy_location(ast.Name(_TAKE_APART, ast.Load()), node.func)
        apart = ast.Call(take_apart, [node.func, *node.args], node.keywords)
        changes = {**(changes or {}), _TAKE_APART: lambda f, *a, **k: (f, list(a), k)}
        function, args, kwargs = self._evaluated(ast.copy_location(apart, node), changes)
        positional = len(args)
        parameters: dict[str, int | str] = {}
        defaults: dict[int | str, Any] = {}
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            # Builtins have none, and where the arguments are wrong the call itself says it better.
            pass
        else:
            args, kwargs = list(bound.args), dict(bound.kwargs)
            for i, (name, parameter) in enumerate(bound.signature.parameters.items()):
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    continue
                is_by_name = parameter.kind is parameter.KEYWORD_ONLY or (
                    i >= len(args) and parameter.kind is not parameter.POSITIONAL_ONLY
                )
                parameters[name] = name if is_by_name else i
                if name not in bound.arguments:
                    defaults[parameters[name]] = parameter.default
        parameters |= {name: name for name in kwargs if name not in parameters}
        written: list[tuple[int | str, ast.expr]] = []
        for i, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                break
            written.append((i, argument))
        written += [(parameters[k.arg], k.value) for k in node.keywords if k.arg is not None]
        variables: dict[str, list[int | str]] = {}
        for place, argument in written:
            if isinstance(argument, ast.Name):
                variables.setdefault(argument.id, []).append(place)
        texts = {place: ast.unparse(argument) for place, argument in written}
        return Call(function, args, kwargs, positional, parameters, variables, texts, defaults)

    def place(self, call: Call, name: str) -> int | str | None:
        """Which argument of the call `name` is, as a parameter or as what is passed.

        `None` where it is a variable that the arguments are made of, or several of them.
        """
        mine, passed = call.parameters.get(name), call.variables.get(name, [])
        if mine is not None:
            if passed and passed != [mine]:
                raise UsageError(
                    f"%{self.magic}: `{name}` is a parameter of the function and also the variable "
                    "passed for another one; rename the variable"
                )
            return mine
        stands = [n for n in ast.walk(self.node) if isinstance(n, ast.Name) and n.id == name]
        if len(passed) == len(stands) == 1:
            return passed[0]
        if name in self.reads:
            return None
        known = ", ".join(f"`{n}`" for n in dict.fromkeys([*call.parameters, *call.variables]))
        raise UsageError(f"%{self.magic}: `{self.text}` has no argument `{name}`; it has {known}")


def parameter_numbers(
    expression: Expression, function: Callable[..., Any], names: Sequence[str]
) -> tuple[int, ...]:
    """Which positional parameters of a function `names` are."""
    if not names:
        return ()
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise UsageError(
            f"%{expression.magic}: `{expression.text}` does not tell the names of its parameters; "
            "wrap it in a function of your own"
        ) from None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [name for name, parameter in parameters.items() if parameter.kind in kinds]
    for name in names:
        if name not in positional:
            known = ", ".join(f"`{n}`" for n in positional)
            raise UsageError(
                f"%{expression.magic}: `{expression.text}` has no positional parameter `{name}`; "
                f"it has {known or 'none'}"
            )
    return tuple([positional.index(name) for name in names])


def parse_expression(magic: str, text: str) -> ast.expr:
    """The syntax tree of the expression under a line magic."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"%{magic}: `{text}` is not a Python expression: {error.msg}") from None


class _Seen(ast.NodeTransformer):
    """Puts the expression in the place of the magic that evaluates it."""

    def __init__(self, parsers: Mapping[str, LineParser]) -> None:
        self.parsers = parsers

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(func=ast.Name(id="get_ipython")), attr="run_line_magic"
                ),
                args=[ast.Constant(value=str(magic)), ast.Constant(value=str(line))],
            ) if magic in self.parsers:
                _, text = self.parsers[magic].split_line(line)
                if text:
                    found = parse_expression(magic, text)
                    return ast.fix_missing_locations(ast.copy_location(found, node))
        return self.generic_visit(node)


def with_arguments_seen(tree: ast.Module, parsers: Mapping[str, LineParser]) -> ast.Module:
    """A copy of a cell's tree in which line magics of ours are the expressions that they take.

    It is for looking at: a cell with `%grad f(w, x)` in it reads `f`, `w` and `x`.
    """
    seen: ast.Module = _Seen(parsers).visit(copy.deepcopy(tree))
    return seen
