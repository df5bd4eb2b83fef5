"""Errors, shown as the user's own lines: without the frames of Perspex and of its magics.

The exception keeps its whole traceback: `%tb` shows all of it, `%debug` walks through it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

import IPython
from IPython.core.interactiveshell import InteractiveShell

from perspex import source

_IPYTHON = os.path.dirname(IPython.__file__) + os.sep
_MAGICS = os.path.dirname(__file__) + os.sep
# IPython's own frame, which calls the cell.
_OUTER = 1


def show_user_frames(shell: InteractiveShell) -> Callable[[], object]:
    """Have `shell` show tracebacks so; returns a function that undoes it.

    A handler that something else has set already stays.
    """
    if shell.custom_exceptions:
        return lambda: None
    shell.set_custom_exc((Exception, KeyboardInterrupt), _show)
    ours = shell.CustomTB

    def undo() -> None:
        if shell.CustomTB is ours:
            shell.set_custom_exc((), None)

    return undo


def _show(
    shell: InteractiveShell,
    etype: type[BaseException],
    error: Any,
    tb: TracebackType,
    tb_offset: int | None = None,
) -> None:
    """What IPython calls for an exception that reaches the top of a cell."""
    if isinstance(error, SyntaxError):
        # In the cell itself there is a line to show, and no frame that tells more.
        in_cell = error.filename is not None and source.cell_name(error.filename) is not None
        shell.showtraceback((etype, error, tb), running_compiled_code=not in_cell)
        return
    frames = _frames(tb)
    shown = _user_frames(frames)
    if len(shown) == len(frames) or not shown:
        shell.showtraceback((etype, error, tb), running_compiled_code=True)
        return
    lines = shell.InteractiveTB.structured_traceback(etype, error, _joined(shown), tb_offset=0)
    # The hook by which IPython lets an exception draw its own traceback, for this once.
    error._render_traceback_ = lambda: lines
    try:
        shell.showtraceback((etype, error, tb), running_compiled_code=True)
    finally:
        del error._render_traceback_


def _frames(tb: TracebackType | None) -> list[TracebackType]:
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    return frames[_OUTER:]


def _user_frames(frames: list[TracebackType]) -> list[TracebackType]:
    files = [_file(tb) for tb in frames]
    if not any(file.startswith(_MAGICS) for file in files):
        return [tb for tb in frames if not source.is_internal(_file(tb))]
    shown: list[TracebackType] = []
    above: list[TracebackType] = []
    for tb, file, following in zip(frames, files, [*files[1:], ""], strict=True):
        if file.startswith(_IPYTHON):
            if following.startswith(_MAGICS) and tb.tb_frame.f_code.co_name == "run_cell_magic":
                # The cell under the magic is what there is to show, not the line of the magic.
                above, shown = shown, []
        elif not source.is_internal(file) and not (shown and _same_line(tb, shown[-1])):
            shown.append(tb)
    # Where the cell under the magic did not even start, it is the magic's own line after all.
    return shown or above


def _same_line(tb: TracebackType, other: TracebackType) -> bool:
    """Whether the expression under a line magic stands where the magic is called."""
    return (_file(tb), tb.tb_lineno) == (_file(other), other.tb_lineno)


def _file(tb: TracebackType) -> str:
    return tb.tb_frame.f_code.co_filename


def _joined(frames: list[TracebackType]) -> TracebackType | None:
    joined: TracebackType | None = None
    for tb in reversed(frames):
        joined = TracebackType(joined, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return joined
