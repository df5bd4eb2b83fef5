"""What every magic of ours has: parsers, help, a function in the shell, completions."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.magic import needs_local_scope, no_var_expand, output_can_be_silenced

from perspex_magics.notebook.options import MagicParser, candidates, on_magics_line
from perspex_magics.session import Session


class Magic:
    """One magic of one notebook: `%name`, `%%name`, or both.

    The docstring of a subclass is what `%name?` shows.
    """

    line_parser: ClassVar[MagicParser | None] = None
    cell_parser: ClassVar[MagicParser | None] = None
    # Whether it receives the local variables of the function that contains its line.
    sees_locals: ClassVar[bool] = False
    # Whether a semicolon at the end keeps its result from being displayed.
    is_silenced: ClassVar[bool] = False

    def __init__(self, session: Session) -> None:
        self.session, self.shell = session, session.shell

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> Any:
        """Run `%name` with these options."""
        raise NotImplementedError

    def on_cell(self, options: argparse.Namespace, line: str, body: str) -> Any:
        """Run `%%name line` with these options, above a cell."""
        raise NotImplementedError

    def completions(self, rest: str, context: CompletionContext) -> list[str] | None:
        """The words that may stand behind `rest` on the line of `%name`; `None`: its options."""
        return None

    def register(self) -> None:
        """Bring the magic into the shell."""
        function = self._function()
        for kind, parser in (("line", self.line_parser), ("cell", self.cell_parser)):
            if parser is not None:
                self.session.add_magic(kind, parser.magic, function)
        self.session.keep(self)

    def run(self, line: str, cell: str | None = None, local_ns: Any = None) -> Any:
        """Run the magic, or print its help where that is asked for."""
        parser = self.line_parser if cell is None else self.cell_parser
        assert parser is not None
        options = parser.parse(line)
        if options.help:
            print(parser.format_help())
            return None
        return (
            self.on_line(options, local_ns) if cell is None else self.on_cell(options, line, cell)
        )

    def _function(self) -> Callable[..., Any]:
        """The magic as IPython calls it."""

        def magic(
            line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None
        ) -> Any:
            return self.run(line, cell, local_ns)

        parser = self.line_parser or self.cell_parser
        assert parser is not None
        magic.__name__ = magic.__qualname__ = parser.magic
        magic.__doc__ = inspect.getdoc(type(self))
        no_var_expand(magic)
        if self.sees_locals:
            needs_local_scope(magic)
        if self.is_silenced:
            output_can_be_silenced(magic)
        return magic


def complete_magics(session: Session, magics: Sequence[Magic]) -> None:
    """Complete the options of these magics, and what each has of its own."""
    known = {
        (parser.sign, parser.magic): (magic, parser)
        for magic in magics
        for parser in (magic.line_parser, magic.cell_parser)
        if parser is not None
    }

    @context_matcher(identifier="perspex_options")  # type: ignore[untyped-decorator]
    def match_options(context: CompletionContext) -> SimpleMatcherResult:
        found = on_magics_line(context)
        if found is None or found[0] not in known:
            return {"completions": []}
        magic, parser = known[found[0]]
        own = magic.completions(found[1], context) if parser is magic.line_parser else None
        words = own or []
        if own is None:
            words = candidates(parser, found[1], context, session.shell.user_ns)
        fitting = [word for word in words if word.startswith(context.token)]
        return {
            "completions": [SimpleCompletion(word, type="option") for word in fitting],
            "suppress": own is not None or bool(fitting) or parser.sign == "%%",
        }

    session.add_matcher(match_options)
