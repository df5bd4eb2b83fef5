"""What to write instead where Python needed the value of a traced array.

`suggest` looks at the syntax of the user's line and at the names around it, and returns the lines
to write instead. It is called only when an error is raised. Of several remedies it takes the first
one that works: each is traced before it is shown (`register_trial`). Where there is none it returns
nothing, and the message has the general remedy.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from perspex.advice.choices import choose
from perspex.advice.code import Place, find_place, place_of
from perspex.advice.loops import fori_loop, while_loop
from perspex.advice.static import mark_static
from perspex.advice.story import Remedy, Story
from perspex.advice.values import for_index, for_leaving, for_mask, for_number, for_numpy, for_store

BOOL, NUMBER, INDEX, ARRAY, MASK, SHAPE = "bool", "number", "index", "array", "mask", "shape"
"""What Python or NumPy needed of a traced value."""


Trial = Callable[[Place, Remedy, Story | None, Sequence[str]], bool]
"""Says whether a remedy runs; the names are those of the arguments that it marks static."""

_trials: list[Trial] = []


class _Trying(threading.local):
    now = False


_trying = _Trying()


def register_trial(trial: Trial) -> None:
    """Register what runs a remedy before it is shown."""
    _trials.append(trial)


def suggest(need: str, kind: str, story: Story | None) -> tuple[Remedy | None, str]:
    """The remedy for the line that runs now, if there is one, and where that line is.

    Args:
      need: what was asked for: one of the constants above.
      kind: the type of the traced value, as in `float32[]`.
      story: where the value comes from, if that is known.
    """
    # What fails in a trial is not shown.
    place = None if _trying.now else find_place()
    if place is None:
        return None, ""
    try:
        return _first(place, _candidates(place, need, kind, story), story), place.line
    except Exception:
        # The error itself matters more than advice on it.
        return None, place.line


def _first(
    place: Place, candidates: Iterator[tuple[Remedy, Remedy | None]], story: Story | None
) -> Remedy | None:
    """The first remedy that works, beside the other one, if that works too."""
    for found, other in candidates:
        if works(place, found, story):
            return beside(found, other) if other and works(place, other, story) else found
    return None


def works(place: Place, remedy: Remedy, story: Story | None) -> bool:
    """Whether a remedy without lines to write has been found, or one whose lines run."""
    _trying.now = True
    try:
        return all(trial(place, remedy, story, remedy.static) for trial in _trials)
    finally:
        _trying.now = False


def at_operation(frame: FrameType, lasti: int, lengths: Sequence[Story]) -> Remedy:
    """The remedy for an operation of ours that failed; empty where there is none.

    Args:
      frame, lasti: the line that called it.
      lengths: the stories of the integers among its operands, which it may want as numbers.
    """
    place = place_of(frame, lasti)
    if place is None or len(lengths) != 1:
        return Remedy("")
    found = None if _trying.now else mark_static(place, lengths[0])
    return found if found and works(place, found, lengths[0]) else Remedy("")


def _candidates(
    place: Place, need: str, kind: str, story: Story | None
) -> Iterator[tuple[Remedy, Remedy | None]]:
    """Remedies, the best one first, each with another way that may be named beside it."""
    static = mark_static(place, story)
    is_scalar = kind.endswith("[]")
    # There is no reverse mode through a loop of unknown length.
    is_differentiated = story is not None and story.is_differentiated
    if need == SHAPE or (need == NUMBER and _is_length(place)):
        if static and is_scalar:
            yield static, None
        return
    # Python code depends on what it knows: on switches, and on numbers that count.
    might_know = need in (BOOL, INDEX) and story is not None and story.is_of_integers
    is_switch = need == BOOL and story is not None and story.is_of_booleans and _branches(place)
    if static and is_switch:
        yield static, next(iter(_of_arrays(place, need, is_scalar, is_differentiated)), None)
    for found in _of_arrays(place, need, is_scalar, is_differentiated):
        if need == INDEX and static is not None and found.is_loop:
            yield static, found
        yield found, static if might_know else None
    if static is not None:
        yield static, None
    leaving = for_leaving(place) if need == NUMBER else None
    if leaving is not None:
        yield leaving, None


def _of_arrays(
    place: Place, need: str, is_scalar: bool, is_differentiated: bool
) -> Iterator[Remedy]:
    """The ways to write a line for arrays."""
    may_loop = is_scalar and not is_differentiated
    found: list[Remedy | None] = []
    if need == INDEX:
        found = [for_index(place), None if is_differentiated else fori_loop(place)]
    elif need == BOOL:
        found = [*choose(place, is_scalar), while_loop(place) if may_loop else None]
    elif need == NUMBER:
        found = [for_number(place), for_store(place)] if is_scalar else []
    elif need == ARRAY:
        found = [for_numpy(place), for_store(place)]
    else:
        found = [for_mask(place)]
    yield from [remedy for remedy in found if remedy is not None and remedy.patch is not None]


def _branches(place: Place) -> bool:
    """Whether Python chooses by the value what it runs."""
    for node in place.file.ancestors(place.node):
        if not isinstance(node, (ast.BoolOp, ast.UnaryOp)):
            return isinstance(node, (ast.If, ast.IfExp, ast.While))
    return False


def beside(remedy: Remedy, other: Remedy) -> Remedy:
    """A remedy that names another one as well."""
    text = other.text.partition(":")[0]
    if other.patch is not None and len(other.patch.after) == 1:
        text = f"{text}: `{other.patch.after[0].strip()}`"
    return remedy._replace(otherwise=text)


def _is_length(place: Place) -> bool:
    """Whether `int(n)` stands where a length is wanted."""
    parent = place.parent
    while isinstance(parent, (ast.Tuple, ast.BinOp)):
        parent = place.file.parents[parent]
    return (
        isinstance(place.node, ast.Call)
        and place.is_builtin(place.node.func, "int")
        and isinstance(parent, (ast.Call, ast.Subscript, ast.Slice))
        and not (isinstance(parent, ast.Call) and place.is_builtin(parent.func, "print"))
    )
