"""Out of memory: a note on XLA's error says who holds the memory.

The core knows arrays and no names. A notebook, which knows names, adds a function to `owners`. In
plain Python the list is empty, and XLA's error stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from perspex.errors import JaxRuntimeError

# Each returns a short text about the largest arrays and who holds them, or an empty one.
owners: list[Callable[[], str]] = []

_PREFIX = "RESOURCE_EXHAUSTED"
_TOLD = "_owners_noted"


def is_exhausted(error: BaseException) -> bool:
    """Whether `error` says that there is no memory left."""
    if isinstance(error, JaxRuntimeError):
        return str(error).startswith(_PREFIX)
    return isinstance(error, MemoryError)


def explain(error: BaseException) -> str:
    """Add to an out-of-memory `error` a note on who holds the memory; returns the note, if any.

    The functions in `owners` are called last added first, until one has an answer. An error gets
    at most one note.
    """
    if not is_exhausted(error) or _TOLD in vars(error):
        return ""
    vars(error)[_TOLD] = True
    note = next(filter(None, (about() for about in reversed(owners))), "")
    if note:
        error.add_note(note)
    return note
