"""`%restart`: the notebook goes on in a new process, with its variables.

The magic asks; the kernel does it at the end of the cell, and the new process answers the cell.
"""

from __future__ import annotations

import argparse
from typing import Any

from IPython.core.error import UsageError

from perspex_magics.display import notices
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.display.units import many, size
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.restart.contents import Restored
from perspex_magics.session import Session

parser = WordParser(
    "restart",
    "Restart the kernel at the end of this cell, and keep the variables of the notebook.",
    """It ends work that an interrupt cannot stop. What cannot be kept is listed below the cell.
The menu's *Restart Kernel* keeps nothing, as ever.""",
    usage="%restart [--now] [--help]",
)
parser.add_argument(
    "--now",
    action="store_true",
    help="do not wait for arrays that are being computed; they are not kept then",
)


class Restart(Magic):
    """Restart the kernel at the end of the cell, and keep the variables of the notebook.

    `%restart --help` lists the options.
    """

    line_parser = parser

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        # What the kernel is asked for, which takes it away.
        self.asked: argparse.Namespace | None = None

    @property
    def obstacle(self) -> str:
        """Why this kernel cannot restart; empty if it can."""
        kernel = getattr(self.shell, "kernel", None)
        unknown = "only the Perspex kernel can restart itself and keep its variables"
        return str(getattr(kernel, "restart_obstacle", unknown))

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        if self.obstacle:
            raise UsageError(f"%restart: {self.obstacle}")
        self.asked = options

    def take(self) -> argparse.Namespace | None:
        """What was asked for since the last time."""
        asked, self.asked = self.asked, None
        return asked


def tell(restored: Restored) -> None:
    """Show in the new process what came back."""
    shown = [name for name in restored.names if name[:1] != "_"]
    arrays = f", {size(restored.nbytes)} of arrays" if restored.nbytes else ""
    lines: list[Any] = [f"Restarted the kernel. It kept {many(len(shown), 'name')}{arrays}."]
    if restored.lost:
        lines.append(f"It did not keep {many(len(restored.lost), 'name')}:")
        rows = [tuple(one) for one in restored.lost]
        lines.append(Table([Column("name"), Column("reason")], rows, label="not kept", indent="  "))
    data = {
        "names": shown,
        "lost": [one._asdict() for one in restored.lost],
        "bytes": restored.nbytes,
    }
    notices.tell("restarted", data, Report(*lines))


def offer_restarts(session: Session) -> None:
    """Bring `%restart`."""
    Restart(session).register()
