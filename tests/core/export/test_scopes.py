"""What constraints decide."""

from __future__ import annotations

from typing import Any

import pytest

from perspex import export


def sizes(text: str, *constraints: str) -> tuple[Any, ...]:
    return export.symbolic_shape(text, constraints=constraints)


def test_inequalities() -> None:
    a, b = sizes("a, b", "a >= 4", "b <= 8", "a >= b + 2")
    assert a >= 4 and a > 3 and b <= 8
    assert a > b and a - b >= 2 and 2 * a >= 2 * b + 4
    assert export.symbolic_dim_bounds(2 * b + 1) == (3, 17)


def test_equalities_are_rules() -> None:
    a, b = sizes("a, b", "a == 2*b")
    assert a == 2 * b and a // 2 == b and a - b == b
    (c,) = sizes("c", "mod(c, 4) == 0")
    assert c % 4 == 0 and 4 * (c // 4) == c


def test_a_shared_scope() -> None:
    scope = export.SymbolicScope(["a >= 2"])
    (a,) = export.symbolic_shape("a", scope=scope)
    (b,) = export.symbolic_shape("b", scope=scope)
    assert a + b >= 3


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("a >= 1", "should be a sequence of strings"),
        ([1], "must be a string"),
        (["a > 1"], "must contain one of"),
        (["1 >= 2"], "Unsatisfiable"),
        (["a + b == 2"], "left-hand-side must be of the form"),
        (["a >= 1 >= 0"], "must contain one of"),
    ],
)
def test_wrong_constraints(constraints: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export.SymbolicScope(constraints)


def test_a_scope_and_constraints() -> None:
    with pytest.raises(ValueError, match="both a `scope` and `constraints`"):
        export.symbolic_shape("a", scope=export.SymbolicScope(), constraints=["a >= 1"])
