"""`%%jit`: a cell as one XLA program.

A cell that only defines functions has each of them jitted; any other cell is a `Program`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

import perspex
from perspex.base import events
from perspex_magics.commands.magic import ProgramMagic
from perspex_magics.display.listing import Listing
from perspex_magics.display.units import duration
from perspex_magics.notebook.cell import Cell, Head
from perspex_magics.notebook.options import MagicParser, flat
from perspex_magics.programs.program import (
    CELL,
    CellFunction,
    Layer,
    Program,
    Reads,
    call_by_outputs,
    restored_on_error,
)
from perspex_magics.programs.runner import CellMagic, Request, listed
from perspex_magics.programs.values import Outputs

parser = MagicParser(
    "jit",
    """Run a cell as one XLA program.

In a cell that only defines functions, each of them is jitted. In any other cell, the
names that it reads and that hold arrays, numbers or containers of them are its inputs;
the names that it assigns are its outputs and are assigned in the notebook; the value of
the last expression is displayed.""",
    """Python runs only while the cell is traced: `print` shows tracers, once. Strings,
functions and other objects that the cell reads are captured as they are.
%%grad and %%vmap may follow below and are then part of the program.

    %%jit --static n --time
    for _ in range(n):
        x = 0.5 * (x + a / x)
    x""",
)
parser.add_names("--static", help="names whose values Python may depend on; compiled in")
parser.add_names("--donate", help="inputs whose buffers may be reused; do not use them afterwards")
parser.add_argument("--name", metavar="STEP", help="the name of the program (cell)")
parser.add_argument("--time", action="store_true", help="print the time of each stage")
parser.add_argument(
    "--show", choices=["jaxpr", "stablehlo", "hlo"], help="display the program at that stage"
)


@dataclass(frozen=True)
class JitLayer(Layer):
    """Compiles what is below it, as one program called `name`."""

    magic: str = "jit"
    name: str = CELL
    static_names: tuple[str, ...] = ()
    donated_names: tuple[str, ...] = ()

    @property
    def static(self) -> tuple[str, ...]:
        return self.static_names

    @property
    def donated(self) -> tuple[str, ...]:
        return self.donated_names

    @property
    def traces(self) -> bool:
        return True

    def check(self, cell: Cell, reads: Reads) -> None:
        if unknown := {*self.static, *self.donated} - reads.names.reads:
            raise UsageError(f"%%jit: this cell does not read {listed(unknown)}")
        if unknown := set(self.donated) - reads.given.keys():
            raise UsageError(f"%%jit: {listed(unknown)} cannot be donated: not an array")

    def apply(self, function: CellFunction, program: Program) -> CellFunction:
        def traced(**arguments: Any) -> Outputs:
            return function(**arguments)

        traced.__name__ = traced.__qualname__ = self.name
        if self.name == CELL:
            call_by_outputs(traced, program)
        return perspex.jit(traced, donate_argnames=self.donated)


def _layers(options: argparse.Namespace, head: Head) -> list[Layer]:
    static, donate = flat(options.static), flat(options.donate)
    name = options.name or CELL
    return [JitLayer(head.row, "jit", name, static, donate)]


cell_magic_of_jit = CellMagic(parser, _layers, of_top=("help", "time", "show"))


class JitMagics(ProgramMagic):
    """Run a cell as one XLA program. `%%jit --help` lists the options.

    A cell that only defines functions: each of them is jitted. Any other cell: the names that
    it reads and that hold arrays, numbers or containers of them are its inputs; the names that
    it assigns are its outputs and land in the notebook; the value of the last expression is
    displayed. If the cell fails, no name in the notebook has changed.
    """

    cell_magic = cell_magic_of_jit
    is_silenced = True

    def on_cell(self, options: argparse.Namespace, line: str, body: str) -> Any:
        request = self.runner.read("jit", line, body)
        if request is None:
            return None
        functions = _only_functions(request.cell.tree) if len(request.layers) == 1 else []
        if functions:
            with self.runner.one_at_a_time, restored_on_error(self.shell.user_ns):
                self._define(request, functions)
            return None

        @contextmanager
        def watched(program: Program, reads: Reads) -> Iterator[Any]:
            if options.show:
                display(_show(program, reads, options.show))
            if not options.time:
                yield None
                return
            with _Stages(options.name or CELL) as stages:
                yield stages.report

        return self.runner.run(request, watched)

    def _define(self, request: Request, functions: list[str]) -> None:
        """Run a cell of definitions, and jit the functions that it made."""
        options = request.options
        given = {"--name": options.name, "--time": options.time, "--show": options.show}
        for flag in (flag for flag, value in given.items() if value):
            raise UsageError(
                f"%%jit {flag} is for a cell of statements; this cell only defines functions"
            )
        statements, _ = request.cell.compile(self.shell)
        namespace = self.shell.user_ns
        exec(statements, self.shell.user_global_ns, namespace)
        static, donate = flat(options.static), flat(options.donate)
        unknown = {*static, *donate}
        for name in functions:
            parameters = inspect.signature(namespace[name]).parameters
            unknown -= parameters.keys()
            namespace[name] = perspex.jit(
                namespace[name],
                static_argnames=tuple(n for n in static if n in parameters),
                donate_argnames=tuple(n for n in donate if n in parameters),
            )
        if unknown:
            raise UsageError(f"%%jit: no function here has a parameter {listed(unknown)}")


def _only_functions(tree: ast.Module) -> list[str]:
    """The functions that a cell defines, if definitions and imports are all there is in it."""
    functions, asynchronous = [], []
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                functions.append(name)
            case ast.AsyncFunctionDef(name=name):
                asynchronous.append(name)
            case ast.ClassDef() | ast.Import() | ast.ImportFrom():
                continue
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case _:
                return []
    if asynchronous:
        raise UsageError(f"%%jit: {listed(set(asynchronous))} is async and cannot be jitted")
    return list(dict.fromkeys(functions))


def _show(program: Program, reads: Reads, stage: str) -> Listing:
    """The program's text at a stage. What is traced for it is kept for the run."""
    traced = program.call.trace(**reads.arguments)
    if stage == "jaxpr":
        text = str(traced.jaxpr)
    else:
        lowered = traced.lower()
        text = lowered.as_text() if stage == "stablehlo" else lowered.compile().as_text()
    return Listing(stage, text, form=stage)


class _Stages:
    """Listens to what the core says about one program while it is called."""

    def __init__(self, name: str) -> None:
        self.name, self.thread = name, threading.get_ident()
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> _Stages:
        self.started = time.perf_counter()
        self.stop = events.subscribe(self.note)
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def note(self, event: events.Event) -> None:
        is_ours = event.name == self.name and threading.get_ident() == self.thread
        if is_ours and event.kind in ("trace", "lower", "compile"):
            self.seconds[event.kind] = self.seconds.get(event.kind, 0.0) + event.seconds

    def report(self, results: dict[str, Any]) -> None:
        """Print `trace 1.20 ms, lower 800 us, compile 31.0 ms, run 100 us`."""
        perspex.block_until_ready(list(results.values()))
        run = time.perf_counter() - self.started - sum(self.seconds.values())
        stages = {**self.seconds, "run": run}
        print(", ".join(f"{name} {duration(seconds)}" for name, seconds in stages.items()))
