"""`%%jit` on a cell of statements. Expected values are those of the same cell without the magic."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook

from perspex.errors import TracerBoolConversionError, TracerIntegerConversionError

SETUP = """
x = jnp.array([1.0, 2.0, 3.0])
a = 2.0
n = 3
params = {"w": jnp.ones(3), "b": 0.5, "name": "layer", "items": [1, 2]}
history = []
def scale(v): return a * v
"""

# Each runs with and without %%jit in two copies of one notebook, which must then agree.
CELLS = {
    "temporaries": "t = x * a\ny = t + 1",
    "augmented": "x += 1\nx *= a",
    "read and assigned": "x = x * 0.5\nx = x + x.sum()",
    "a loop over Python": "for i in range(4):\n    x = x * 0.5\n    last = i",
    "while": "k = 0\nwhile k < 3:\n    x = x + k\n    k += 1",
    "if": "if x.ndim == 1:\n    y = x\nelse:\n    z = x",
    "with": "import contextlib\nwith contextlib.nullcontext(x) as y:\n    z = y + 1",
    "comprehension": "ys = [x * i for i in range(3)]\nz = sum(v.sum() for v in ys)",
    "walrus": "z = (y := x + 1) * y",
    "unpacking": "first, *rest = x * 2, x, 'text', 3",
    "function": "def f(v, by=2):\n    return v * by\ny = f(x) + scale(x)",
    "lambda": "f = lambda v: v + a\ny = f(x)",
    "closure over a later name": "def f(): return c * x\nc = 3.0\ny = f()",
    "recursion": "def p(v, k): return v if k == 0 else v * p(v, k - 1)\ny = p(x, 3)",
    "class": "class Twice:\n    by = 2\n    def of(self, v): return v * self.by\ny = Twice().of(x)",
    "import": "import math\ny = x * math.pi",
    "delete": "t = x + 1\ny = t * 2\ndel t, n",
    "dict item": "params['w'] = params['w'] * 2\nparams['new'] = x",
    "nested container": "params['items'].append(x)",
    "append": "history.append(x * 2)",
    "python values": "s = 'text'; k = 4; flag = True; nothing = None; t = (1, 'a', x + 1)",
    "numpy": "y = x + np.arange(3, dtype=np.float32)\nz = np.ones(2)",
    "alias": "y = x\nz = params",
    "try": "try:\n    y = x.no_such_attribute\nexcept AttributeError as error:\n    y = x + 1",
    "match": "match params:\n    case {'b': b}:\n        y = x * b",
    "global in a function": "def f():\n    global g\n    g = x * 2\nf()",
    "only an expression": "x * 2 + a",
    "conditional assignment": "if n == 0:\n    x = x * 0",
    "empty": "# nothing",
}
STATIC = {"conditional assignment": "--static n"}


def plain(value: object) -> object:
    """Arrays as NumPy arrays and containers as they are, so that `==` compares."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    if callable(value) or type(value).__module__ in ("__main__", "builtins"):
        if isinstance(value, bool | int | float):
            return float(value)
        return value if isinstance(value, str | None) else type(value).__name__
    if isinstance(value, np.ndarray) or hasattr(value, "dtype"):
        return np.asarray(value, np.float32).tolist()
    return type(value).__name__


def state(notebook: Notebook) -> dict[str, object]:
    hidden = {"In", "Out", "exit", "quit", "get_ipython", "open"}
    return {
        name: plain(value)
        for name, value in notebook.ns.items()
        if not name.startswith("_") and name not in hidden
    }


@pytest.mark.parametrize("name", CELLS)
def test_means_the_same_as_without(notebook: Notebook, name: str) -> None:
    notebook.ok(SETUP)
    expected_result = plain(notebook.ok(CELLS[name]))
    expected = state(notebook)
    notebook.shell.reset()
    notebook.ok("import numpy as np, perspex, perspex.numpy as jnp")
    notebook.ok(SETUP)
    cell = f"%%jit {STATIC.get(name, '')}\n{CELLS[name]}"
    # A second run of the first cell, now compiled, must give the same again.
    assert plain(notebook.ok(cell)) == expected_result
    assert state(notebook) == expected
    notebook.ok(SETUP + "\nn = 3")
    assert plain(notebook.ok(cell)) == expected_result
    assert state(notebook) == expected


class Counter:
    """Counts calls, and with them how often the cell that calls it is traced."""

    calls = 0

    def __call__(self) -> None:
        type(self).calls += 1


@pytest.fixture
def counter(notebook: Notebook) -> type[Counter]:
    Counter.calls = 0
    notebook.ns["tick"] = Counter()
    notebook.ok(SETUP)
    return Counter


STEP = "%%jit\ntick()\nt = x * a\nx = t + scale(x)\nx"


def test_runs_again_without_tracing(notebook: Notebook, counter: type[Counter]) -> None:
    expected = np.array([1.0, 2.0, 3.0], np.float32)
    for _ in range(4):
        expected = expected * 2 + expected * 2
        np.testing.assert_allclose(notebook.ok(STEP), expected)
    assert counter.calls == 1


