"""Calls with shapes that do not fit, and functions of other functions' programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import export
from perspex import numpy as jnp


def symbolic(f: Any, text: str, *constraints: str) -> export.Exported:
    shape = export.symbolic_shape(text, constraints=constraints)
    return export.export(perspex.jit(f))(perspex.ShapeDtypeStruct(shape, np.float32))


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def test_sizes_that_do_not_fit() -> None:
    exported = symbolic(lambda x: x, "2*n, n")
    with pytest.raises(
        ValueError, match=r"Division had remainder 1 when computing the value of 'n'"
    ):
        exported.call(ones(3, 1))
    with pytest.raises(
        ValueError, match=r"Found inconsistency between dimension size args\[0\].shape\[1\] \(= 1\)"
    ):
        exported.call(ones(4, 1))
    with pytest.raises(ValueError, match="Expected value >= 1 for dimension variable 'n'"):
        exported.call(ones(0, 0))
    assert exported.call(ones(6, 3)).shape == (6, 3)


def test_constraints_are_checked() -> None:
    exported = symbolic(lambda x: x[:2], "n, m", "n >= 2", "m <= 4")
    assert exported.call(ones(3, 4)).shape == (2, 4)
    for shape in ((1, 4), (3, 5)):
        with pytest.raises(ValueError, match="do not match the symbolic shape constraint"):
            exported.call(ones(*shape))


def test_constraints_are_checked_by_programs_from_files() -> None:
    exported = symbolic(lambda x: x * 2, "n", "n >= 2")
    loaded = export.deserialize(exported.serialize())
    assert loaded.call(ones(2)).shape == (2,)
    with pytest.raises(ValueError, match="cannot be called with arguments of the types") as caught:
        loaded.call(ones(1))
    assert "do not match the symbolic shape constraint n >= 2" in str(caught.value)


def test_variables_that_shapes_do_not_determine() -> None:
    with pytest.raises(ValueError, match="Cannot solve for values of dimension variables"):
        symbolic(lambda x: x, "n*m")


def test_a_call_is_compiled_once_for_each_shape() -> None:
    exported = symbolic(jnp.sin, "n")
    call = perspex.jit(exported.call)
    for n in (2, 3, 2):
        np.testing.assert_allclose(call(ones(n)), np.sin(ones(n)), rtol=1e-6)


def test_derivatives_of_symbolic_functions() -> None:
    exported = symbolic(lambda x: (jnp.sin(x) ** 2).mean(), "n, m")
    data = exported.serialize(vjp_order=1)
    x = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = 2 * np.sin(x) * np.cos(x) / 6
    for found in (exported, export.deserialize(data)):
        np.testing.assert_allclose(perspex.grad(found.call)(x), expected, rtol=1e-5)
    assert [str(aval) for aval in exported.vjp().in_avals] == ["float32[n,m]", "float32[]"]


def test_integers_have_no_derivative() -> None:
    exported = export.export(perspex.jit(lambda x, i: (x[i], i + 1)))(ones(3), 0)
    loaded = export.deserialize(exported.serialize(vjp_order=1))
    gradient = perspex.grad(lambda x: loaded.call(x, 1)[0])(ones(3))
    np.testing.assert_array_equal(gradient, [0, 1, 0])
