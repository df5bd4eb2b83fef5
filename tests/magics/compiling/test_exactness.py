"""A device that rounds products is told of once, in a cell that compares with float64."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.shells import Notebook

from perspex_magics.compiling import exactness

MIME = "application/vnd.perspex.precision+json"
SIZES = itertools.count(31)
COMPARE = "np.testing.assert_allclose(y, a @ a, rtol=1e-2)"


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor is a GPU, as far as the notice knows."""
    monkeypatch.setattr(exactness, "rounding", lambda device: exactness._TF32)


@pytest.fixture
def ready(notebook: Notebook) -> Notebook:
    # A size that no other test has, since what is in memory is not compiled.
    size = next(SIZES)
    notebook.ok(f"a = np.linspace(0.0, 1.0, {size}**2).reshape({size}, {size})")
    notebook.ok("x = jnp.asarray(a, jnp.float32)")
    return notebook


def told(notebook: Notebook, cell: str) -> list[Any]:
    notebook.ok(cell)
    return [shown[MIME] for shown in notebook.displayed if MIME in shown]


def device(platform: str, capability: str | None = None) -> Any:
    return SimpleNamespace(platform=platform, compute_capability=capability)


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (device("gpu", "7.0"), None),
        (device("gpu", "8.0"), "TF32"),
        (device("cuda", "12.0"), "TF32"),
        (device("gpu", "gfx942"), None),
        (device("gpu"), None),
        (device("tpu"), "bfloat16"),
        (device("cpu"), None),
    ],
    ids=str,
)
def test_which_devices_round(found: Any, name: str | None) -> None:
    rounding = exactness.rounding(found)
    assert (rounding and rounding.name) == name


def test_the_error_is_that_of_the_format() -> None:
    """Half the distance from 1 to the next number: TF32 has float16's 11 bits."""
    for dtype, rounding in (
        (np.float16, exactness._TF32),
        (ml_dtypes.bfloat16, exactness._BFLOAT16),
    ):
        assert float(rounding.error) == pytest.approx(
            float(ml_dtypes.finfo(dtype).eps) / 2, rel=0.05
        )


@pytest.mark.usefixtures("rounds")
@pytest.mark.parametrize(
    "product",
    [
        "x @ x",
        "jnp.einsum('ij,jk->ik', x, x)",
        "perspex.jit(lambda x: x @ x)(x)",
        "perspex.jit(lambda x: perspex.lax.fori_loop(0, 1, lambda i, c: c @ x, x))(x)",
    ],
)
def test_a_cell_that_compares(ready: Notebook, product: str) -> None:
    assert not told(ready, f"y = {product}")
    (found,) = told(ready, COMPARE)
    cell = ready.shell.execution_count - 2
    assert found["at"].startswith(f"Cell In[{cell}]:1") and found["rounded_to"] == "TF32"
    assert found["product"] in product
    # Once in a session.
    assert not told(ready, COMPARE)


@pytest.mark.usefixtures("rounds")
@pytest.mark.parametrize(
    ("product", "compare"),
    [
        ("x @ x", "y.sum()"),
        ("x @ x", "np.allclose(y, x @ x)"),
        ("x @ x", "a.sum()"),
        ("jnp.matmul(x, x, precision='highest')", COMPARE),
        ("jnp.asarray(a).T * x", "np.allclose(y, a.T * a)"),
        ("(x * 8).astype(jnp.int32) @ x.astype(jnp.int32)", "np.allclose(y, a)"),
    ],
)
def test_nothing_else(ready: Notebook, product: str, compare: str) -> None:
    assert not told(ready, f"y = {product}") and not told(ready, compare)


@pytest.mark.usefixtures("rounds")
def test_in_one_cell_and_by_a_difference(ready: Notebook) -> None:
    (found,) = told(ready, "y = x @ x\nerror = abs(y - a @ a).max()")
    assert found["product"] == "x @ x" and found["relative_error"] == 5e-4


@pytest.mark.usefixtures("rounds")
def test_below_a_comparison_that_fails(ready: Notebook) -> None:
    ready.fails("y = x @ x\nnp.testing.assert_allclose(y, a @ a + 1)", AssertionError, "tolerance")
    assert [shown for shown in ready.displayed if MIME in shown]


@pytest.mark.usefixtures("rounds")
def test_the_flag(ready: Notebook) -> None:
    ready.ok("perspex.config.update('precision_cards', False)")
    try:
        assert not told(ready, "y = x @ x\n" + COMPARE)
    finally:
        ready.ok("perspex.config.update('precision_cards', True)")


def test_a_processor_does_not_round(ready: Notebook) -> None:
    assert not told(ready, "y = x @ x\n" + COMPARE)
