"""`%jaxpr` and `%%jaxpr`.

What is shown must be what `make_jaxpr` gives for the same function of the same inputs; what the
equations should be is tested where tracing is.
"""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

SETUP = """
from perspex import grad, vmap, make_jaxpr
w = jnp.array([0.5, -1.0, 2.0])
x = jnp.ones((4, 3))
n = 2
params = {"w": w, "b": 0.5, "name": "dense"}
def loss(w, x):
    return jnp.tanh(x @ w).sum()
"""


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def shown(cells: Notebook, cell: str) -> str:
    """The one jaxpr that a cell displays, as text."""
    assert cells.ok(cell) is None
    (bundle,) = cells.displayed
    assert "<details" in bundle["text/html"] and "<script" not in bundle["text/html"]
    return str(bundle["text/plain"])


SAME = {
    "loss(w, x)": "make_jaxpr(loss)(w, x)",
    "loss(x[0], w)": "make_jaxpr(lambda x, w: loss(x[0], w))(x, w)",
    "grad(loss)(w, x)": "make_jaxpr(grad(loss))(w, x)",
    "vmap(loss, in_axes=(None, 0))(w, x)": "make_jaxpr(vmap(loss, in_axes=(None, 0)))(w, x)",
    "jnp.sin(x) * n": "make_jaxpr(lambda x, n: jnp.sin(x) * n)(x, n)",
    "params['w'] + params['b']": "make_jaxpr(lambda b, w: w + b)(params['b'], params['w'])",
    "[v * k for k, v in enumerate(w)]": "make_jaxpr(lambda w: [v * k for k, v in enumerate(w)])(w)",
    "(lambda v: v - w)(x)": "make_jaxpr(lambda w, x: (lambda v: v - w)(x))(w, x)",
    "w": "make_jaxpr(lambda w: w)(w)",
    "1.0": "make_jaxpr(lambda: 1.0)()",
}


@pytest.mark.parametrize("expression", SAME)
def test_an_expression(cells: Notebook, expression: str) -> None:
    assert shown(cells, f"%jaxpr {expression}") == str(cells.ok(SAME[expression]))


def test_static_names(cells: Notebook) -> None:
    text = shown(cells, "%jaxpr sum(w[i] for i in range(n)) --static n")
    assert text.count("add") == 2
    assert text == str(cells.ok("make_jaxpr(lambda w: sum(w[i] for i in range(2)))(w)"))


def test_the_title_says_what_the_variables_are(cells: Notebook) -> None:
    cells.ok("%jaxpr (params['w'] * x).sum()")
    html = cells.displayed[0]["text/html"]
    assert "inputs params[&#39;b&#39;] f32[], params[&#39;w&#39;] f32[3], x f32[4,3]" in html


def test_several_in_one_cell_are_all_shown(cells: Notebook) -> None:
    cells.ok("%jaxpr w + 1\n%jaxpr w + 2")
    assert ["1.0" in cells.displayed[0]["text/plain"], "2.0" in cells.displayed[1]["text/plain"]]
    assert len(cells.displayed) == 2


def test_names_around_a_function(cells: Notebook) -> None:
    cells.ok("def look(v):\n    %jaxpr v * w\nlook(x)")
    assert cells.displayed[0]["text/plain"] == str(cells.ok("make_jaxpr(lambda v, w: v * w)(x, w)"))


def test_inside_a_jitted_cell(cells: Notebook) -> None:
    expected = str(cells.ok("make_jaxpr(loss)(w, x)"))
    cells.ok("%%jit\n%jaxpr loss(w, x)\nz = loss(w, x)")
    assert cells.displayed[0]["text/plain"] == expected
    np.testing.assert_allclose(cells.ns["z"], 4 * np.tanh(1.5), rtol=1e-5)


CELLS = {
    "y = x @ w\ny * 2": "make_jaxpr(lambda w, x: ((y := x @ w) * 2, y))(w, x)",
    "%%vmap x\n(x * w).sum()": "make_jaxpr(lambda w, x: vmap(lambda x: (x * w).sum())(x))(w, x)",
    "%%grad w\nloss(w, x)": "make_jaxpr(lambda w, x: grad(loss)(w, x))(w, x)",
    "%%vmap x\n%%grad w\n(x * w).sum()": (
        "make_jaxpr(lambda w, x: vmap(lambda x: grad(lambda w: (x * w).sum())(w))(x))(w, x)"
    ),
}


@pytest.mark.parametrize("body", CELLS)
def test_a_cell(cells: Notebook, body: str) -> None:
    before = set(cells.ns)
    text = shown(cells, f"%%jaxpr\n{body}")
    assert "y" not in cells.ns and "d_w" not in cells.ns
    assert {name for name in set(cells.ns) - before if not name.startswith("_")} == set()
    assert text == str(cells.ok(CELLS[body]))


def test_a_static_cell(cells: Notebook) -> None:
    text = shown(cells, "%%jaxpr --static n\nfor i in range(n):\n    w = jnp.sin(w)\nw")
    assert text.count("sin") == 2


USAGE = {
    "%jaxpr": "an expression is missing",
    "%jaxpr loss(w": "not a Python expression",
    "%jaxpr w + 1 --static x": "does not read `x`",
    "%jaxpr w --show": "unrecognized arguments: --show",
    "%%jaxpr --static q\nw": "does not read `q`",
    "%%jaxpr\n!true\nw": "magics and shell commands",
    "%%grad w\n%%jaxpr\nw.sum()": "%%jaxpr has to be the topmost magic",
}


@pytest.mark.parametrize("cell", USAGE)
def test_usage_errors(cells: Notebook, cell: str) -> None:
    cells.fails(cell, UsageError, USAGE[cell])


@pytest.mark.parametrize("cell", ["%%jaxpr --help", "%jaxpr --help"])
def test_help(cells: Notebook, cell: str) -> None:
    cells.ok(cell)
    assert "--static" in cells.out and "%%%" not in cells.out


def test_errors_name_the_line(cells: Notebook) -> None:
    text = cells.fails("a = 1\n%jaxpr loss(w, missing)", NameError)
    number = cells.shell.execution_count - 1
    assert f"Cell In[{number}], line 2\n" in text and "perspex_magics" not in text
    text = cells.fails("%%jaxpr\ny = x\ny @ x", TypeError)
    assert f"Cell In[{number + 1}], line 3\n" in text and "y" not in cells.ns
    text = cells.fails("%jaxpr 'text'", TypeError, "str")
    assert "line 1\n" in text


def test_equations_name_the_line(cells: Notebook) -> None:
    cells.ok("from perspex.base import source\nimport types\nseen = types.SimpleNamespace(at='')")
    cells.ok("a = 1\n\n%jaxpr (setattr(seen, 'at', source.summary(source.capture())), w)[1]")
    assert cells.ns["seen"].at.startswith(f"Cell In[{cells.shell.execution_count - 1}]:3")
