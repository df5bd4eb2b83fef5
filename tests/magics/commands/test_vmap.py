"""`%vmap` and `%%vmap`. Expected values come from loops in NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

from perspex.errors import TracerBoolConversionError

SETUP = """
x = jnp.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0], [2.0, 0.5, -0.5], [1.5, 1.0, 0.0]])
y = jnp.array([[1.0, -1.0, 0.5, 2.0], [0.0, 1.0, 1.0, 0.0], [3.0, 1.0, -1.0, 0.5]])
w = jnp.array([0.5, -1.0, 2.0])
n = 3
batch = {"a": jnp.arange(8.0).reshape(4, 2), "b": [jnp.ones(4)]}
params = {"w": w, "name": "dense"}
def dot(u, v, scale=1.0):
    return scale * (u * v).sum()
"""
X = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0], [2.0, 0.5, -0.5], [1.5, 1.0, 0.0]])
Y = np.array([[1.0, -1.0, 0.5, 2.0], [0.0, 1.0, 1.0, 0.0], [3.0, 1.0, -1.0, 0.5]])
W = np.array([0.5, -1.0, 2.0])


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def close(got: Any, want: Any) -> None:
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_a_cell(cells: Notebook, jit: str) -> None:
    cell = (
        f"%%vmap x{jit}\nassert x.shape == (3,)\nd = x - w\nlength = jnp.sqrt((d**2).sum())\nlength"
    )
    for _ in range(2):
        close(cells.ok(cell), np.linalg.norm(X - W, axis=1))
        close(cells.ns["d"], X - W)
        close(cells.ns["length"], np.linalg.norm(X - W, axis=1))
    close(cells.ns["x"], X)


@pytest.mark.parametrize("jit", ["", " --jit"])
@pytest.mark.parametrize("names", ["x --in y=1", "--in x=0,y=1", "--in x=0 y=-1", "x,y --in y=1"])
def test_axes(cells: Notebook, names: str, jit: str) -> None:
    cells.ok(f"%%vmap {names}{jit}\nproduct = x * y\ntotal = product.sum() + w.sum()")
    close(cells.ns["product"], X * Y.T)
    close(cells.ns["total"], (X * Y.T).sum(axis=1) + W.sum())


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_every_array_gets_the_axis_in_front(cells: Notebook, jit: str) -> None:
    cells.ok(
        f"%%vmap --in y=1{jit}\nsame = y\nouter = y[:, None] * jnp.ones(2)\nfixed = jnp.zeros(2)\n"
        "shared = w\nkind = 'text'\ncount = 7\nnothing = None\nboth = {'a': y.sum(), 'b': 'b'}\n"
        "def twice(v): return 2 * v"
    )
    close(cells.ns["same"], Y.T)
    close(cells.ns["outer"], np.repeat(Y.T[:, :, None], 2, axis=2))
    close(cells.ns["fixed"], np.zeros((4, 2)))
    close(cells.ns["shared"], np.tile(W, (4, 1)))
    assert cells.ns["kind"] == "text" and cells.ns["count"] == 7 and cells.ns["nothing"] is None
    close(cells.ns["both"]["a"], Y.sum(axis=0))
    assert cells.ns["both"]["b"] == "b" and cells.ns["twice"](2) == 4


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_containers(cells: Notebook, jit: str) -> None:
    cells.ok(f"%%vmap batch{jit}\ntotal = batch['a'].sum() * batch['b'][0] + params['w'][0]")
    close(cells.ns["total"], np.arange(8.0).reshape(4, 2).sum(axis=1) + 0.5)


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_per_example_gradients(cells: Notebook, jit: str) -> None:
    cells.ok(f"%%vmap x{jit}\n%%grad w\n((x * w).sum() - 1) ** 2")
    close(cells.ns["d_w"], 2 * (X @ W - 1)[:, None] * X)


def test_mapped_twice(cells: Notebook) -> None:
    table = cells.ok("%%vmap x\n%%vmap y --in y=1\n(x * y).sum()")
    close(table, X @ Y)


def test_gradient_of_a_mapped_cell_needs_a_scalar(cells: Notebook) -> None:
    shown = cells.fails(
        "%%grad w\n%%vmap x\n(x * w).sum()", TypeError, r"not a scalar: float32\[4\]"
    )
    assert "line 3\n" in shown


def test_a_second_run_is_not_traced_again(cells: Notebook) -> None:
    cells.ns["seen"] = seen = []
    cells.ok("class Tick:\n    def __call__(self): seen.append(1)\ntick = Tick()")
    for shift in range(3):
        cells.ns["w"] = cells.ns["w"] + shift
        close(cells.ok("%%vmap x --jit\ntick()\n(x * w).sum()"), X @ np.asarray(cells.ns["w"]))
    assert len(seen) == 1


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_a_failure_changes_nothing(cells: Notebook, jit: str) -> None:
    kept = {name: cells.ns[name] for name in ("x", "w", "batch")}
    shown = cells.fails(f"%%vmap x{jit}\nx = 2 * x\nbatch['a'] = x\ny = missing", NameError)
    assert "line 4\n" in shown and "perspex_magics" not in shown
    assert all(cells.ns[name] is value for name, value in kept.items())
    close(cells.ns["batch"]["a"], np.arange(8.0).reshape(4, 2))


def test_python_cannot_branch_on_an_example(cells: Notebook) -> None:
    shown = cells.fails("%%vmap x\nif x.sum() > 0:\n    z = x", TracerBoolConversionError)
    assert "line 2\n" in shown and "----> 2 if x.sum() > 0:" in shown
    shown = cells.fails("%%vmap x --jit\nwhile n > 0:\n    z = x", TracerBoolConversionError)
    assert "%%jit --static n" in shown


SIZES = "the inputs disagree about the number of examples: axis 0 of `x`, float32[4,3], has "
MISTAKES = {
    "sizes": ("x w", "(x * w).sum()", ValueError, SIZES + "length 4; axis 0 of `w`, float32[3]", 1),
    "sizes of leaves": ("u", "u[0]", ValueError, "axis 0 of `u[1]`, float32[4,3], has length 4", 1),
    "no axis": ("x --in w=1", "x * w", ValueError, "`w` is float32[3], which has no axis 1", 1),
    "a number": ("n", "n * 2", ValueError, "`n` is int32[], which has no axis 0", 1),
    "a function": ("dot", "dot(w, w)", TypeError, "`dot` is a function, not an array", 1),
    "nothing in it": ("empty", "empty", ValueError, "there is no array in `empty`", 1),
    "undefined": ("missing", "missing + 1", NameError, "'missing' is not defined", 1),
}


@pytest.mark.parametrize("jit", ["", " --jit"])
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_line(cells: Notebook, name: str, jit: str) -> None:
    names, body, error, message, line = MISTAKES[name]
    cells.ok("u, empty = (w, x), []")
    shown = cells.fails(f"%%vmap {names}{jit}\n{body}", error)
    assert message in " ".join(shown.split()), shown
    assert f"Cell In[{cells.shell.execution_count - 1}], line {line}\n" in shown
    assert "perspex_magics" not in shown


USAGE = {
    "%%vmap\nx": "name at least one input to map over",
    "%%vmap --in x=None\nx": "name at least one input to map over",
    "%%vmap y\nx": "does not read `y`",
    "%%vmap x --in y\nx * y": "'y' is not NAME=AXIS",
    "%%vmap x --in y=one\nx * y": "'y=one' is not NAME=AXIS",
    "%%vmap x --out 1\nx": "unrecognized arguments: --out",
    "%%vmap x --jit\n%time x": "magics and shell commands",
    "%vmap": "an expression is missing",
    "%vmap dot(x": "not a Python expression",
    "%vmap w": "not a function or a call of one",
    "%vmap dot(x, w) --in 0,None,None": "--in has 3 axes, but `dot(x, w)` has 2 positional",
    "%vmap dot(x, w) --in None,None": "no argument of `dot(x, w)` is mapped over",
    "%vmap dot(x, w) --in z=0": "no argument `z`; it has `u`, `v`, `scale`, `x`, `w`",
    "%vmap dot(2 * x, w) --in x=0": "`x` is part of an argument",
    "%vmap dot(x, w) --in zero": "'zero' is not an axis",
    "%vmap dot --in z=0": "no positional parameter `z`; it has `u`, `v`, `scale`",
}


@pytest.mark.parametrize("cell", USAGE)
def test_usage_errors(cells: Notebook, cell: str) -> None:
    cells.fails(cell, UsageError, re.escape(USAGE[cell]))


def test_a_call_with_axes_that_disagree(cells: Notebook) -> None:
    shown = cells.fails("a = 1\n%vmap dot(x, w)", ValueError, "axis 0 of `w`.* has length 3")
    assert f"Cell In[{cells.shell.execution_count - 1}], line 2\n" in shown
    cells.fails("%vmap dot('a', w)", ValueError, "`'a'` is a str, not an array")


@pytest.mark.parametrize("cell", ["%%vmap --help", "%%vmap --help\nx", "%vmap --help"])
def test_help(cells: Notebook, cell: str) -> None:
    cells.ok(cell)
    assert "--in" in cells.out and "--jit" in cells.out and "%%%" not in cells.out


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_the_mapped_function(cells: Notebook, jit: str) -> None:
    cells.ok(f"f = %vmap dot --in 0,None{jit}")
    close(cells.ok("f(x, w)"), X @ W)
    cells.ok(f"f = %vmap dot --in v=0{jit}")
    close(cells.ok("f(w, x)"), X @ W)
    close(cells.ok("f(w, x, 2.0)"), 2 * X @ W)
    cells.ok(f"f = %vmap jnp.cumsum --in 1 --out 1{jit}")
    close(cells.ok("f(x)"), np.cumsum(X, axis=0))
    cells.ok(f"f = %vmap lambda u: u[0] - u[1]{jit}")
    close(cells.ok("f(x)"), X[:, 0] - X[:, 1])


CALLS = {
    "%vmap dot(x, w) --in 0,None": X @ W,
    "%vmap dot(x, w) --in 0, None": X @ W,
    "%vmap dot(x, w, scale=2.0) --in u=0": 2 * X @ W,
    "%vmap dot(x, w) --in x=0": X @ W,
    "%vmap dot(x, w) --in x=1,w=0": X.T.sum(axis=1) * W,
    "%vmap dot(x, y.T)": (X * Y.T).sum(axis=1),
    "%vmap dot(w, v=x) --in v=0": X @ W,
    "%vmap jnp.outer(x, w) --in 0,None --out 2": np.einsum("ni,j->ijn", X, W),
    "%vmap (lambda p, u: (p['w'] * u).sum())(params, x) --in None,0": X @ W,
    "%vmap (lambda p, u: p['a'].sum() * u)(batch, w[0]) --in ({'a': 0, 'b': [0]}, None)": (
        0.5 * np.arange(8.0).reshape(4, 2).sum(axis=1)
    ),
}


@pytest.mark.parametrize("jit", ["", " --jit"])
@pytest.mark.parametrize("call", CALLS)
def test_calls(cells: Notebook, call: str, jit: str) -> None:
    for _ in range(2):
        close(cells.ok(f"{call}{jit}"), CALLS[call])


def test_a_compiled_call_is_not_traced_again(cells: Notebook) -> None:
    cells.ns["seen"] = seen = []
    cells.ok("class Tick:\n    def __call__(self): seen.append(1)\ntick = Tick()")
    cells.ok("def f(u, v):\n    tick()\n    return (u * v).sum()")
    for shift in range(3):
        cells.ns["w"] = cells.ns["w"] + shift
        close(cells.ok("%vmap f(x, w) --in 0,None --jit"), X @ np.asarray(cells.ns["w"]))
    assert len(seen) == 1


def test_in_a_jitted_cell(cells: Notebook) -> None:
    cells.ok("%%jit\nscores = %vmap dot(x, w) --in 0,None\nbest = scores.max()")
    close(cells.ns["best"], (X @ W).max())
    cells.ok("w = -w")
    cells.ok("%%jit\nscores = %vmap dot(x, w) --in 0,None\nbest = scores.max()")
    close(cells.ns["best"], (-X @ W).max())


@pytest.mark.parametrize("asked", ["%vmap --jit of(a)", "%grad --jit of(a)"])
def test_a_program_that_is_kept_holds_no_array_of_the_call(cells: Notebook, asked: str) -> None:
    cells.ok("import gc, weakref\ndef of(v):\n    return (v * v).sum()")
    cells.ok("a = jnp.arange(5.0)\nheld = weakref.ref(a)")
    cells.ok(f"result = {asked}")
    cells.ok("del a\ngc.collect()\nis_gone = held() is None")
    assert cells.ns["is_gone"]
    cells.ok(f"a = jnp.arange(5.0) + 1\nresult = {asked}")
    want = np.arange(1.0, 6.0) ** 2 if "vmap" in asked else 2 * np.arange(1.0, 6.0)
    close(cells.ns["result"], want)
