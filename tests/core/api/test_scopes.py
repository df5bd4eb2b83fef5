"""Names of parts of a computation: where they show up, and that they end."""

from __future__ import annotations

import pickle
import re
import threading
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from oracle import records
from perspex import lax
from perspex.base import source

X = np.ones(3, np.float32)


def names(f: Any, *args: Any) -> set[str]:
    """The names of the locations in the module of `f`."""
    text = perspex.jit(f).lower(*args).as_text(debug_info=True)
    return {n for n in re.findall(r'loc\("([^"]*)"\(#', text)}


def test_scopes_nest_and_end() -> None:
    @perspex.named_scope("outer")
    def f(x: Any) -> Any:
        with perspex.named_scope("inner"):
            y = jnp.sin(x)
        return jnp.cos(y)

    assert {"outer/inner/sin", "outer/cos"} <= names(f, X)
    assert "sin" in names(jnp.sin, X)


def test_derivatives_and_batches_keep_the_names() -> None:
    f = perspex.named_scope("layer")(lambda x: jnp.sin(x).sum())
    found = names(perspex.vmap(perspex.grad(f)), np.ones((2, 3), "f4"))
    assert {"vmap(jvp(layer))/cos", "vmap(transpose(jvp(layer)))/mul"} <= found


RECORD: dict[str, list[list[str]]] = records.read("name_stacks")


@pytest.mark.parametrize("program", RECORD)
def test_equations_have_the_names_of_jax(program: str) -> None:
    assert records.ours("name_stacks")[program] == RECORD[program]


def test_an_error_inside_a_derivative_ends_its_name() -> None:
    def f(x: Any) -> Any:
        raise ValueError("no")

    for transform in (perspex.grad, perspex.vmap, perspex.jacfwd):
        with pytest.raises(ValueError, match="no"):
            transform(f)(X)
    assert source._open_names == 0 and source.names_here() is None


def test_a_source_with_names_survives_a_pickle() -> None:
    grad = perspex.grad(lambda x: perspex.named_scope("layer")(jnp.sin)(x))
    at = perspex.make_jaxpr(grad)(1.0).jaxpr.eqns[0].source
    again = pickle.loads(pickle.dumps(at))
    assert again.scope == at.scope == "jvp(layer)" and again.names is at.names


def test_a_loop_inside_a_scope_and_a_scope_inside_a_loop() -> None:
    def step(c: Any, _: Any) -> Any:
        with perspex.named_scope("step"):
            return jnp.sin(c), None

    @perspex.named_scope("loop")
    def f(x: Any) -> Any:
        return lax.scan(step, x, None, length=3)[0]

    assert "loop/step/sin" in names(f, X)
    # The same body elsewhere: its program is shared, and has not kept the scopes of its first use.
    g = perspex.named_scope("other")(lambda x: lax.scan(step, x, None, length=3)[0])
    found = names(g, X)
    assert "other/step/sin" in found and not any("loop" in name for name in found)


def test_a_compiled_function_inside_a_scope_starts_its_own_path() -> None:
    inner = perspex.jit(lambda x: jnp.sin(x))
    first = names(perspex.named_scope("first")(lambda x: inner(x)), X)
    second = names(perspex.named_scope("second")(lambda x: inner(x)), X)
    assert "first/jit" in first and "second/jit" in second
    assert "sin" in first and "sin" in second


def test_an_error_ends_the_scope() -> None:
    try:
        with perspex.named_scope("broken"):
            raise ValueError
    except ValueError:
        pass
    assert names(lambda x: jnp.sin(x), X) & {"sin"}
    assert source._open_names == 0


def test_threads_have_scopes_of_their_own() -> None:
    found = []
    with perspex.named_scope("here"):
        thread = threading.Thread(target=lambda: found.append(names(lambda x: jnp.sin(x), X)))
        thread.start()
        thread.join()
    assert "sin" in found[0] and not any("here" in name for name in found[0])


def test_one_scope_object_can_be_entered_again_inside_itself() -> None:
    scope = perspex.named_scope("again")

    def f(x: Any) -> Any:
        with scope:
            with scope:
                y = jnp.sin(x)
            return jnp.cos(y)

    assert {"again/again/sin", "again/cos"} <= names(f, X)


def test_the_compiler_hears_of_the_names(compiled_here: None) -> None:
    f = perspex.jit(perspex.named_scope("attention")(lambda x: jnp.sin(x) * 2))
    assert 'op_name="attention/' in f.lower(X).compile().as_text()
