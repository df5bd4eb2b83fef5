"""What engines noted of one cell, held against each other: who recompiled, and who holds what.

Processes that compute as one program call the same functions with the same types, and capture the
same values. One that does not is about to run another program than the others. All note the same
things where all is well; where they differ, a sentence names the processes, and what each has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perspex_magics.cluster.notes import RECOMPILE, Note
from perspex_magics.cluster.outputs import numbers

_SAME_TYPES = "Call it with the same shapes, dtypes and static values on all processes."
_SAME_VALUE = "Assign the same value on all processes, or pass it as an argument."


def differences(
    notes: Sequence[Sequence[Note] | None], held: Callable[[int, str], str]
) -> list[str]:
    """A sentence for each thing that processes have not noted alike.

    Args:
      notes: for each process what it noted; `None` for one that has not answered.
      held: gives the text of a variable on a process that has noted no change of it.
    """
    known = [i for i, those in enumerate(notes) if those is not None]
    found: dict[tuple[str, str, str], dict[int, list[Note]]] = {}
    for i, those in enumerate(notes):
        for note in those or ():
            key = (note.kind, note.function, note.variable)
            found.setdefault(key, {}).setdefault(i, []).append(note)
    told = []
    for (kind, function, variable), by_process in found.items():
        quiet = [i for i in known if i not in by_process]
        if kind == RECOMPILE:
            sentence = _recompiled(function, variable, by_process, quiet)
        else:
            sentence = _captured(function, variable, by_process, quiet, held)
        if sentence:
            told.append(sentence)
    return told


def _recompiled(
    function: str, variable: str, by_process: dict[int, list[Note]], quiet: list[int]
) -> str:
    texts = {
        i: ", ".join(dict.fromkeys([f"{note.new} (before {note.old})" for note in those]))
        for i, those in by_process.items()
    }
    if not quiet and len(set(texts.values())) == 1:
        return ""
    first = next(iter(by_process.values()))[0]
    rest = f"; {numbers(quiet)} did not recompile it" if quiet else ""
    return (
        f"`{function}` was recompiled at {first.at}, where `{variable}` was {_by_text(texts)}"
        f"{rest}. {_SAME_TYPES}"
    )


def _captured(
    function: str,
    variable: str,
    by_process: dict[int, list[Note]],
    quiet: list[int],
    held: Callable[[int, str], str],
) -> str:
    texts = {i: those[-1].new for i, those in by_process.items()}
    texts |= {i: held(i, variable) for i in quiet}
    if len(set(texts.values())) == 1:
        return ""
    texts = dict(sorted(texts.items()))
    places = dict.fromkeys([note.at for those in by_process.values() for note in those if note.at])
    changed = f", changed in {', '.join(places)}" if places else ""
    return (
        f"`{variable}`, which `{function}` captured, is {_by_text(texts)}{changed}. {_SAME_VALUE}"
    )


def _by_text(texts: dict[int, str]) -> str:
    """`0.3 on process 1, 0.1 on processes 0, 2`."""
    groups: dict[str, list[int]] = {}
    for i, text in texts.items():
        groups.setdefault(text, []).append(i)
    return ", ".join([f"{text} on {numbers(those)}" for text, those in groups.items()])
