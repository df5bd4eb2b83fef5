"""A barrier at the end of each cell: its computations print, call and raise within the cell.

Computations run asynchronously, so without the barrier `debug.print` in a compiled function might
print below the next cell.
"""

from __future__ import annotations

from typing import Any

from perspex.runtime.callbacks import cancel_effects, effects_barrier
from perspex_magics.notebook.kinds import STOPS
from perspex_magics.session import Session


def finish_effects(session: Session) -> None:
    """Wait for effects at the end of each cell.

    An error in a callback that was not waited for becomes the cell's error.
    """

    def finish(result: Any) -> None:
        if isinstance(getattr(result, "error_in_exec", None), STOPS):
            cancel_effects()
            return
        try:
            effects_barrier()
        except (Exception, KeyboardInterrupt) as error:
            # A cell that has failed already has shown why: mostly for this very error.
            if result is not None and result.success:
                session.shell.showtraceback((type(error), error, None))
                result.error_in_exec = error

    session.on_cell(end=finish)
