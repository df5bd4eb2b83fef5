"""Operands: what is an array, and arrays made from operands. NumPy says what they hold."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex import random
from perspex.arguments import arrays

F32 = np.dtype("float32")


class Colour(enum.IntEnum):
    RED = 3


NUMBERS = [2, 2.5, True, 1j, np.float32(2), Colour.RED]


@pytest.mark.parametrize("x", [*NUMBERS, np.arange(3)])
def test_numbers_and_arrays_become_arrays_of_ours(x: Any) -> None:
    for made in (arrays.as_array(x), arrays.arraylike("sin", x)):
        assert isinstance(made, perspex.Array)
        np.testing.assert_array_equal(made, x)
        assert made.weak_type == (type(x) in (int, float, complex))
    held = jnp.asarray(x)
    assert arrays.as_array(held) is held


@pytest.mark.parametrize("x", [[1], (1,), range(2), "a", None, {1}])
def test_what_is_no_array(x: Any) -> None:
    text = "sin requires ndarray or scalar arguments, got <class"
    for check in (arrays.check_arraylike, arrays.arraylike):
        with pytest.raises(TypeError, match=text):
            check("sin", x)
    with pytest.raises(TypeError, match=f"{text} '.*'> at position 1"):
        arrays.check_arraylike("sin", 1, x)
    with pytest.raises(TypeError, match="^sin: a value of type"):
        arrays.aval_of("sin", x)


def test_a_list_is_told_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"convert it with jnp.array\(...\)$"):
        arrays.check_arraylike("sin", [1])


@pytest.mark.parametrize("x", [*NUMBERS[:3], NUMBERS[4], Colour.RED, np.arange(3), "ours"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "complex64"])
def test_a_value_at_a_dtype(x: Any, dtype: Any) -> None:
    x, dtype = jnp.arange(3) if isinstance(x, str) else x, jnp.dtype(dtype)
    made = arrays.as_dtype(x, dtype)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, np.asarray(x).astype(dtype))
    assert arrays.as_dtype(made, dtype) is made
    weak = arrays.as_dtype(x, dtype, True)
    assert (weak.dtype, weak.weak_type) == (dtype, True)


def test_a_number_beside_an_array() -> None:
    strong, weak = jnp.zeros(2, "bfloat16"), jnp.asarray(1.0)
    assert arrays.like(strong, 2).dtype == strong.dtype
    assert not hasattr(arrays.like(strong, 2), "aval")  # a number, which becomes a literal
    assert arrays.like(weak, 2).weak_type
    several = jnp.broadcast_to(weak, (3,))
    assert several.weak_type
    assert arrays.weak_like(several, 2).weak_type
    assert not hasattr(arrays.like(several, 2), "aval")


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 1), (2, 3)])
def test_spread_as_numpy_broadcasts(shape: Any) -> None:
    x = np.arange(np.prod(shape), dtype=F32).reshape(shape)
    for given in (x, jnp.asarray(x), x[()]):
        np.testing.assert_array_equal(arrays.spread(given, (2, 3)), np.broadcast_to(x, (2, 3)))
        one = arrays.spread_array(given, (2, 3))
        assert np.shape(one) == ((2, 3) if shape else ())


@pytest.mark.parametrize("shape", [(2,), (1, 2, 3), (3, 3)])
def test_spread_refuses_what_numpy_does(shape: Any) -> None:
    x = np.zeros(shape)
    with pytest.raises(ValueError):
        np.broadcast_to(x, (2, 3))
    for spread in (arrays.spread, arrays.spread_array):
        with pytest.raises(ValueError, match="incompatible shapes for broadcasting"):
            spread(x, (2, 3))
        with pytest.raises(TypeError):
            spread(x, (2, 3), TypeError)


def test_spread_makes_no_equation_without_need() -> None:
    x = jnp.zeros((2, 3))
    assert not perspex.make_jaxpr(lambda v: arrays.spread(v, (2, 3)))(x).eqns
    assert arrays.spread(x, (2, 3)) is x


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (3, 1)])
def test_expand_as_numpy_does(axes: Any) -> None:
    x = np.arange(6).reshape(2, 3)
    found = arrays.expand(jnp.asarray(x), axes)
    np.testing.assert_array_equal(found, np.expand_dims(x, axes))


def test_flat_as_numpy_does() -> None:
    for x in (np.float32(1), np.arange(3), np.arange(6).reshape(2, 3)):
        np.testing.assert_array_equal(arrays.flat(jnp.asarray(x)), np.ravel(x))


def test_linear_algebra_takes_integers_as_floats() -> None:
    whole, half = arrays.inexact_operands("qr", jnp.arange(3), jnp.zeros(2, "bfloat16"))
    assert (whole.dtype, half.dtype) == (F32, jnp.dtype("bfloat16"))
    key = random.key(0)
    assert arrays.inexact_operands("qr", key)[0] is key


def test_a_constant_is_lifted_through_all_transforms() -> None:
    def f(x: Any) -> Any:
        return x * arrays.as_array(np.arange(3.0, dtype=F32)) + arrays.as_array(2)

    x = np.ones((2, 3), F32)
    expected = x * np.arange(3.0) + 2
    np.testing.assert_array_equal(perspex.vmap(f)(x), expected)
    np.testing.assert_array_equal(perspex.jit(perspex.vmap(f))(x), expected)
    np.testing.assert_array_equal(perspex.jvp(f, (x,), (x,))[1], x * np.arange(3.0))
