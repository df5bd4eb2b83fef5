"""What a record of random calls says: which key came from which, and which was used twice.

Keys are told apart by the array that they stand in, and the rows of an array of keys by their
numbers, which are read only here. A key that is made again is another key. What a cell did is
forgotten once the cell has run again.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perspex.base.source import Source, summary
from perspex.ir.jaxpr import Var
from perspex.random.lineage import Call

# A key may be used once, but for these: each number folded in gives another key.
_KEEPS = ("fold_in", "clone", "reuse")


@dataclass(eq=False)
class Key:
    """One key: the call that made it, which of the keys it made this is, and what used it.

    `made` is `None` where the call was not recorded; `traced` says that it stands for the keys that
    a function will be called with; `is_meant` that it was given to `random.reuse`.
    """

    made: Call | None
    row: int = 0
    parent: Key | None = None
    traced: bool = False
    is_meant: bool = False
    uses: list[Call] = field(default_factory=list)


@dataclass(eq=False)
class Site:
    """What one line did with keys from one place: calls of one function, and what came of them.

    Without a call it stands for keys whose origin is unknown; `function` is
    then that which was traced with them, if one was.
    """

    call: Call | None
    function: str = ""
    calls: list[Call] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    below: dict[Any, Site] = field(default_factory=dict)

    @property
    def is_shown(self) -> bool:
        """Whether anything of it still holds."""
        return bool(self.calls) or any(site.is_shown for site in self.below.values())


class Keys:
    """The keys of the calls that are added, and what used them.

    `is_current` says of a call's `run` whether what it did still holds.
    """

    def __init__(self, is_current: Callable[[Any], bool]) -> None:
        self.is_current = is_current
        self.keys: list[Key] = []
        # By array, or the variable of a traced program; both live as long as their calls.
        self._in_array: dict[int, list[Key]] = {}
        self._by_numbers: dict[bytes, Key] = {}

    def add(self, call: Call) -> list[Key]:
        """Take in one more call; returns the keys that it used."""
        given = self._given(call)
        for key in given:
            key.uses.append(call)
        if call.made is not None:
            parents: list[Key | None] = [*given] or [None]
            rows = _rows(call.made)
            self._in_array[id(call.made)] = [
                self._made(call, i, numbers, parents[i * len(parents) // len(rows)])
                for i, numbers in enumerate(rows)
            ]
        if call.function == "reuse":
            for key in (*given, *self._in_array.get(id(call.made), ())):
                key.is_meant = True
        return given

    def _made(self, call: Call, row: int, numbers: bytes | None, parent: Key | None) -> Key:
        key = None if numbers is None else self._by_numbers.get(numbers)
        same = call.function == "fold_in" and key is not None and key.parent is parent
        if not same or key is None:
            key = Key(call, row, parent, traced=isinstance(call.made, Var))
            self.keys.append(key)
            if numbers is not None:
                self._by_numbers[numbers] = key
        return key

    def _given(self, call: Call) -> list[Key]:
        """The keys that a call used."""
        if call.given is None:
            return []
        found = self._in_array.get(id(call.given))
        if found is None:
            found = [self._known(call, numbers) for numbers in _rows(call.given)]
            self._in_array[id(call.given)] = found
        return found

    def _known(self, call: Call, numbers: bytes | None) -> Key:
        """The key of these numbers, which may have no recorded origin."""
        key = None if numbers is None else self._by_numbers.get(numbers)
        if key is None:
            key = Key(None, traced=isinstance(call.given, Var))
            self.keys.append(key)
            if numbers is not None:
                self._by_numbers[numbers] = key
        return key

    def find(self, array: Any) -> list[Key]:
        """The keys in an array of the notebook, made of the array of its numbers."""
        found = self._in_array.get(id(array))
        if found is None:
            known = [self._by_numbers.get(numbers or b"") for numbers in _rows(array)]
            found = [key for key in known if key is not None]
        return found

    def used_twice(self) -> Iterator[tuple[Key, list[Call]]]:
        """The keys that were used more than once, with the calls that did."""
        for key in self.keys:
            if calls := self.misuses(key):
                yield key, calls

    def misuses(self, key: Key) -> list[Call]:
        """The calls that used a key, if there are several."""
        if len(key.uses) < 2 or key.is_meant:
            return []
        calls = [
            call for call in key.uses if call.function not in _KEEPS and self.is_current(call.run)
        ]
        return calls if len(calls) > 1 else []


class Lineage(Keys):
    """The keys of a list of calls, and the tree of the lines that made and used them."""

    def __init__(self, calls: Iterable[Call], is_current: Callable[[Any], bool]) -> None:
        super().__init__(is_current)
        self.roots: dict[Any, Site] = {}
        # Where in the tree a key was made.
        self._path: dict[int, tuple[Site, ...]] = {}
        for call in calls:
            self.add(call)

    def add(self, call: Call) -> list[Key]:
        """Take in one more call; returns the keys that it used."""
        given = super().add(call)
        # One line of the tree for all rows of an array of keys.
        path = self._path.get(id(given[0]), ()) if given else ()
        place = _place(call)
        again = [i for i, site in enumerate(path) if site.call and _place(site.call) == place]
        if again:
            path = path[: again[0] + 1]
        else:
            below = path[-1].below if path else self.roots
            path = (*path, below.setdefault(place, Site(call)))
        site = path[-1]
        if self.is_current(call.run):
            site.calls.append(call)
        made = [] if call.made is None else self._in_array[id(call.made)]
        for key in made:
            self._path[id(key)] = path
        site.keys += made
        return given

    def _known(self, call: Call, numbers: bytes | None) -> Key:
        key = super()._known(call, numbers)
        if id(key) not in self._path:
            frame = call.at.frame if key.traced and call.at else None
            root = (frame.file, frame.function) if frame else None
            site = self.roots.setdefault(root, Site(None, frame.function if frame else ""))
            site.keys.append(key)
            self._path[id(key)] = (site,)
        return key

    def site_of(self, key: Key) -> Site | None:
        """The line that made a key, or the place of keys of unknown origin."""
        path = self._path.get(id(key))
        return path[-1] if path else None


def _place(call: Call) -> tuple[Any, ...]:
    at, caller = call.at, call.caller
    return call.function, at and at.frame, caller and caller.frame


def _rows(array: Any) -> list[bytes | None]:
    """The numbers of each key in an array of them; a traced array counts as one key."""
    if isinstance(array, Var) or (not isinstance(array, np.ndarray) and array.is_deleted()):
        return [None]
    numbers = np.asarray(array)
    if numbers.ndim == 1:
        return [numbers.tobytes()]
    return [row.tobytes() for row in numbers.reshape(-1, numbers.shape[-1])]


# ---- What the source says -----------------------------------------------------------------------


def expression_at(at: Source | None) -> str:
    """The text of the call that stands at a place in the source; empty where it cannot be read."""
    if at is None:
        return ""
    frame = at.frame
    lines = linecache.getlines(frame.file)[frame.line - 1 : frame.end_line]
    if not lines or frame.end_column <= 0:
        return ""
    # Columns count bytes.
    encoded = [line.encode() for line in lines]
    encoded[-1] = encoded[-1][: frame.end_column]
    encoded[0] = encoded[0][frame.column :]
    return " ".join(b"".join(encoded).decode(errors="replace").split())


def argument_at(at: Source | None) -> str:
    """How the key was written in the call that stands at a place."""
    try:
        tree = ast.parse(expression_at(at), mode="eval").body
    except (SyntaxError, ValueError):
        return "a key"
    return ast.unparse(tree.args[0]) if isinstance(tree, ast.Call) and tree.args else "a key"


def names_at(at: Source | None) -> list[str]:
    """The names to which the statement at a place assigns what is computed there."""
    if at is None:
        return []
    frame = at.frame
    try:
        tree = ast.parse("".join(linecache.getlines(frame.file)))
    except (SyntaxError, ValueError):
        # A cell with magics in it is no Python.
        return []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as value) if (
                value.lineno,
                value.col_offset,
                value.end_col_offset,
            ) == (frame.line, frame.column, frame.end_column):
                targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                if all(isinstance(name, ast.Name) for name in targets):
                    return [name.id for name in targets if isinstance(name, ast.Name)]
    return []


def place_of(call: Call) -> str:
    """Where a call stands: `Cell In[3]:2`, and what called that function, if it is in one."""
    at = summary(call.at)
    return at if call.caller is None else f"{at}, called at {summary(call.caller)}"
