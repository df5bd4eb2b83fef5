"""What engines noted, held against each other."""

from __future__ import annotations

from perspex_magics.cluster.differences import differences
from perspex_magics.cluster.notes import RECOMPILE, STALE, Note


def recompiled(new: str, old: str = "f32[4]") -> Note:
    return Note(RECOMPILE, "step", "x", "Cell In[4]:3", new, old)


def changed(new: str, at: str = "Cell In[4]:2") -> Note:
    return Note(STALE, "step", "rate", at, new, "0.1")


def nobody(process: int, variable: str) -> str:
    raise AssertionError("nobody is asked")


def test_processes_that_note_the_same_agree() -> None:
    assert differences([[], [], []], nobody) == []
    both = [recompiled("f32[5]"), changed("0.3")]
    assert differences([both, both], nobody) == []


def test_one_that_recompiles_alone_is_named_with_its_shape() -> None:
    (told,) = differences([[], [recompiled("f32[5]")], []], nobody)
    assert told == (
        "`step` was recompiled at Cell In[4]:3, where `x` was f32[5] (before f32[4]) on process 1; "
        "processes 0, 2 did not recompile it. Call it with the same shapes, dtypes and static "
        "values on all processes."
    )


def test_all_that_recompile_for_several_shapes_are_named() -> None:
    notes = [[recompiled("f32[5]")], [recompiled("f32[6]")], [recompiled("f32[5]")]]
    (told,) = differences(notes, nobody)
    assert "f32[5] (before f32[4]) on processes 0, 2, f32[6] (before f32[4]) on process 1." in told


def test_a_captured_value_is_asked_of_those_that_noted_no_change() -> None:
    asked = []

    def held(process: int, variable: str) -> str:
        asked.append((process, variable))
        return "0.1"

    (told,) = differences([[], [changed("0.3")], None, []], held)
    assert told == (
        "`rate`, which `step` captured, is 0.1 on processes 0, 3, 0.3 on process 1, changed in "
        "Cell In[4]:2. Assign the same value on all processes, or pass it as an argument."
    )
    assert asked == [(0, "rate"), (3, "rate")]


def test_one_that_holds_the_new_value_already_does_not_differ() -> None:
    assert differences([[], [changed("0.3")]], lambda process, variable: "0.3") == []
