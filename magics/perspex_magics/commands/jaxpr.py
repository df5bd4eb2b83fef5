"""`%jaxpr` and `%%jaxpr`: what an expression or a cell is once it has been traced."""

from __future__ import annotations

import argparse

from perspex.api.stages import Traced
from perspex_magics.commands.inspection import InspectingMagic, inspecting_magic, parsers
from perspex_magics.display.listing import Listing

line_parser, cell_parser = parsers(
    "jaxpr",
    (
        "Show the jaxpr of an expression.",
        "Nothing is computed.\n\n    %jaxpr loss(w, x)\n    %jaxpr grad(loss)(w, x)",
    ),
    ("Show the jaxpr of a cell without running it.", "Nothing is computed or assigned. "),
)
cell_magic_of_jaxpr = inspecting_magic(cell_parser)


class JaxprMagics(InspectingMagic):
    """Show the jaxpr of a cell or of an expression without running it.

    The names in it that hold arrays, numbers or containers of them are its inputs.
    `%%jaxpr --help` and `%jaxpr --help` list the options.
    """

    cell_magic = cell_magic_of_jaxpr
    expressions = line_parser

    def show(self, what: str, traced: Traced, options: argparse.Namespace) -> Listing:
        return Listing(f"jaxpr of {what}", str(traced.jaxpr), form="jaxpr")
