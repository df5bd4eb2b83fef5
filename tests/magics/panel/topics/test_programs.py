"""The topic `programs`: what lists call programs, whose they are, and which the last cell used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.page import rows_of
from support.shells import Notebook

from perspex_magics.panel.places import Places
from perspex_magics.panel.rows import ProgramRow
from perspex_magics.panel.topics.programs import ProgramsTopic


class Panel:
    """The rows of the topic, as a page would have them after each cell."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.places, self.undo = Places.noting(notebook.shell)
        self.topic = ProgramsTopic(notebook.shell, self.places)
        self.topic.begin()

    def run(self, cell: str) -> dict[str, ProgramRow]:
        """Run a cell; the programs by their titles, of several the newest."""
        self.notebook.shell.run_cell(cell, store_history=True).raise_error()
        self.topic.cell_ended(self.notebook.shell.execution_count - 1)
        self.topic.refresh()
        rows = sorted(rows_of(self.topic), key=lambda row: row.order)
        return {row.title: row for row in rows}


@pytest.fixture
def panel(notebook: Notebook) -> Iterator[Panel]:
    panel = Panel(notebook)
    yield panel
    panel.topic.end()
    panel.undo()


def test_whose_a_program_is(panel: Panel) -> None:
    rows = panel.run(
        "from functools import partial\n"
        "from perspex import jit, grad, vmap\n"
        "def own(x, n=1): return x * n\n"
        "x = jnp.arange(5.0) + 1\n"
        "jit(own)(x); jit(grad(lambda y: own(y).sum()))(x); jit(vmap(own))(x)\n"
        "jit(partial(own, n=2))(x); jnp.linalg.norm(x)"
    )
    users = {title for title, row in rows.items() if not row.library}
    assert "own" in users and "<lambda>" in " ".join(users), users
    assert {"norm", "add"} <= {title for title, row in rows.items() if row.library}, rows.keys()


def test_a_cell_is_called_by_its_outputs_and_number(panel: Panel) -> None:
    panel.run("x = jnp.arange(3.0)")
    count = panel.notebook.shell.execution_count
    row = panel.run("%%jit\nzeta = x * 2\nalpha = zeta.sum()")["zeta, alpha"]
    assert (row.name, row.cell, row.library) == ("cell", f"In[{count}]", False)
    assert panel.run("%%jit --name update\ny = x + 4")["update"].cell == ""
    assert panel.run("%%jit\nx * 5")["cell"].cell == f"In[{count + 2}]"


def test_a_cell_that_only_calls_functions_of_other_cells_has_its_own_number(panel: Panel) -> None:
    panel.run("x = jnp.arange(11.0)\ndef times(x): return x * 6")
    count = panel.notebook.shell.execution_count
    assert panel.run("%%jit\nw = times(x)")["w"].cell == f"In[{count}]"
    panel.run("1")
    assert panel.run("def other(x): return x")["w"].cell == f"In[{count}]"


def test_what_the_last_cell_used(panel: Panel) -> None:
    shell = panel.notebook.shell
    panel.run(
        "from perspex import jit\nx = jnp.arange(7.0)\n"
        "@jit\ndef one(x): return x + 1\n@jit\ndef two(x): return x + 2\n"
        "def both(x): return [one(x) for _ in range(2)]"
    )
    first = shell.execution_count
    rows = panel.run("one(x); two(x)")
    assert (rows["one"].used, rows["two"].used) == (first, first)
    # A repeated call passes no Python: the text of the cell says what it uses.
    rows = panel.run("y = two(x)")
    assert (rows["one"].used, rows["two"].used) == (first, first + 1)
    rows = panel.run("y = both(x)")
    assert (rows["one"].used, rows["two"].used) == (first + 2, first + 1)
