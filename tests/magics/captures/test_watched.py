"""What is looked at when a cell ends, on a machine that gives no time for it."""

from __future__ import annotations

import pytest
from support.shells import Told

from perspex_magics.captures import watcher

pytestmark = pytest.mark.usefixtures("default_policy")

MODEL = """
import numpy as np, perspex, perspex.numpy as jnp
cfg, table, rows = {"lr": 1.0}, np.zeros(4), [1.0, 2.0]

@perspex.jit
def f(x):
    return x * cfg["lr"] + table.sum() + rows[0]
f(2.0)
"""


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to look is over as soon as it begins."""
    for name in ("_LEAST", "_MOST", "_BEGIN_BUDGET", "_TOUCHED_BUDGET"):
        monkeypatch.setattr(watcher, name, 1e-9)


def test_a_few_objects_are_looked_at(told: Told) -> None:
    told.ok(MODEL)
    names = told.notebook.ns
    # Cells whose form shows no change, as where another thread makes it.
    names["change"] = iter(
        [
            lambda: names["cfg"].update(lr=9.0),
            lambda: names["table"].fill(1.0),
            lambda: names["rows"].reverse(),
        ]
    ).__next__
    for variable in ("cfg['lr']", "table", "rows[0]"):
        told.ok("change()()")
        told.ok("f(2.0)")
        assert told.variables[-1] == variable


def test_many_objects_are_looked_at_in_turn(told: Told) -> None:
    told.ok(
        "import perspex\nmany = [[1.0] for _ in range(40)]\n"
        "many_jitted = [perspex.jit(lambda x, row=row: x * row[0]) for row in many]\n"
        "for each in many_jitted: each(2.0)"
    )
    names = told.notebook.ns
    names["change"] = lambda: [row.__setitem__(0, 2.0) for row in names["many"]]
    told.ok("change()")
    for _ in range(20):
        told.ok("None")
    told.ok("for each in many_jitted: each(2.0)")
    assert len(told.warnings) == 40
