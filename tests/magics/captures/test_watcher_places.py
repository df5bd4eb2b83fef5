"""Stale captures: which cell and line made the change, and what is followed in the user's modules.

The numbers that functions must return are worked out by hand, from the values in the cells.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shells import Told

from perspex import config

JIT = "@perspex.jit\n"


pytestmark = pytest.mark.usefixtures("default_policy", "patient")


def changed(told: Told) -> dict[str, str]:
    """Where each variable was changed, as the warnings say."""
    return {c.variable: c.changed for w in told.warnings for c in w.changes}


def test_each_of_several_changes_has_its_line(told: Told) -> None:
    told.ok(
        "items, table, numbers, k = [1.0], {'a': 1.0}, np.ones(2), 1.0\n"
        + JIT
        + "def f(x): return x * items[0] + table['a'] + numbers.sum() + k\nf(2.0)"
    )
    here = f"Cell In[{told.notebook.shell.execution_count}]"
    told.ok("items[0] = 2.0\ntable['a'] = 3.0\nnumbers[1] = 4.0\nk = 5.0\nf(2.0)")
    assert changed(told) == {
        "items[0]": f"{here}:1",
        "table['a']": f"{here}:2",
        "numbers": f"{here}:3",
        "k": f"{here}:4",
    }


@pytest.mark.parametrize("policy", ["warn", "ignore"])
@pytest.mark.parametrize(
    "change", ["k = {}", "def g():\n    global k\n    k = {}\ng()", "table['a'] = {}"]
)
def test_of_several_changes_the_last_is_told(told: Told, change: str, policy: str) -> None:
    told.ok("k, table = 1.0, {'a': 1.0}\n" + JIT + "def f(x): return x * k * table['a']\nf(2.0)")
    config.update("stale_captures", policy)
    told.ok(change.format(2.0) + "\nf(2.0)")
    config.update("stale_captures", "warn")
    last = f"Cell In[{told.notebook.shell.execution_count}]"
    told.ok(change.format(3.0))
    # Statements that change nothing are not blamed for it.
    told.ok("print(table); k = k")
    told.ok("f(2.0)")
    ((_, place),) = changed(told).items()
    # What is changed inside of a function has no line.
    assert place.partition(":")[0] == last


def test_a_change_after_the_call_of_the_same_cell(told: Told) -> None:
    told.ok("k = 1.0\n" + JIT + "def f(x): return x * k\nf(2.0)")
    last = f"Cell In[{told.notebook.shell.execution_count}]"
    told.ok("k = 2.0\nf(2.0)\nk = 3.0")
    told.ok("f(2.0)")
    assert changed(told) == {"k": f"{last}:3"}


def test_a_cell_whose_time_is_measured_has_its_name(told: Told) -> None:
    here = told.notebook.shell.execution_count
    told.ok("%%time\nk = 1.0\nf = perspex.jit(lambda x: x * k)\nf(2.0)")
    told.ok("%%time\nk = 2.0\nf(2.0)")
    assert changed(told) == {"k": f"Cell In[{here + 1}]:2"}
    assert {c.traced for w in told.warnings for c in w.changes} == {f"Cell In[{here}]:4"}


def test_what_differs_in_an_object_is_named(told: Told) -> None:
    told.ok(
        "class Model:\n    k = 2.0\n    def apply(self, x): return x * self.k\n"
        "model = Model()\n" + JIT + "def f(x): return model.apply(x)\nf(2.0)"
    )
    here = told.notebook.shell.execution_count
    told.ok("Model.apply = lambda self, x: x * 10.0")
    told.ok("f(2.0)")
    (change,) = [c for w in told.warnings for c in w.changes]
    assert change.variable == "model.__class__.apply"
    assert change.old == f"the function of Cell In[{here - 1}]:3"
    assert change.new == f"the function of Cell In[{here}]:1"


OWN = "from perspex import jit\nK = 2.0\nclass Layer:\n    def go(self, x): return x * K\n"
OWN += "def plain(x): return x * K\n@jit\ndef act(x): return x + K\n"
# What the notebook jits of a module of its user's, what that gives of 1.0, and what it must give
# when the module's K is 5.0.
USES = {
    "a function of the module": ("import {0}\nf = perspex.jit(lambda x: {0}.plain(x))", 2.0, 5.0),
    "a name from it": ("from {0} import plain\nf = perspex.jit(lambda x: plain(x))", 2.0, 5.0),
    "jitted in it": ("import {0}\nf = {0}.act", 3.0, 6.0),
    "under a transform": ("import {0}\nf = perspex.jit(perspex.grad({0}.plain))", 2.0, 5.0),
    "an attribute": ("import {0} as other\nf = perspex.jit(lambda x: x - other.K)", -1.0, -4.0),
    "a class": ("import {0}\no = {0}.Layer()\nf = perspex.jit(lambda x: o.go(x))", 2.0, 5.0),
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module beside the notebook."""
    path = tmp_path / f"own_{tmp_path.name.rpartition('_')[2]}.py"
    path.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield path
    sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("case", USES)
