"""The words of the errors. Their bases are compared with JAX's in `oracle/cases/errors.txt`."""

from __future__ import annotations

from typing import Any

import jaxlib._jax
import pytest

from perspex import errors
from perspex.advice import messages

ORIGIN = "It is the argument `x` of the function `f` that is being traced."


@pytest.mark.parametrize(
    "compose, args, first, remedies",
    [
        (
            messages.bool_conversion,
            ("bool[]",),
            "Attempted boolean conversion of traced array with shape bool[].",
            ["lax.cond", "jnp.where", "lax.while_loop", "static_argnames"],
        ),
        (
            messages.integer_conversion,
            ("int32[]",),
            "The __index__() method was called on traced array with shape int32[].",
            ["jnp.array(items)[i]", "lax.fori_loop", "static_argnames"],
        ),
        (
            messages.array_conversion,
            ("float32[3]",),
            "The numpy.ndarray conversion method __array__() was called on traced array with "
            "shape float32[3].",
            ["`jnp`", "pure_callback"],
        ),
        (
            messages.boolean_index,
            ("bool[3]",),
            "Array boolean indices must be concrete; got bool[3].",
            ["jnp.where", "size=n"],
        ),
        (
            lambda *a: messages.concretization("float()", *a),
            ("float32[]",),
            "Abstract tracer value encountered where concrete value is expected: traced array "
            "with shape float32[].",
            ["x.astype(float)", "static_argnames"],
        ),
        (
            lambda *a: messages.concretization(".item()", *a),
            ("float32[]",),
            "Abstract tracer value encountered where concrete value is expected: traced array "
            "with shape float32[].",
            ["static_argnames", "outside the traced function"],
        ),
        (
            messages.leaked_tracer,
            ("float32[]",),
            "Encountered an unexpected tracer: a traced array with shape float32[] has leaked.",
            ["return the value"],
        ),
    ],
)
def test_messages_say_what_where_and_the_remedy(
    compose: Any, args: tuple[str, ...], first: str, remedies: list[str]
) -> None:
    lines = compose(*args, ORIGIN).splitlines()
    assert lines[0] == first
    assert lines[1] == ORIGIN
    start = next(i for i, line in enumerate(lines) if line.startswith("Remedy: "))
    for remedy in remedies:
        assert remedy in " ".join(lines[start:])
    # Without an origin there is no empty line.
    assert compose(*args).splitlines() == [line for line in lines if line != ORIGIN]


def test_a_remedy_of_its_own() -> None:
    text = messages.concretization("the argument size of f", "int32[]", remedy="give `size`.")
    assert text.endswith("Remedy: give `size`.")


def test_the_use_of_a_leaked_tracer_is_named() -> None:
    text = messages.leaked_tracer("float32[]", ORIGIN, "train.py:7 (loss)")
    assert "used at train.py:7 (loss), after" in text


def test_device_errors_are_those_of_jaxlib() -> None:
    assert errors.JaxRuntimeError is jaxlib._jax.JaxRuntimeError
