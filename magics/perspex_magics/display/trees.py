"""The display of a container of arrays: a folding tree of its arrays and other leaves.

Containers without arrays keep their usual display. Only Python's own numbers and strings are asked
for their `repr`, because that of another object may be slow, huge, or have side effects.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from IPython.utils.dir2 import get_real_method
from markupsafe import Markup

from perspex.runtime.array import ArrayImpl
from perspex.runtime.keys import KeyArray
from perspex_magics.display import units
from perspex_magics.display.arrays import array_html, heading_of, keys_html
from perspex_magics.display.functions import PjitFunction, name_of
from perspex_magics.display.markup import MONO, MUTED, escape, tag

# Where arrays are looked for.
_MOST_LOOKED_AT = 500
# What is shown: entries of one container, all together, levels, and arrays with their values.
_MOST_ENTRIES = 30
_MOST_NODES = 200
_MOST_LEVELS = 8
_MOST_VALUES = 20
# A container below the first is unfolded if it has at most so many entries, and if all such ones of
# its level have at most so many together with those of the levels above.
_OPEN_ENTRIES = 12
_OPEN_LINES = 40
_LONGEST = 80
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def container_html(x: Any) -> Markup | None:
    """A dict, list or tuple as a tree, if there are arrays in it."""
    own = get_real_method(x, "_repr_html_")
    if own is not None:
        return own()
    return tree_html(x)


def dataclass_html(x: Any) -> Markup | None:
    """A dataclass as a tree, if there are arrays in it; any other object as it says itself."""
    own = get_real_method(x, "_repr_html_")
    if own is not None:
        return own()
    return tree_html(x) if _is_dataclass(x) else None


def tree_html(x: Any) -> Markup | None:
    """A container as script-free HTML; `None` if no array is found in it."""
    return _Drawing(x).node(x, "", 0) if _arrays(x)[0] else None


def _open_levels(x: Any) -> int:
    """How many levels of a container are unfolded: at least one, and others that are small."""
    lines, level = min(_length(x), _MOST_ENTRIES), 1
    inside = [x]
    while level < _MOST_LEVELS:
        below = [
            value
            for one in inside
            for _, value in itertools.islice(_entries(one) or (), _MOST_ENTRIES)
            if _is_container(value) and _length(value) <= _OPEN_ENTRIES
        ]
        lines += sum(map(_length, below))
        if not below or lines > _OPEN_LINES:
            break
        inside, level = below, level + 1
    return level


class _Drawing:
    """One tree, and what of it is still to be afforded."""

    def __init__(self, x: Any) -> None:
        self.open_levels = _open_levels(x)
        self.nodes, self.values = _MOST_NODES, _MOST_VALUES
        self.above: list[int] = []

    def node(self, x: Any, label: str, level: int) -> Markup:
        """A node with all below it."""
        self.nodes -= 1
        if x.__class__ is ArrayImpl:
            self.values -= 1
            shown = array_html(x, is_open=False) if self.values >= 0 else heading_of(x)
            return _line(label, tag("div", shown, style="display:inline-block;vertical-align:top"))
        if x.__class__ is KeyArray:
            shown = keys_html(x, is_open=False)
            return _line(label, tag("div", shown, style="display:inline-block;vertical-align:top"))
        entries = _entries(x)
        if entries is None:
            return _line(label, tag("span", escape(_leaf(x)), style=MONO))
        head = tag("span", escape(f"{_kind(x)} · {_content(x)}"), style=MUTED)
        if id(x) in self.above:
            return _line(label, head + escape(" (itself)"))
        if level >= _MOST_LEVELS:
            return _line(label, head)
        self.above.append(id(x))
        inside = []
        for i, (name, value) in enumerate(entries):
            if i >= _MOST_ENTRIES or self.nodes <= 0:
                inside.append(_line("", tag("span", f"⋯ {_length(x) - i} more", style=MUTED)))
                break
            inside.append(self.node(value, name, level + 1))
        self.above.pop()
        return tag(
            "details",
            tag("summary", _label(label), head),
            tag("div", *inside, style="margin-left:1.4em"),
            **({"open": ""} if self._is_open(x, level) else {}),
        )

    def _is_open(self, x: Any, level: int) -> bool:
        return not level or (level < self.open_levels and _length(x) <= _OPEN_ENTRIES)


def _line(label: str, content: str) -> Markup:
    return tag("div", _label(label), content)


def _label(label: str) -> Markup:
    return tag("span", escape(f"{label}: "), style=MONO) if label else Markup()


def _entries(x: Any) -> Iterator[tuple[str, Any]] | None:
    """The names and values in a container; `None` for a leaf."""
    # The methods of the built-in types, because a subclass may compute something in its own.
    if isinstance(x, dict):
        return ((_leaf(key), value) for key, value in list(dict.items(x)))
    if isinstance(x, tuple) and isinstance(fields := getattr(type(x), "_fields", None), tuple):
        return zip(map(str, fields), tuple.__iter__(x), strict=False)
    if isinstance(x, list):
        return ((f"[{i}]", value) for i, value in enumerate(list.__iter__(x)))
    if isinstance(x, tuple):
        return ((f"[{i}]", value) for i, value in enumerate(tuple.__iter__(x)))
    if _is_dataclass(x):
        # Not by `getattr`: a class may compute its attributes.
        held = getattr(x, "__dict__", {})
        names = [field.name for field in dataclasses.fields(x) if field.name in held]
        return ((f".{name}", held[name]) for name in names)
    return None


def _is_container(x: Any) -> bool:
    return isinstance(x, dict | list | tuple) or _is_dataclass(x)


def _is_dataclass(x: Any) -> bool:
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def _length(x: Any) -> int:
    for kind in (dict, list, tuple):
        if isinstance(x, kind):
            length: Callable[[Any], int] = kind.__len__
            return length(x)
    return len(dataclasses.fields(x))


def _kind(x: Any) -> str:
    return _cut(type(x).__name__)


def _content(x: Any) -> str:
    found, is_all = _arrays(x)
    size = units.size(sum(array.nbytes for array in found))
    word = "array" if len(found) == 1 else "arrays"
    count = _length(x)
    entries = "1 entry" if count == 1 else f"{units.count(count)} entries"
    return f"{entries} · {'' if is_all else 'at least '}{units.count(len(found))} {word}, {size}"


def _arrays(x: Any) -> tuple[list[Any], bool]:
    """The arrays among the first things in a container, and whether these are all things."""
    found: list[Any] = []
    left, seen = [x], 0
    known: set[int] = set()
    while left and seen < _MOST_LOOKED_AT:
        node = left.pop()
        seen += 1
        if id(node) in known:
            continue
        known.add(id(node))
        if node.__class__ is ArrayImpl or node.__class__ is KeyArray:
            found.append(node)
        elif (entries := _entries(node)) is not None:
            left += [value for _, value in itertools.islice(entries, _MOST_LOOKED_AT)]
    return found, not left


def _leaf(x: Any) -> str:
    """A leaf as text; of an object that is not Python's own, the type."""
    if type(x) is tuple and len(x) <= 4:
        return _cut(f"({', '.join(map(_leaf, x))}{',' * (len(x) == 1)})")
    if isinstance(x, PjitFunction):
        return _cut(name_of(x))
    if type(x) in _PLAIN:
        whole = x if not isinstance(x, (str, bytes)) or len(x) <= _LONGEST else x[:_LONGEST]
        return _cut(repr(whole) + ("" if whole is x else "…"))
    return _cut(f"<{type(x).__name__}>")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST + 4 else text[:_LONGEST] + "…"
