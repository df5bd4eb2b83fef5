"""Out of memory: what XLA's error is told about who holds the memory.

The core knows arrays and no names. Whoever knows names (a notebook) adds a function to `owners`;
in plain Python the list is empty and the error stays what XLA made of it.
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
    """Note on an out-of-memory `error` who holds the memory; returns the note, if there is one.

    The owners that were added last are asked first, and one answer is enough. An error is told
    once, by the first of those through whose hands it goes.
    """
    if not is_exhausted(error) or _TOLD in vars(error):
        return ""
    vars(error)[_TOLD] = True
    note = next(filter(None, (about() for about in reversed(owners))), "")
    if note:
        error.add_note(note)
    return note
