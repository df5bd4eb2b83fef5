"""`%fixed`: what traced functions read once, and what every call of their programs reuses."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from IPython.core.completer import CompletionContext
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from perspex_magics.display.markup import MONO
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.fixed.calls import Calls
from perspex_magics.fixed.files import watch_files
from perspex_magics.fixed.held import held_in
from perspex_magics.fixed.notices import Told, remedy, tell_what_is_fixed
from perspex_magics.fixed.record import Record, install
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.notebook.trees import change_trees
from perspex_magics.session import Session

_WORDS = ("clear", "off", "on", "quiet")
_COLUMNS = (
    Column("function", "function", style=MONO),
    Column("line", "line"),
    Column("text", "ran once", style=MONO),
    Column("value", "value", style=MONO),
    Column("remedy", "instead"),
)

parser = WordParser(
    "fixed",
    """List what functions did once, while they were traced: what every call reuses.

    NAME   only the function of this name
    clear  forget what is listed
    off    note nothing any more
    on     note it again, and tell of it under cells
    quiet  note it, but tell nothing under cells""",
    """Random numbers, clocks, items of iterators and input() are told under the cell that
traces them, if they can reach the program; so are prints of traced values, and variables
that hold them. The environment and files are listed here only.""",
    usage="%fixed [NAME | clear | off | on | quiet] [--help]",
)
parser.add_argument("what", nargs="?", default="", metavar="NAME", help="see above")


class FixedMagics(Magic):
    """List what functions did once, while they were traced.

    `%fixed --help` lists the options.
    """

    line_parser = parser

    def __init__(self, session: Session, record: Record, told: Told) -> None:
        super().__init__(session)
        self.record, self.told = record, told

    def completions(self, rest: str, context: CompletionContext) -> list[str] | None:
        if rest.split():
            return []
        names = {reading.function for reading in self.record.readings.values()}
        return [*sorted(names), *_WORDS, "--help"]

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        if options.what == "clear":
            self.record.readings.clear()
        elif options.what in _WORDS:
            self.record.is_on = options.what != "off"
            self.told.is_quiet = options.what != "on"
        else:
            display(self._report(options.what))

    def _report(self, name: str) -> Report:
        # What this very cell has traced counts.
        self.told.look()
        rows = [
            (reading.function, reading.place, reading.text, reading.value, remedy(reading))
            for reading in self.record.readings.values()
            if name in ("", reading.function, reading.outermost)
        ]
        rows += [
            (held.function, held.stored, held.name, "a traced value", "Return it.")
            for held in held_in(self.shell.user_ns)
            if name in ("", held.function)
        ]
        if not rows:
            what = f"`{name}`" if name else "No function"
            did = "did nothing" if name else "did anything"
            return Report(f"{what} {did} once that its calls reuse, as far as cells show it.")
        return Report(Table(_COLUMNS, rows))


def note_what_is_fixed(session: Session) -> None:
    """Note what functions do while they are traced, tell of it, and list it on request."""
    record = session.keep(Record(watch_files(session)))
    session.on_unload(install(record))
    _see_calls(session, session.shell)
    FixedMagics(session, record, tell_what_is_fixed(session, record)).register()


def _see_calls(session: Session, shell: InteractiveShell) -> None:
    """Have the trees of cells show their calls."""
    calls = Calls()
    text: str | None = None

    def begin(info: Any) -> None:
        nonlocal text
        text = getattr(info, "transformed_cell", None) or info.raw_cell

    def visit(tree: ast.Module) -> ast.Module:
        nonlocal text
        # A second tree in the same cell is that of a magic.
        now, text = text, None
        return calls.instrument(tree, now)

    session.on_cell(begin=begin)
    session.on_unload(change_trees(shell, visit))
