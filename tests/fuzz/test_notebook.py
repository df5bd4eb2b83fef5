"""Random notebooks give what plain Python gives, or say so; the harness itself finds what is wrong.

`PERSPEX_SOAK` says how many notebooks, `PERSPEX_SOAK_SEED` which ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

import perspex
from fuzz.notebook import POLICIES, find, judge, script, shrink
from perspex.jitted import stale
from perspex_magics.captures import tokens

SEED = int(os.environ.get("PERSPEX_SOAK_SEED", "1"))
COUNT = int(os.environ.get("PERSPEX_SOAK", "9"))

pytestmark = pytest.mark.usefixtures("jupyter_home")


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_a_random_notebook(seed: int) -> None:
    found = find(seed, POLICIES[seed % 3])
    assert found is None, script(*found)
    assert perspex.config.stale_captures.value == "warn"


BY_HAND = ["k = 1.0", "@jit\ndef f0(x):\n    return x * k", "f0(2.0)", "k = 3.0", "f0(2.0)"]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_finds_a_missed_change(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(BY_HAND, policy) is None
    # Nothing is compared any more.
    monkeypatch.setattr(stale, "suspect", lambda traced: None)
    monkeypatch.setattr(stale, "settle", lambda traced: None)
    failure = judge(BY_HAND, policy)
    assert failure is not None and (failure.kind, failure.step) == ("miss", 4)


def test_it_finds_a_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        "k = [1.0]",
        "@jit\ndef f0(x):\n    return x * k[0]",
        "f0(2.0)",
        "k = [1.0]",
        "f0(2.0)",
    ]
    assert judge(cells, "warn") is None
    monkeypatch.setattr(tokens, "_same", lambda old, new, wait: False)
    failure = judge(cells, "warn")
    assert failure is not None and (failure.kind, failure.step) == ("false alarm", 4)


def test_it_shrinks_to_the_cells_and_lines_that_matter() -> None:
    cells = ["a = 1\nb = 2", "c = 3", "d = 4\ne = 5", "b", "c"]

    def fails(steps: Sequence[str]) -> bool:
        text = "\n".join(steps)
        return "b = 2" in text and "d = 4" in text

    assert shrink(cells, fails) == ["b = 2", "d = 4"]