def test_new_numbers_need_no_tracing(notebook: Notebook, counter: type[Counter]) -> None:
    cell = "%%jit\ntick()\ny = x * a"
    for a in (2.0, 3.0, -1.0):
        notebook.ns["a"] = a
        notebook.ok(cell)
        np.testing.assert_allclose(notebook.ns["y"], np.array([1, 2, 3], np.float32) * a)
    assert counter.calls == 1


def test_new_shapes_are_traced(notebook: Notebook, counter: type[Counter]) -> None:
    notebook.ok("%%jit\ntick()\ny = x + x")
    notebook.ok("x = jnp.ones((2, 2))")
    notebook.ok("%%jit\ntick()\ny = x + x")
    np.testing.assert_allclose(notebook.ns["y"], np.full((2, 2), 2.0))
    assert counter.calls == 2


@pytest.mark.parametrize(
    "change",
    [
        "def helper(v): return v * 10",
        "factor = 10.0",
        "model.factor = 10.0",
        "table[0] = 10.0",
        "named['factor'] = 10.0",
    ],
)
def test_nothing_captured_goes_stale(notebook: Notebook, change: str) -> None:
    notebook.ok(SETUP)
    notebook.ok(
        "class Model: factor = 1.0\n"
        "model, table, named = Model(), np.ones(1), {'factor': 1.0, 'kind': 'linear'}\n"
        "factor = 1.0\n"
        "def helper(v): return v * factor * float(table[0])\n"
    )
    cell = "%%jit\ny = helper(x) * model.factor * named['factor']"
    notebook.ok(cell)
    np.testing.assert_allclose(notebook.ns["y"], [1, 2, 3])
    notebook.ok(change)
    notebook.ok(cell)
    np.testing.assert_allclose(notebook.ns["y"], [10, 20, 30])


def test_an_identical_helper_is_no_change(notebook: Notebook, counter: type[Counter]) -> None:
    cell = "%%jit\ntick()\ny = scale(x)"
    notebook.ok(cell)
    notebook.ok(SETUP)
    notebook.ok(cell)
    assert counter.calls == 1


def test_a_jitted_helper_that_reads_an_input(notebook: Notebook) -> None:
    """While the cell is traced its inputs are tracers, which no cache may keep."""
    notebook.ok(SETUP)
    notebook.ok("@perspex.jit\ndef shifted(v): return v + x")
    notebook.ok("%%jit\ny = shifted(x)")
    np.testing.assert_allclose(notebook.ns["y"], [2, 4, 6])
    np.testing.assert_allclose(notebook.ok("shifted(x)"), [2, 4, 6])


