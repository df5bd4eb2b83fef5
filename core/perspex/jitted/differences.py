"""The differences between two calls of a jitted function, and their words."""

from __future__ import annotations

import re
import reprlib
from typing import Any, NamedTuple

from perspex.ir.avals import ShapedArray

# How many of the nearest calls that differ in the same things are shown, and how many such ways.
MOST_TOLD = 8
_MOST_WAYS = 3
# How many of the things in which two calls differ are in one text.
_MOST_PARTS = 4
_NUMBERS = (int, float, complex)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Difference(NamedTuple):
    """One thing in which a call differs from an earlier one.

    Kinds, with what `name` names:

    * `shape`, `dtype`, `weak_type` of an array: the argument, as in `x` or `params['w']`; `old` and
      `new` are its types. An array may differ in shape and in dtype; its weak type counts only
      where the dtype is the same.
    * `tree`: an argument, or the part of it, that is another container or has other keys.
    * `argument`: an argument that only one of the calls gives.
    * `keyword`: an argument given by position in one and by keyword in the other.
    * `static`: a static argument; `number` and `object` are those where both values are numbers, or
      are unequal objects that look the same.
    * `sharding`: the argument; `old` and `new` say how it lies on the mesh.
    * `device`: where it runs, and whether arguments were committed to it.
    * `config`: a flag.
    * `captured`: a variable that the function had read when it was traced.
    * `function`: nothing but the function object; another one of the same text was compiled.
    * `cleared`: nothing; what was compiled has been forgotten.
    """

    kind: str
    name: str
    old: ShapedArray | str
    new: ShapedArray | str

    @property
    def texts(self) -> tuple[str, str]:
        """`old` and `new` as they are shown."""
        weak = [isinstance(x, ShapedArray) and x.weak_type for x in (self.old, self.new)]
        note = " (weakly typed)" if weak[0] != weak[1] else ""
        old, new = _shown(self.old), _shown(self.new)
        return old + note * weak[0], new + note * weak[1]

    def __str__(self) -> str:
        if self.kind == "cleared":
            return f"retrace() or clear_caches() has dropped the programs of `{self.name}`"
        return f"{self.subject}: {' -> '.join(self.texts)}"

    @property
    def subject(self) -> str:
        """What differs: `` `x` ``, ``static `n` ``."""
        return _WORDS.get(self.kind, "`{}`").format(self.name)


_WORDS = {
    "tree": "tree of arguments, `{}`",
    "keyword": "how `{}` is given",
    **dict.fromkeys(("static", "number", "object"), "static `{}`"),
    "sharding": "sharding of `{}`",
    "device": "device",
    "config": "flag `{}`",
    "captured": "captured `{}`",
    "function": "function `{}`",
    "cleared": "programs of `{}`",
}


def _shown(value: ShapedArray | str) -> str:
    return value if isinstance(value, str) else value.str_short()


class Way(NamedTuple):
    """How a call differs from those of the nearest earlier calls that differ in the same things.

    `latest` has the differences from each of them, the latest first and at most `MOST_TOLD`; all
    have the same kinds and names. `calls` is the number of these calls.
    """

    latest: tuple[tuple[Difference, ...], ...]
    calls: int = 1

    def __str__(self) -> str:
        # An array that differs in shape and in dtype is shown once.
        parts = list(dict.fromkeys(map(str, self.latest[0])))
        if len(parts) > _MOST_PARTS:
            parts[_MOST_PARTS:] = [f"{len(parts) - _MOST_PARTS} more"]
        others = self.calls - 1
        likewise = "another differs" if others == 1 else f"{others} others differ"
        return "; ".join(parts) + (f" ({likewise} likewise)" if others else "")


class Miss(NamedTuple):
    """A call that was not in memory.

    `ways` are how it differs from the nearest earlier calls; a first call has none. `combination`
    says that an earlier call had each part of it, but no call had all of them.
    """

    ways: tuple[Way, ...] = ()
    combination: bool = False

    @classmethod
    def because(cls, *differences: Difference) -> Miss:
        """A miss that has one reason, whatever was called before."""
        return cls((Way((differences,)),))

    @property
    def cause(self) -> str:
        """In words, as in ``new combination: static `n`: 1 -> 2, or `x`: f32[4] -> f32[3]``."""
        if not self.ways:
            return "first call"
        text = ", or ".join(map(str, self.ways[:_MOST_WAYS]))
        if len(self.ways) > _MOST_WAYS:
            text += f", or {len(self.ways) - _MOST_WAYS} more"
        return f"new combination: {text}" if self.combination else text


def same(old: Any, new: Any) -> bool:
    """Whether two structures are equal. Their hashes decide most: `==` takes up to 70 us."""
    return hash(old) == hash(new) and bool(old == new)


def static_difference(name: str, old: Any, new: Any) -> Difference:
    if _is_number(old) and _is_number(new):
        return Difference("number", name, brief(old), brief(new))
    look = _look(new)
    if type(old) is type(new) and _look(old) == look:
        return Difference("object", name, look, "another object that looks the same")
    return Difference("static", name, brief(old), brief(new))


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _look(value: Any) -> str:
    """The `repr` of an object without its address."""
    return _ADDRESS.sub("", brief(value, 200))


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 200
_brief.maxtuple = _brief.maxlist = _brief.maxfrozenset = _brief.maxdict = 8


def brief(value: Any, most: int = 60) -> str:
    """The `repr` of any object in one short line; its type where `repr` fails."""
    short = type(value) in (int, float, bool, type(None))
    text = " ".join((repr(value) if short else _brief.repr(value)).split())
    return text if len(text) <= most else text[: most - 4].rstrip() + " ..."


def tree_difference(name: str, was: Any, now: Any) -> Difference:
    """Where two structures differ, as deep down as there is one such place."""
    if was is None or now is None:
        texts = ["static" if t is None else outline(t) for t in (was, now)]
        return Difference("tree", name, *texts)
    while True:
        data = was.node_data()
        if data is None or data != now.node_data() or data[0] not in (dict, list, tuple):
            break
        parts, others = was.children(), now.children()
        if len(parts) != len(others):
            break
        pairs = enumerate(zip(parts, others, strict=True))
        differing = [(i, pair) for i, pair in pairs if not same(*pair)]
        if len(differing) != 1:
            break
        i, (was, now) = differing[0]
        name += f"[{data[1][i]!r}]" if data[0] is dict else f"[{i}]"
    return Difference("tree", name, outline(was), outline(now))


def outline(structure: Any) -> str:
    """A structure in one short line: `{'b', 'w'}`, `(*, *)`."""
    data = structure.node_data()
    if data is not None and data[0] is dict:
        keys = [brief(key) for key in data[1][:8]]
        text = "{" + ", ".join(keys) + (", ..." if len(data[1]) > 8 else "") + "}"
    else:
        text = _whole(structure)
    return text if len(text) <= 60 else text[:56] + " ..."


def _whole(structure: Any) -> str:
    try:
        return str(structure).removeprefix("PyTreeDef(").removesuffix(")")
    except Exception:  # what a user's class keeps in it has a `repr` that fails
        return f"a tree of {structure.num_leaves} arrays"


def place_text(device: Any, committed: bool) -> str:
    """Where a call runs, and whether its arguments ask for that."""
    return f"{device} ({'committed' if committed else 'not committed'})"
