"""The topic `badges`: which tabs have something to look at, and when it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.page import rows_of
from support.shells import Notebook

from perspex_magics.panel.places import Places
from perspex_magics.panel.topics.badges import BadgesTopic


@pytest.fixture
def topic(notebook: Notebook) -> Iterator[BadgesTopic]:
    notebook.ok("from perspex import jit, random")
    places, forget = Places.noting(notebook.shell)
    topic = BadgesTopic(notebook.shell, places)
    topic.begin()
    yield topic
    topic.end()
    forget()


def run(notebook: Notebook, topic: BadgesTopic, cell: str, name: str) -> dict[str, Any]:
    """Run the cell with that id of the notebook; the badges by tab."""
    topic.cell_began()
    notebook.shell.run_cell(cell, store_history=True, cell_id=name).raise_error()
    topic.cell_ended(1)
    topic.is_interrupted = False
    topic.refresh()
    return {row.tab: (row.count, row.text) for row in rows_of(topic)}


def test_variables_with_nan(notebook: Notebook, topic: BadgesTopic) -> None:
    assert run(notebook, topic, "x = jnp.arange(3.0)\nn = 3", "a") == {}
    found = run(notebook, topic, "y = jnp.log(x - 1)\nz = jnp.zeros((2, 2)) / 0", "b")
    assert found == {"memory": (2, "NaN in `y`, `z`.")}
    assert run(notebook, topic, "y = z = x", "c") == {}


def test_reused_keys_until_their_cell_runs_again(notebook: Notebook, topic: BadgesTopic) -> None:
    run(notebook, topic, "key = random.key(0)", "a")
    twice = "u = random.normal(key, (3,))\nv = random.normal(key, (3,))"
    assert run(notebook, topic, twice, "b") == {"keys": (1, "A key was used more than once.")}
    assert "keys" in run(notebook, topic, "w = 1", "c")
    once = "u = random.normal(random.key(7), (3,))"
    assert run(notebook, topic, once, "b") == {}


STALE = """
from perspex_magics.display import notices
notices.show("stale", {"function": "scaled", "changes": []}, "", "")
"""


def test_stale_captures_until_their_cell_runs_again(notebook: Notebook, topic: BadgesTopic) -> None:
    text = "Compiled with values that have changed since: `scaled`."
    assert run(notebook, topic, STALE, "b") == {"program": (1, text)}
    # A page that was hidden meanwhile loses nothing.
    topic.end()
    topic.begin()
    assert run(notebook, topic, "rate = 2.0", "c") == {"program": (1, text)}
    assert run(notebook, topic, "rate = 2.0", "b") == {}
