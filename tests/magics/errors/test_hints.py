"""Notes on errors that say too little: what was meant, and which argument it is."""

from __future__ import annotations

import pytest
from support.shells import Notebook

import perspex.numpy as pnp
from perspex_magics.errors import hints


@pytest.mark.parametrize(
    ("cell", "note"),
    [
        ("jnp.sinn(1.)", "Did you mean `sin`"),
        ("jnp.ones(3).reshap(3)", "`reshape`"),
        ("from perspex.lax import whil_loop", "Perspex has no `perspex.lax.whil_loop`"),
        ("from perspex.lax import whil_loop", "`while_loop`"),
    ],
)
def test_what_was_meant_is_told(notebook: Notebook, cell: str, note: str) -> None:
    notebook.run(cell)
    assert note in notebook.out


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("foo", []),  # not `floor`
        ("bar", ["var"]),
        ("sinn", ["sin", "sign", "sinc"]),
        ("arrange", ["arange"]),
        ("zeroes", ["zeros"]),
        ("lisnpace", ["linspace"]),
        ("Float32", ["float32"]),
        ("concatinate", ["concatenate"]),
        ("transpose_matrix", []),
        ("mul", []),
        ("ecp", ["exp"]),
    ],
)
def test_only_near_names_are_meant(name: str, meant: list[str]) -> None:
    assert hints.near(name, [known for known in dir(pnp) if known[0] != "_"]) == meant


def test_names_of_others_are_left_alone(notebook: Notebook) -> None:
    notebook.run("np.sinn(1.)")
    assert "Did you mean `" not in notebook.out
    notebook.run("jnp.quite_another_thing(1.)")
    assert "Did you mean `" not in notebook.out


@pytest.mark.parametrize(
    ("value", "kind"), [("[2, 2]", "list"), ("{'a': 1}", "dict"), ("{1}", "set"), ("s", "list")]
)
@pytest.mark.parametrize("how", ["static_argnames='k'", "static_argnums=1"])
def test_an_argument_without_a_hash_is_named(
    notebook: Notebook, how: str, value: str, kind: str
) -> None:
    notebook.ok(
        "from functools import partial\ns = [1]\n"
        f"@partial(perspex.jit, {how})\ndef f(x, k): return x"
    )
    notebook.run(f"f(1., {value})")
    assert f"`k` of `f` is static, and its value is of type `{kind}`" in notebook.out
