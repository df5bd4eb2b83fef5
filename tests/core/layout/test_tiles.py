"""The parts of an array on a mesh, against NumPy's way of cutting it, and there and back by XLA."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from perspex.layout import tiles

MESHES = {
    (4,): ("x",),
    (2, 3): ("x", "y"),
    (2, 1, 3): ("x", "y", "z"),
    (2, 3, 2): ("x", "y", "z"),
}
CASES = [
    (sizes, names, axes)
    for sizes, names in MESHES.items()
    for count in range(len(names) + 1)
    for used in itertools.permutations(names, count)
    for first in range(count + 1)
    for axes in [(used[:first], used[first:])]
]


@pytest.mark.parametrize(("sizes", "names", "axes"), CASES)
def test_parts(sizes: tuple[int, ...], names: tuple[str, ...], axes: tiles.Axes) -> None:
    array = np.arange(24 * 36).reshape(24, 36)
    size = dict(zip(names, sizes, strict=True))
    parts = tiles.indices(sizes, names, axes, array.shape)
    for coordinates, part in zip(np.ndindex(*sizes), parts, strict=True):
        at = dict(zip(names, coordinates, strict=True))
        expected = array
        for axis, mine in enumerate(axes):
            for name in mine:
                expected = np.split(expected, size[name], axis)[at[name]]
        np.testing.assert_array_equal(array[part], expected)


@pytest.mark.parametrize(("sizes", "names", "axes"), CASES)
def test_what_xla_says_means_the_same(
    sizes: tuple[int, ...], names: tuple[str, ...], axes: tiles.Axes
) -> None:
    found = tiles.axes_of(tiles.hlo_sharding(sizes, names, axes), sizes, names, 2)
    assert found is not None
    full = (*found, *[()] * (2 - len(found)))
    assert tiles.assignment(sizes, names, full) == tiles.assignment(sizes, names, axes)
    shape = (24, 36)
    assert tiles.indices(sizes, names, full, shape) == tiles.indices(sizes, names, axes, shape)


def test_tiles_that_follow_no_axes() -> None:
    # The compiler may cut an axis of the mesh in parts: half of four devices.
    half = tiles.hlo_sharding((2, 2), ("a", "b"), (("a",), ()))
    assert tiles.axes_of(half, (4,), ("x",), 2) is None
    sizes, names = tiles.refined((4,), ("x",))
    assert (sizes, names) == ([2, 2], ["x.0", "x.1"])
    assert tiles.axes_of(half, tuple(sizes), tuple(names), 2) == (("x.0",),)


def test_refined_axes_are_prime() -> None:
    assert tiles.refined((12, 1, 5), ("x", "y", "z")) == (
        [2, 2, 3, 1, 5],
        ["x.0", "x.1", "x.2", "y", "z"],
    )
