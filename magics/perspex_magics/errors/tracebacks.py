"""Errors, shown as the user's own lines: without the frames of Perspex and of its magics.

The exception keeps its whole traceback: `%tb` shows all of it, `%debug` walks through it, and
after `%xmode Verbose` nothing is left out. What an error says of a traced value is drawn as a card
where that can be (`cards`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import IPython
from IPython.core.interactiveshell import InteractiveShell

from perspex import errors
from perspex.advice import explain
from perspex.advice.static import register_static_speller
from perspex.base import source
from perspex.tracing.provenance import advised
from perspex_magics.errors import cards
from perspex_magics.errors.hints import add_hint
from perspex_magics.notebook.kinds import dict_of
from perspex_magics.session import Session

_IPYTHON = os.path.dirname(IPython.__file__) + os.sep
_MAGICS = os.path.dirname(os.path.dirname(__file__)) + os.sep
# IPython's own frame, which calls the cell.
_OUTER = 1
# IPython takes 6 ms for each frame: 17 s for the 3,000 of a recursion without an end.
_MOST_FRAMES = 60


def show_user_frames(session: Session) -> None:
    """Show tracebacks without internal frames, unless another handler is set already."""
    shell = session.shell
    if shell.custom_exceptions:
        return
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
        # IPython drops a handler that raises anything, and shows all later tracebacks without it.
        for show in (_show, _show_plainly):
            try:
                show(shell, etype, error, tb)
            except BaseException:
                continue
            return
        with contextlib.suppress(BaseException):
            print(f"{type.__repr__(etype)}: its traceback cannot be shown", file=sys.stderr)

    def end(result: Any) -> None:
        while drawn:
            (dict_of(drawn.pop()) or {}).pop("_render_traceback_", None)

    shell.set_custom_exc((Exception, KeyboardInterrupt), handler)
    ours = shell.CustomTB

    def unset() -> None:
        if shell.CustomTB is ours:
            shell.set_custom_exc((), None)

    session.on_unload(unset)
    session.on_cell(end=end)
    session.on_unload(register_static_speller(cards.static_in_magic))
    _show_in_scripts(session, handler)
    _show_in_threads(session)


def _show_in_scripts(session: Session, handler: Callable[..., None]) -> None:
    """Show errors of `%run` the same way: IPython does not call the handler for scripts."""
    shell = session.shell
    run = shell.safe_execfile

    def safe_execfile(*args: Any, **options: Any) -> None:
        if options.pop("raise_exceptions", False):
            run(*args, raise_exceptions=True, **options)
            return
        try:
            run(*args, raise_exceptions=True, **options)
        except SystemExit:
            if not options.get("exit_ignore"):
                shell.showtraceback(exception_only=True)
        except SyntaxError:
            shell.showtraceback()
        except BaseException as error:
            tb = error.__traceback__
            # Of the frames above the script the last, which is left out.
            while tb is not None and tb.tb_next is not None and _is_runner(tb.tb_next):
                tb = tb.tb_next
            assert tb is not None
            handler(shell, type(error), error, tb)

    hooked: Any = shell
    hooked.safe_execfile = safe_execfile

    def unhook() -> None:
        if vars(shell).get("safe_execfile") is safe_execfile:
            del hooked.safe_execfile

    session.on_unload(unhook)


def _is_runner(tb: TracebackType) -> bool:
    return _file(tb).startswith((_IPYTHON, _MAGICS))


def _show_in_threads(session: Session) -> None:
    """Show errors that end a thread the same way, where Python prints them."""
    shell, before = session.shell, threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        frames = _frames(args.exc_traceback, 0)
        shown = [tb for tb in frames if not source.is_internal(_file(tb))]
        plain = len(shown) == len(frames) or not shown or shell.InteractiveTB.mode == "Verbose"
        if plain or args.exc_value is None or sys.stderr is None:
            before(args)
            return
        told = traceback.TracebackException(args.exc_type, args.exc_value, _joined(shown))
        for frame in told.stack:
            _ = frame.line  # is read from the file, for which the name of the cell then stands
            frame.filename = source.cell_name(frame.filename) or frame.filename
        name = "" if args.thread is None else f" in thread {args.thread.name}"
        print(f"Exception{name}:\n{''.join(told.format())}", end="", file=sys.stderr)

    threading.excepthook = hook

    def unhook() -> None:
        if threading.excepthook is hook:
            threading.excepthook = before

    session.on_unload(unhook)


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
    with contextlib.suppress(Exception):  # the error itself is what the user must see
        add_hint(error, tb)
    told = _read(error)
    as_card = told is not None and cards.has_html(shell)
    _draw(shell, etype, error, tb, told, as_card)
    if told is not None and as_card:
        cards.show(etype.__name__, told)


def _show_plainly(
    shell: InteractiveShell, etype: type[BaseException], error: Any, tb: TracebackType
) -> None:
    """As IPython does."""
    shell.showtraceback((etype, error, tb), running_compiled_code=True)


def _read(error: BaseException) -> cards.Told | None:
    try:
        return cards.read(error)
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
    left_out = max(0, len(shown) - _MOST_FRAMES)
    if left_out:
        half = _MOST_FRAMES // 2
        shown = shown[:half] + shown[-half:]
    if len(shown) == len(frames) and told is None and not _has_page(etype):
        shell.showtraceback((etype, error, tb), running_compiled_code=True)
        return
    with _abridged(error, told if as_card else None) as shown_error:
        lines = shell.InteractiveTB.structured_traceback(
            etype, shown_error, _joined(shown), tb_offset=0
        )
    if left_out:
        lines.append(f"{left_out:,} frames in between are not shown; %tb shows them all.")
    if not as_card and _has_page(etype):
        lines.append(explain.pointer(etype.__name__))
    # IPython's hook that lets an exception draw its own traceback, until the cell ends.
    error._render_traceback_ = lambda: lines
    shell.showtraceback((etype, error, tb), running_compiled_code=True)


def _has_page(kind: type[BaseException]) -> bool:
    """Whether an error is one of Perspex, or of jaxlib, that `%explain` knows."""
    home = kind.__module__.partition(".")[0]
    is_ours = home in ("jaxlib", "perspex", "perspex_magics")
    return is_ours and kind.__name__ in explain.pages(vars(errors))


@contextlib.contextmanager
def _abridged(error: Any, told: cards.Told | None) -> Iterator[BaseException]:
    """What to show in the place of an error whose card, `told`, has the rest of the story."""
    if told is None:
        yield error
    elif told.note is None:
        yield _shorter(error, told)
    else:
        notes = error.__notes__
        lines = "\n".join(advised(error, told.card.remedy))
        error.__notes__ = [lines if note is told.note else note for note in notes]
        error.__notes__ = [note for note in error.__notes__ if note]
        try:
            yield error
        finally:
            error.__notes__ = notes


def _shorter(error: BaseException, told: cards.Told) -> BaseException:
    """An error of the same class and causes that says less."""
    short = type(error).__new__(type(error), cards.abridged(told.card))
    short.__cause__, short.__context__ = error.__cause__, error.__context__
    short.__suppress_context__ = error.__suppress_context__
    for note in getattr(error, "__notes__", []):
        if "--static" not in told.text:
            short.add_note(note)
    return short


def _frames(tb: TracebackType | None, outer: int = _OUTER) -> list[TracebackType]:
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    return frames[outer:]


def _user_frames(frames: list[TracebackType]) -> list[TracebackType]:
    files = [_file(tb) for tb in frames]
    if not any(file.startswith(_MAGICS) for file in files):
        return [tb for tb in frames if not source.is_internal(_file(tb))]
    shown: list[TracebackType] = []
    above: list[TracebackType] = []
    for tb, file, following in zip(frames, files, [*files[1:], ""], strict=True):
        if file.startswith(_IPYTHON):
            if following.startswith(_MAGICS) and tb.tb_frame.f_code.co_name == "run_cell_magic":
                # Show the cell under the magic, not the line of the magic.
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
