"""Operations outside of `jit` that a cell compiles for shape after shape are told, once."""

from __future__ import annotations

from typing import Any

import pytest
from support.shells import Notebook

from perspex_magics.compiling import storms

MIME = "application/vnd.perspex.storm+json"
# Sizes that no other test has, since what is in memory is not compiled.
LOOP = "for n in range({0}, {0} + {1}):\n    y = jnp.linspace(0.0, 1.0, n) * 3.0 + jnp.float32(n)"


@pytest.fixture(autouse=True)
def whatever_it_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the programs are on disk, which is quick."""
    monkeypatch.setattr(storms, "LEAST_SECONDS", 0.0)


def told(notebook: Notebook, cell: str) -> list[dict[str, Any]]:
    notebook.ok(cell)
    return [
        shown[MIME] | {"text": shown["text/plain"]} for shown in notebook.displayed if MIME in shown
    ]


def test_shapes_in_a_loop(notebook: Notebook) -> None:
    (storm,) = told(notebook, LOOP.format(211, 12))
    number = notebook.shell.execution_count - 1
    assert storm["shapes"] == 12 and storm["programs"] >= 24
    product = "jnp.linspace(0.0, 1.0, n) * 3.0"
    assert {product, product + " + jnp.float32(n)"} <= {*storm["names"]}
    assert "were compiled for 12 shapes: " in storm["text"]
    assert storm["at"].startswith(f"Cell In[{number}]:2") and storm["at"] in storm["text"]
    # What was compiled is compiled no more.
    assert not told(notebook, LOOP.format(211, 12))


@pytest.mark.parametrize(
    "cell",
    [
        LOOP.format(311, 3),
        "x = jnp.ones(331)\ny = jnp.sin(x) + jnp.cos(x) * x.sum() - x.mean() / jnp.exp(x).max()",
        "f = perspex.jit(lambda n, x: x[:n] * 2, static_argnums=0)\n"
        "for n in range(3, 13): f(n, np.ones(347, 'f'))",
        "for n in range(351, 363): y = np.linspace(0.0, 1.0, n) * 3.0",
        "def loss(w, x): return ((jnp.stack([x**k for k in range(5)], 1) @ w - x) ** 2).mean()\n"
        "h = perspex.hessian(loss)(jnp.ones(5), np.linspace(0.0, 1.0, 371, dtype=np.float32))",
    ],
    ids=["a few", "each operation once", "under jit", "NumPy", "a second derivative"],
)
def test_nothing_else(notebook: Notebook, cell: str) -> None:
    assert not told(notebook, cell)


def test_the_flag(notebook: Notebook) -> None:
    notebook.ok("perspex.config.update('recompile_cards', False)")
    try:
        assert not told(notebook, LOOP.format(411, 12))
    finally:
        notebook.ok("perspex.config.update('recompile_cards', True)")


def test_cheap_programs_are_no_storm(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storms, "LEAST_SECONDS", 1e6)
    assert not told(notebook, LOOP.format(511, 12))
