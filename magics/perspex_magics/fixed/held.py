"""Traced values that outlived their function: a notebook's variables that hold them.

Nothing is recorded while a function is traced. Where a cell traced one, the variables are looked at
once as it ends, as far as `losses[3]` and `model.history[3]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from perspex.advice.leaks import stored_by
from perspex.advice.story import recall
from perspex.tracing.trace import Tracer
from perspex_magics.display.summaries import brief
from perspex_magics.notebook.kinds import dict_of, is_a, items

_MOST_ITEMS = 256


class Held(NamedTuple):
    """Traced values in a variable: what one of them is called, and which line stored it.

    `function` is the one that was traced, `number` how many the variable holds.
    """

    root: str
    name: str
    stored: str
    function: str
    number: int


def held_in(namespace: Mapping[str, Any]) -> Iterator[Held]:
    """The variables of a notebook that hold values of traces that are over."""
    for root, value in list(namespace.items()):
        if root[:1] == "_" or root in ("In", "Out"):
            continue
        found = list(_inside(value, root, 2))
        if found:
            name, tracer = found[-1]
            trace = tracer._trace
            while trace is not None and not trace.writes:
                trace = trace.parent
            _, origin = tracer._story()
            story = recall(origin)
            function = getattr(trace, "name", "") or "a function"
            yield Held(root, name, stored_by(name, story), function, len(found))


def _inside(value: Any, name: str, depth: int) -> Iterator[tuple[str, Tracer]]:
    if is_a(value, Tracer):
        # A transform's trace is over when that is which writes the program.
        if not value._trace.alive:
            yield name, value
        return
    if not depth:
        return
    found = items(value)
    if found is not None:
        inside, count = found
        if count <= _MOST_ITEMS:
            is_list = is_a(value, list | tuple)
            for key, item in inside:
                yield from _inside(item, f"{name}[{key if is_list else brief(key)}]", depth - 1)
    elif type(value).__module__ == "__main__":
        for key, item in list((dict_of(value) or {}).items()):
            yield from _inside(item, f"{name}.{key}", depth - 1)
