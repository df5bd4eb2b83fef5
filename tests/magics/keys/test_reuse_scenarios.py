"""Cells as users write them: reuse that is missed, and false alarms, are counted."""

from __future__ import annotations

import pytest
from support.shells import Notebook

from .scenarios import REUSED, SOUND

KIND = "application/vnd.perspex.keyreuse+json"
# What a program folds into a key is not computed a second time.
MISSED = {"fold_in in a program, and a child of split"}


def told_in(notebook: Notebook, make: str, scenarios: dict[str, list[str]]) -> dict[str, list[str]]:
    """What was said in each scenario. All run in one notebook, each with its own key."""
    notebook.ok(f"from perspex import lax, random\nmake = random.{make}")
    found = {}
    for number, (scenario, cells) in enumerate(scenarios.items()):
        notebook.ok(f"key = make({1000 + number})")
        told = []
        for cell in cells:
            notebook.ok(f"# {scenario}\n{cell}")
            told += [bundle[KIND]["told"] for bundle in notebook.displayed if KIND in bundle]
        if told:
            found[scenario] = [text for texts in told for text in texts]
    return found


@pytest.mark.parametrize("make", ["key", "PRNGKey"])
def test_what_is_reused_is_told_once(notebook: Notebook, make: str) -> None:
    found = told_in(notebook, make, REUSED)
    assert REUSED.keys() - found.keys() == MISSED
    assert {scenario: told for scenario, told in found.items() if len(told) > 1} == {}


@pytest.mark.parametrize("make", ["key", "PRNGKey"])
def test_what_is_sound_is_not_told(notebook: Notebook, make: str) -> None:
    assert told_in(notebook, make, SOUND) == {}
