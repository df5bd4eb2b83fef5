"""Axes from the front: NumPy's own functions say which there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from perspex.arguments.axes import canonical_axes, canonical_axis, hashable_axis


@pytest.mark.parametrize("ndim", range(4))
def test_an_axis_is_counted_from_the_front_as_numpy_counts(ndim: int) -> None:
    for axis in range(-5, 5):
        try:
            expected = normalize_axis_index(axis, ndim)
        except ValueError as error:
            with pytest.raises(ValueError) as found:
                canonical_axis(axis, ndim)
            assert str(found.value) == str(error)
        else:
            assert canonical_axis(np.int8(axis), ndim) == expected


@pytest.mark.parametrize("axis", [0, -1, (0, 2), [1, -1], np.array([2, 0]), (), np.int64(1)])
def test_several_axes(axis: Any) -> None:
    assert canonical_axes(axis, 3) == normalize_axis_tuple(axis, 3)
    assert canonical_axes(None, 3) == (0, 1, 2)


@pytest.mark.parametrize("axis", [3, (0, 0), (1, -2), (0, 3)])
def test_numpy_refuses_the_same_axes(axis: Any) -> None:
    with pytest.raises(ValueError):
        normalize_axis_tuple(axis, 3)
    with pytest.raises(ValueError):
        canonical_axes(axis, 3)


@pytest.mark.parametrize(
    "axes, error, text",
    [
        (2, ValueError, "sort: axis 2 is out of bounds for array of dimension 2"),
        ((0, -2), ValueError, r"sort: duplicate value in 'axis': \(0, -2\)"),
        (0.0, TypeError, "'float' object cannot be interpreted as an integer"),
    ],
)
def test_an_error_begins_with_the_name_of_the_function(axes: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=f"^{text}$"):
        canonical_axes(axes, 2, "sort")


def test_what_a_static_argument_can_be() -> None:
    assert hashable_axis("sum", None) is None
    for axis, expected in ((np.int8(1), 1), ([0, np.int64(1)], (0, 1)), (np.array([2]), (2,))):
        found = hashable_axis("sum", axis)
        assert found == expected
        hash(found)
    for axis in (0.0, (0.5,)):
        with pytest.raises(TypeError, match="integer"):
            hashable_axis("sum", axis)
