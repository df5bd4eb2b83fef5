"""What `%jaxpr`, `%hlo` and `%cost` share: they inspect an expression or a cell and run nothing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

import perspex
from perspex import tree
from perspex.api.stages import Traced
from perspex.ir.avals import shaped
from perspex_magics.commands.magic import ProgramMagic
from perspex_magics.notebook.cell import Cell, Head
from perspex_magics.notebook.options import LineParser, MagicParser, flat
from perspex_magics.programs.expressions import Expression
from perspex_magics.programs.program import (
    CellFunction,
    Layer,
    Program,
    Reads,
    restored_on_error,
)
from perspex_magics.programs.runner import CellMagic, Request, Runner, listed
from perspex_magics.programs.values import Given, named


@dataclass(frozen=True)
class InspectionLayer(Layer):
    """Only says which names are static; the program is made of the layers below."""

    static_names: tuple[str, ...] = ()

    @property
    def static(self) -> tuple[str, ...]:
        return self.static_names

    @property
    def traces(self) -> bool:
        return True

    def check(self, cell: Cell, reads: Reads) -> None:
        if cell.heads[0].magic != self.magic:
            raise UsageError(f"%%{self.magic} has to be the topmost magic of a cell")
        if unknown := set(self.static) - reads.names.reads:
            raise UsageError(f"%%{self.magic}: this cell does not read {listed(unknown)}")

    def apply(self, function: CellFunction, program: Program) -> CellFunction:
        return function


_LINE_INPUTS = "The names in it that hold arrays, numbers or containers of them are its inputs."
_CELL_INPUTS = """The names that the cell reads and that hold arrays, numbers or containers of them
are its inputs; what it assigns and its last expression are its results."""


def parsers(
    name: str, of_line: tuple[str, str], of_cell: tuple[str, str], options: str = ""
) -> tuple[LineParser, MagicParser]:
    """The parsers of `%name` and `%%name`.

    Args:
      name: the magic.
      of_line: the first line of its help, and what stands at the end.
      of_cell: the same above a cell.
      options: those besides `--static`, as the usage shows them.
    """
    what, end = of_line
    usage = f"%{name} {options and options + ' '}[--static NAME,...] [--help] EXPRESSION"
    line = LineParser(name, f"{what}\n\n{_LINE_INPUTS}", end, usage=usage)
    what, end = of_cell
    below = f"Magics may stand below:\n\n    %%{name}{options and ' --stage stablehlo'}"
    example = f"{below}\n    %%grad w\n    ((x @ w - y) ** 2).mean()"
    cell = MagicParser(name, f"{what}\n\n{_CELL_INPUTS}", f"{end}{example}")
    for parser in (line, cell):
        parser.add_names("--static", help="names whose values Python may depend on")
    return line, cell


def inspecting_magic(parser: MagicParser, *of_top: str) -> CellMagic:
    """The cell magic that looks at what is below it; `of_top` are its options besides `--help`."""

    def layers(options: argparse.Namespace, head: Head) -> list[Layer]:
        return [InspectionLayer(head.row, parser.magic, flat(options.static))]

    return CellMagic(parser, layers, of_top=("help", *of_top))


class InspectingMagic(ProgramMagic):
    """Inspects the expression behind it or the cell below it, without running either."""

    def show(self, what: str, traced: Traced, options: argparse.Namespace) -> object:
        """What to display of a program; `what` names it and its inputs."""
        raise NotImplementedError

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        parser = self.expressions
        assert parser is not None
        expression = Expression(self.shell, parser.magic, options.expression, local_ns)
        traced, inputs = _trace_expression(expression, flat(options.static))
        display(self.show(expression.text + inputs, traced, options))

    def on_cell(self, options: argparse.Namespace, line: str, body: str) -> None:
        request = self.runner.read(self.cell_magic.parser.magic, line, body)
        if request is not None:
            traced, inputs = _trace_cell(self.runner, request)
            display(self.show("cell" + inputs, traced, options))


def _trace_cell(runner: Runner, request: Request) -> tuple[Traced, str]:
    """The program that a cell is, and which inputs it has. No name of the notebook changes."""
    with runner.one_at_a_time, restored_on_error(runner.shell.user_ns):
        program, reads = runner.prepare(request)

        def cell(**arguments: Any) -> list[Any]:
            outputs = program.call(**arguments)
            leaves: list[Any] = outputs.all_computed(program.arrays(arguments)).leaves
            return leaves

        traced = perspex.jit(cell).trace(**reads.arguments)
    return traced, _inputs_of(reads.given, reads.arguments)


def _trace_expression(expression: Expression, static: Sequence[str]) -> tuple[Traced, str]:
    """The program that an expression is, and which inputs it has."""
    if unknown := set(static) - set(expression.reads):
        what = f"`{expression.text}` does not read {listed(unknown)}"
        raise UsageError(f"%{expression.magic}: {what}")
    found = Reads(expression.names, expression.namespace, static).given
    given = {name: found[name] for name in expression.reads if name in found}
    inputs = {name: kind.argument for name, kind in given.items()}

    @named("expression", list(given))
    def traced(*arguments: Any) -> Any:
        pairs = zip(given.items(), arguments, strict=True)
        return expression.evaluate({name: kind.rebuild(x) for (name, kind), x in pairs})

    return perspex.jit(traced).trace(*inputs.values()), _inputs_of(given, inputs)


def _inputs_of(given: Mapping[str, Given], arguments: Mapping[str, Any]) -> str:
    """The inputs of a program for a title: ` · inputs w f32[3], x f32[4,3]`."""
    inputs = [
        f"{path} {shaped(leaf).str_short()}"
        for name, kind in given.items()
        for path, leaf in zip(kind.paths(name), tree.leaves(arguments[name]), strict=True)
    ]
    return f" · inputs {', '.join(inputs)}" if inputs else ""
