"""Composites under what JAX has no rule for, and around programs with parts of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import lax
from perspex import numpy as pnp
from perspex.errors import UnexpectedTracerError
from perspex.experimental import checkify

X = np.linspace(0.1, 0.5, 3, dtype="f")
tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent", version=2)


def operations(f: Any, *args: Any) -> list[str]:
    lines = perspex.jit(f).lower(*args).as_text().splitlines()
    return [line.strip() for line in lines if "stablehlo.composite" in line]


def test_the_decomposition_is_mapped() -> None:
    np.testing.assert_allclose(perspex.vmap(tangent)(X), np.tan(X), rtol=1e-6)
    assert not operations(perspex.vmap(tangent), X)
    rows = perspex.vmap(lax.composite(lambda x, y: x * y, "my.product"), in_axes=(0, None))
    np.testing.assert_allclose(rows(X, 2.0), 2 * X)


def test_a_custom_derivative_keeps_the_operation() -> None:
    f = perspex.custom_jvp(tangent)
    f.defjvps(lambda t, out, x: t * (1 + out * out))
    found = perspex.grad(lambda x: f(x).sum())(X)
    np.testing.assert_allclose(found, 1 + np.tan(X) ** 2, rtol=1e-5)
    assert len(operations(perspex.grad(lambda x: f(x).sum()), X)) == 1


def test_it_stands_in_loops_and_calls() -> None:
    def loop(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, y: tangent(y), x)

    wanted = np.tan(np.tan(np.tan(X)))
    np.testing.assert_allclose(perspex.jit(loop)(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(perspex.jit(perspex.jit(tangent))(X), np.tan(X), rtol=1e-6)


def test_arrays_that_are_closed_over_are_operands() -> None:
    table = pnp.asarray(X)
    f = lax.composite(lambda x: x * table, "my.table")
    np.testing.assert_allclose(perspex.jit(f)(X), X * X)
    (line,) = operations(f, X)
    assert "%arg0" in line and line.count("tensor<3xf32>") == 3


def test_checks_inside_are_found() -> None:
    f = checkify.checkify(perspex.jit(lambda x: tangent(1 / x)), errors=checkify.float_checks)
    error, _ = f(pnp.zeros(2))
    assert "division by zero" in str(error.get())


def test_attributes_are_part_of_the_program() -> None:
    scaled = lax.composite(lambda x, *, by: x * by[0], "my.scaled")
    one, two = [perspex.jit(lambda x, v=v: scaled(x, by=np.array(v)))(X) for v in ([2.0], [3.0])]
    np.testing.assert_allclose(one, 2 * X)
    np.testing.assert_allclose(two, 3 * X)
    with pytest.raises(UnexpectedTracerError, match="the attribute `by`"):
        perspex.jit(lambda v: scaled(X, by=[v]))(2.0)
    table = pnp.ones(1)
    with pytest.raises(TypeError, match="the attribute `by` has to be"):
        perspex.jit(lambda x: scaled(x, by=[table]))(X)
    with pytest.raises(TypeError, match="an attribute of an operation"):
        perspex.jit(lambda x: scaled(x, by=[2.0, 1j]))(X)
