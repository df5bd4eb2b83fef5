"""The variables of a notebook, without the names that IPython adds for every cell that runs.

After a thousand cells the namespace holds a thousand names like `_i12` and `_12`. What looks at all
variables as a cell ends would pay for them each time, so they are sorted out once, when new. What
is left is sorted by the types of the values, and only again when one of them is another: most names
hold functions, modules and numbers, cell after cell.
"""

from __future__ import annotations

import operator
import re
import weakref
from collections.abc import Collection
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.runtime.array import ArrayImpl

_IPYTHONS = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[iod]h|In|Out")


class Look:
    """What the user's names hold at one moment, oldest first, and at which places each type is."""

    __slots__ = ("names", "places", "values")

    def __init__(self, names: list[str], values: list[Any], places: dict[type, list[int]]) -> None:
        self.names, self.values, self.places = names, values, places

    def named(self, kind: type) -> list[tuple[str, Any]]:
        """The values of exactly this type with their names."""
        names, values = self.names, self.values
        return [(names[i], values[i]) for i in self.places.get(kind, ())]

    def besides(self, kinds: Collection[type]) -> list[Any]:
        """The values of all other types."""
        values = self.values
        found = [places for kind, places in self.places.items() if kind not in kinds]
        return [values[i] for places in found for i in places]


class UserNames:
    """The names of one namespace that are the user's, oldest first."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._names: list[str] = []
        # How many names there were at the last look, and which was the newest of them.
        self._count, self._newest = 0, ""
        # The types at the last look, and their places.
        self._kinds: list[type] = []
        self._places: dict[type, list[int]] = {}
        # The arrays that there were when a cell ended, which cell that was, and what was new then.
        self._arrays: dict[str, weakref.ref[Any]] = {}
        self._ended: object = None
        self._new: list[str] = []

    def look(self) -> Look:
        """The user's names and their values now."""
        names = self.listed()
        values = list(map(self._namespace.get, names))
        kinds, known = list(map(type, values)), self._kinds
        if len(kinds) != len(known) or not all(map(operator.is_, kinds, known)):
            places: dict[type, list[int]] = {}
            for i, kind in enumerate(kinds):
                places.setdefault(kind, []).append(i)
            self._kinds, self._places = kinds, places
        return Look(names, values, self._places)

    def new_arrays(self, info: object) -> list[tuple[str, Any]]:
        """The arrays that were not yet under their names when the last cell ended.

        Whoever asks at the end of the cell with this `ExecutionInfo` is told the same ones.
        """
        get = self._namespace.get
        if info is None or info is not self._ended:
            self._ended, known = info, self._arrays
            arrays = self.look().named(ArrayImpl)
            new = [(n, x) for n, x in arrays if (ref := known.get(n)) is None or ref() is not x]
            known.update([(name, weakref.ref(x)) for name, x in new])
            if len(known) > 2 * len(arrays) + 100:
                self._arrays = {name: known[name] for name, _ in arrays}
            self._new = [name for name, _ in new]
        found = [(name, get(name)) for name in self._new]
        return [(name, x) for name, x in found if type(x) is ArrayImpl]

    def listed(self) -> list[str]:
        """The user's names; another list as soon as there are others."""
        # Names that are new stand at the end of a dict.
        namespace = self._namespace
        added: list[str] = []
        try:
            for name in reversed(namespace):
                if name == self._newest:
                    break
                added.append(name)
        except RuntimeError:
            # Another thread is adding names; they have their turn at the next look.
            return self._names
        if self._count + len(added) != len(namespace):
            # Something was deleted.
            self._names, added = [], list(namespace)[::-1]
        users = [name for name in reversed(added) if not _IPYTHONS.fullmatch(name)]
        if users:
            # A look that somebody still has keeps its list.
            self._names = [*self._names, *users]
        self._count, self._newest = len(namespace), added[0] if added else self._newest
        return self._names


_known: weakref.WeakKeyDictionary[InteractiveShell, UserNames] = weakref.WeakKeyDictionary()


def user_names(shell: InteractiveShell) -> UserNames:
    """The names of a shell's notebook; the same object each time."""
    found = _known.get(shell)
    if found is None or found._namespace is not shell.user_ns:
        found = _known[shell] = UserNames(shell.user_ns)
    return found
