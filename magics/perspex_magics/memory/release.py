"""After a cell has failed: a notice of what its frames hold, and its release by the next cell.

Python keeps the last error for a debugger, and with it the variables of every function that was
running: arrays that nobody will use again stay in memory until the next error. So the next cell
drops the error, unless that cell looks at it (`%debug`, `%tb`, `%buffers`). The traceback stays as
text, so `%tb` still shows it.
"""

from __future__ import annotations

import copy
import gc
import inspect
import re
import sys
import traceback
import weakref
from types import FrameType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from perspex.runtime import memory
from perspex_magics.display import notices, units
from perspex_magics.display.table import Report
from perspex_magics.memory.owners import chain, frames, is_reached, largest, pinned
from perspex_magics.memory.reach import Report as Found
from perspex_magics.session import Session, find

# Less than this is not worth a line under the cell.
_NOTICED_BYTES = 1 << 20
_MOST_SHOWN = 4

# Cells that look at the last error, or debug it.
_LOOKS_AT_ERROR = re.compile(
    r"^\s*(?:%+(?:debug|tb|pdb|xmode|buffers)\b|(?:debug|tb)\s*$)"
    r"|\b(?:import|from)\s+i?pdb\b|\bi?pdb\.(?:pm|post_mortem)\b|\bpost_mortem\("
    r"|\blast_(?:traceback|value|exc|type)\b|\bprint_last\(",
    re.MULTILINE,
)
_DEBUGS = re.compile(r"^\s*%?debug\s*$", re.MULTILINE)
# What such a frame belongs to may go on running, and would be ended by clearing the frame.
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def release_after_errors(session: Session) -> None:
    """Release what failed cells hold, and name the owners when memory is exhausted."""
    shell = session.shell
    release = session.keep(Release(shell))
    session.on_cell(release.begin, release.end)
    show = shell._showtraceback

    def showing(etype: type, error: Any, lines: list[str]) -> None:
        show(etype, error, release.shown(error, lines))

    # Where IPython sends every traceback, as text, and where ipykernel's shell overrides it.
    hooked: Any = shell
    hooked._showtraceback = showing

    def owners() -> str:
        return largest(shell)

    memory.owners.append(owners)
    session.on_unload(lambda: memory.owners.remove(owners))

    def unhook() -> None:
        if vars(shell).get("_showtraceback") is showing:
            del hooked._showtraceback

    session.on_unload(unhook)


def drop_last_error(shell: InteractiveShell) -> bool:
    """Drop the last error at once, as the next cell would; returns whether there was one."""
    release = find(shell, Release)
    if release is None or vars(sys).get("last_value") in (None, release.stand_in):
        return False
    release.drop()
    return True


