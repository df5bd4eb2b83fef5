"""Arguments that must be known while tracing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex.arguments.static import concrete, integers


def test_a_known_argument_is_converted() -> None:
    for x in (3, np.int8(3), np.array(3), jnp.array(3)):
        assert concrete("eye: N", operator.index, x) == 3


@pytest.mark.parametrize("x, convert", [(3.0, operator.index), ("x", float)])
def test_what_cannot_be_converted_raises_what_python_raises(x: Any, convert: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        convert(x)
    with pytest.raises(expected.type) as found:
        concrete("eye: N", convert, x)
    assert str(found.value) == f"eye: N: {expected.value}"


@pytest.mark.parametrize("convert", [int, operator.index, float, bool])
def test_a_traced_argument(convert: Any) -> None:
    with pytest.raises(perspex.errors.ConcretizationTypeError, match="eye: N"):
        perspex.jit(lambda n: concrete("eye: N", convert, n))(3)


@pytest.mark.parametrize("values", [(1, -2), [np.int8(1), -2], np.array([1, -2]), iter((1, -2))])
def test_integers(values: Any) -> None:
    found = integers("rev", "dimensions", values)
    assert found == (1, -2)
    assert {type(n) for n in found} == {int}


@pytest.mark.parametrize(
    "values, text",
    [
        (0, "rev: dimensions must be a sequence of integers, got 0"),
        ((0, 1.0), r"rev: dimensions must be a 1D sequence of concrete integers, got \(0, 1.0\)"),
        (iter("ab"), r"rev: dimensions must be .*, got \('a', 'b'\)"),
        (np.ones((2, 2), int), "rev: dimensions must be a 1D sequence"),
    ],
)
def test_what_is_no_sequence_of_integers(values: Any, text: str) -> None:
    with pytest.raises(TypeError, match=f"^{text}"):
        integers("rev", "dimensions", values)


def test_traced_integers() -> None:
    for make in (lambda n: (0, n), lambda n: iter((0, n))):
        with pytest.raises(perspex.errors.TracerIntegerConversionError):
            perspex.jit(lambda n, make=make: integers("rev", "dimensions", make(n)))(1)
