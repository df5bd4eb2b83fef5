"""`%jaxpr` and `%%jaxpr`: what an expression or a cell is once it has been traced."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.display import display

import perspex
from perspex import tree
from perspex.avals import shaped
from perspex_magics.cells import Cell, Head
from perspex_magics.expressions import Expression
from perspex_magics.listing import Listing
from perspex_magics.options import LineParser, MagicParser, flat
from perspex_magics.programs import CellFunction, Layer, Program, Reads, restored_on_error
from perspex_magics.runner import CellMagic, Runner, listed
from perspex_magics.values import Given

line_parser = LineParser(
    "jaxpr",
    """Show the jaxpr of an expression.

The names in it that hold arrays, numbers or containers of them are its inputs.""",
    """Nothing is computed.

    %jaxpr loss(w, x)
    %jaxpr grad(loss)(w, x)""",
    usage="%jaxpr [--static NAME,...] [--help] EXPRESSION",
)
line_parser.add_names("--static", help="names whose values Python may depend on")

cell_parser = MagicParser(
    "jaxpr",
    """Show the jaxpr of a cell, and do not run it.

The names that the cell reads and that hold arrays, numbers or containers of them are
its inputs; what it assigns and its last expression are its results.""",
    """Nothing is computed or assigned. Magics may stand below:

    %%jaxpr
    %%grad w
    ((x @ w - y) ** 2).mean()""",
)
cell_parser.add_names("--static", help="names whose values Python may depend on")


@dataclass(frozen=True)
class JaxprLayer(Layer):
    """Only says which names are static; the jaxpr is made of the layers below."""

    magic: str = "jaxpr"
    static_names: tuple[str, ...] = ()

    @property
    def static(self) -> tuple[str, ...]:
        return self.static_names

    @property
    def traces(self) -> bool:
        return True

    def check(self, cell: Cell, reads: Reads) -> None:
        if cell.heads[0].magic != self.magic:
            raise UsageError("%%jaxpr has to be the topmost magic of a cell")
        if unknown := set(self.static) - reads.names.reads:
            raise UsageError(f"%%jaxpr: this cell does not read {listed(unknown)}")

    def apply(self, function: CellFunction, program: Program) -> CellFunction:
        return function


def _layers(options: argparse.Namespace, head: Head) -> list[Layer]:
    return [JaxprLayer(head.row, "jaxpr", flat(options.static))]


cell_magic_of_jaxpr = CellMagic(cell_parser, _layers)


@magics_class
class JaxprMagics(Magics):
    """`%jaxpr` and `%%jaxpr` in one notebook."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, runner: Runner) -> None:
        super().__init__(shell)
        self.runner = runner

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def jaxpr(
        self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None
    ) -> None:
        """Show the jaxpr of a cell or of an expression, and do not run it.

        The names in it that hold arrays, numbers or containers of them are its inputs.
        `%%jaxpr --help` and `%jaxpr --help` list the options.
        """
        if cell is None:
            self._line(line, local_ns)
        else:
            self._cell(line, cell)

    def _cell(self, line: str, cell: str) -> None:
        request = self.runner.read("jaxpr", line, cell)
        if request is None:
            return
        with self.runner.one_at_a_time, restored_on_error(self.shell.user_ns):
            program, reads = self.runner.prepare(request)

            def results(**arguments: Any) -> list[Any]:
                outputs = program.call(**arguments)
                leaves: list[Any] = outputs.all_computed(program.arrays(arguments)).leaves
                return leaves

            jaxpr = perspex.make_jaxpr(results)(**reads.arguments)
        display(_listing("cell", str(jaxpr), reads.given, reads.arguments))

    def _line(self, line: str, local_ns: dict[str, Any] | None) -> None:
        options = line_parser.parse(line)
        if options.help:
            print(line_parser.format_help())
            return
        expression = Expression(self.shell, "jaxpr", options.expression, local_ns)
        static = flat(options.static)
        if unknown := set(static) - set(expression.reads):
            raise UsageError(f"%jaxpr: `{expression.text}` does not read {listed(unknown)}")
        found = Reads(expression.names, expression.namespace, static).given
        given = {name: found[name] for name in expression.reads if name in found}

        def traced(*arguments: Any) -> Any:
            pairs = zip(given.items(), arguments, strict=True)
            return expression.evaluate({name: kind.rebuild(x) for (name, kind), x in pairs})

        arguments = {name: kind.argument for name, kind in given.items()}
        jaxpr = perspex.make_jaxpr(traced)(*arguments.values())
        display(_listing(expression.text, str(jaxpr), given, arguments))


def _listing(
    what: str, text: str, given: Mapping[str, Given], arguments: Mapping[str, Any]
) -> Listing:
    """A jaxpr under a title that says which inputs its variables are, in order."""
    inputs: Sequence[str] = [
        f"{path} {shaped(leaf).str_short()}"
        for name, kind in given.items()
        for path, leaf in zip(kind.paths(name), tree.leaves(arguments[name]), strict=True)
    ]
    return Listing(f"jaxpr of {what}" + (f" · inputs {', '.join(inputs)}" if inputs else ""), text)
