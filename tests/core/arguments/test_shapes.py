"""Shapes that users give: what is one, and the classes of errors, as in real jax 0.12."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex.arguments.shapes import (
    broadcast_shapes,
    canonical_shape,
    iterated_shape,
    joint_shape,
    positive_sizes,
)


class Two:
    def __index__(self) -> int:
        return 2


EITHER = [canonical_shape, iterated_shape]


@pytest.mark.parametrize("shape_of", EITHER)
@pytest.mark.parametrize(
    "shape, expected",
    [
        (2, (2,)),
        (np.int8(2), (2,)),
        (np.array(2), (2,)),
        (Two(), (2,)),
        ((), ()),
        ([2, 3], (2, 3)),
        ((np.int64(2), Two()), (2, 2)),
        (range(2, 4), (2, 3)),
        (np.array([2, 3]), (2, 3)),
    ],
)
def test_integers_and_sequences_of_them(shape_of: Any, shape: Any, expected: Any) -> None:
    found = shape_of("zeros", shape)
    assert found == expected == np.empty(shape, bool).shape
    assert {type(n) for n in found} <= {int}


@pytest.mark.parametrize("shape_of", EITHER)
def test_arrays_of_ours(shape_of: Any) -> None:
    assert shape_of("zeros", jnp.array(2)) == (2,)
    assert shape_of("zeros", jnp.array([2, 3])) == (2, 3)


@pytest.mark.parametrize("shape_of", EITHER)
@pytest.mark.parametrize("shape", [2.0, None, "ab", (2.0,), (None,), ((2,),), np.array([2.0])])
def test_what_is_not_an_integer_is_no_size(shape_of: Any, shape: Any) -> None:
    with pytest.raises(TypeError, match="^zeros: a shape must be a .*sequence of .*integers"):
        shape_of("zeros", shape)


@pytest.mark.parametrize("shape_of", EITHER)
@pytest.mark.parametrize("shape", [-1, (2, -1), np.array([-2])])
def test_negative_sizes(shape_of: Any, shape: Any) -> None:
    with pytest.raises(TypeError, match="^zeros: a shape has no negative sizes, got"):
        shape_of("zeros", shape)


@pytest.mark.parametrize(
    "make", [lambda: (n for n in (2, 3)), lambda: {2, 3}, lambda: {2: 0, 3: 0}]
)
def test_only_lax_and_random_take_what_is_no_sequence(make: Any) -> None:
    assert sorted(iterated_shape("full", make())) == [2, 3]
    with pytest.raises(TypeError, match="^zeros expected a sequence or a single integer"):
        canonical_shape("zeros", make())


@pytest.mark.parametrize("shape_of", EITHER)
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: (2, n), lambda n: [n]])
def test_a_traced_size(shape_of: Any, wrap: Any) -> None:
    with pytest.raises(perspex.errors.TracerIntegerConversionError):
        perspex.jit(lambda n: jnp.zeros(shape_of("zeros", wrap(n))))(2)


@pytest.mark.parametrize("shapes", [[(2, 1), (3,)], [(), (2,)], [(1,), (0,)], [(2, 1), (1, 3), ()]])
def test_the_common_shape_is_numpys(shapes: Any) -> None:
    assert broadcast_shapes("add", *shapes) == np.broadcast_shapes(*shapes)
    assert joint_shape(shapes) == np.broadcast_shapes(*shapes)


def test_shapes_without_a_common_one() -> None:
    # Real jax: `jnp.ones(2) + jnp.ones(3)` and `jnp.ones(2) + jnp.ones((2, 3))`.
    for shapes, error in (([(2,), (3,)], TypeError), ([(2,), (2, 3)], ValueError)):
        with pytest.raises(ValueError):
            np.broadcast_shapes(*shapes)
        with pytest.raises(error, match="^add got incompatible shapes for broadcasting"):
            broadcast_shapes("add", *shapes)
        with pytest.raises(
            ValueError, match="^Incompatible shapes for broadcasting: shapes=.*; eq"
        ):
            joint_shape(shapes, "equal or 1")
        with pytest.raises(error):
            operator.add(*[jnp.ones(shape) for shape in shapes])


def test_axes_that_may_not_be_empty() -> None:
    assert positive_sizes("fft", [np.int8(3), 1]) == (3, 1)
    # NumPy's message for `np.fft.fft([1.0], n=0)` is another, its class is the same.
    for sizes in ((0,), (2, -1)):
        with pytest.raises(ValueError):
            np.fft.fft(np.ones(2), n=sizes[-1])
        with pytest.raises(ValueError, match="^fft: Shape should be positive"):
            positive_sizes("fft", sizes)
    with pytest.raises(TypeError):
        positive_sizes("fft", (2.0,))
