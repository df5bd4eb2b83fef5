"""What to write instead where Python needed the value of a traced array.

`suggest` looks at the syntax of the user's line and at the names around it, and returns the lines
to write instead. It is called only when an error is raised, and runs none of the user's code. Where
it is not sure it returns nothing, and the message has the general remedy.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType

from perspex.advice.choices import choose
from perspex.advice.code import Place, find_place, place_of
from perspex.advice.loops import fori_loop, while_loop
from perspex.advice.static import mark_static
from perspex.advice.story import Remedy, Story
from perspex.advice.values import for_index, for_mask, for_number, for_numpy, for_store

BOOL, NUMBER, INDEX, ARRAY, MASK, SHAPE = "bool", "number", "index", "array", "mask", "shape"
"""What Python or NumPy needed of a traced value."""


def suggest(need: str, kind: str, story: Story | None) -> tuple[Remedy | None, str]:
    """The remedy for the line that runs now, if there is one, and where that line is.

    Args:
      need: what was asked for: one of the constants above.
      kind: the type of the traced value, as in `float32[]`.
      story: where the value comes from, if that is known.
    """
    place = find_place()
    if place is None:
        return None, ""
    try:
        return _suggest(place, need, kind, story), place.line
    except Exception:
        # The error itself matters more than advice on it.
        return None, place.line


def at_operation(frame: FrameType, lasti: int, lengths: Sequence[Story]) -> Remedy:
    """The remedy for an operation of ours that failed; empty where there is none.

    Args:
      frame, lasti: the line that called it.
      lengths: the stories of the integers among its operands, which it may want as numbers.
    """
    place = place_of(frame, lasti)
    if place is None or len(lengths) != 1:
        return Remedy("")
    return mark_static(place, lengths[0]) or Remedy("")


def _suggest(place: Place, need: str, kind: str, story: Story | None) -> Remedy | None:
    static = mark_static(place, story)
    is_scalar = kind.endswith("[]")
    # There is no reverse mode through a loop of unknown length.
    is_differentiated = story is not None and story.is_differentiated
    if need == SHAPE:
        return static if is_scalar else None
    if need == NUMBER and _is_length(place):
        return static
    if need == INDEX:
        found = for_index(place)
        loop = None if is_differentiated else fori_loop(place)
        if found is None and static is not None:
            return static if loop is None else beside(static, loop)
        found = found or loop
    elif need == BOOL:
        may_loop = is_scalar and not is_differentiated
        found = choose(place, is_scalar) or (while_loop(place) if may_loop else None)
    elif need == NUMBER:
        found = (for_number(place) or for_store(place)) if is_scalar else None
    else:
        found = (for_numpy(place) or for_store(place)) if need == ARRAY else for_mask(place)
    if found is None or found.patch is None:
        return static
    python_might_know = need in (BOOL, INDEX) and story is not None and story.is_of_integers
    return beside(found, static) if static and python_might_know else found


def beside(remedy: Remedy, other: Remedy) -> Remedy:
    """A remedy that names another one as well."""
    text = other.text.partition(":")[0]
    if other.patch is not None and len(other.patch.after) == 1:
        text = f"{text}: `{other.patch.after[0].strip()}`"
    return Remedy(remedy.text, remedy.patch, text)


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
