"""Comparing a call of a jitted function with all that the function was compiled for.

A call is compiled for its `Signature` and a device. A miss is compared with the earlier calls, and
reported by its *differences* from the nearest ones, those with the fewest: a difference is one
shape, one dtype, one static value and so on. There may be several nearest ones, and naming one of
them would be a guess: after `f(f32[3], n=1)` and `f(f32[4], n=2)`, the call `f(f32[3], n=2)` is one
static value away from the first and one shape away from the second. Earlier calls had each of its
parts, and the combination is new.

The latest signatures are compared: `MOST`, or fewer if they have many arrays. That takes 1 ms and
less.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex import config
from perspex.ir.avals import ShapedArray
from perspex.jitted.differences import (
    MOST_TOLD,
    Difference,
    Miss,
    Way,
    brief,
    outline,
    place_text,
    same,
    static_difference,
    tree_difference,
)
from perspex.jitted.signature import Key, Signature, leaf_name, parameters_of, paths, position_name
from perspex.runtime.placement import Spread

# How many earlier signatures a miss is compared with, and how many arrays these have altogether.
MOST = 128
_MOST_ARRAYS = 8_000
# How many structures are compared, of calls whose arguments have another structure.
_MOST_STRUCTURES = 8
_MOST_DIFFERENCES = 64

# A part of a call that may differ: its kind, and the number of an array among the call's arrays, or
# the name of an argument or of a flag.
Part = tuple[str, Any]
Changes = dict[Part, tuple[Any, Any]]


class _Argument(NamedTuple):
    """An argument of a call: its structure and where its arrays are, or its value if static."""

    how: str
    tree: Any = None
    first: int = 0
    end: int = 0
    value: Any = None


class _Comparison:
    """A new call against earlier ones."""

    def __init__(self, new: Key, fun: Any) -> None:
        self.new = new
        self.parameters = parameters_of(fun)
        self.static_places = [where for where, *_ in new[0].static]
        self.layouts: dict[Any, dict[str, _Argument]] = {}
        self.paths: list[Any] = []

    def changes(self, old: Key) -> Changes | None:
        """The parts that differ, old and new; `None` if too many structures were compared."""
        was, now = old[0], self.new[0]
        found: Changes = {}
        if same(was.in_tree, now.in_tree) and self.static_places == [w for w, *_ in was.static]:
            _compare_avals(found, 0, was.avals, now.avals)
            for (where, _, a), (*_, b) in zip(was.static, now.static, strict=True):
                if _unequal(a, b):
                    found["static", self.argument(where)] = a, b
        elif len(self.layouts) > _MOST_STRUCTURES and was.in_tree not in self.layouts:
            return None
        else:
            self.compare_arguments(found, was)
        if was.context != now.context:
            # A flag that has been made since then, by `make_user_context`, had no value.
            pairs = itertools.zip_longest(was.context, now.context)
            for name, (a, b) in zip(config.context_names(), pairs, strict=False):
                if _unequal(a, b):
                    found["config", name] = a, b
        if old[1:] != self.new[1:]:
            self.compare_devices(found, old)
        return found

    def compare_devices(self, found: Changes, old: Key) -> None:
        """Another device, or arguments that lie differently on the same mesh."""
        was, now = old[1], self.new[1]
        if isinstance(was, Spread) and isinstance(now, Spread) and was.mesh == now.mesh:
            if same(old[0].in_tree, self.new[0].in_tree):
                for i, (a, b) in enumerate(zip(was.shardings, now.shardings, strict=True)):
                    if a != b:
                        found["sharding", i] = a.spec, b.spec
        elif old[2] or self.new[2] or ("config", "default_device") not in found:
            found["device", ""] = old[1:], self.new[1:]

    def argument(self, where: int | str) -> str:
        return where if isinstance(where, str) else position_name(self.parameters, where)

    def arguments(self, call: Signature) -> dict[str, _Argument]:
        """The arguments of a call by name."""
        found = self.layouts.get(call.in_tree)
        if found is None:
            found = self.layouts[call.in_tree] = self.layout(call.in_tree)
        static = {
            self.argument(where): _Argument(
                "keyword" if isinstance(where, str) else "position", value=value
            )
            for where, _, value in call.static
        }
        return {**found, **static}

    def layout(self, in_tree: Any) -> dict[str, _Argument]:
        """The arguments that hold arrays, by name."""
        positions, keywords = in_tree.children()
        given = [("position", self.argument(i), t) for i, t in enumerate(positions.children())]
        keys = zip(keywords.node_data()[1], keywords.children(), strict=True)
        given += [("keyword", name, t) for name, t in keys]
        ends = itertools.accumulate([t.num_leaves for _, _, t in given])
        return {
            name: _Argument(how, subtree, end - subtree.num_leaves, end)
            for (how, name, subtree), end in zip(given, ends, strict=True)
        }

    def compare_arguments(self, found: Changes, was: Signature) -> None:
        """`changes` for calls whose arguments differ in number or structure."""
        before, now = self.arguments(was), self.arguments(self.new[0])
        for name in {**before, **now}:
            a, b = before.get(name), now.get(name)
            if a is None or b is None:
                found["argument", name] = (a, was.avals), (b, self.new[0].avals)
                continue
            if a.how != b.how:
                found["keyword", name] = a.how, b.how
            if a.tree is None and b.tree is None:
                if _unequal(a.value, b.value):
                    found["static", name] = a.value, b.value
            elif not same(a.tree, b.tree):
                found["tree", name] = a.tree, b.tree
            else:
                old, new = was.avals[a.first : a.end], self.new[0].avals[b.first : b.end]
                _compare_avals(found, b.first, old, new)

    def differences(self, changes: Changes) -> tuple[Difference, ...]:
        """Changes as they are published."""
        found = []
        for (kind, where), (old, new) in changes.items():
            if isinstance(where, int):
                self.paths = self.paths or paths(self.new[0].in_tree)
                name = leaf_name(self.parameters, self.paths[where])
            else:
                name = where
            found.append(_difference(kind, name, old, new))
        return tuple(found)

    def has_part(self, changes: Changes, part: Part) -> bool:
        """Whether an earlier call, given by its changes, had this part of the new one."""
        if part in changes:
            return False
        kind, where = part
        # How an array lies is compared only on one mesh, and weak types only of one dtype.
        beside = {
            "sharding": ("device", ""),
            "weak_type": ("dtype", where),
            "dtype": ("weak_type", where),
        }
        if beside.get(kind) in changes:
            return False
        if kind in ("shape", "dtype", "weak_type", "sharding"):
            where = self.owner_of(where)
        return ("argument", where) not in changes and (
            kind == "tree" or ("tree", where) not in changes
        )

    def owner_of(self, leaf: int) -> str:
        """The argument that array number `leaf` is part of."""
        arguments = self.arguments(self.new[0]).items()
        return next(name for name, a in arguments if a.first <= leaf < a.end)


def _unequal(old: Any, new: Any) -> bool:
    try:
        return type(old) is not type(new) or bool(old != new)
    except Exception:  # a class whose `__eq__` gives no truth value, as that of arrays
        return old is not new


def _compare_avals(found: Changes, first: int, old: Sequence[Any], new: Sequence[Any]) -> None:
    if old == new:
        return
    # In C, since there may be many arrays: 15 ns for each.
    for i in itertools.compress(itertools.count(), map(operator.is_not, old, new)):
        was, now = old[i], new[i]
        if was.shape != now.shape:
            found["shape", first + i] = was, now
        if was.dtype != now.dtype:
            found["dtype", first + i] = was, now
        elif was.weak_type != now.weak_type:
            found["weak_type", first + i] = was, now


def compare(new: Key, earlier: Sequence[Key], fun: Any) -> Miss:
    """Find the earlier signatures that a new one is nearest to.

    Args:
      new: what the call would be compiled for.
      earlier: what was compiled, the oldest first; the latest of it are compared.
      fun: the function, for the names of its arguments.
    """
    if not earlier:
        return Miss()
    comparison = _Comparison(new, fun)
    most = min(MOST, max(8, _MOST_ARRAYS // (1 + len(new[0].avals))))
    compared = [comparison.changes(old) for old in reversed(earlier[-most:])]
    found = [changes for changes in compared if changes is not None]
    least = min(map(len, found))
    groups: dict[Any, list[Changes]] = {}
    for changes in found:
        if len(changes) == least:
            groups.setdefault(tuple(changes), []).append(changes)
    told = max(1, min(MOST_TOLD, _MOST_DIFFERENCES // (1 + least)))
    ways = [
        Way(tuple([comparison.differences(c) for c in group[:told]]), len(group))
        for group in groups.values()
    ]
    parts = {part for group in groups for part in group}
    seen = all(any(comparison.has_part(c, part) for c in found) for part in parts)
    return Miss(tuple(ways), bool(parts) and seen)


def _difference(kind: str, name: str, old: Any, new: Any) -> Difference:
    match kind:
        case "shape" | "dtype" | "weak_type" | "keyword":
            return Difference(kind, name, old, new)
        case "argument":
            return Difference(kind, name, _argument_text(*old), _argument_text(*new))
        case "tree":
            return tree_difference(name, old, new)
        case "static":
            return static_difference(name, old, new)
        case "device":
            return Difference(kind, name, place_text(*old), place_text(*new))
        case _:
            return Difference(kind, name, brief(old), brief(new))


def _argument_text(argument: _Argument | None, avals: Sequence[ShapedArray]) -> str:
    if argument is None:
        return "not given"
    if argument.tree is None:
        return brief(argument.value)
    mine = avals[argument.first : argument.end]
    if not mine:
        return outline(argument.tree)
    return ", ".join([aval.str_short() for aval in mine[:4]] + ["..."] * (len(mine) > 4))
