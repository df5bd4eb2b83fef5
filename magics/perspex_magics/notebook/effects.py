"""The end of a cell is a barrier: what its computations print, call and raise belongs to it.

Computations run behind Python, so without it `debug.print` in a compiled function might print when
the cell is over, below the next one.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.runtime.callbacks import cancel_effects, effects_barrier

# How a cell ends that has been interrupted.
_STOPPED = (KeyboardInterrupt, CancelledError)


def finish_effects(shell: InteractiveShell) -> Callable[[], object]:
    """Wait for effects at the end of each cell; returns a function that ends that.

    An error in a callback that nobody has waited for becomes the cell's error.
    """

    def finish(result: Any) -> None:
        if isinstance(getattr(result, "error_in_exec", None), _STOPPED):
            cancel_effects()
            return
        try:
            effects_barrier()
        except (Exception, KeyboardInterrupt) as error:
            # A cell that has failed already has shown why: mostly for this very error.
            if result is not None and result.success:
                shell.showtraceback((type(error), error, None))
                result.error_in_exec = error

    shell.events.register("post_run_cell", finish)
    return lambda: shell.events.unregister("post_run_cell", finish)
