"""What an engine notes of a cell."""

from __future__ import annotations

from typing import Any

from perspex.base import events
from perspex_magics.cluster.notes import Noted


def stale(state: str, new: str) -> dict[str, Any]:
    return {"state": state, "variable": "rate", "old": "1", "new": new, "changed": "Cell In[2]:1"}


def noted(*changes: dict[str, Any]) -> list[tuple[str, str]]:
    kept = Noted()
    stop = events.subscribe(kept.note, ["stale"])
    try:
        for change in changes:
            events.publish("stale", "step", 0.0, **change)
    finally:
        stop()
    return [(note.variable, note.new) for note in kept.notes()]


def test_the_last_value_of_a_changed_variable_is_noted() -> None:
    assert noted(stale("found", "2"), stale("found", "3")) == [("rate", "3")]
    assert noted(stale("found", "2"), stale("retraced", "2")) == [("rate", "2")]


def test_what_was_taken_back_or_changed_before_is_not_noted() -> None:
    assert noted(stale("found", "2"), stale("gone", "2")) == []
    assert noted(stale("retraced", "2")) == []
