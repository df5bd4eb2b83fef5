"""`%explain`: the page of an error or of a notice."""

from __future__ import annotations

import argparse
from typing import Any

from IPython.core.completer import CompletionContext
from IPython.core.error import UsageError
from IPython.display import display

from perspex import errors
from perspex.advice import explain
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.session import Session

parser = WordParser(
    "explain",
    "Show the page of an error or of a notice, without a network; without a name, a list of all.",
    """`perspex explain NAME` prints the same in a terminal.""",
    usage="%explain [NAME] [--help]",
)
parser.add_argument("name", nargs="?", default="", metavar="NAME", help="of an error, or a notice")


class ExplainMagics(Magic):
    """Show the page of an error or of a notice.

    `%explain --help` lists the options.
    """

    line_parser = parser

    def completions(self, rest: str, context: CompletionContext) -> list[str] | None:
        return [] if rest.split() else [*sorted(explain.pages(vars(errors))), "--help"]

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        known = explain.pages(vars(errors))
        try:
            text = explain.found(options.name, known) if options.name else explain.listed(known)
        except LookupError as error:
            raise UsageError(f"%explain: {error.args[0]}; `%explain` lists all") from None
        display({"text/markdown": text, "text/plain": text}, raw=True)


def explain_pages(session: Session) -> None:
    """Bring `%explain`."""
    ExplainMagics(session).register()
