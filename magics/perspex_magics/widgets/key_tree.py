"""A tree of keys to explore: split, fold in, draw.

Nothing here knows about widgets or notebooks. Keys are pairs of numbers, computed by `threefry` and
never by the user's code. Only samples come from `perspex.random`, so that they are those that the
code of the node gives. A draw here does not count as a use of the key: no event reports it, and no
record contains it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from perspex import random
from perspex.base import events
from perspex.random import lineage
from perspex_magics.display.markup import shortened
from perspex_magics.panel.widgets import DrawnSamples, HashBlock, KeyDetail, KeyNode, Samples
from perspex_magics.widgets import threefry
from perspex_magics.widgets.distributions import DISTRIBUTIONS, histogram
from perspex_magics.widgets.refusals import Refused
from perspex_magics.widgets.threefry import Block, Words

Kind = Literal["root", "split", "fold_in", "draw"]

MOST_NODES = 400
MOST_CHILDREN = 64
MOST_SAMPLES = 100_000
_MOST_AXES = 8
_SHOWN = 12
# The shape of a preview.
_PREVIEW = (1000,)

_SHAPE = re.compile(r"\(?\s*(\d+(?:\s*,\s*\d+)*)?\s*,?\s*\)?")


@dataclass(eq=False)
class Node:
    """A key, or what was drawn with one.

    `step` numbers what made the node: the keys of one split have one number. `blocks` are the
    hashes that made the key; none for a root.
    """

    id: int
    parent: Node | None
    kind: Kind
    step: int
    label: str
    code: str
    words: Words
    blocks: list[Block] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    samples: Any = None


class KeyTree:
    """Keys and what is made of them.

    Args:
      roots: for each key to begin with, its two numbers and how it is written.
      partitionable: the layout of counters, as the flag `threefry_partitionable` says.
    """

    def __init__(self, roots: Iterable[tuple[Words, str]], partitionable: bool) -> None:
        self.partitionable = partitionable
        self.nodes: dict[int, Node] = {}
        self._ids, self._steps = itertools.count(), itertools.count()
        for words, code in roots:
            self._add(None, "root", next(self._steps), code, code, words)

    def _add(self, parent: Node | None, kind: Kind, step: int, *rest: Any, **more: Any) -> Node:
        node = Node(next(self._ids), parent, kind, step, *rest, **more)
        self.nodes[node.id] = node
        return node

    # ---- Actions -------------------------------------------------------------------------------

    def key(self, id: object) -> Node:
        """The key with that number."""
        node = self.node(id)
        if node.kind == "draw":
            raise Refused("This node holds samples, not a key.")
        return node

    def node(self, id: object) -> Node:
        """The node with that number."""
        node = self.nodes.get(id) if isinstance(id, int) else None
        if node is None:
            raise Refused("This node no longer exists.")
        return node

    def split(self, id: object, count: object) -> list[Node]:
        """`random.split(key, count)`."""
        node = self.key(id)
        number = _whole("the number of keys", count, 1, MOST_CHILDREN)
        self._check_room(number)
        step = next(self._steps)
        given = node.code if number == 2 else f"{node.code}, {number}"
        return [
            self._add(
                node,
                "split",
                step,
                f"split({number})[{i}]" if number != 2 else f"split[{i}]",
                f"random.split({given})[{i}]",
                threefry.words_of(blocks),
                blocks,
            )
            for i, blocks in enumerate(threefry.split(node.words, number, self.partitionable))
        ]

    def fold_in(self, id: object, number: object) -> Node:
        """`random.fold_in(key, number)`."""
        node = self.key(id)
        data = _whole("the number to fold in", number, 0, 2**32 - 1)
        self._check_room(1)
        blocks = threefry.fold_in(node.words, data)
        return self._add(
            node,
            "fold_in",
            next(self._steps),
            f"fold_in({data})",
            f"random.fold_in({node.code}, {data})",
            threefry.words_of(blocks),
            blocks,
        )

    def draw(self, id: object, distribution: object, shape: object) -> Node:
        """`random.normal(key, shape)`, or another distribution."""
        node = self.key(id)
        name = distribution if isinstance(distribution, str) else ""
        if name not in DISTRIBUTIONS:
            raise Refused(f"Unknown distribution {shortened(name)!r}.")
        sizes = as_shape(shape)
        self._check_room(1)
        samples = _samples(name, node.words, sizes)
        return self._add(
            node,
            "draw",
            next(self._steps),
            f"{name} {sizes}",
            DISTRIBUTIONS[name].code.format(key=node.code, shape=sizes),
            node.words,
            shape=sizes,
            samples=(name, samples),
        )

    def remove(self, id: object) -> None:
        """Take a node out, with all below it. The keys of one split go together."""
        node = self.node(id)
        if node.kind == "root":
            raise Refused("The first key cannot be removed.")
        gone = {other.id for other in self.nodes.values() if other.step == node.step}
        # Children come after their parents.
        for other in self.nodes.values():
            if other.parent is not None and other.parent.id in gone:
                gone.add(other.id)
        self.nodes = {id: other for id, other in self.nodes.items() if id not in gone}

    def _check_room(self, more: int) -> None:
        if len(self.nodes) + more > MOST_NODES:
            raise Refused(f"The tree is full: {MOST_NODES} nodes. Remove some of them first.")

    # ---- Descriptions ----------------------------------------------------------------------------

    def in_order(self) -> Iterator[tuple[Node, int]]:
        """All nodes, each after its parent and before its parent's next child, with their depth."""
        below = defaultdict(list)
        for node in self.nodes.values():
            below[node.parent].append(node)
        left = [(node, 0) for node in reversed(below[None])]
        while left:
            node, depth = left.pop()
            yield node, depth
            left += [(child, depth + 1) for child in reversed(below[node])]

    def consumed(self) -> dict[Words, list[str]]:
        """The keys that were used more than once, with what used them.

        `fold_in` does not count as a use.
        """
        uses: dict[Words, dict[int, str]] = defaultdict(dict)
        for node in self.nodes.values():
            if node.parent is not None and node.kind != "fold_in":
                name = "split" if node.kind == "split" else node.samples[0]
                uses[node.parent.words][node.step] = name
        return {words: list(names.values()) for words, names in uses.items() if len(names) > 1}

    def alike(self) -> dict[int, str]:
        """A letter for each group of nodes that have the same bits, by the ids of the nodes."""
        groups = defaultdict(list)
        for node in self.nodes.values():
            drawn = node.samples and (node.samples[0], node.shape)
            groups[node.words, drawn].append(node.id)
        shared = [ids for ids in groups.values() if len(ids) > 1]
        return {id: _letters(i) for i, ids in enumerate(shared) for id in ids}

    def as_data(self) -> list[KeyNode]:
        """All nodes, as JSON."""
        alike, consumed = self.alike(), self.consumed()
        return [
            {
                "id": node.id,
                "parent": None if node.parent is None else node.parent.id,
                "depth": depth,
                "kind": node.kind,
                "label": node.label,
                "words": [f"{word:08x}" for word in node.words],
                "alike": alike.get(node.id, ""),
                "used": [] if node.kind == "draw" else consumed.get(node.words, []),
            }
            for node, depth in self.in_order()
        ]

    def detail(self, id: object, index: object = 0) -> KeyDetail:
        """One node in full, as JSON; of samples, the element `index` in row-major order."""
        node = self.node(id)
        told: KeyDetail = {
            "id": node.id,
            "kind": node.kind,
            "code": f"{'x' if node.kind == 'draw' else 'k'} = {node.code}",
            "numbers": list(node.words),
            "origin": node.parent.code if node.parent else "",
            "blocks": [_block(block) for block in dict.fromkeys(node.blocks)],
        }
        if node.kind == "draw":
            told["drawn"] = self._drawn(node, index)
        return told

    def preview(self, id: object, distribution: str) -> Samples:
        """A draw with a key as JSON, which adds no node and does not count as a use."""
        samples = _samples(distribution, self.key(id).words, _PREVIEW)
        return _told_of(distribution, samples)

    def _drawn(self, node: Node, index: object) -> DrawnSamples:
        name, samples = node.samples
        values = samples.ravel()
        element = _whole("the element", index, 0, max(values.size - 1, 0))
        block = None
        if DISTRIBUTIONS[name].is_direct and values.size:
            block = threefry.element(node.words, element, values.size, self.partitionable)
        return {
            **_told_of(name, samples),
            "index": element,
            "values": [_written(x) for x in values[:_SHOWN]],
            "block": block and _block(block),
            "bits": None if block is None else f"{threefry.taken(block)[0]:08x}",
            "value": _written(values[element]) if values.size else "",
        }

    def text(self) -> str:
        """The tree for a terminal and for exported notebooks."""
        alike, consumed = self.alike(), self.consumed()
        lines = []
        for node, depth in self.in_order():
            words = "" if node.kind == "draw" else " ".join([f"{word:08x}" for word in node.words])
            remarks = [f"same bits: {alike[node.id]}"] if node.id in alike else []
            if node.kind != "draw" and node.words in consumed:
                remarks.append("reused: " + ", ".join(consumed[node.words]))
            lines.append(
                "  ".join(filter(None, ["  " * depth + shortened(node.label), words, *remarks]))
            )
        return "\n".join(lines)


