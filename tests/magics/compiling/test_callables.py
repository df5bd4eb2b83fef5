"""Jitted methods and objects, by the names of the notebook that hold them."""

from __future__ import annotations

import pytest
from support.shells import Notebook

from perspex.errors import StaleCaptureWarning
from perspex_magics.compiling.cache import CacheMagics
from perspex_magics.compiling.callables import Paths
from perspex_magics.session import part

MODEL = """
class Layer:
    def __init__(self, k):
        self.k = k
        self.step = perspex.jit(self._step)
        self.w = perspex.jit(lambda x: x * k)
    def _step(self, x):
        return x - self.k
    def scaled(self, x):
        return x / self.k
    def __call__(self, x):
        return x + self.k
class Model:
    def __init__(self):
        self.layers = [Layer(i + 2) for i in range(3)]
        self.heads = {"left": Layer(9)}
model = Model()
"""


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    notebook.ok(MODEL)
    return notebook


def test_a_stale_capture_names_the_path(cells: Notebook) -> None:
    cells.ok(
        "rate = 2.0\nclass Scaled:\n    def __init__(self):\n        self.k = 1.0\n"
        "    def step(self, x):\n        return x * rate * self.k"
    )
    cells.ok(
        "class Holder: pass\nholder = Holder(); s = Scaled(); holder.step = perspex.jit(s.step)"
    )
    cells.ok("holder.step(1.0)")
    cells.ok("rate = 3.0")
    with pytest.warns(StaleCaptureWarning) as told:
        cells.ok("holder.step(1.0)")
    assert told[0].message.function == "holder.step"
    assert "Call `holder.step.retrace()`" in str(told[0].message)
    cells.ok("s.k = 4.0")
    with pytest.warns(StaleCaptureWarning) as told:
        cells.ok("holder.step(1.0)")
    assert {change.variable for change in told[0].message.changes} == {"s.k"}


def names(cells: Notebook) -> list[str]:
    """What the programs are called, but for those of the array namespace."""
    done = part(cells.shell, CacheMagics).recorder.done
    paths = Paths(cells.ns)
    return [one.called(paths) for one in done if not one.is_library]


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("model.layers[2].step(1.0)", "model.layers[2].step"),
        ("model.layers[1].w(1.0)", "model.layers[1].w"),
        ("model.heads['left'].step(1.0)", "model.heads['left'].step"),
        ("called = perspex.jit(model.layers[2]); called(1.0)", "model.layers[2]"),
        ("scaled = perspex.jit(model.layers[1].scaled); scaled(1.0)", "model.layers[1].scaled"),
        ("layer = Layer(5); apply = perspex.jit(layer); apply(1.0)", "layer"),
        # Functions have names of their own.
        ("def f(x): return x + 7\ng = perspex.jit(f); g(1.0)", "f"),
        # What no name leads to.
        ("perspex.jit(Layer(6))(1.0)", "Layer"),
    ],
)
def test_the_path_that_the_user_would_write(cells: Notebook, cell: str, name: str) -> None:
    cells.ok(cell)
    assert names(cells) == [name]


def test_the_table_shows_it(cells: Notebook) -> None:
    cells.ok("for layer in model.layers: layer.step(1.0)\ndel layer")
    cells.ok("%cache")
    text = "".join([data["text/plain"] for data in cells.displayed])
    assert [text.count(f"model.layers[{i}].step ") for i in range(3)] == [1, 1, 1]


def test_a_look_runs_no_code_of_the_users(cells: Notebook) -> None:
    cells.ok(
        "class Loud:\n    def __getattribute__(self, name):\n        raise SystemExit\n"
        "loud = Loud()\nround_and_round = [loud]\nround_and_round.append(round_and_round)"
    )
    cells.ok("model.layers[0].step(1.0)")
    assert names(cells) == ["model.layers[0].step"]
