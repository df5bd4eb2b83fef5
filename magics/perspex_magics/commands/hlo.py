"""`%hlo` and `%%hlo`: the StableHLO of an expression or a cell, and what XLA makes of it."""

from __future__ import annotations

import argparse

from perspex.api.stages import Traced
from perspex_magics.commands.inspection import InspectingMagic, inspecting_magic, parsers
from perspex_magics.display.listing import Listing
from perspex_magics.documents.listings import plain

_STAGES = {"hlo": "optimized HLO", "stablehlo": "StableHLO"}

line_parser, cell_parser = parsers(
    "hlo",
    (
        "Show the HLO that XLA makes of an expression, or its StableHLO.",
        "The expression is compiled and not run.\n\n"
        "    %hlo loss(w, x)\n    %hlo grad(loss)(w, x) --stage stablehlo",
    ),
    (
        "Show the HLO that XLA makes of a cell, or its StableHLO, without running the cell.",
        "Nothing is computed or assigned. ",
    ),
    "[--stage stablehlo|hlo] [--all]",
)
for _parser in (line_parser, cell_parser):
    _parser.add_argument(
        "--stage",
        choices=list(_STAGES),
        default="",
        help="the program that XLA is given (stablehlo) or the one that it runs (hlo, the default)",
    )
    _parser.add_argument(
        "--all",
        action="store_true",
        help="also what does not compute: the tables of files, metadata, layouts, settings of XLA",
    )

cell_magic_of_hlo = inspecting_magic(cell_parser, "stage", "all")


class HloMagics(InspectingMagic):
    """Show the HLO of a cell or of an expression without running it.

    The names in it that hold arrays, numbers or containers of them are its inputs.
    `%%hlo --help` and `%hlo --help` list the options.
    """

    cell_magic = cell_magic_of_hlo
    expressions = line_parser

    def show(self, what: str, traced: Traced, options: argparse.Namespace) -> Listing:
        stage = options.stage or "hlo"
        lowered = traced.lower()
        text = lowered.as_text() if stage == "stablehlo" else lowered.compile().as_text()
        if stage == "hlo" and not options.all:
            text = plain(text)
        return Listing(f"{_STAGES[stage]} of {what}", text.rstrip("\n"), form=stage)
