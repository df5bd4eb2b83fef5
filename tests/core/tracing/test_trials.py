"""Remedies are tried, and the trial leaves nothing behind."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support.wrong_programs import BOOL, HEAD, failure, load, patched

from perspex.tracing import trials


def remedy(program: str, call: str) -> Any:
    _, _, card = failure(program, call, BOOL)
    return card.remedy


def test_a_remedy_that_fails_is_not_shown() -> None:
    """Branches of different shapes cannot be chosen from on the device."""
    program = """
    @jit
    def f(x):
        return x[:2] if x.sum() > 0 else x
    """
    assert remedy(program, "f(np.ones(3))").patch is None


def test_the_next_candidate_is_shown() -> None:
    """`jnp.where` takes no named tuples, and `lax.cond` does."""
    program = """
    from collections import namedtuple
    State = namedtuple("State", "w n")

    @jit
    def f(s, x):
        return State(s.w + x, s.n + 1) if x > 0 else s
    """
    source, _, card = failure(program, "f(State(1.0, 2.0), 3.0)", BOOL)
    patch = card.remedy.patch
    assert patch is not None and "cond(" in patch.after[0]
    _, namespace = load(patched(source, patch))
    assert [float(v) for v in eval("f(State(1.0, 2.0), 3.0)", namespace)] == [4.0, 3.0]


def test_what_the_user_does_after_the_line_has_no_effect(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    """Prints, containers, attributes and random states are as before the trial."""
    program = """
    import random
    class Model: n = 0
    model, seen, table = Model(), [], {"a": [1]}

    @jit
    def f(x):
        y = x if x > 0 else -x
        print("traced")
        seen.append(1)
        table["a"].append(2)
        model.n += 1
        random.random(), np.random.rand()
        return y
    """
    _, namespace = load(HEAD + "\n".join(line[4:] for line in program.splitlines()))
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[union-attr]
    with pytest.raises(BOOL) as info:
        namespace["f"](1.0)
    assert info.value.card is not None and info.value.card.remedy.patch is not None
    assert capsys.readouterr().out == ""
    assert namespace["seen"] == [] and namespace["table"] == {"a": [1]}
    assert vars(namespace["model"]) == {}
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[union-attr]


def test_no_file_is_opened(tmp_path: Any) -> None:
    path = tmp_path / "log"
    program = f"""
    @jit
    def f(x):
        y = x if x > 0 else -x
        open({str(path)!r}, "w")
        return y
    """
    assert remedy(program, "f(1.0)").patch is None or not path.exists()
    assert not path.exists()


def test_a_trial_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """After time of the processor, also where the code catches exceptions."""
    monkeypatch.setattr(trials, "_MOST_SECONDS", 0.1)
    program = """
    @jit
    def f(x):
        y = x if x > 0 else -x
        n = 0
        while True:
            try:
                n += 1
            except Exception:
                pass
        return y
    """
    patch = remedy(program, "f(1.0)").patch
    assert patch is None
