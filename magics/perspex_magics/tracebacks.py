"""Errors, shown as the user's own lines: without the frames of Perspex and of its magics.

The exception keeps its whole traceback: `%tb` shows all of it, `%debug` walks through it, and
after `%xmode Verbose` nothing is left out. What an error says of a traced value is drawn as a card
where that can be (`cards`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

import IPython
from IPython.core.interactiveshell import InteractiveShell

from perspex import source
from perspex.remedies.static import register_static_speller
from perspex_magics import cards

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
    # Errors that IPython is about to draw once more, for its history, with all frames.
    drawn: list[Any] = []

    def handler(
        shell: InteractiveShell,
        etype: type[BaseException],
        error: Any,
        tb: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        drawn.append(error)
        _show(shell, etype, error, tb)

    def end(result: Any) -> None:
        while drawn:
            vars(drawn.pop()).pop("_render_traceback_", None)

    shell.set_custom_exc((Exception, KeyboardInterrupt), handler)
    shell.events.register("post_run_cell", end)
    ours = shell.CustomTB
    unspell = register_static_speller(cards.static_in_magic)

    def undo() -> None:
        unspell()
        shell.events.unregister("post_run_cell", end)
        if shell.CustomTB is ours:
            shell.set_custom_exc((), None)

    return undo


def _show(
    shell: InteractiveShell,
    etype: type[BaseException],
    error: Any,
    tb: TracebackType,
) -> None:
    """What IPython calls for an exception that reaches the top of a cell."""
    if isinstance(error, SyntaxError):
        # In the cell itself there is a line to show, and no frame that tells more.
        in_cell = error.filename is not None and source.cell_name(error.filename) is not None
        shell.showtraceback((etype, error, tb), running_compiled_code=not in_cell)
        return
    told = _read(error, tb)
    as_card = told is not None and cards.has_html(shell)
    _draw(shell, etype, error, tb, told, as_card)
    if told is not None and as_card:
        cards.show(etype.__name__, told)


def _read(error: BaseException, tb: TracebackType) -> cards.Told | None:
    # IPython drops a handler that raises, and all later tracebacks with it.
    try:
        return cards.read(error, tb)
    except Exception:
        return None


def _draw(
    shell: InteractiveShell,
    etype: type[BaseException],
    error: Any,
    tb: TracebackType,
    told: cards.Told | None,
    as_card: bool,
) -> None:
    """Show the traceback: the user's frames; above a card, a shorter message."""
    frames = _frames(tb)
    shown = _user_frames(frames)
    if shell.InteractiveTB.mode == "Verbose" or not shown:
        shown = frames
    if len(shown) == len(frames) and told is None:
        shell.showtraceback((etype, error, tb), running_compiled_code=True)
        return
    lines = shell.InteractiveTB.structured_traceback(
        etype, _abridged(error, told) if as_card else error, _joined(shown), tb_offset=0
    )
    if told is not None and told.more and not as_card:
        lines = [*lines, told.more]
    # The hook by which IPython lets an exception draw its own traceback, until the cell's end.
    error._render_traceback_ = lambda: lines
    shell.showtraceback((etype, error, tb), running_compiled_code=True)


def _abridged(error: BaseException, told: cards.Told | None) -> BaseException:
    """An error of the same class and causes that leaves the rest of the story to its card."""
    if told is None or told.more:
        return error
    short = type(error).__new__(type(error), cards.abridged(told.card))
    short.__cause__, short.__context__ = error.__cause__, error.__context__
    short.__suppress_context__ = error.__suppress_context__
    for note in getattr(error, "__notes__", []):
        if "--static" not in told.text:
            short.add_note(note)
    return short


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
