"""The variables of a notebook, without the names that IPython adds for every cell that runs.

After a thousand cells the namespace holds a thousand names like `_i12` and `_12`. What looks at all
variables as a cell ends would pay for them each time, so they are sorted out once, when new. What
is left is sorted by the types of the values, and only again when one of them is another: most names
hold functions, modules and numbers, cell after cell.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex.runtime.array import ArrayImpl

_IPYTHONS = {*("_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh", "In", "Out")}


class Look:
    """What the user's names hold at one moment, oldest first, and at which places each type is.

    As long as `places` is the same object, the names are the same as well, and so are the types.
    """

    __slots__ = ("names", "places", "values")

    def __init__(self, names: list[str], values: list[Any], places: dict[type, list[int]]) -> None:
        self.names, self.values, self.places = names, values, places

    def named(self, kind: type) -> list[tuple[str, Any]]:
        """The values of exactly this type with their names."""
        names, values = self.names, self.values
        return [(names[i], values[i]) for i in self.places.get(kind, ())]


class UserNames:
    """The names of one namespace that are the user's, oldest first."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._names: list[str] = []
        # How many names there were at the last look, and which was the newest of them.
        self._count, self._newest = 0, ""
        # The names that were sorted last, the types that they had, and the places of those. Here
        # and below in one piece, as cells may end in several threads.
        self._sorted: tuple[list[str], list[type], dict[type, list[int]]] = ([], [], {})
        # Those of some types, by these places.
        self._fitting: tuple[dict[type, list[int]], Any, list[str]] = ({}, None, [])
        # The arrays that there were when a cell ended, which cell that was, and what was new then.
        self._arrays: dict[str, weakref.ref[Any]] = {}
        self._ended: object = None
        self._new: list[str] = []
        # The same arrays in the order of their names, and by which places.
        self._refs: tuple[dict[type, list[int]], list[weakref.ref[Any]]] = ({}, [])

    def look(self) -> Look:
        """The user's names and their values now."""
        names = self.listed()
        values = list(map(self._namespace.get, names))
        kinds = list(map(type, values))
        sorted_names, known, places = self._sorted
        if names is not sorted_names or not all(map(operator.is_, kinds, known)):
            places = {}
            for i, kind in enumerate(kinds):
                if type(kind).__hash__ is not type.__hash__:
                    kind = object  # a metaclass of the user's: its code may do anything
                places.setdefault(kind, []).append(i)
            self._sorted = names, kinds, places
        return Look(names, values, places)

    def of_kinds(self, fits: Callable[[type], bool]) -> list[Any]:
        """The values of all types that fit, by the types at the last look."""
        of, by, names = self._fitting
        sorted_names, _, places = self._sorted
        if of is not places or by is not fits:
            found = [at for kind, at in places.items() if fits(kind)]
            names = [sorted_names[i] for at in found for i in at]
            self._fitting = places, fits, names
        return list(map(self._namespace.get, names))

    def new_arrays(self, info: object) -> list[tuple[str, Any]]:
        """The arrays that were not yet under their names when the last cell ended.

        Whoever asks at the end of the cell with this `ExecutionInfo` is told the same ones.
        """
        if info is None or info is not self._ended:
            self._ended, look = info, self.look()
            at = look.places.get(ArrayImpl, ())
            arrays = list(map(look.values.__getitem__, at))
            of, before = self._refs
            # In most cells none is new, which is seen without a step of Python for each.
            if of is look.places and all(map(operator.is_, map(operator.call, before), arrays)):
                self._new = []
            else:
                self._note_arrays(look, [look.names[i] for i in at], arrays)
        if not self._new:
            return []
        get = self._namespace.get
        found = [(name, get(name)) for name in self._new]
        return [(name, x) for name, x in found if type(x) is ArrayImpl]

    def _note_arrays(self, look: Look, names: list[str], arrays: list[Any]) -> None:
        """Find the arrays that are new under their names, and know them from now on."""
        known, pairs = self._arrays, list(zip(names, arrays, strict=True))
        new = [(n, x) for n, x in pairs if (ref := known.get(n)) is None or ref() is not x]
        known.update([(name, weakref.ref(x)) for name, x in new])
        if len(known) > 2 * len(arrays) + 100:
            self._arrays = known = {name: known[name] for name in names}
        self._new = [name for name, _ in new]
        self._refs = look.places, [known[name] for name in names]

    def listed(self) -> list[str]:
        """The user's names; another list as soon as there are others."""
        # Names that are new stand at the end of a dict.
        namespace, newest = self._namespace, self._newest
        added: list[str] = []
        try:
            for name in reversed(namespace):
                if name == newest:
                    break
                added.append(name)
        except RuntimeError:
            # Another thread is adding names; they have their turn at the next look.
            return self._names
        count = self._count + len(added)
        if not added and count == len(namespace):
            return self._names
        if count != len(namespace):
            # Something was deleted.
            self._names, added = [], list(namespace)[::-1]
        users = []
        for name in reversed(added):
            # By hand: with cold caches, as at the end of a cell, `re` takes 30 us for one name.
            if name not in _IPYTHONS and not (
                name.startswith("_") and name[1 + (name[1] == "i") :].isdecimal()
            ):
                users.append(name)
        if users:
            # A look that somebody still has keeps its list.
            self._names = [*self._names, *users]
        self._count, self._newest = len(namespace), added[0] if added else newest
        return self._names


_known: weakref.WeakKeyDictionary[InteractiveShell, UserNames] = weakref.WeakKeyDictionary()


def user_names(shell: InteractiveShell) -> UserNames:
    """The names of a shell's notebook; the same object each time."""
    found = _known.get(shell)
    if found is None or found._namespace is not shell.user_ns:
        found = _known[shell] = UserNames(shell.user_ns)
    return found
