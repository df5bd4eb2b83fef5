"""A magic above a cell that is run as a program, or before an expression."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import LineParser
from perspex_magics.programs.runner import CellMagic, Runner
from perspex_magics.session import Session


class ProgramMagic(Magic):
    """A magic whose cells the notebook's runner reads and runs."""

    cell_magic: ClassVar[CellMagic]
    expressions: ClassVar[LineParser | None] = None
    sees_locals = True

    def __init_subclass__(cls) -> None:
        if "cell_magic" in vars(cls):
            cls.cell_parser, cls.line_parser = cls.cell_magic.parser, cls.expressions

    def __init__(self, session: Session, runner: Runner) -> None:
        super().__init__(session)
        self.runner = runner

    def on_cell(self, options: argparse.Namespace, line: str, body: str) -> Any:
        request = self.runner.read(self.cell_magic.parser.magic, line, body)
        return None if request is None else self.runner.run(request)
