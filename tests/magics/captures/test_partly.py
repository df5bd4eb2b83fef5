"""Cells as users write them: the notices that are missed, and those that are false, are counted."""

from __future__ import annotations

import gc
import string

import pytest
from support.shells import Told

from perspex_magics.captures import watcher

from . import scenarios_of_training as training
from .scenarios import FRESH, STALE

pytestmark = pytest.mark.usefixtures("default_policy")

# Setter and call in one expression: no statement ends between them. Variables of installed modules
# are not looked at, nor what `functools` keeps.
MISSED = {"a setter in an expression", "an installed module", "singledispatch"}
# Which branch was taken is not recorded.
FALSE = {"an untaken branch"}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is watched is looked at in each cell, however slow the machine is."""
    for name in ("_LEAST", "_MOST", "_BEGIN_BUDGET", "_TOUCHED_BUDGET"):
        monkeypatch.setattr(watcher, name, 10.0)
    monkeypatch.setattr(string, "digits", string.digits)
    monkeypatch.setenv("PX_A", "1")
    monkeypatch.setenv("PX_B", "1")


def told_in(told: Told, scenarios: dict[str, tuple[str, str]]) -> set[str]:
    """The scenarios in which a notice came. All run in one notebook, each with its own names."""
    names = told.notebook.ns
    before, found = set(names), set()
    gc.freeze()
    for scenario, (define, change) in scenarios.items():
        told.ok(define)
        told.ok("f(2.0)")
        assert not told.warnings, scenario
        told.ok(change)
        variables = told.variables
        if "f(2.0)" not in change:
            told.ok("f(2.0)")
            variables += told.variables
        if variables:
            found.add(scenario)
        for name in [name for name in names if name not in before and not name.startswith("_")]:
            del names[name]
        names["Out"].clear()
        gc.collect()
    return found


@pytest.mark.usefixtures("patient")
def test_what_became_stale_is_told(told: Told) -> None:
    assert STALE.keys() - told_in(told, STALE) == MISSED


@pytest.mark.usefixtures("patient")
def test_what_is_sound_is_not_told(told: Told) -> None:
    assert told_in(told, FRESH) == FALSE


@pytest.mark.usefixtures("patient")
def test_what_became_stale_while_training_is_told(told: Told) -> None:
    assert training.STALE.keys() - told_in(told, training.STALE) == set()


@pytest.mark.usefixtures("patient")
def test_what_is_sound_while_training_is_not_told(told: Told) -> None:
    assert told_in(told, training.FRESH) == set()


def test_there_are_as_many_as_were_asked_for() -> None:
    assert (len(STALE | training.STALE), len(FRESH | training.FRESH)) == (137, 84)
