"""What forward mode and Taylor mode have in common: values that carry arrays of their type along.

A value carries either nothing, or a fixed number of arrays: one tangent, or the terms of a series.
A primitive that holds programs says in one rule, `Expanding.expanded`, where those stand among the
operands and results of a program that carries them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from perspex.ir.jaxpr import ClosedJaxpr
from perspex.transforms.higher_order import HigherOrder, instantiated
from perspex.transforms.jvp import jvp_jaxpr
from perspex.transforms.programs import cut, pick, with_gaps

# What each of several values carries; `None` is nothing.
Carried = Sequence[Sequence[Any] | None]


class Expand(NamedTuple):
    """How programs carry `width` arrays along with a value.

    `program(closed, nonzero, instantiate)` is like `jvp_jaxpr`. Programs are remembered by it.
    """

    program: Callable[..., tuple[ClosedJaxpr, tuple[bool, ...]]]
    width: int

    def apart(
        self, outs: Sequence[Any], nonzero: Sequence[bool]
    ) -> tuple[list[Any], list[list[Any] | None]]:
        """The results of such a program, and what those that are marked carry."""
        results, found = cut(outs, len(nonzero))
        return results, with_gaps(grouped(found, self.width), nonzero)

    def call(
        self,
        closed: ClosedJaxpr,
        primals: Sequence[Any],
        carried: Carried,
        call: Callable[[ClosedJaxpr, list[Any]], Sequence[Any]],
    ) -> tuple[list[Any], list[list[Any] | None]]:
        """What a program gives that is called with the operands as they are."""
        body, found = self.program(closed, tuple([t is not None for t in carried]))
        return self.apart(call(body, [*primals, *flattened(carried)]), found)

    def filled(self, carried: Carried, primals: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """What the values marked `wanted` carry, flat, with zeros for nothing."""
        given = [[None] * self.width if t is None else list(t) for t in pick(carried, wanted)]
        likes = [x for x in pick(primals, wanted) for _ in range(self.width)]
        return instantiated(flattened(given), likes, [True] * len(likes))


FORWARD = Expand(jvp_jaxpr, 1)


class Expanding(HigherOrder):
    """A primitive whose programs may carry tangents or terms along.

    `expanded(expand, primals, carried, **params)` returns the results and what they carry.
    """

    def expanded(self, *args: Any, **kwargs: Any) -> tuple[list[Any], list[list[Any] | None]]:
        raise self.missing("expanded")

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        carried = [None if t is None else (t,) for t in tangents]
        outs, found = self.expanded(FORWARD, primals, carried, **params)
        return outs, [None if t is None else t[0] for t in found]

    def taylor(self, series: Any, *operands: Any, **params: Any) -> Any:
        return series.expanded(self, operands, params)


def grouped(xs: Sequence[Any], count: int) -> list[list[Any]]:
    """A flat list in groups of `count`.

    >>> grouped([1, 2, 3, 4], 2)
    [[1, 2], [3, 4]]
    """
    return [list(xs[i : i + count]) for i in range(0, len(xs), count)]


def flattened(carried: Iterable[Sequence[Any] | None]) -> list[Any]:
    """What values carry, one after the other."""
    return list(itertools.chain.from_iterable([t for t in carried if t is not None]))
