"""Products over groups where JAX has no rule to ask, against NumPy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex.test_util import check_grads

Numbers = lax.RaggedDotDimensionNumbers
RNG = np.random.default_rng(0)
SIZES = np.array([2, 0, 3])
EACH = np.array([[2, 0, 3], [1, 1, 1]])


def rand(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


CASES: dict[str, tuple[Numbers, tuple[int, ...], tuple[int, ...], np.ndarray]] = {
    "kept": (Numbers((([1], [1]), ([], [])), [0], [0]), (5, 4), (3, 4, 2), SIZES),
    "kept, with batches": (
        Numbers((([2], [2]), ([0], [1])), [1], [0]),
        (2, 5, 4),
        (3, 2, 4, 2),
        EACH,
    ),
    "kept, two contracted": (
        Numbers((([2, 1], [0, 1]), ([], [])), [0], [2]),
        (5, 3, 4),
        (4, 3, 3, 2),
        SIZES,
    ),
    "contracted": (Numbers((([0], [0]), ([], [])), [0], []), (5, 4), (5, 2), SIZES),
    "contracted, with batches": (
        Numbers((([1], [2]), ([0], [0])), [1], []),
        (2, 5, 4),
        (2, 3, 5),
        EACH,
    ),
    "contracted, one of two": (
        Numbers((([0, 2], [1, 0]), ([], [])), [2], []),
        (3, 4, 5),
        (5, 3, 2),
        SIZES,
    ),
    "batch": (Numbers((([2], [1]), ([0], [0])), [0], []), (5, 2, 3), (5, 3, 4), SIZES),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    numbers, left, right, sizes = CASES[name]

    def product(x: Any, y: Any) -> Any:
        return lax.ragged_dot_general(x, y, sizes, numbers)

    with perspex.enable_x64(True):
        x, y = perspex.numpy.asarray(rand(*left)), perspex.numpy.asarray(rand(*right))
        check_grads(product, (x, y), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("name", ["kept", "kept, with batches", "contracted", "batch"])
@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, 0), (0, None, 1), (1, 0, 1)], ids=str)
def test_batches_of_some_operands(name: str, axes: tuple[int | None, ...]) -> None:
    numbers, left, right, sizes = CASES[name]
    stack = [rand(3, *left).astype("f"), rand(3, *right).astype("f"), np.stack([sizes] * 3)]
    given = [
        a[0] if at is None else np.moveaxis(a, 0, at) for a, at in zip(stack, axes, strict=True)
    ]

    def product(x: Any, y: Any, n: Any) -> Any:
        return lax.ragged_dot_general(x, y, n, numbers)

    found = perspex.vmap(product, in_axes=axes)(*given)
    for i in range(3):
        one = [a[0] if at is None else a[i] for a, at in zip(stack, axes, strict=True)]
        np.testing.assert_allclose(found[i], product(*one), rtol=2e-5, atol=2e-5)


def test_groups_of_rows() -> None:
    rows, experts = rand(6, 4).astype("f"), rand(3, 4, 2).astype("f")
    found = np.asarray(lax.ragged_dot(rows, experts, np.array([1, 2, 2])))
    wanted = [rows[i] @ experts[e] for i, e in enumerate([0, 1, 1, 2, 2])]
    np.testing.assert_allclose(found[:5], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[5], 0)


def test_group_offsets_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="group_offset"):
        lax.ragged_dot(rand(2, 3), rand(1, 3, 2), np.array([2]), group_offset=np.array(0))
