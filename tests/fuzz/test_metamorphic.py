"""A few random programs, the same in every run: what holds without an oracle."""

from __future__ import annotations

import pytest

import perspex
from fuzz.compare import Difference
from fuzz.generator import Generator
from fuzz.metamorphic import RELATIONS, violations
from fuzz.programs import Program, Statement
from perspex import numpy as jnp


@pytest.mark.parametrize("seed", [7, 15, 31, 58, 77, 105])
def test_relations_hold(seed: int) -> None:
    program = Generator(seed).program(4)
    broken = violations(program)
    assert not broken, broken


def test_a_relation_that_is_broken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        RELATIONS, "grad and checkpoint", (lambda f, x: f(x), lambda f, x: f(x) + 1e-3)
    )
    x = Statement("x0 = jnp.array([1.0, 2.0], jnp.float32)", "x0")
    body = Statement("v0 = jnp.sin(x0)", "v0")
    f = Statement("def f(x0):\n    v0 = jnp.sin(x0)\n    return v0", "")
    found = violations(Program(0, False, (x,), (body,), (f,)))
    assert [(d.kind, d.name) for d in found] == [("value", "grad and checkpoint")]
    assert isinstance(found[0], Difference)


def test_rounding_is_no_violation() -> None:
    assert float(perspex.jit(lambda x: jnp.sum(x))(jnp.ones(3))) == 3.0
    x = Statement("x0 = jnp.array([1e8, 1.0, -1e8, 0.3], jnp.float32)", "x0")
    f = Statement("def f(x0):\n    return jnp.sum(jnp.sin(x0) * x0)", "")
    assert not violations(Program(0, False, (x,), (), (f,)))
