"""`%hlo` and `%%hlo`: the StableHLO of an expression or a cell, and what XLA makes of it."""

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

from perspex.api.stages import Traced
from perspex_magics.commands.inspection import inspected, inspecting_magic
from perspex_magics.display.listing import Listing
from perspex_magics.notebook.options import LineParser, MagicParser
from perspex_magics.programs.runner import Runner

_STAGES = {"hlo": "optimized HLO", "stablehlo": "StableHLO"}

line_parser = LineParser(
    "hlo",
    """Show the HLO that XLA makes of an expression, or its StableHLO.

The names in it that hold arrays, numbers or containers of them are its inputs.""",
    """It is compiled and not run.

    %hlo loss(w, x)
    %hlo grad(loss)(w, x) --stage stablehlo""",
    usage="%hlo [--stage stablehlo|hlo] [--static NAME,...] [--help] EXPRESSION",
)
cell_parser = MagicParser(
    "hlo",
    """Show the HLO that XLA makes of a cell, or its StableHLO, and do not run the cell.

The names that the cell reads and that hold arrays, numbers or containers of them are
its inputs; what it assigns and its last expression are its results.""",
    """Nothing is computed or assigned. Magics may stand below:

    %%hlo --stage stablehlo
    %%grad w
    ((x @ w - y) ** 2).mean()""",
)
for _parser in (line_parser, cell_parser):
    _parser.add_argument(
        "--stage",
        choices=list(_STAGES),
        default="",
        help="what XLA is given (stablehlo), or what it runs (hlo, if the option is not given)",
    )
    _parser.add_names("--static", help="names whose values Python may depend on")

cell_magic_of_hlo = inspecting_magic(cell_parser, "stage")


@magics_class
class HloMagics(Magics):
    """`%hlo` and `%%hlo` in one notebook."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, runner: Runner) -> None:
        super().__init__(shell)
        self.runner = runner

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def hlo(
        self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None
    ) -> None:
        """Show the HLO of a cell or of an expression, and do not run it.

        The names in it that hold arrays, numbers or containers of them are its inputs.
        `%%hlo --help` and `%hlo --help` list the options.
        """
        found = inspected(self.runner, line_parser, line, cell, local_ns)
        if found is not None:
            what, traced, options = found
            display(_listing(what, traced, options.stage))


def _listing(what: str, traced: Traced, stage: str) -> Listing:
    stage = stage or "hlo"
    lowered = traced.lower()
    text = lowered.as_text() if stage == "stablehlo" else lowered.compile().as_text()
    return Listing(f"{_STAGES[stage]} of {what}", text.rstrip("\n"))
