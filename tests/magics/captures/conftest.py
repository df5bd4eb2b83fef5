"""What tests of captures share."""

from __future__ import annotations

import pytest

from perspex_magics.captures import watcher


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is watched is looked at in each cell, however slow the machine is."""
    for name in ("_LEAST", "_MOST", "_BEGIN_BUDGET", "_TOUCHED_BUDGET"):
        monkeypatch.setattr(watcher, name, 10.0)
