"""What `%%jit`, `%%grad`, `%%vmap` and `%%jaxpr` share: reading a cell, and running it.

Programs are kept by the text of their cell and the magics above it, and traced again only when what
they read has changed its structure or, if it is not an input, its value.
"""

from __future__ import annotations

import argparse
import ast
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import perspex
from perspex import tree
from perspex.base.recent import Recent
from perspex.errors import JAXIndexError, JAXTypeError
from perspex.jitted.signature import function_name
from perspex_magics.captures import kept
from perspex_magics.captures.codes import known_code
from perspex_magics.captures.kept import Kept
from perspex_magics.captures.tokens import State
from perspex_magics.notebook.cell import Cell, Head, read_cell
from perspex_magics.notebook.names import READ_BY_NAME, Names
from perspex_magics.notebook.options import LineParser, MagicParser
from perspex_magics.programs.expressions import Call, with_arguments_seen
from perspex_magics.programs.program import Layer, Program, Reads, restored_on_error
from perspex_magics.programs.values import RESULT, Given, split

# How many cells are remembered, and how many programs for each: one program per structure of the
# inputs and per state of the captures, which it keeps alive. The least recently used goes first.
_MOST_CELLS = 128
_MOST_PROGRAMS = 8
# How many programs of a line's call that differ in what they captured.
_MOST_CAPTURES = 2
_PLAIN = (str, bytes, int, float, complex, type(None))


@dataclass(frozen=True)
class CellMagic:
    """A magic that may stand above a cell of statements: its options, and what they ask for.

    `layers` are made of the options and of the magic's line, outermost first. The options named in
    `of_top` are about the whole cell, so only the topmost magic may have them.
    """

    parser: MagicParser
    layers: Callable[[argparse.Namespace, Head], list[Layer]]
    of_top: tuple[str, ...] = ("help",)


@dataclass(frozen=True)
class Request:
    """A cell to be run: what the options of its topmost magic say, and all its layers."""

    cell: Cell
    options: argparse.Namespace
    layers: tuple[Layer, ...]