def test_modules_of_the_users_own_are_followed(told: Told, own: Path, case: str) -> None:
    define, before, after = USES[case]
    told.ok(define.format(own.stem))
    assert told.ok("float(f(1.0))") == before
    told.ok("print('nothing')")
    assert told.ok("float(f(1.0))") == before and not told.warnings
    here = f"Cell In[{told.notebook.shell.execution_count}]"
    told.ok(f"import sys; sys.modules['{own.stem}'].K = 5.0")
    assert told.ok("float(f(1.0))") == before
    ((variable, place),) = changed(told).items()
    assert variable.endswith(".K") and place.partition(":")[0] == here
    config.update("stale_captures", "retrace")
    assert told.ok("float(f(1.0))") == after
    config.update("stale_captures", "warn")
    told.ok(f"import {own.stem}")
    told.ok(f"{own.stem}.K = 2.0\nf(1.0)")
    (variable,) = told.variables
    assert variable.endswith(".K")


def test_a_module_loaded_again_that_says_the_same(told: Told, own: Path) -> None:
    told.ok(f"import {own.stem} as own, importlib\nf = perspex.jit(lambda x: own.plain(x))\nf(1.0)")
    told.ok("importlib.reload(own)")
    assert told.ok("float(f(1.0))") == 2.0 and not told.warnings
    own.write_text(OWN.replace("return x * K", "return x * K + 1"))
    told.ok("importlib.reload(own)")
    assert told.ok("float(f(1.0))") == 2.0 and told.variables == ["own.plain"]


def test_autoreload_loads_a_module_as_the_cell_begins(told: Told, own: Path) -> None:
    told.ok("%load_ext autoreload")
    told.ok("%autoreload 2")
    told.ok(f"import {own.stem} as own\nf = perspex.jit(lambda x: own.plain(x))\nf(1.0)")
    own.write_text(OWN.replace("return x * K", "return x * K + 1"))
    os.utime(own, (time.time() + 10,) * 2)
    assert told.ok("float(f(1.0))") == 2.0 and told.variables == ["own.plain"]
    assert told.ok("float(own.plain(1.0))") == 3.0
    told.ok("f.retrace()")
    assert told.ok("float(f(1.0))") == 3.0
    told.ok("%autoreload 0")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("other = cfg\nother['a'] = 5.0", 8.0),
        ("inner = cfg['o']\ninner['b'] = 5.0", 7.0),
        ("first = cfg['o']\nsecond = first\nsecond['b'] = 5.0", 7.0),
        ("inner = cfg.get('o')\ninner.update(b=5.0)", 7.0),
        ("inner, k = cfg['o'], 7\ninner['b'] = 5.0", 7.0),
        ("for layer in layers: layer.w = 5.0", 8.0),
        ("for layer in layers:\n    last = layer\n    last.w += 1", 4.0 + 2.0),
    ],
)
def test_what_the_cell_itself_gives_another_name(told: Told, change: str, expected: float) -> None:
    told.ok(
        "from types import SimpleNamespace\nk = 1.0\n"
        "cfg, layers = {'a': 1.0, 'o': {'b': 2.0}}, [SimpleNamespace(w=1.0)] * 2\n"
        + JIT
        + "def f(x):\n    from_layers = sum(layer.w for layer in layers) / 2 + 1\n"
        "    return x * (cfg['a'] - 1) / 2 + cfg['o']['b'] + from_layers\nf(2.0)"
    )
    here = f"Cell In[{told.notebook.shell.execution_count}]"
    told.ok(f"{change}\ny = float(f(2.0))")
    assert told.notebook.ns["y"] == 4.0
    lines = {place.partition(":")[0] for place in changed(told).values()}
    assert lines == {here}
    config.update("stale_captures", "retrace")
    told.ok("cfg['a'], cfg['o']['b'], layers[0].w = 1.0, 2.0, 1.0\nf(2.0)")
    told.ok(f"{change}\ny = float(f(2.0))")
    assert told.notebook.ns["y"] == expected


def test_what_a_replaced_helper_read_has_not_changed(told: Told) -> None:
    told.ok("k = 2.0\ndef g(x): return x * k\n" + JIT + "def f(x): return g(x) + 1\nf(2.0)")
    told.ok("def g(x): return x")
    assert told.ok("float(f(2.0))") == 5.0 and told.variables == ["g"]
    # Both, where both have changed.
    told.ok("f.retrace()\ndef g(x): return x * k\nf.retrace(); f(2.0)")
    told.ok("del k")
    assert told.ok("float(f(2.0))") == 5.0 and told.variables == ["k"]
