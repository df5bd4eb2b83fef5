"""The variables of a notebook, without the names that IPython adds for every cell that runs.

After a thousand cells the namespace holds a thousand names like `_i12` and `_12`. What looks at all
variables as a cell ends would pay for them each time, so they are sorted out once, when new.
"""

from __future__ import annotations

import re
import weakref
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

_IPYTHONS = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[iod]h|In|Out")


class UserNames:
    """The names of one namespace that are the user's, oldest first."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._names: list[str] = []
        # How many names there were at the last look, and which was the newest of them.
        self._count, self._newest = 0, ""

    def items(self) -> list[tuple[str, Any]]:
        """The user's names and their values now."""
        names, get = self._look(), self._namespace.get
        return [(name, get(name)) for name in names]

    def values(self) -> list[Any]:
        """The values of the user's names now."""
        return list(map(self._namespace.get, self._look()))

    def _look(self) -> list[str]:
        """Take in the names that are new: a dict has them at its end."""
        namespace = self._namespace
        added: list[str] = []
        try:
            for name in reversed(namespace):
                if name == self._newest:
                    break
                added.append(name)
        except (
            RuntimeError
        ):  # another thread is adding names; they have their turn at the next look
            return self._names
        if self._count + len(added) != len(namespace):
            # Something was deleted.
            self._names, added = [], list(namespace)[::-1]
        self._names += [name for name in reversed(added) if not _IPYTHONS.fullmatch(name)]
        self._count, self._newest = len(namespace), added[0] if added else self._newest
        return self._names


_known: weakref.WeakKeyDictionary[InteractiveShell, UserNames] = weakref.WeakKeyDictionary()


def user_names(shell: InteractiveShell) -> UserNames:
    """The names of a shell's notebook; the same object each time."""
    found = _known.get(shell)
    if found is None or found._namespace is not shell.user_ns:
        found = _known[shell] = UserNames(shell.user_ns)
    return found