def test_functions_of_the_cell_live_on(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    notebook.ok("%%jit\nw = x * 2\ndef f(v): return v + w")
    np.testing.assert_allclose(notebook.ok("f(1.0)"), [3, 5, 7])
    notebook.ok("w = 0.0")
    assert notebook.ok("f(1.0)") == 1.0


def test_names_read_behind_the_back_do_not_go_stale(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    for value in (1.0, 2.0):
        notebook.ok(f"x = jnp.array([{value}])")
        notebook.ok("%%jit\ny = eval('x * 2') + globals()['x']")
        np.testing.assert_allclose(notebook.ns["y"], [3 * value])


@pytest.mark.parametrize("body", ["%time y = x + 1", "%%time\ny = x + 1", "y = x\n!true"])
def test_magics_inside_are_refused(notebook: Notebook, body: str) -> None:
    notebook.ok(SETUP)
    notebook.fails(f"%%jit\n{body}", UsageError, "magics and shell commands")


def test_static(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    assert "%%jit --static n" in notebook.fails(
        "%%jit\nfor _ in range(n): x = x + 1", TracerIntegerConversionError
    )
    notebook.ok("%%jit --static n\nfor _ in range(n): x = x + 1")
    np.testing.assert_allclose(notebook.ns["x"], [4, 5, 6])
    notebook.ok("n = 1")
    notebook.ok("%%jit --static n\nfor _ in range(n): x = x + 1")
    np.testing.assert_allclose(notebook.ns["x"], [5, 6, 7])


def test_donate(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    notebook.ok("old = x")
    notebook.ok("%%jit --donate x\nx = x + 1")
    np.testing.assert_allclose(notebook.ns["x"], [2, 3, 4])
    assert notebook.ok("old.is_deleted()")


def test_inputs_are_let_go_of_at_once(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    gc.disable()
    try:
        for cell in ("x = x * a", "x = scale(x) * params['w']"):
            old = weakref.ref(notebook.ns["x"])
            notebook.ok(f"%%jit\n{cell}")
            assert old() is None
            old = weakref.ref(notebook.ns["x"])
            notebook.ok(f"%%jit\n{cell}")
            assert old() is None
    finally:
        gc.enable()


def test_time_and_show(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    notebook.ok("%%jit --time --name step\ny = x + 1")
    assert all(stage in notebook.out for stage in ("trace", "lower", "compile", "run"))
    notebook.ok("%%jit --time --name step\ny = x + 1")
    assert "compile" not in notebook.out and "run" in notebook.out
    for stage, text in {"jaxpr": "lambda", "stablehlo": "jit_step", "hlo": "HloModule"}.items():
        notebook.ok(f"%%jit --show {stage} --name step\ny = x + 1")
        bundle = notebook.displayed[0]
        assert text in bundle["text/plain"]
        assert "<details" in bundle["text/html"] and "<script" not in bundle["text/html"]


def test_the_value_can_be_silenced(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    assert notebook.ok("%%jit\nx + 1;") is None
    assert notebook.ok("%%jit\nx + 1") is not None


FAILING = {
    "an error half way": ("y = x + 1\nx = x * 2\nboom = 1 / 0", ZeroDivisionError),
    "a name that is not there": ("x = x * 2\ny = missing", NameError),
    "wrong shapes": ("x = x * 2\ny = x + jnp.ones(4)", Exception),
    "a value needed while tracing": (
        "x = x * 2\nif x.sum() > 0:\n    y = 1",
        TracerBoolConversionError,
    ),
    "an interrupt": ("x = x * 2\nraise KeyboardInterrupt", KeyboardInterrupt),
    "a changed container": ("params['w'] = 0\nhistory.append(x)\n1 / 0", ZeroDivisionError),
    "a deletion": ("del params\n1 / 0", ZeroDivisionError),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_changes_nothing(notebook: Notebook, name: str) -> None:
    body, error = FAILING[name]
    notebook.ok(SETUP)
    before = state(notebook)
    kept = {key: notebook.ns[key] for key in ("x", "params", "history")}
    shown = notebook.fails(f"%%jit\n{body}", error)
    assert state(notebook) == before
    assert all(notebook.ns[key] is value for key, value in kept.items())
    if error is not KeyboardInterrupt:
        # The cell's own lines, counted from its top, and none of ours.
        assert "Cell In[" in shown and "perspex_magics" not in shown
        line = next(i for i, row in enumerate(body.splitlines(), 2) if _raises(row))
        assert f"line {line}\n" in shown
        assert f"{line} {_row(body, line)}" in shown


def _raises(row: str) -> bool:
    return any(text in row for text in ("1 / 0", "missing", "ones(4)", "if x.sum()"))


def _row(body: str, line: int) -> str:
    return body.splitlines()[line - 2].strip()


def test_line_numbers_with_blank_lines(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    shown = notebook.fails("%%jit\n\n\ny = x\n\n1 / 0", ZeroDivisionError)
    assert "line 6\n" in shown


def test_frames_of_helpers_are_shown(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    notebook.ok("def helper(v):\n    return v / nothing_here")
    shown = notebook.fails("%%jit\ny = helper(x)", NameError)
    assert "y = helper(x)" in shown and "return v / nothing_here" in shown


def test_a_syntax_error_has_its_line(notebook: Notebook) -> None:
    shown = notebook.fails("%%jit\ny = 1\nz = = 2", SyntaxError)
    assert "line 3" in shown and "z = = 2" in shown


def test_objects_that_keep_tracers_are_refused(notebook: Notebook) -> None:
    notebook.ok(SETUP)
    notebook.ok("class Model: pass\nmodel = Model()")
    notebook.fails("%%jit\nmodel.w = x * 2", TypeError, r"model\.w.* not a pytree")
    notebook.fails("%%jit\nother = Model()\nother.w = x * 2", TypeError, r"other\.w")
    notebook.fails("%%jit\ny = x * 2\ndef f(v=y): return v", TypeError, "`f")
    assert "other" not in notebook.ns and "f" not in notebook.ns


USAGE = {
    "--bogus": "unrecognized arguments: --bogus",
    "--show asm": "invalid choice",
    "--static 3x": "'3x' is not a name",
    "--static zzz": "does not read `zzz`",
    "--donate scale": "`scale` cannot be donated",
}


@pytest.mark.parametrize("options", USAGE)
def test_usage_errors(notebook: Notebook, options: str) -> None:
    notebook.ok(SETUP)
    notebook.fails(f"%%jit {options}\ny = scale(x)", UsageError, USAGE[options])
    assert "y" not in notebook.ns


def test_help(notebook: Notebook) -> None:
    for cell in ("%%jit --help", "%%jit --help\nx = 1"):
        notebook.ok(cell)
        assert "--static" in notebook.out and "--donate" in notebook.out
    assert "x" not in notebook.ns


def test_braces_are_not_expanded(notebook: Notebook) -> None:
    """`{x}` on the magic's line is an error of ours, and not IPython's interpolation."""
    notebook.ok(SETUP)
    notebook.fails("%%jit --static {n}\ny = x", UsageError, r"'\{n\}' is not a name")
