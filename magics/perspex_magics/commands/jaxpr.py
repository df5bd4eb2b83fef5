"""`%jaxpr` and `%%jaxpr`: what an expression or a cell is once it has been traced."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.display import display

from perspex_magics.commands.inspection import inspected, inspecting_magic
from perspex_magics.display.listing import Listing
from perspex_magics.notebook.options import LineParser, MagicParser
from perspex_magics.programs.runner import Runner

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


cell_magic_of_jaxpr = inspecting_magic(cell_parser)


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
        found = inspected(self.runner, line_parser, line, cell, local_ns)
        if found is not None:
            what, traced, _ = found
            display(Listing(f"jaxpr of {what}", str(traced.jaxpr)))
