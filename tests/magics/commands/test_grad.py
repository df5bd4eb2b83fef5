"""`%grad` and `%%grad`. Expected gradients come from NumPy, in 64 bits and by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

from perspex import events

SETUP = """
from perspex import random
w = jnp.array([0.5, -1.0, 2.0])
b = 0.25
x = jnp.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0], [2.0, 0.5, -0.5], [1.5, 1.0, 0.0]])
y = jnp.array([1.0, -1.0, 0.5, 2.0])
n = 3
counts = jnp.arange(3)
params = {"layers": [jnp.array([0.5, -1.0, 2.0])], "b": 0.25, "name": "dense"}
history = []
def loss(w, x, y=y, b=0.0):
    return ((x @ w + b - y) ** 2).mean()
"""
X = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0], [2.0, 0.5, -0.5], [1.5, 1.0, 0.0]])
Y = np.array([1.0, -1.0, 0.5, 2.0])
W, B = np.array([0.5, -1.0, 2.0]), 0.25


def residual(b: float = B) -> np.ndarray[Any, Any]:
    return X @ W + b - Y


D_W, D_B = 2 * X.T @ residual() / 4, 2 * residual().mean()
VALUE = (residual() ** 2).mean()
CELL = "error = x @ w + b - y\nlabel = 'mean square'\n(error**2).mean()"


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(SETUP)
    return notebook


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_a_cell(cells: Notebook, jit: str) -> None:
    for _ in range(2):
        assert cells.ok(f"%%grad w b{jit}\n{CELL}") is None
        close(cells.ns["d_w"], D_W)
        close(cells.ns["d_b"], D_B)
        close(cells.ns["error"], residual())
        assert cells.ns["label"] == "mean square"
    close(cells.ok(f"%%grad w,b --value{jit}\n{CELL}"), VALUE)


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_containers(cells: Notebook, jit: str) -> None:
    cells.ok(f"%%grad params{jit}\n((x @ params['layers'][0] + params['b'] - y) ** 2).mean()")
    found = cells.ns["d_params"]
    close(found["layers"][0], D_W)
    close(found["b"], D_B)
    assert found["name"] == "dense" and set(found) == {"layers", "b", "name"}


def test_what_the_cell_appends_is_a_value(cells: Notebook) -> None:
    before = cells.ns["history"]
    cells.ok("%%grad w\nhistory.append((w**2).sum())\nhistory[-1]")
    close(cells.ns["history"], [(W**2).sum()])
    assert before == [], "a container that was an input is not changed"
    close(cells.ns["d_w"], 2 * W)


def test_the_cell_may_assign_what_it_is_differentiated_by(cells: Notebook) -> None:
    cells.ok("%%grad w --jit\nw = w - 0.5\n(w**3).sum()")
    close(cells.ns["w"], W - 0.5)
    close(cells.ns["d_w"], 3 * (W - 0.5) ** 2)


def test_python_runs_as_ever_without_jit(cells: Notebook) -> None:
    cells.ok("%%grad w\nfor i in range(n):\n    w = w * 2\nif w.sum() > 0:\n    w = -w\nw.sum()")
    close(cells.ns["d_w"], [-8.0] * 3)


def test_second_derivatives_by_a_function(cells: Notebook) -> None:
    cells.ok("%%grad w\n(perspex.grad(lambda v: (v**3).sum())(w) ** 2).sum()")
    close(cells.ns["d_w"], 36 * W**3)


def test_below_jit(cells: Notebook) -> None:
    cells.ok(f"%%jit --static n\n%%grad w\nfor i in range(n): pass\n{CELL}")
    close(cells.ns["d_w"], D_W)


def test_steps_of_a_descent(cells: Notebook) -> None:
    w, b = W, B
    for _ in range(10):
        cells.ok("%%grad w b --jit\n((x @ w + b - y) ** 2).mean()")
        cells.ok("w, b = w - 0.1 * d_w, b - 0.1 * d_b")
        error = X @ w + b - Y
        w, b = w - 0.2 * X.T @ error / 4, b - 0.2 * error.mean()
    close(cells.ns["w"], w)
    close(cells.ns["b"], b)


def test_a_second_run_is_not_traced_again(cells: Notebook) -> None:
    cells.ns["seen"] = seen = []
    cells.ok("class Tick:\n    def __call__(self): seen.append(1)\ntick = Tick()")
    cell = "%%grad w --jit\ntick()\n(w**2).sum()"
    for _ in range(3):
        cells.ns["w"] = cells.ns["w"] + 1
        cells.ok(cell)
        close(cells.ns["d_w"], 2 * np.asarray(cells.ns["w"]))
    assert len(seen) == 1
    cells.ok("w = jnp.ones(5)")
    cells.ok(cell)
    assert len(seen) == 2


def test_a_changed_helper_is_seen(cells: Notebook) -> None:
    cells.ok("def f(v): return (v**2).sum()")
    cells.ok("%%grad w --jit\nf(w)")
    close(cells.ns["d_w"], 2 * W)
    cells.ok("def f(v): return (v**3).sum()")
    cells.ok("%%grad w --jit\nf(w)")
    close(cells.ns["d_w"], 3 * W**2)


def test_a_compiled_second_run_traces_and_compiles_nothing(cells: Notebook) -> None:
    cell = "%%grad w b --jit\nerror = jnp.tanh(x @ w + b) - y\n(error**2).mean()"
    cells.ok(cell)
    seen: list[str] = []
    stop = events.subscribe(lambda event: seen.append(event.kind), ["trace", "lower", "compile"])
    for _ in range(3):
        cells.ok(cell)
    stop()
    assert seen == []


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_a_failure_changes_nothing(cells: Notebook, jit: str) -> None:
    before = dict(cells.ns)
    shown = cells.fails(f"%%grad w{jit}\nw = w * 2\nerror = 1\nw.sum() + missing", NameError)
    assert "line 4" in shown and "perspex_magics" not in shown
    after = {name: value for name, value in cells.ns.items() if not name.startswith("_")}
    after.pop("In", None)
    assert all(before[name] is value for name, value in after.items() if name != "Out")
    assert "error" not in cells.ns and "d_w" not in cells.ns


# The names on the magic's line, the body, and what is shown: the error and where.
MISTAKES = {
    "not a scalar": ("w", "h = x @ w\nh", TypeError, "not a scalar: float32[4]; add .sum()", 3),
    "no array": ("w", "w.sum()\n'text'", TypeError, "not a scalar: a str", 3),
    "nothing": ("w", "w.sum()\nNone", TypeError, "not a scalar: None", 3),
    "an integer": ("w", "w.sum().astype(int)", TypeError, "is int32[]; end it with a float", 2),
    "complex": ("w", "(w * 1j).sum()", TypeError, "is complex64[]; end it with .real", 2),
    "no expression": ("w", "h = w.sum()", TypeError, "does not end in an expression", 2),
    "by integers": ("counts", "counts.sum() * 1.0", TypeError, "cast: counts.astype(float)", 1),
    "by a number": ("n", "\nn * 1.0", TypeError, "`n` is the Python number 3; ", 1),
    "by a leaf": ("data", "data['k'] * 1.0", TypeError, "`data['k']` is int32[2]; ", 1),
    "by a key": (
        "key",
        "random.normal(key)",
        TypeError,
        "cannot differentiate with respect to a random key",
        1,
    ),
    "by a function": ("loss", "loss(w, x)", TypeError, "`loss` is a function, not an array", 1),
    "undefined": ("missing", "missing.sum()", NameError, "'missing' is not defined", 1),
}


@pytest.mark.parametrize("jit", ["", " --jit"])
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_line(cells: Notebook, name: str, jit: str) -> None:
    wrt, body, error, message, line = MISTAKES[name]
    cells.ok("data = {'k': jnp.arange(2)}; key = random.key(0)")
    shown = cells.fails(f"%%grad {wrt}{jit}\n{body}", error)
    assert message in " ".join(shown.split()), shown
    assert f"Cell In[{cells.shell.execution_count - 1}], line {line}\n" in shown
    assert "perspex_magics" not in shown


USAGE = {
    "%%grad\nw.sum()": "name at least one input",
    "%%grad y\nw.sum()": "does not read `y`",
    "%%grad w\nw = jnp.ones(3)\nw.sum()": "does not read `w` before it assigns it",
    "%%grad w --bogus\nw.sum()": "unrecognized arguments: --bogus",
    "%%grad 3w\nw.sum()": "'3w' is not a name",
    "%%grad w --jit\n!true\nw.sum()": "magics and shell commands",
    "%%grad w\n%%jit --time\nw.sum()": "--time is for the topmost line",
    "%grad": "an expression is missing",
    "%grad loss(w": "not a Python expression",
    "%grad w": "not a function or a call of one",
    "%grad loss --wrt v": "no positional parameter `v`; it has `w`, `x`, `y`, `b`",
    "%grad loss(w, x) --wrt v": "no argument `v`; it has `w`, `x`, `y`, `b`",
    "%grad loss(w, x=w) --wrt w": "`w` is a parameter of the function and also",
    "%grad loss(w, x) --bogus": "unrecognized arguments: --bogus",
    "%grad loss(2 * w, x, b=n * w) --wrt n --jit": "`n` is part of an argument",
    "%grad (lambda k: loss)(1.0)": "returns a function; assign it to a name",
    "%grad (lambda k: loss)('a')": "returns a function; assign it to a name",
    "%grad (lambda: 1.0)()": "name an argument of `(lambda",
}


@pytest.mark.parametrize("cell", USAGE)
def test_usage_errors(cells: Notebook, cell: str) -> None:
    if "n * w" in cell:
        cells.ok("n = 3.0")
    cells.fails(cell, UsageError, re.escape(USAGE[cell]))


@pytest.mark.parametrize("cell", ["%%grad --help", "%%grad --help\nw.sum()", "%grad --help"])
def test_help(cells: Notebook, cell: str) -> None:
    cells.ok(cell)
    assert "--value" in cells.out and "--jit" in cells.out and "grad" in cells.out
    assert "%%%" not in cells.out and "d_w" not in cells.ns


@pytest.mark.parametrize("jit", ["", " --jit"])
def test_the_gradient_function(cells: Notebook, jit: str) -> None:
    cells.ok(f"g = %grad loss{jit}")
    close(cells.ok("g(w, x, y, b)"), D_W)
    cells.ok(f"g = %grad loss --wrt w,b --value{jit}")
    value, (d_w, d_b) = cells.ok("g(w, x, y, b)")
    close(value, VALUE)
    close(d_w, D_W)
    close(d_b, D_B)


CALLS = {
    "%grad loss(w, x, y, b)": D_W,
    "%grad loss(w, x, b=b) --wrt b": D_B,
    "%grad loss(w, x) --wrt b": 2 * residual(0.0).mean(),
    "%grad loss(weights, x, b=b) --wrt weights": D_W,
    "%grad loss(w, x, b=offset) --wrt offset": D_B,
    "%grad --wrt b loss(w, x, b=b)": D_B,
    "%grad loss(*pair, y, b)": D_W,
    "%grad loss(x=x, w=w, b=b)": D_W,
}


@pytest.mark.parametrize("jit", ["", " --jit"])
@pytest.mark.parametrize("call", CALLS)
def test_calls(cells: Notebook, call: str, jit: str) -> None:
    cells.ok("weights, offset, pair = w, b, (w, x)")
    for _ in range(2):
        close(cells.ok(f"{call}{jit}"), CALLS[call])


def test_values_and_several_names(cells: Notebook) -> None:
    value, (d_b, d_w) = cells.ok("%grad loss(w, x, b=b) --wrt b, w --value")
    close(value, VALUE)
    close(d_b, D_B)
    close(d_w, D_W)
    assert cells.ok("%grad loss(w, x);") is None


def test_variables_that_arguments_are_made_of(cells: Notebook) -> None:
    cells.ok("half = 0.5 * w; one = 1.0")
    close(cells.ok("%grad loss(2 * half, x, b=b * one) --wrt half,one")[0], 2 * D_W)
    close(cells.ok("%grad loss(2 * half, x, b=b * one) --wrt one"), B * D_B)
    # The same variable twice: both places count.
    close(cells.ok("%grad (lambda u, v: (u * v).sum())(w, w) --wrt w"), 2 * W)


def test_expressions_that_are_functions(cells: Notebook) -> None:
    cells.ok("g = %grad lambda v: (v ** 2).sum() --value")
    value, gradient = cells.ok("g(w)")
    close(value, (W**2).sum())
    close(gradient, 2 * W)
    cells.ok("class Model:\n    def loss(self, v): return (v**3).sum()\nmodel = Model()")
    close(cells.ok("%grad model.loss(w)"), 3 * W**2)


def test_a_compiled_call_is_not_traced_again(cells: Notebook) -> None:
    cells.ns["seen"] = seen = []
    # A list that the function itself reads would be a capture, and a new one at each call.
    cells.ok("class Tick:\n    def __call__(self, kind): seen.append(kind)\ntick = Tick()")
    cells.ok("def f(v, kind='a'):\n    tick(kind)\n    return (v**2).sum()")
    for _ in range(3):
        close(cells.ok("%grad f(w) --jit"), 2 * W)
    assert seen == ["a"]
    close(cells.ok("%grad f(w, kind='b') --jit"), 2 * W)
    assert seen == ["a", "b"]
    cells.ok("def f(v): return (v**3).sum()")
    close(cells.ok("%grad f(w) --jit"), 3 * W**2)


def test_in_functions_and_in_jitted_cells(cells: Notebook) -> None:
    cells.ok("def slope(v):\n    g = %grad loss(v, x, b=b)\n    return g")
    close(cells.ok("slope(w)"), D_W)
    cells.ok("%%jit\ng = %grad loss(w, x, b=b)\nstep = w - 0.1 * g\nstep")
    close(cells.ns["step"], W - 0.1 * D_W)
    # What the magic reads is an input of the cell, and a new value needs no new program.
    cells.ok("w = w + 1")
    cells.ok("%%jit\ng = %grad loss(w, x, b=b)\nstep = w - 0.1 * g\nstep")
    close(cells.ns["g"], 2 * X.T @ (X @ (W + 1) + B - Y) / 4)


def test_a_function_with_a_magic_in_it_does_not_go_stale(cells: Notebook) -> None:
    cells.ok("scale = 2.0\ndef f(v): return scale * (v**2).sum()")
    cells.ok("def slope(v):\n    g = %grad f(v)\n    return g")
    close(cells.ok("%%jit\nslope(w)"), 4 * W)
    cells.ok("scale = 3.0")
    close(cells.ok("%%jit\nslope(w)"), 6 * W)


def test_below_other_magics(cells: Notebook) -> None:
    cells.ok(f"%%time\n%%grad w b --value\n{CELL}")
    close(cells.ns["d_w"], D_W)
    assert "Wall time" in cells.out
    shown = cells.fails("%%time\n%%grad w\nh = 1\nw.sum() + missing", NameError)
    assert "line 4\n" in shown and "run_cell_magic" not in shown
    cells.ok(f"%%capture captured\n%%grad w\nw = w * 2\n{CELL}")
    close(cells.ns["d_w"], 2 * 2 * X.T @ (2 * X @ W + B - Y) / 4)


def test_timeit(cells: Notebook) -> None:
    cells.ok("%timeit -n 1 -r 1 %grad loss(w, x)")
    assert "per loop" in cells.out


def test_an_error_in_the_function_shows_it_and_the_line(cells: Notebook) -> None:
    shown = cells.fails("a = 1\ng = %grad loss(w, x.T)", TypeError, "dot_general")
    here = cells.shell.execution_count - 1
    assert f"Cell In[{here}], line 2\n" in shown and "in loss(w, x, y, b)" in shown
    assert "perspex_magics" not in shown and "KeyError" not in shown
    shown = cells.fails("%%jit\nz = 1\ng = %grad loss(w, x.T)", TypeError, "dot_general")
    assert f"Cell In[{here + 1}], line 3\n" in shown and "%grad loss(w, x.T)" in shown


def test_no_interpolation(cells: Notebook) -> None:
    close(cells.ok("%grad (lambda p: (p['w'] ** 2).sum())({'w': w})")["w"], 2 * W)


KEPT = """
scale = 2.0
weights = jnp.array([1.0, 2.0])
table = np.array([1.0, 2.0])
def helper(x): return x * scale
def f(x): return helper(x) * (weights * table).sum()
"""
# What is done between two calls of `f`, and its derivative then: scale * sum(weights * table).
CHANGES = {
    "x = 1": 10.0,
    "scale = 5.0": 25.0,
    "def helper(x): return x * 7": 35.0,
    "weights = jnp.array([3.0, 2.0])": 14.0,
    "table[0] = 11.0": 30.0,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("asked", ["%grad --jit f(3.0)", "%grad --jit (lambda q: f(q))(3.0)"])
def test_a_kept_program_follows_what_it_captured(cells: Notebook, asked: str, change: str) -> None:
    cells.ok(KEPT)
    assert cells.ok(asked) == 10.0
    cells.ok(change)
    assert cells.ok(asked) == CHANGES[change]


def test_a_function_of_the_line_is_compiled_once_and_keeps_what_it_reads(cells: Notebook) -> None:
    cells.ok("traces, big = [], jnp.zeros(7)\ndef note(x):\n    traces.append(1)\n    return x")
    line = "%grad --jit (lambda q: note(q * q))(3.0)"
    cells.ok(f"for _ in range(4):\n    d = {line}")
    assert cells.ns["d"] == 6.0 and len(cells.ns["traces"]) == 1
    cells.ok(
        "import gc, weakref\nheld = weakref.ref(big)\ndel big\ngc.collect()\ngone = held() is None"
    )
    assert cells.ns["gone"]


def test_what_was_captured_before_is_let_go_of(cells: Notebook) -> None:
    cells.ok(
        "import gc, weakref\nclass M:\n    def loss(self, x): return (self.w * x).sum()\nm = M()"
    )
    cells.ok(
        "refs = []\nfor k in range(6):\n    m.w = jnp.full(3, k + 1.0)\n"
        "    refs.append(weakref.ref(m.w))\n    d = %grad --jit m.loss(2.0)\n"
        "    assert d == 3 * (k + 1)\ndel m.w\ngc.collect()"
    )
    cells.ok("alive = sum(ref() is not None for ref in refs)")
    assert cells.ns["alive"] <= 2


COMPILED = {
    # A number that the user wrote for a function of ours is an axis, and a default is a default.
    "%grad --jit jnp.sum(a)": [1, 1, 1],
    "%grad --jit jnp.max(a, axis=0)": [0, 0, 1],
    "%vmap --jit jnp.linalg.norm(column)": [0.0, 1, 2],
    "%vmap --jit jnp.reshape(column, (1, 1)) --in 0,None": [[[0]], [[1]], [[2]]],
    "%grad --jit of_self(2.0, 3.0)": 3,
    "%grad --jit two(1.0, 2.0) --wrt c": 2,
    "%grad --jit two(1.0, 2.0, c=5.0) --wrt a": 10,
    "%grad --jit many(2.0, 3.0, **{'1': 7.0, '0': 2.0})": 42,
    # The derivative by a variable is that by each of its uses.
    "%grad two(u * 2, b=u) --wrt u": 24,
    "%grad two(u, u) --wrt u": 12,
}


@pytest.mark.parametrize("asked", COMPILED)
def test_arguments_of_many_kinds(cells: Notebook, asked: str) -> None:
    cells.ok(
        "a, u = jnp.arange(3.0), 2.0\ncolumn = a[:, None]\ndef of_self(self, x): return self * x\n"
        "def two(a, b, c=3.0): return a * b * c\n"
        "def many(*rest, **k): return rest[0] * rest[1] * k['1'] * k['0']"
    )
    np.testing.assert_allclose(cells.ok(asked), COMPILED[asked])


def test_a_variable_called_self(cells: Notebook) -> None:
    cells.ok("self = 2.0")
    assert cells.ok("%%jit\nself * 2") == 4.0
    cells.ok("%%grad self\nself * self")
    assert cells.ns["d_self"] == 4.0
    cells.ok("xs = jnp.arange(3.0)")
    assert list(cells.ok("%%vmap xs\nxs * self")) == [0, 2, 4]


def test_an_error_names_the_function_of_the_user(cells: Notebook) -> None:
    number = cells.shell.execution_count
    cells.ok("\ndef twice(x): return x * 2\nv = jnp.ones(3)")
    shown = cells.fails("%grad twice(v)", TypeError)
    assert f"from `twice` at Cell In[{number}]:1" in shown