class Runner:
    """Runs the cells of one notebook, and holds their programs."""

    def __init__(
        self,
        shell: InteractiveShell,
        magics: Mapping[str, CellMagic],
        line_parsers: Mapping[str, LineParser],
    ) -> None:
        self.shell = shell
        self.magics = magics
        self.line_parsers = line_parsers
        # A notebook runs cells in several threads if its front end uses subshells.
        self.one_at_a_time = threading.RLock()
        self.names = Recent[Hashable, Names](_MOST_CELLS)
        self.cells = Recent[Hashable, Kept[Program]](_MOST_CELLS)
        self.calls = Recent[Hashable, Kept[Callable[..., Any]]](_MOST_CELLS)

    def read(self, magic: str, line: str, body: str) -> Request | None:
        """The cell below `%%magic line`; `None` where it asked for help, which has been printed."""
        top = self.magics[magic].parser.parse(line)
        if top.help:
            print(self.magics[magic].parser.format_help())
            return None
        cell = read_cell(self.shell, magic, line, body, self.magics.keys(), self._seen)
        layers: list[Layer] = []
        for head in cell.heads:
            found = self.magics[head.magic]
            options = found.parser.parse(head.line)
            for flag in found.of_top if head is not cell.heads[0] else ():
                if getattr(options, flag):
                    raise UsageError(
                        f"%%{head.magic} --{flag} is for the topmost line of a cell; move it there"
                    )
            layers += found.layers(options, head)
        return Request(cell, top, tuple(layers))

    def run(
        self,
        request: Request,
        inspect: Callable[[Program, Reads], AbstractContextManager[Any]] = (
            lambda program, reads: nullcontext()
        ),
    ) -> Any:
        """Run a cell of statements, and put its outputs into the notebook.

        `inspect` may look at the program before it runs, and gives a context to run it in.
        """
        namespace = self.shell.user_ns
        with self.one_at_a_time, restored_on_error(namespace):
            program, reads = self.prepare(request)
            try:
                with inspect(program, reads) as watch:
                    results, deleted = program.run(request.cell, reads)
                    if watch is not None:
                        watch(results)
            except (JAXTypeError, JAXIndexError) as error:
                _add_hint(error, request, reads)
                raise
            result = results.pop(RESULT)
            for name in deleted:
                namespace.pop(name, None)
            namespace.update(results)
            return result

    def prepare(self, request: Request) -> tuple[Program, Reads]:
        """The program for a cell and for what it reads now, made or remembered."""
        cell, layers = request.cell, request.layers
        traces = any(layer.traces for layer in layers)
        if traces and _awaits(cell.tree):
            raise UsageError(
                f"%%{cell.heads[0].magic}: `await`, `async for` and `async with` cannot be part of "
                "a program, which runs on the device; wait in a cell of its own, before or after"
            )
        names = self.names.recall(cell.body, cell.names)
        if traces and "get_ipython" in names.reads:
            raise UsageError(
                f"%%{cell.heads[0].magic}: magics and shell commands cannot be part of a program; "
                "run them in a cell of their own"
            )
        static = [name for layer in layers for name in layer.static]
        reads = Reads(names, self.shell.user_ns, static)
        for layer in layers:
            layer.check(cell, reads)

        if traces and not names.reads & READ_BY_NAME:

            def make(state: State, last: Program | None) -> Program:
                program = Program(self.shell, reads, layers, state)
                if last is not None:
                    program.take_place_of(last)
                return program

            programs = self.cells.recall((cell.body, layers), lambda: Kept(_MOST_PROGRAMS))
            program = programs.recall(reads.structures, reads.captures, make)
        else:
            program = Program(self.shell, reads, layers)
        program.cell = cell
        return program, reads

    def _seen(self, tree: ast.Module) -> ast.Module:
        return with_arguments_seen(tree, self.line_parsers)

    def run_compiled(
        self,
        call: Call,
        settings: Hashable,
        chosen: Sequence[int | str],
        carry_out: Callable[[Call], Any],
    ) -> Any:
        """What `carry_out` makes of the call, as a program of all arrays in its arguments.

        `settings` say all that `carry_out` depends on besides the call, and `chosen` are the places
        of the arguments that it is about. In a function of ours other numbers are part of the
        program, as they have to be where they are axes and sizes.
        """
        places = list(dict.fromkeys([*call.places, *chosen]))
        given: dict[int | str, Given] = {}
        for place in places:
            value = split(call[place])
            is_free = place in chosen or not call.is_of_ours or not _is_of_numbers(call[place])
            if value is not None and is_free:
                given[place] = value
        names = _names_of(call, given)
        fixed: list[tuple[Any, Any]]
        fixed = [(place, call[place]) for place in places if place not in given]
        fixed += [((at, i), x) for at, value in given.items() for i, x in value.fixed.items()]

        def make(state: State, last: object) -> Callable[..., Any]:
            # The program is remembered, and must not keep the arrays of this call.
            empty = {place: replace(value, argument=None) for place, value in given.items()}
            call_of = call.changed(dict.fromkeys(given)).changed

            def compiled(**arguments: Any) -> Any:
                arrays = {names[name]: x for name, x in arguments.items()}
                rebuilt = {place: empty[place].rebuild(x) for place, x in arrays.items()}
                return carry_out(call_of(rebuilt))

            compiled.__name__ = function_name(call.function)
            return perspex.jit(compiled)

        plain = tuple([(at, type(x), repr(x)) for at, x in fixed if isinstance(x, _PLAIN)])
        structures = tuple([(place, value.structure) for place, value in given.items()])
        code = getattr(getattr(call.function, "__func__", call.function), "__code__", None)
        meaning = known_code(code).meaning if isinstance(code, CodeType) else None
        group = settings, tuple(places), meaning, plain
        # No name of the notebook is like these.
        values = {f"argument {at}": x for at, x in fixed if not isinstance(x, _PLAIN)}
        reads = kept.Reads(self.shell.user_ns, {"the function": call.function, **values})
        with self.one_at_a_time:
            # What was captured before is hardly ever captured again, and would be kept alive.
            programs = self.calls.recall((group, structures), lambda: Kept(_MOST_CAPTURES))
            program = programs.recall(tuple(values), reads, make)
        return program(**{name: given[place].argument for name, place in names.items()})


_WAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _awaits(node: ast.AST) -> bool:
    """Whether the cell itself waits for a coroutine, and not only a function in it."""
    parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, _FUNCTIONS)]
    return any(isinstance(part, _WAITS) or _awaits(part) for part in parts)


def _is_of_numbers(value: Any) -> bool:
    return all(isinstance(leaf, int) for leaf in tree.leaves(value))


def _names_of(call: Call, places: Iterable[int | str]) -> dict[str, int | str]:
    """Places by what the function calls its arguments, where that is one of them only."""
    found: dict[str, int | str] = {}
    for place in places:
        name = call.shown(place)
        while name in found:
            name += "_"
        found[name] = place
    return found


def listed(names: set[str]) -> str:
    """Names for a message: `a`, `b`."""
    return ", ".join(f"`{name}`" for name in sorted(names))


def _add_hint(error: BaseException, request: Request, reads: Reads) -> None:
    values = reads.namespace
    numbers = [name for name in reads.given if isinstance(values.get(name), bool | int | float)]
    if not numbers or not any(layer.traces for layer in request.layers):
        return
    given = ",".join(numbers)
    instead = "" if request.cell.heads[0].magic == "jit" else " on top, instead of --jit"
    error.add_note(
        f"These Python numbers are inputs of the compiled cell: {listed(set(numbers))}. "
        f"If Python needs the value of one, compile it in: `%%jit --static {given}`{instead}"
    )
