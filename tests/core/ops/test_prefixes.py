"""All partial results of an operation that is associative and does not commute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from perspex.ops.elementwise import add, mul
from perspex.ops.prefixes import prefixes


def compose(first: Sequence[Any], then: Sequence[Any]) -> list[Any]:
    """The map `x -> a x + b`, then the map `x -> c x + d`."""
    (a, b), (c, d) = first, then
    return [mul(a, c), add(mul(b, c), d)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("length", range(10))
def test_every_length(length: int, axis: int) -> None:
    rng = np.random.default_rng(length)
    shape = (length, 2) if axis == 0 else (2, length)
    a, b = rng.integers(-3, 4, (2, *shape)).astype("f4")
    _, found = prefixes(compose, [a, b], length, axis)
    total = np.zeros(2, "f4")
    for i in range(length):
        total = total * a.take(i, axis) + b.take(i, axis)
        np.testing.assert_array_equal(np.asarray(found).take(i, axis), total)


def test_booleans() -> None:
    x = np.array([False, True, False, False, True])
    (found,) = prefixes(lambda p, q: [np.asarray(p[0]) ^ np.asarray(q[0])], [x], 5, 0)
    np.testing.assert_array_equal(found, np.logical_xor.accumulate(x))
