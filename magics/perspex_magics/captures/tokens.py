"""The tokens that a snapshot is made of, and how two states of a function's captures differ.

Tokens are equal where a trace would meet the same. They keep nothing alive that is large.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from perspex_magics.captures.codes import known_code
from perspex_magics.display.summaries import brief
from perspex_magics.notebook.kinds import is_a, plain, stops

PLAIN = (str, bytes, int, complex, bool, type(None), type(...), range)
NUMBERS_AND_TEXT = (*PLAIN, float)
# Containers of more items are taken as a whole where they hold nothing but numbers and strings, and
# dictionaries where it is not known which items are read.
MOST_ITEMS = 32
PLAIN_KINDS = frozenset(NUMBERS_AND_TEXT)
# Device arrays up to this size are kept for comparison; of larger ones only what lives anyway.
_KEPT_BYTES = 1 << 12
# Other device arrays of more bytes count as changed without a look.
_MOST_COMPARED = 1 << 26
_NUMBERS = {int, float, bool, str, complex}
_MISSING = object()


class Object:
    """Equal to another `Object` that is the same or says it is equal; kept alive if need be."""

    __slots__ = ("get",)

    def __init__(self, value: Any) -> None:
        try:
            self.get: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.get = lambda: value

    def __eq__(self, other: object) -> bool:
        mine, others = self.get(), other.get() if isinstance(other, Object) else None
        if mine is None or mine is others:
            return mine is not None
        if type(mine) is not type(others) or type(mine).__hash__ is None:
            return False
        try:
            return bool(mine == others)
        except BaseException as error:  # the comparison is some other library's
            if stops(error):
                raise
            return False

    __hash__ = None  # type: ignore[assignment]


class Foreign:
    """A function of another module: made anew with the same code and equal parts, it is the same.

    `parts` are the tokens of what it closes over and of its defaults.
    """

    __slots__ = ("code", "get", "parts")

    def __init__(self, function: types.FunctionType, parts: list[Any]) -> None:
        self.get = weakref.ref(function)
        self.code, self.parts = function.__code__, parts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Foreign):
            return False
        mine = self.get()
        if mine is not None and mine is other.get():
            return True
        is_same_code = (
            self.code is other.code
            or known_code(self.code).meaning == known_code(other.code).meaning
        )
        return is_same_code and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]


class Members:
    """The elements of a set: those that are plain values, and how many others."""

    __slots__ = ("others", "plain")

    def __init__(self, value: Any) -> None:
        self.plain = {(type(x), repr(plain(x))) for x in value if is_a(x, NUMBERS_AND_TEXT)}
        self.others = {id(x): Object(x) for x in value if not is_a(x, NUMBERS_AND_TEXT)}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Members)
            and self.plain == other.plain
            and len(self.others) == len(other.others)
            and all(any(x == y for y in other.others.values()) for x in self.others.values())
        )

    __hash__ = None  # type: ignore[assignment]


class DeviceArray:
    """A device array: it cannot change, so its identity says all, until another takes its place.

    `kind` is its type, and `place` where it lies, if that counts.
    """

    __slots__ = ("get", "kind")

    def __init__(self, array: Any, place: Any, kind: Any) -> None:
        self.kind = kind, place
        if array.nbytes <= _KEPT_BYTES:
            self.get: Callable[[], Any] = lambda: array
        else:
            self.get = weakref.ref(array)

    def same(self, other: DeviceArray, wait: bool) -> bool | None:
        """Whether the numbers are the same; `None` where one would have to wait to know."""
        old, new = self.get(), other.get()
        if old is new:
            return old is not None
        if self.kind != other.kind or old is None or new is None:
            return False
        if old.nbytes > _MOST_COMPARED or old.is_deleted() or new.is_deleted():
            return False
        if not wait and not (old.is_ready() and new.is_ready()):
            return None
        return np.asarray(old).tobytes() == np.asarray(new).tobytes()


class Difference(NamedTuple):
    """A variable that differs between two states, in short texts; `root` is the name it is in."""

    variable: str
    root: str
    old: str
    new: str


@dataclass(eq=False, slots=True)
class Table:
    """What a snapshot finds: a token for each thing, under its label.

    `roots` are the names that the labels are in. `texts` say in few words what a label or a root
    stands for; those of `said` are yet to be written. `shown` are shorter texts for some roots.
    `names` are the notebook's globals that were looked up. `mutable` are the objects that may be
    changed in place, each with its root, and `contents` those of NumPy arrays, by id.
    `has_tracers` says that a value is itself being traced, so that the state does not last, and
    `is_known` that this is all that the code can read.
    """

    tokens: dict[str, Any] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    mutable: list[tuple[str, Any]] = field(default_factory=list)
    contents: dict[int, Any] = field(default_factory=dict)
    has_tracers: bool = False
    is_known: bool = True

    def say(self, label: str, value: Any) -> None:
        """Have `texts` say what a value is, when they are asked for."""
        if label not in self.said:
            self.said[label] = value

    def tell(self) -> None:
        """Write the texts of what was to be said."""
        for label, value in self.said.items():
            if label not in self.texts:
                self.texts[label] = brief(value)
        self.said.clear()


class State:
    """What is kept of a snapshot, to compare later ones with."""

    __slots__ = ("is_known", "names", "roots", "shown", "texts", "tokens")

    def __init__(self, table: Table) -> None:
        self.names, self.shown, self.is_known = table.names, table.shown, table.is_known
        self.tokens, self.roots, self.texts = table.tokens, table.roots, table.texts

    def is_same(self, now: Table) -> bool:
        """Whether a trace would meet the same; false where that is in doubt."""
        mine, others = self.tokens, now.tokens
        return (
            self.is_known
            and now.is_known
            and mine.keys() == others.keys()
            and all(_same(token, others[label], True) for label, token in mine.items())
        )

    def differences(self, now: Table | State, wait: bool) -> tuple[list[Difference], bool]:
        """What differs now, and whether something could not be told without waiting."""
        by_root: dict[str, list[str]] = {}
        # Parts that the function no longer reads, because a key or a function was replaced. They
        # are reported only if nothing else has changed.
        gone: dict[str, list[str]] = {}
        unsure = False
        for label, token in self.tokens.items():
            same = _same(token, now.tokens.get(label, _MISSING), wait)
            if same is None:
                unsure = True
            elif not same:
                found = by_root if label in now.tokens else gone
                found.setdefault(self.roots[label], []).append(label)
        by_root = by_root or gone
        # What a replaced function read may be as it was: only what is still read has another value.
        read = {*now.names, *now.roots.values()}
        if not read.isdisjoint(by_root):
            by_root = {root: labels for root, labels in by_root.items() if root in read}
        return [self._difference(now, *item) for item in by_root.items()], unsure

    def _difference(self, now: Table | State, root: str, labels: list[str]) -> Difference:
        old, new = self.texts.get(root, "not defined"), now.texts.get(root, "not defined")
        shown = self.shown.get(root, root)
        if new != old and len(labels) > 1:
            return Difference(shown, root, old, new)
        # What differs lies deeper than a short text of the whole shows.
        found = [Difference(shown, root, old, new)]
        for label in labels:
            before = self.texts.get(label) or _token_text(self.tokens[label])
            after = now.texts.get(label) or _token_text(now.tokens.get(label))
            if label != root and before and after:
                variable = shown + label[len(root) :] if label.startswith(root) else label
                found.append(Difference(variable, root, before, after))
        told = next((d for d in reversed(found) if d.old != d.new), found[-1])
        return (
            told if told.old != told.new else told._replace(new=f"{told.new}, with other contents")
        )


def is_same_number(old: Any, new: Any) -> bool:
    """Whether both are the same number or text, for which nothing more need be looked at."""
    return type(old) is type(new) and type(old) in _NUMBERS and repr(old) == repr(new)


def key_token(key: Any) -> Any:
    """The token of a key of a dictionary."""
    return (type(key), repr(plain(key))) if is_a(key, NUMBERS_AND_TEXT) else Object(key)


def labelled(values: dict[Any, Any], label: str) -> Iterator[tuple[str, Any]]:
    """The items of a dictionary called `label`, each with a label of its own."""
    places: dict[str, int] = {}
    for key, item in list(values.items()):
        place = f"{label}[{brief(key)}]"
        count = places[place] = places.get(place, 0) + 1
        yield place if count == 1 else f"{place} #{count}", item


def _same(old: Any, new: Any, wait: bool) -> bool | None:
    if isinstance(old, DeviceArray) and isinstance(new, DeviceArray):
        return old.same(new, wait)
    return type(old) is type(new) and bool(old == new)


def _token_text(token: Any) -> str:
    """The value of a plain token as text; empty for others."""
    is_plain = isinstance(token, tuple) and len(token) == 2 and isinstance(token[0], type)
    if is_plain and token[0] in PLAIN_KINDS:
        return token[1] if token[0] in (float, complex) else brief(token[1])
    return ""
