"""What all functions of `lax` on arrays have in common. Their numbers are in tests/oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perspex.numpy as pnp
from perspex import lax, make_jaxpr
from perspex.lax import elementwise, linear, reductions, sorting, special

MODULES = [elementwise, linear, reductions, sorting, special]
X = np.array([0.25, 0.5, 0.75], np.float32)


def public(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and name in module.__all__
    ]


NAMES = [(m, name) for m in MODULES for name in public(m)]
BINARY = [
    name
    for name in public(elementwise)
    if list(inspect.signature(getattr(lax, name, None) or len).parameters)[:2]
    in (["x", "y"], ["x1", "x2"])
    and name != "integer_pow"
]
UNARY = [
    name
    for module in (elementwise, special)
    for name in public(module)
    if [p for p in inspect.signature(getattr(lax, name)).parameters if p != "accuracy"] == ["x"]
    and name != "stop_gradient"
]
INTEGERS = {"population_count", "clz", "bitwise_not", "mulhi"}
COMPLEX = {"real", "imag"}
BITWISE = {"bitwise_and", "bitwise_or", "bitwise_xor"}
SHIFTS = {"shift_left", "shift_right_logical", "shift_right_arithmetic"}


def operand(name: str) -> np.ndarray:
    """An array that the function takes."""
    if name in INTEGERS | BITWISE | SHIFTS:
        return np.array([1, 2, 3], np.int32)
    return X.astype(np.complex64) if name in COMPLEX else X + (name == "acosh")


def test_enough_is_tested() -> None:
    assert len(UNARY) >= 40
    assert len(BINARY) >= 20


@pytest.mark.parametrize("module, name", NAMES, ids=[name for _, name in NAMES])
def test_every_function_is_exported_and_explained(module: Any, name: str) -> None:
    function = getattr(module, name)
    assert getattr(lax, name) is function
    doc = inspect.getdoc(function)
    assert doc
    assert ">>>" in doc
    assert doc.splitlines()[0].endswith(".")
    hints = inspect.get_annotations(function)
    assert set(inspect.signature(function).parameters) | {"return"} == set(hints)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("bad", [[1.0], "a", None, {}, object()], ids=lambda x: type(x).__name__)
def test_what_is_no_array_is_refused(name: str, bad: Any, traced: bool) -> None:
    function = getattr(lax, name)
    primitive = {"bitwise_not": "not", "reciprocal": "integer_pow"}.get(name, name)
    with pytest.raises(TypeError, match=rf"^{primitive}: a value of type <class .*> is not a val"):
        if traced:
            make_jaxpr(lambda: function(bad))()
        else:
            function(bad)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("bad", [[1.0], None], ids=repr)
def test_either_operand_is_checked(name: str, bad: Any) -> None:
    function, x = getattr(lax, name), operand(name)
    for args in [(bad, x), (x, bad)]:
        with pytest.raises(TypeError, match=f"{name}.*is not a valid array"):
            function(*args)


@pytest.mark.parametrize("name", BINARY)
def test_shapes_are_equal_but_for_scalars_and_ones(name: str) -> None:
    function, x = getattr(lax, name), operand(name)
    plain = np.asarray(function(x, x[:1].repeat(3)))
    for other in (x[0], x[:1]):
        np.testing.assert_array_equal(function(x, other), plain)
        np.testing.assert_array_equal(
            make_jaxpr(lambda a, b: function(a, b))(x, other).out_avals[0].shape, (3,)
        )
    column, row = x[:, None], x[None, :]
    whole = np.asarray(function(column.repeat(3, 1), row.repeat(3, 0)))
    np.testing.assert_array_equal(function(column, row), whole)
    with pytest.raises(TypeError, match=rf"{name}.*\(3,\).*\(2,\)"):
        function(x, x[:2])
    with pytest.raises(TypeError, match=f"{name}: arrays must have the same number of dimensions"):
        function(x, row)


@pytest.mark.parametrize("name", sorted(set(BINARY) - {"pow"}))
def test_nothing_is_promoted(name: str) -> None:
    function, x = getattr(lax, name), operand(name)
    other = x.astype(np.int8 if x.dtype.kind == "i" else np.float16)
    with pytest.raises(TypeError, match=f"{x.dtype.name}, {other.dtype.name}"):
        function(x, other)
    # A Python number has its own dtype: here, it is not made that of its neighbour.
    with pytest.raises(TypeError, match="equal dtypes"):
        function(other, x.dtype.type(1).item())


def test_numpy_scalars_and_arrays_get_the_enabled_width() -> None:
    x = pnp.asarray(X)
    for other in (np.float64(2), np.ones(3), np.ones(())):
        assert lax.add(x, other).dtype == np.float32


@pytest.mark.parametrize("name", sorted(set(UNARY) - INTEGERS - COMPLEX - {"conj", "is_finite"}))
def test_weak_types_stay(name: str) -> None:
    function: Callable[..., Any] = getattr(lax, name)
    value = 1.5 if name == "acosh" else 0.5
    assert function(value).weak_type
    assert not function(np.float32(value)).weak_type


def test_expand_dims_takes_a_sequence() -> None:
    x = pnp.zeros((2, 3))
    assert lax.expand_dims(x, np.array([0])).shape == (1, 2, 3)
    for dimension in (0, 1):
        with pytest.raises(TypeError, match=rf"write \({dimension},\)"):
            lax.expand_dims(x, dimension)  # type: ignore[arg-type]
