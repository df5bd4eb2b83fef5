"""Cells as users write them that fail: what is told, and whether each remedy works.

Every remedy that is shown is written into its cell, which then runs. What it gives is compared with
NumPy: the same cell without `jit`, where `jnp` is NumPy.
"""

from __future__ import annotations

import math
import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.shells import Notebook

from perspex import tree
from perspex.errors import card_of
from perspex.tracing.provenance import noted

from .scenarios import SCENARIOS as TRACED
from .scenarios import Scenario
from .scenarios_of_names import NAMES

SCENARIOS = {**TRACED, **NAMES}

HEAD = (
    "import math, numpy as np, perspex, perspex.numpy as jnp\nfrom functools import partial\n"
    "from perspex import grad, jit, lax, vmap"
)


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    """A notebook with what the cells import."""
    notebook.ok(HEAD)
    return notebook


def fails(notebook: Notebook, scenario: Scenario) -> tuple[BaseException, str]:
    """The error of a scenario, and all that it says."""
    notebook.ok(scenario.cell)
    result = notebook.run(scenario.call)
    error = result.error_in_exec
    assert error is not None, scenario
    return error, "\n".join([str(error), *getattr(error, "__notes__", []), notebook.out])


def patch_of(error: BaseException) -> Any:
    # NumPy raises an error of its own, because of ours.
    for at in (error, error.__cause__):
        card = at and (card_of(at) or getattr(noted(at), "card", None))
        if card is not None:
            return card.remedy.patch
    return None


def pasted(cell: str, patch: Any) -> str:
    """The cell with the remedy in it."""
    lines = cell.split("\n")
    assert lines[patch.first - 1 : patch.last] == list(patch.before)
    lines[patch.first - 1 : patch.last] = patch.after
    return "\n".join([*patch.imports, *lines])


def updated(cell: str, statement: str) -> str:
    """The cell with an update in the place of the assignment to an element."""
    lines = cell.split("\n")
    for i, line in enumerate(lines):
        if re.match(r"\s+\w+(\[[^=]*\])+ \+?= ", line):
            lines[i] = line[: len(line) - len(line.lstrip())] + statement
    return "\n".join(lines)


class _Stack(dict[str, Any]):
    """NumPy where Perspex is, and nothing is compiled."""

    def __init__(self) -> None:
        def jit(fun: Any = None, **options: Any) -> Any:
            return fun if fun is not None else jit

        super().__init__(np=np, jnp=np, math=math, partial=partial, jit=jit)
        # Containers are no business of NumPy.
        self["perspex"] = SimpleNamespace(tree=tree)


def by_numpy(scenario: Scenario) -> Any:
    """What the scenario gives without `jit`, or `None` where it is about derivatives."""
    names = _Stack()
    exec(scenario.cell, names)
    return eval(scenario.call.removeprefix("jit(grad(loss))"), names)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_told(cells: Notebook, name: str) -> None:
    _, text = fails(cells, SCENARIOS[name])
    assert SCENARIOS[name].says in text, text


def test_every_remedy_that_is_shown_runs(cells: Notebook) -> None:
    shown, wrong = 0, {}
    for name, scenario in SCENARIOS.items():
        cells.ok(HEAD)
        error, text = fails(cells, scenario)
        patch = patch_of(error)
        update = re.search(r"^Here: `(\w+.* = .*)`$", text, re.MULTILINE)
        if patch is None and update is None:
            assert ". Instead of " not in text, name
            continue
        shown += 1
        cell = pasted(scenario.cell, patch) if patch else updated(scenario.cell, update[1])
        cells.ok(cell)
        if cell == scenario.cell:  # what fails is the call itself
            cells.ok(update[1])
            continue
        result = cells.run(scenario.call)
        if not (result.success and _is_right(result.result, scenario)):
            wrong[name] = (cell, result.error_in_exec or result.result)
    assert wrong == {}
    assert shown >= 55


def _is_right(found: Any, scenario: Scenario) -> bool:
    if "grad(" in scenario.call:
        return bool(np.isfinite(found))
    got, want = tree.leaves(found), tree.leaves(by_numpy(scenario))
    return len(got) == len(want) and all(
        np.allclose(a, b, rtol=1e-4) for a, b in zip(got, want, strict=True)
    )


def test_a_remedy_that_is_tried_is_told_of_nowhere(cells: Notebook) -> None:
    """It draws with the user's key, and reads the clock, which are no uses of its own."""
    cells.ok(
        "import time\nfrom perspex import random\nkey = random.key(0)\n@jit\ndef accept(x, key):\n"
        "    if jnp.log(random.uniform(key)) < x * time.time():\n"
        "        return x + random.normal(random.fold_in(key, 1))\n    return x"
    )
    error = cells.run("accept(1.0, key)").error_in_exec
    assert "jnp.where" in str(error)
    kinds = [mime for shown in cells.displayed for mime in shown if "keyreuse" in mime]
    assert not kinds
    told = [shown["text/plain"] for shown in cells.displayed if any("fixed" in m for m in shown)]
    assert len(told) == 1 and "ran once" in told[0]
