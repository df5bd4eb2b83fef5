"""The line under a cell that says what ran once, while a function was traced.

What is right is known from the cells: they are written so.
"""

from __future__ import annotations

import pytest
from support.shells import Notebook

from .scenarios import FIXED, SOUND

KIND = "application/vnd.perspex.fixed+json"


@pytest.fixture
def cells(notebook: Notebook) -> Notebook:
    """A notebook with what such cells import."""
    notebook.ok(
        "import os, random, secrets, time, uuid\nfrom perspex import jit, lax\n"
        "import perspex.random as jr"
    )
    return notebook


def told(cells: Notebook, code: str) -> list[str]:
    """What is said under a cell."""
    cells.ok(code)
    found = [bundle for bundle in cells.displayed if KIND in bundle]
    assert len(found) <= 1
    for bundle in found:
        lines = bundle["text/plain"].split("\n")
        assert lines == [f"Fixed at trace time: {text}" for text in bundle[KIND]["told"]]
        assert "<script" not in bundle["text/html"]
        assert bundle["text/html"].count("<strong>") == len(lines)
    return [text for bundle in found for text in bundle[KIND]["told"]]


@pytest.mark.parametrize("scenario", FIXED)
def test_what_is_fixed_is_told_once(cells: Notebook, scenario: str) -> None:
    codes, text, line = FIXED[scenario]
    found = [(each, code) for code in codes for each in told(cells, code)]
    assert len(found) == 1, found
    sentence, _ = found[0]
    assert f"`{text}` at Cell In[" in sentence
    assert f"]:{line} " in sentence or f"]:{line}." in sentence
    # The same cells again: nothing new.
    assert [each for code in codes for each in told(cells, code)] == []


@pytest.mark.parametrize("scenario", SOUND)
def test_what_is_sound_is_not_told(cells: Notebook, scenario: str) -> None:
    assert [each for code in SOUND[scenario] for each in told(cells, code)] == []
