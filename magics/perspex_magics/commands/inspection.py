"""What `%jaxpr`, `%hlo` and `%cost` share: an expression or a cell that is only looked at."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

import perspex
from perspex import tree
from perspex.api.stages import Traced
from perspex.ir.avals import shaped
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


def inspecting_magic(parser: MagicParser, *of_top: str) -> CellMagic:
    """The cell magic that looks at what is below it; `of_top` are its options besides `--help`."""

    def layers(options: argparse.Namespace, head: Head) -> list[Layer]:
        return [InspectionLayer(head.row, parser.magic, flat(options.static))]

    return CellMagic(parser, layers, of_top=("help", *of_top))


def inspected(
    runner: Runner,
    parser: LineParser,
    line: str,
    cell: str | None,
    local_ns: dict[str, Any] | None,
) -> tuple[str, Traced, argparse.Namespace] | None:
    """Trace what a magic stands in front of: an expression, or a cell if there is one.

    Returns what it is, with its inputs, for a title; its program; and the options of the magic.
    `None` where the magic asks for help, which has been printed.
    """
    if cell is not None:
        request = runner.read(parser.magic, line, cell)
        if request is None:
            return None
        traced, inputs = _trace_cell(runner, request)
        return "cell" + inputs, traced, request.options
    options = parser.parse(line)
    if options.help:
        print(parser.format_help())
        return None
    expression = Expression(runner.shell, parser.magic, options.expression, local_ns)
    traced, inputs = _trace_expression(expression, flat(options.static))
    return expression.text + inputs, traced, options


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
