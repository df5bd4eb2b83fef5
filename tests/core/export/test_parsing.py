"""Shapes as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perspex
from perspex import export


def test_shapes() -> None:
    a, b = export.symbolic_shape("a, b")
    scope = a.scope
    shapes = {
        "": (),
        "()": (),
        "3": (3,),
        "(a, 2)": (a, 2),
        "a,": (a,),
        "2*a + b - 1": (2 * a + b - 1,),
        "floordiv(a, 2), mod(a, b)": (a // 2, a % b),
        "max(a, 3), min(a, b)": (
            export.symbolic_shape("max(a, 3)", scope=scope)[0],
            export.symbolic_shape("min(a, b)", scope=scope)[0],
        ),
        "a^2": (a * a,),
        "-3 + a": (a - 3,),
    }
    for text, expected in shapes.items():
        assert export.symbolic_shape(text, scope=scope) == expected, text


def test_placeholders() -> None:
    (n, *rest) = export.symbolic_shape("n, _, ...", like=(5, 6, 7, 8))
    assert rest == [6, 7, 8] and str(n) == "n"
    assert export.symbolic_shape(None, like=(2, 3)) == (2, 3)


@pytest.mark.parametrize(
    ("text", "like", "message"),
    [
        ("a b", None, "syntax error in symbolic shape 'a b'"),
        ("a / 2", None, "is no dimension"),
        ("a, 'b'", None, "is no dimension"),
        ("max(a)", None, "is no dimension"),
        ("..., a", (1, 2), "'...' must be at the end"),
        ("_", None, "has the placeholder '_'"),
        ("...", None, "has the placeholder '...'"),
        ("a", (1, 2), "must match the rank 2"),
        ("3, a", (4, 2), "does not match the argument shape"),
        (3, None, "should be None or a string"),
    ],
)
def test_texts_that_are_no_shapes(text: Any, like: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export.symbolic_shape(text, like=like)


def test_specs_of_arguments() -> None:
    args = ({"w": np.ones((3, 4), "float32"), "b": np.ones(4)}, 2.0)
    specs = export.symbolic_args_specs(args, ({"w": "n, _", "b": None}, None))
    w, b, number = perspex.tree.leaves(specs)[1], perspex.tree.leaves(specs)[0], specs[1]
    assert str(w.shape) == "(n, 4)" and b.shape == (4,) and number.shape == ()
    with pytest.raises(ValueError):
        export.symbolic_args_specs(args, ({"x": "n"},))
