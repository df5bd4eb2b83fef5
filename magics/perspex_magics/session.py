"""What Perspex keeps for one notebook, and how it is all taken out of the shell again.

A part is found by its class itself and not by the class's name, which another extension may use
for a class of its own.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from perspex.base import events

T = TypeVar("T")

# The sessions of the notebooks that have Perspex loaded.
_sessions: dict[InteractiveShell, Session] = {}


def harmless(callback: Callable[[Any], object]) -> Callable[[Any], object]:
    """A callback of IPython's events that cannot end the kernel.

    IPython catches errors and interrupts there. All others, such as the `SystemExit` of an object
    that the callback looked at, would end the process.
    """

    @wraps(callback)
    def call(argument: Any) -> object:
        try:
            return callback(argument)
        except (Exception, KeyboardInterrupt, CancelledError):
            raise
        except BaseException as error:
            events.report_ignored(error, "between cells, in", callback)
            return None

    return call


class Session:
    """The parts of one notebook, from `%load_ext` to `%unload_ext`.

    Code that changes the shell registers here how to undo the change. The undo steps run in reverse
    order, and all of them run even if one fails.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self._parts: dict[type, Any] = {}
        self._undo = ExitStack()

    def keep(self, part: T) -> T:
        """Keep a part, to be found by its class; returns it."""
        self._parts[type(part)] = part
        return part

    def find(self, kind: type[T]) -> T | None:
        """The part of exactly this class, if there is one."""
        return self._parts.get(kind)

    def every(self, kind: type[T]) -> list[T]:
        """The parts of this class and of its subclasses, in their order."""
        return [part for part in self._parts.values() if isinstance(part, kind)]

    def on_unload(self, undo: Callable[[], object]) -> None:
        """Call `undo` when the extension is unloaded."""
        self._undo.callback(undo)

    def on_cell(
        self,
        begin: Callable[[Any], object] | None = None,
        end: Callable[[Any], object] | None = None,
    ) -> None:
        """Call `begin` with the info of each cell that begins, and `end` with its result."""
        for event, callback in (("pre_run_cell", begin), ("post_run_cell", end)):
            if callback is not None:
                safe = harmless(callback)
                self.shell.events.register(event, safe)
                self._undo.callback(self.shell.events.unregister, event, safe)

    def add_magic(self, kind: str, name: str, magic: Callable[..., Any]) -> None:
        """Bring a `line` or `cell` magic into the shell.

        This avoids IPython's registry, where another class of the same name would replace ours.
        """
        known = self.shell.magics_manager.magics[kind]
        before, known[name] = known.get(name), magic

        def undo() -> None:
            if known.get(name) is not magic:
                return  # somebody else has replaced it
            del known[name]
            if before is not None:
                known[name] = before

        self.on_unload(undo)

    def add_matcher(self, matcher: Any) -> None:
        """Ask a matcher for completions, in a shell that completes."""
        if self.shell.Completer is not None:
            matchers = self.shell.Completer.custom_matchers
            matchers.append(matcher)
            self._undo.callback(matchers.remove, matcher)

    def close(self) -> None:
        """Take everything out of the shell."""
        _sessions.pop(self.shell, None)
        self._undo.close()


def begin(shell: InteractiveShell) -> Session | None:
    """The session of a shell that has none; `None` if it has one already."""
    if shell in _sessions:
        return None
    made = _sessions[shell] = Session(shell)
    return made


def session_of(shell: InteractiveShell) -> Session | None:
    """The session of a shell, if Perspex is loaded in it."""
    return _sessions.get(shell)


def find(shell: InteractiveShell, kind: type[T]) -> T | None:
    """The part of this class that is kept for a notebook, if there is one."""
    session = _sessions.get(shell)
    return None if session is None else session.find(kind)


def part(shell: InteractiveShell, kind: type[T]) -> T:
    """The part of this class that is kept for a notebook; `LookupError` without one."""
    found = find(shell, kind)
    if found is None:
        raise LookupError(f"this notebook has no {kind.__name__}: `%load_ext perspex` was not run")
    return found