class Release:
    """The last error of one notebook: its text, and how it is dropped."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.lines: list[str] = []
        self.lines_of = 0  # the identity of the error that they show
        self.stand_in: BaseException | None = None
        self.held: list[weakref.ref[Any]] = []  # the arrays that the error holds alone

    def shown(self, error: BaseException, lines: list[str]) -> list[str]:
        """The traceback to show for `error`: it is remembered, and told who holds the memory.

        An error of the C++ fast path has met no Python that could have told it.
        """
        if isinstance(error, BaseException) and error is not self.stand_in:
            note = memory.explain(error)
            lines = [*lines, note] if note else lines
        self.lines, self.lines_of = lines, id(error)
        return lines

    # ---- at the end of a cell ---------------------------------------------------------------

    def end(self, result: Any) -> None:
        """Show what the cell's error holds."""
        if self.stand_in is not None and not hasattr(sys, "last_traceback"):
            sys.last_traceback = None
        error = getattr(result, "error_in_exec", None)
        if error is None or error.__traceback__ is None:
            return
        held = pinned(self.shell, error, _NOTICED_BYTES)
        self.held = [weakref.ref(buffer.array) for buffer in held.buffers]
        if held.nbytes >= _NOTICED_BYTES:
            _notice(held)

    # ---- at the beginning of the next one ---------------------------------------------------

    def begin(self, info: Any) -> None:
        """Drop the last error, unless the cell is about to look at it."""
        error = vars(sys).get("last_value")
        if error is None:
            return
        text = getattr(info, "raw_cell", None) or ""
        if error is self.stand_in:
            if _DEBUGS.search(text):
                # So that IPython says that there is nothing to debug.
                sys.__dict__.pop("last_traceback", None)
                print(
                    "The frames of the last error are gone. Run the failing cell again to debug it."
                )
            return
        if _LOOKS_AT_ERROR.search(text):
            return
        del error
        is_kept = self.drop()
        if not is_kept and any(array() is not None for array in self.held):
            gc.collect()  # in cycles through frames that may not be cleared
        self.held = []

    def drop(self) -> bool:
        """Drop the last error: the references of Python, of IPython and of its frames.

        Returns whether a variable of the notebook keeps it.
        """
        shell, error = self.shell, sys.last_value
        assert error is not None
        stand_in = self.stand_in = _stand_in(error, self._text(error))
        sys.last_type, sys.last_value, sys.last_traceback = type(stand_in), stand_in, None
        if hasattr(sys, "last_exc"):
            sys.last_exc = stand_in
        shell.InteractiveTB.tb = None
        result = shell.last_execution_result
        if result is not None and (result.error_in_exec or result.error_before_exec):
            # The old one stays what it is, for those who keep it.
            result = shell.last_execution_result = copy.copy(result)
            for name in ("error_in_exec", "error_before_exec"):
                if getattr(result, name) is not None:
                    setattr(result, name, stand_in)
        if shell.InteractiveTB.pdb is not None:
            shell.InteractiveTB.pdb.botframe = None
        is_kept = self._is_kept(error)
        if not is_kept:
            _clear(error)
        return is_kept

    def _text(self, error: BaseException) -> list[str]:
        """The traceback as it was shown, if it was, and else as Python would."""
        if isinstance(error, UsageError):
            return [f"UsageError: {error}"]
        return self.lines if self.lines_of == id(error) else traceback.format_exception(error)

    def _is_kept(self, error: BaseException) -> bool:
        """Whether a name of the notebook leads to the error, or to what it consists of."""
        parts: list[Any] = [*chain(error), *frames(error)]
        for each in chain(error):
            tb = each.__traceback__
            while tb is not None:
                parts.append(tb)
                tb = tb.tb_next
        return is_reached(self.shell, parts)


def _stand_in(error: BaseException, lines: list[str]) -> BaseException:
    """An error of the same name and message that holds nothing, and shows the same traceback."""
    kind = type(error)
    members = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "_render_traceback_": lambda self: list(lines),
    }
    try:
        message = str(error)
    except Exception:  # of a class whose errors cannot be written
        message = ""
    made: BaseException = type(kind.__name__, (Exception,), members)(message)
    return made


def _clear(error: BaseException) -> None:
    """Empty the frames of an error that is no longer needed.

    Most are gone already. The rest is in cycles, as when a function keeps an exception in a
    variable: clearing its frames ends them at once.
    """
    for frame in list(frames(error)):
        if not frame.f_code.co_flags & _RESUMABLE:
            _clear_frame(frame)


def _clear_frame(frame: FrameType) -> None:
    try:
        frame.clear()
    except RuntimeError:  # it is running
        return
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        # Before Python 3.12 this is what empties the snapshot of the variables.
        frame.f_locals  # noqa: B018


def _notice(held: Found) -> None:
    """Show under the cell what its error holds."""
    sizes: dict[tuple[str, str], int] = {}
    for buffer in held.buffers:
        owner = buffer.owners[0]
        key = (owner.name, owner.function)
        sizes[key] = sizes.get(key, 0) + buffer.nbytes
    top = sorted(sizes.items(), key=lambda item: -item[1])
    shown = [
        f"`{name}` in {function}, {units.size(nbytes)}"
        for (name, function), nbytes in top[:_MOST_SHOWN]
    ]
    more = [f"{len(top) - _MOST_SHOWN} more"] if len(top) > _MOST_SHOWN else []
    head = f"The failed cell holds {units.size(held.nbytes)} until the next cell starts"
    text = f"{head}: {'; '.join([*shown, *more])}. Run %debug now to inspect it."
    data = {
        "bytes": held.nbytes,
        "holders": [
            {"name": name, "function": function, "bytes": nbytes}
            for (name, function), nbytes in top
        ],
    }
    notices.tell("pinned", data, Report(text))
