"""The past of values in transforms that compute at once, for errors.

A staging trace has equations, in which errors look up where a value came from. A transform outside
of `jit` has none. There each tracer has a `Past`, which refers to the pasts of its operands and
lives as long as the tracer. A past holds no array. At most `KEPT` of them in a row are kept one by
one; earlier ones are folded into one that has each of the user's lines once. So a loop of a million
rounds takes no more memory than one of a thousand.
"""

from __future__ import annotations

import copy
import itertools
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from perspex.base.source import Source
from perspex.ir.avals import ShapedArray

KEPT = 1_000
# When pasts are folded, at most this many are looked at.
_LOOKED_AT = 2 * KEPT

Node = TypeVar("Node", bound=Hashable)
_orders = itertools.count()


class Names(Protocol):
    """A function, and what its flat arguments are called; worked out only if an error asks."""

    @property
    def fun(self) -> Callable[..., Any]: ...

    @property
    def name(self) -> str: ...

    def __getitem__(self, i: int) -> str:
        """The argument's name, in backquotes."""


class Past:
    """Where a value comes from."""

    __slots__ = ("depth",)
    depth: int
    operands: Sequence[Past] = ()


class Argument(Past):
    """The value is an argument of a function; `arg_names` is `None` if the function is unknown.

    What was given for it may have a past in a trace `around`.
    """

    __slots__ = ("arg_names", "aval", "index", "operands")

    def __init__(
        self,
        arg_names: Names | None,
        index: int,
        aval: ShapedArray | None,
        around: Past | None = None,
    ) -> None:
        self.depth, self.operands = (0, ()) if around is None else (around.depth, (around,))
        self.arg_names, self.index, self.aval = arg_names, index, aval


# The past of a value about which nothing is known.
UNKNOWN = Argument(None, 0, None)


class Result(Past):
    """The value was computed; `order` is the place of the operation among all that have run."""

    __slots__ = ("at", "aval", "operands", "order", "primitive")

    def __init__(
        self, primitive: Any, at: Source | None, aval: ShapedArray, operands: Sequence[Past]
    ) -> None:
        depth = 0
        for past in operands:
            if past.depth > depth:  # noqa: PLR1730 - `max` takes three times as long
                depth = past.depth
        if depth == KEPT:
            operands, depth = (Folded(operands),), 0
        self.depth = depth + 1
        self.order = next(_orders)
        self.primitive, self.at, self.aval, self.operands = primitive, at, aval, operands

    def alone(self) -> Result:
        """The same without what came before."""
        found = copy.copy(self)
        found.operands = ()
        return found


class Folded(Past):
    """What came before: of each line the last operation on the way, and the arguments."""

    __slots__ = ("arguments", "results")

    def __init__(self, pasts: Sequence[Past]) -> None:
        self.depth = 0
        results, self.arguments = look_back(pasts, _LOOKED_AT)
        self.results = [result.alone() for result in results]


def look_back(
    pasts: Sequence[Past], most: int | None = None
) -> tuple[list[Result], list[Argument]]:
    """What is on the shortest ways from the arguments to some values.

    Of each line only the last operation that ran there, in the order in which they ran; and the
    arguments. With more than `most` nodes to look at it is one way for each value, and the argument
    at its end.
    """
    reader = readers(pasts, lambda past: past.operands, most)
    if most is not None and len(reader) > most:
        reader = readers(pasts, lambda past: past.operands and [_nearest(past)])
    results: list[Result] = []
    arguments: list[Argument] = []
    for past in on_ways(reader, [past for past in reader if not past.operands]):
        if isinstance(past, Folded):
            results += past.results
            arguments += past.arguments
        elif isinstance(past, Argument):
            if not past.operands:
                arguments.append(past)
        elif isinstance(past, Result):
            results.append(past)
    results.sort(key=lambda result: result.order)
    lines = {result.at: result for result in results}
    return sorted(lines.values(), key=lambda result: result.order), list(dict.fromkeys(arguments))


def _nearest(past: Past) -> Past:
    """The operand through which an argument is near."""
    return min(past.operands, key=lambda operand: operand.depth)


def readers(
    starts: Iterable[Node], operands: Callable[[Node], Iterable[Node]], most: int | None = None
) -> Any:
    """What reads each node that `starts` depend on, on the shortest way there.

    The search ends when it has found more than `most`.
    """
    reader: dict[Node, Node | None] = dict.fromkeys(starts)
    queue = deque(reader)
    while queue and (most is None or len(reader) <= most):
        at = queue.popleft()
        for operand in operands(at):
            if operand not in reader:
                reader[operand] = at
                queue.append(operand)
    return reader


def on_ways(reader: dict[Node, Node | None], ends: Iterable[Node]) -> dict[Node, None]:
    """What is on the way from one of `ends` to where the search for readers began."""
    found: dict[Node, None] = {}
    for end in ends:
        at: Node | None = end
        while at is not None and at not in found:
            found[at] = None
            at = reader[at]
    return found