def as_shape(text: object) -> tuple[int, ...]:
    """A shape as somebody writes it, `1000` or `(3, 4)`.

    >>> as_shape("(3, 4)"), as_shape("7"), as_shape("()")
    ((3, 4), (7,), ())
    """
    found = _SHAPE.fullmatch(text.strip()) if isinstance(text, str) and len(text) < 200 else None
    if found is None:
        raise Refused("Write a shape as 1000 or (3, 4).")
    sizes = tuple([int(part) for part in (found[1] or "").replace(" ", "").split(",") if part])
    if len(sizes) > _MOST_AXES or math.prod(sizes) > MOST_SAMPLES:
        raise Refused(f"A draw is limited to {MOST_SAMPLES:,} samples and {_MOST_AXES} axes.")
    return sizes


def _whole(what: str, given: object, least: int, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise Refused(f"{what} must be a whole number from {least:,} to {most:,}.".capitalize())
    return given


def _samples(name: str, words: Words, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The samples that the key with these numbers gives."""
    with events.unheard(), lineage.unrecorded():
        key = random.wrap_key_data(np.array(words, np.uint32), impl="threefry2x32")
        return np.asarray(DISTRIBUTIONS[name].draw(key, shape))


def _told_of(name: str, samples: np.ndarray[Any, Any]) -> Samples:
    """A summary of samples as JSON."""
    told: Samples = {
        "distribution": name,
        "shape": list(samples.shape),
        "size": samples.size,
        "dtype": samples.dtype.name,
    }
    if samples.size:
        numbers = samples.ravel().astype(np.float64)
        found = histogram(samples, DISTRIBUTIONS[name])
        told["histogram"] = {
            "edges": found.edges,
            "counts": found.counts,
            "expected": found.expected,
            "outside": found.outside,
        }
        told["facts"] = {
            "min": float(numbers.min()),
            "mean": float(numbers.mean()),
            "std": float(numbers.std()),
            "max": float(numbers.max()),
        }
    return told


def _block(block: Block) -> HashBlock:
    return {
        "key": [f"{word:08x}" for word in block.key],
        "counter": list(block.counter),
        "taken": block.taken,
        "steps": [
            {"what": step.what, "words": [f"{word:08x}" for word in step.words]}
            for step in threefry.steps(block.key, block.counter)
        ],
    }


def _written(x: Any) -> str:
    return f"{float(x):.6g}" if x.dtype.kind == "f" else str(x)


def _letters(i: int) -> str:
    """
    >>> _letters(0), _letters(25), _letters(26)
    ('a', 'z', 'aa')
    """
    return (_letters(i // 26 - 1) if i >= 26 else "") + chr(ord("a") + i % 26)
